"""Which code a study's tool servers are: noted with its first attempt, compared before any later one.

The dataset and the weights are in the rollout hash; a server's code may lie anywhere and be another interpreter's.
"""

from __future__ import annotations

import inspect
import json
import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tbstudy.disk import hash_files, write_atomic
from tbstudy.errors import StudyError
from tbstudy.sandbox.servers import ServerSpec
from tbstudy.secrets import without_secrets

#: The note in a study's folder: by server the codes it was, oldest first.
SERVERS = "servers.json"
#: What a server is built on, of which the versions are noted.
_PACKAGES = ("mcp", "fastmcp", "pydantic")
#: What a package's code is, so that a log or a database that a server writes beside it is not taken for it.
_SOURCES = frozenset({".py", ".json", ".yaml", ".yml", ".sql", ".csv", ".toml"})
#: What a command's code is beside these; not the database that it is told to write to.
_SCRIPTS = frozenset({"", ".js", ".mjs", ".cjs", ".ts", ".sh", ".rb", ".pl", ".php", ".jar", ".pyz"})
_SECONDS = 60.0


def note_servers(servers: Iterable[ServerSpec], transport: str, folder: Path, store: Path | None = None) -> None:
    """Note in a study's folder what code its servers are, by what `server_code` says. A file of attempts elsewhere,
    `store`, has a note of its own beside it: base.servers.json for base.jsonl.

    Raises:
        StudyError: a server's code is another than the one that the study's attempts were made with.
    """
    if store is None or store.resolve().is_relative_to(folder.resolve()):
        note = folder / SERVERS
        # Not rglob: it fails where a folder goes that somebody else is writing.
        played = any(_is_filled(Path(at, name)) for at, _, names in os.walk(folder) for name in names
                     if name.endswith(".jsonl"))
    else:
        note, played = store.with_suffix(f".{SERVERS}"), _is_filled(store)
    before = noted_servers(note)
    after = dict(before) if played else {}
    for name, found in server_code(servers, transport).items():
        known = after.get(name, [])
        others = [k for k in known if None not in (k["sha256"], found["sha256"]) and k["sha256"] != found["sha256"]]
        if others:
            raise StudyError(
                f"server {name!r}: its code ({found['code']}, {found['sha256'][:12]}) is not the one that this study's "
                f"attempts were made with ({others[-1]['sha256'][:12]}, {note}). Put that code back, use another study "
                f"folder, or remove {note.name} to go on with attempts of both")
        after[name] = known if found in known else [*known, found]
    if after != before:
        write_atomic(note, (json.dumps(after, indent=1, sort_keys=True) + "\n").encode())


def noted_servers(note: Path) -> dict[str, list[dict[str, Any]]]:
    """What `note_servers` noted in a file; {} where there is none.

    Raises:
        StudyError: the note cannot be read.
    """
    try:
        found = json.loads(note.read_text(encoding="utf-8")) if note.exists() else {}
        if not all("sha256" in entry for entries in found.values() for entry in entries):
            raise ValueError("an entry without sha256")
        return found
    except (ValueError, TypeError, AttributeError) as error:
        raise StudyError(f"{note}: not a note of servers' code ({error}); remove it if that code has not changed "
                         "since the first of the attempts here") from None


def server_code(servers: Iterable[ServerSpec], transport: str) -> dict[str, dict[str, Any]]:
    """By name of a server that this machine runs: `code` (its module, or the files of its command), `sha256` of it,
    `python` and `packages`, the versions of what runs it. What cannot be found out is None; a session will say why.

    The code of a module is all Python and data files of its top-level package, without hidden ones, or the Python
    files beside it.
    """
    found: dict[str, dict[str, Any]] = {}
    places: dict[Any, dict[str, Any]] = {}
    hashes: dict[tuple[Any, ...], str | None] = {}
    for spec in servers:
        if transport == "inprocess" and (spec.in_process or spec.module):
            module, runner = spec.in_process.partition(":")[0] if spec.in_process else spec.module, None
        elif transport in ("forked", "process") and spec.type == "mcp-process":
            module, runner = spec.module, (spec.command[0], spec.cwd, tuple(spec.env.items()))
        else:
            continue
        if module is None:
            # Not Path.is_file: a word may be anything, a program text for instance, and too long for a name.
            files = [f for f in (Path(spec.cwd or ".", word) for word in spec.command[1:])
                     if f.suffix in _SOURCES | _SCRIPTS and os.path.isfile(f)]
            found[spec.name] = {"code": " ".join(f.name for f in files) or spec.command[0], "python": None,
                                "packages": None, "sha256": _hash({f"{i} {f.name}": f for i, f in enumerate(files)})}
            continue
        top = module.partition(".")[0]
        if (runner, top) not in places:
            places[runner, top] = _find(top, _PACKAGES) if runner is None else _ask(spec, top)
        told = places[runner, top]
        place = (*told["folders"], told["package"], top)
        if place not in hashes:
            hashes[place] = _hash({f"{i} {name}": file for i, folder in enumerate(told["folders"])
                                   for name, file in _files(Path(folder), None if told["package"] else top)})
        found[spec.name] = {"code": module, "sha256": hashes[place], "python": told["python"],
                            "packages": told["packages"]}
    return found


def _ask(spec: ServerSpec, module: str) -> dict[str, Any]:
    """What `_find` says in the server's own interpreter, folder and environment."""
    code = f"{inspect.getsource(_find)}\nimport json, sys\nprint(json.dumps(_find(sys.argv[1], sys.argv[2:])))"
    try:
        out = subprocess.run([spec.command[0], "-c", code, module, *_PACKAGES], capture_output=True, text=True,
                             cwd=spec.cwd, env={**without_secrets(), **spec.env}, timeout=_SECONDS, check=True)
        return json.loads(out.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return {"python": None, "packages": None, "folders": [], "package": False}


def _find(module, packages):
    """Where a top-level module lies, and versions. Runs in other interpreters, too, and stands by itself."""
    import importlib.metadata
    import importlib.util
    import os
    import platform

    versions = {}
    for name in packages:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            pass
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        spec = None
    # A package may lie in several folders; what an import hook of an editable install lists beside them is none.
    package = spec is not None and spec.submodule_search_locations is not None
    folders = [os.path.abspath(f) for f in spec.submodule_search_locations if os.path.isdir(f)] if package else []
    if spec is not None and not package and spec.origin and os.path.isfile(spec.origin):
        folders = [os.path.dirname(os.path.abspath(spec.origin))]
    return {"python": platform.python_version(), "packages": versions, "folders": folders, "package": package}


def _files(folder: Path, module: str | None) -> Iterator[tuple[str, Path]]:
    """The files of a package's folder that are code, with their names in it; those of a `module` that lies there."""
    for at, below, names in os.walk(folder):
        # Nothing hidden is imported: environments, version control, an editor's copies.
        below[:] = [] if module is not None else [name for name in below if not name.startswith(".")]
        for name in names:
            file = Path(at, name)
            if name.startswith(".") or file.suffix not in _SOURCES or not file.is_file():
                continue
            # What else is installed beside an installed module is not its code.
            installed = folder.name in ("site-packages", "dist-packages")
            if module is None or file.suffix == ".py" and (not installed or file.stem == module):
                yield file.relative_to(folder).as_posix(), file


def _is_filled(file: Path) -> bool:
    try:
        return file.stat().st_size > 0
    except OSError:
        return False


def _hash(files: Mapping[str, Path]) -> str | None:
    """SHA-256 over names and contents; None without a file, or where one cannot be read."""
    try:
        return hash_files(sorted(files.items())) if files else None
    except OSError:
        return None
