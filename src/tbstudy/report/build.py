"""Freeze a study folder into a versioned report that is never overwritten.

reports/<name>/<version>/
  report.html     self-contained: figures inline, no script, opens from disk
  manifest.json   commit, hashes of config and data, package versions, seeds, model, counts
  tables/         CSV, Markdown, LaTeX, HTML
  figures/        PDF, SVG, PNG
  views/          single attempts to read, as HTML
  notebooks/      as executed
"""

from __future__ import annotations

import base64
import datetime
import html
import json
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from tbstudy.disk import whole_folder
from tbstudy.errors import StudyError
from tbstudy.report.study import INDEX, load_index
from tbstudy.selection import file_hash

PACKAGES = (
    "tbstudy",
    "numpy",
    "pandas",
    "scipy",
    "matplotlib",
    "pydantic",
    "mcp",
    "torch",
    "transformers",
    "papermill",
)
DATA_SUFFIXES = {".jsonl", ".json", ".csv", ".yaml", ".yml", ".safetensors"}

CSS = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
figure { margin: 2rem 0; } figure img { max-width: 100%; height: auto; }
figcaption, caption { text-align: left; font-weight: 600; margin: .4rem 0; caption-side: top; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .85rem; margin: 1.5rem 0 .3rem; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #ddd; text-align: left; }
th { border-bottom: 2px solid #222; }
.num { text-align: right; font-variant-numeric: tabular-nums; }
.note { font-size: .85rem; color: #555; margin-top: .2rem; }
.view { font-size: .85rem; margin: 2rem 0; overflow-x: auto; } .view table { margin: .3rem 0; }
nav { font-size: .9rem; } footer { margin-top: 3rem; font-size: .8rem; color: #555; }
"""

#: Browsers load nothing and run nothing, whatever a record holds: the report is one file.
POLICY = (
    '<meta http-equiv="Content-Security-Policy" '
    "content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">"
)


def freeze(
    study_dir: str | Path,
    out_root: str | Path,
    name: str,
    version: str | None = None,
    *,
    notebooks: Iterable[str | Path] = (),
    data: Iterable[str | Path] = (),
    facts: Mapping[str, Any] | None = None,
) -> Path:
    """Copy a study folder's tables, figures, views and executed notebooks into `out_root`/`name`/`version` and describe
    them.

    `version` defaults to the next free one (v1, v2, ...). `notebooks` come on top of those in `study_dir`; `data` are
    files outside of it to hash (those in it with a data suffix are hashed anyway); `facts` go into the manifest over
    the facts the study recorded. The folder appears whole or not at all. Raises `StudyError` when the version exists,
    the study has no index or a cut one, an indexed table, figure or view is missing, or the disk is full.
    """
    study, parent = Path(study_dir), Path(out_root) / name
    index = load_index(study)
    if index.get("cut"):
        raise StudyError(f"{study / INDEX}: the analyse stage was cut while it wrote the report; run it again")
    version = version or _next_version(parent)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", version):
        raise StudyError(f"version {version!r} cannot name a folder; use letters, digits, dot, dash, underscore")
    target = parent / version
    if target.exists():
        raise StudyError(f"{target}: this version exists and is never overwritten; choose another or leave it out")
    with whole_folder(target) as scratch:
        _copy_entries(study, scratch, index)
        copied = _copy_notebooks([*sorted(study.rglob("*.ipynb")), *map(Path, notebooks)], scratch / "notebooks")
        manifest = _manifest(study, name, version, index, copied, data, facts or {})
        described = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
        (scratch / "manifest.json").write_text(described, encoding="utf-8")
        (scratch / "report.html").write_text(render_html(scratch, index, manifest), encoding="utf-8")
    return target


def render_html(folder: Path, index: Mapping[str, Any], manifest: Mapping[str, Any]) -> str:
    """The report of a frozen folder as one HTML page: figures inline as SVG images, tables and views from their HTML
    files."""
    title = html.escape(index["title"])
    commit = manifest["commit"] or "not in a git repository"
    if manifest["uncommitted_changes"]:
        commit += " with uncommitted changes"
    parts = [f"<h1>{title}</h1>", f"<p>{html.escape(index['intro'])}</p>" if index["intro"] else ""]
    for entry in index["entries"]:
        kind, entry_name, caption = entry["kind"], entry["name"], html.escape(entry.get("caption", ""))
        if kind == "section":
            parts.append(f"<h2>{html.escape(entry_name)}</h2>" + (f"<p>{caption}</p>" if caption else ""))
            continue
        if kind == "table":
            table = (folder / "tables" / f"{entry_name}.html").read_text(encoding="utf-8")
            parts.append(f'<div class=wide id="{entry_name}">{table}</div>')
        elif kind == "view":
            view = (folder / "views" / f"{entry_name}.html").read_text(encoding="utf-8")
            parts.append(
                f'<figure id="{entry_name}"><figcaption>{caption}</figcaption><div class=view>{view}</div></figure>'
            )
        else:
            image = base64.b64encode((folder / "figures" / f"{entry_name}.svg").read_bytes()).decode()
            parts.append(
                f'<figure id="{entry_name}"><img src="data:image/svg+xml;base64,{image}" alt="{caption}">'
                f"<figcaption>{caption}</figcaption></figure>"
            )
    links = " · ".join(
        f'<a href="notebooks/{html.escape(notebook)}">{html.escape(notebook)}</a>' for notebook in manifest["notebooks"]
    )
    footer = f"tbstudy {manifest['packages']['tbstudy']}, commit {commit}, {manifest['created']}; see manifest.json"
    parts += [f"<nav>Notebooks: {links}</nav>" if links else "", f"<footer>{html.escape(footer)}</footer>"]
    body = "\n".join(part for part in parts if part)
    head = f'<meta charset="utf-8">{POLICY}<meta name="viewport" content="width=device-width"><title>{title}</title>'
    return f'<!doctype html>\n<html lang="en"><head>{head}<style>{CSS}</style></head>\n<body>\n{body}\n</body></html>\n'


def _next_version(parent: Path) -> str:
    taken = [int(path.name[1:]) for path in parent.glob("v*") if path.name[1:].isdigit()] if parent.is_dir() else []
    return f"v{max(taken, default=0) + 1}"


def _copy_entries(study: Path, target: Path, index: Mapping[str, Any]) -> None:
    kinds = {
        "table": ("tables", ("csv", "md", "tex", "html")),
        "figure": ("figures", ("pdf", "svg", "png")),
        "view": ("views", ("html",)),
    }
    for entry in index["entries"]:
        if entry["kind"] not in kinds:
            continue
        folder, suffixes = kinds[entry["kind"]]
        (target / folder).mkdir(exist_ok=True)
        for suffix in suffixes:
            source = study / folder / f"{entry['name']}.{suffix}"
            if not source.is_file():
                raise StudyError(f"{source}: indexed but missing; run the analyse stage again")
            shutil.copyfile(source, target / folder / source.name)


def _copy_notebooks(paths: Iterable[Path], target: Path) -> list[str]:
    copied: list[str] = []
    for path in paths:
        # Hidden ones are checkpoints, and what a killed run was just executing.
        if path.name.startswith(".") or ".ipynb_checkpoints" in path.parts:
            continue
        if not path.is_file():
            raise StudyError(f"{path}: no such notebook")
        if path.name in copied:
            raise StudyError(f"{path}: a second notebook of this name; a report holds one of each")
        target.mkdir(exist_ok=True)
        shutil.copyfile(path, target / path.name)
        copied.append(path.name)
    return sorted(copied)


def _manifest(
    study: Path,
    name: str,
    version: str,
    index: Mapping[str, Any],
    notebooks: list[str],
    data: Iterable[str | Path],
    facts: Mapping[str, Any],
) -> dict[str, Any]:
    stated = {**index.get("facts", {}), **facts}
    hashes, records = {}, {}
    inside = [path for path in sorted(study.rglob("*")) if path.suffix in DATA_SUFFIXES and path.is_file()]
    for path in inside:
        relative = path.relative_to(study)
        if relative.parts[0] in ("tables", "figures") or any(part.startswith(".") for part in relative.parts):
            continue
        hashes[relative.as_posix()] = file_hash(path)
        if path.suffix == ".jsonl":
            records[relative.as_posix()] = _lines(path)
    for path in map(Path, data):
        hashes[path.name] = file_hash(path)
        if path.suffix == ".jsonl":
            records[path.name] = _lines(path)
    commit, changed = _commit()
    entries = index["entries"]
    return {
        "name": name,
        "version": version,
        "title": index["title"],
        "created": _now(),
        "commit": commit,
        "uncommitted_changes": changed,
        "python": platform.python_version(),
        "packages": {package: found for package in PACKAGES if (found := _installed(package))},
        "config_hash": stated.pop("config_hash", None),
        "seeds": stated.pop("seeds", None),
        "model": stated.pop("model", None),
        "counts": {"records": records, **(stated.pop("counts", None) or {})},
        "facts": stated,
        "data": hashes,
        "notebooks": notebooks,
        "tables": [entry["name"] for entry in entries if entry["kind"] == "table"],
        "figures": [entry["name"] for entry in entries if entry["kind"] == "figure"],
        "views": [entry["name"] for entry in entries if entry["kind"] == "view"],
    }


def _lines(path: Path) -> int:
    with open(path, "rb") as handle:
        return sum(1 for _ in handle)


def _now() -> str:
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    moment = datetime.datetime.fromtimestamp(int(epoch), datetime.UTC) if epoch else datetime.datetime.now(datetime.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _installed(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _commit() -> tuple[str | None, bool | None]:
    """Commit of the repository this package is in, and whether its source differs from it; (None, None) outside one."""
    package = Path(__file__).resolve().parents[1]

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(["git", "-C", str(package), *arguments], capture_output=True, text=True, timeout=30)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    commit = git("rev-parse", "HEAD")
    if commit is None:
        return None, None
    return commit, bool(git("status", "--porcelain", "--", str(package)))
