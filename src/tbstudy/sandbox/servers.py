"""`servers.yaml`: how each tool server of a dataset starts."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tbstudy import secrets
from tbstudy.errors import StudyError
from tbstudy.tasks.source import read_yaml

_KEYS = {"mcp-process": {"type", "command", "env", "cwd", "transport", "name", "in_process"},
         "mcp-remote": {"type", "endpoint", "headers", "timeout", "transport", "credential", "name"}}


_VARIABLE = re.compile(r"\{env\[([A-Za-z_][A-Za-z0-9_]*)\]\}")


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """One server: `type` is mcp-process (with `command`, `env`, `cwd`) or mcp-remote (with `url`, `headers`).

    `in_process` is `<module>:<attribute>` of a `SqliteServer`, for servers that also run inside this process.
    """

    name: str
    type: str = "mcp-process"
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    transport: str = "stdio"
    in_process: str | None = None

    @property
    def module(self) -> str | None:
        """The module that `python -m` starts, or None for any other command."""
        c = self.command
        return c[2] if len(c) >= 3 and c[1] == "-m" and Path(c[0]).name.startswith("python") else None


def read_servers(path: str | Path, python: str | None = None) -> dict[str, ServerSpec]:
    """The servers of a dataset by name. `{python}` in a command is `python` (default: this interpreter) and
    `{env[NAME]}` an environment variable, also in the values of `env` and `headers`, which is how a server gets a key:
    of ours it sees none. A relative `cwd` counts from the file's folder. In a checkout of
    thinkingbox-data its servers find their files (THINKINGBOX_DATA) unless the environment says where.

    Raises:
        StudyError: naming file, server and field.
    """
    path = Path(path)
    config = read_yaml(path, "servers file")
    servers = config.get("servers") if isinstance(config, dict) else None
    if not isinstance(servers, dict):
        raise StudyError(f"{path}: must be a mapping with a mapping 'servers'")
    checkout = path.resolve().parent.parent
    env = {"THINKINGBOX_DATA": str(checkout)} if (
        (checkout / "dataset").is_dir() and "THINKINGBOX_DATA" not in os.environ) else {}
    return {name: _spec(name, value, f"{path}: servers.{name}", python or sys.executable, path.parent, env)
            for name, value in servers.items()}


def _spec(name: str, value: Any, where: str, python: str, folder: Path,
          env: dict[str, str]) -> ServerSpec:
    if not isinstance(value, dict):
        raise StudyError(f"{where}: must be a mapping, it is {value!r}")
    kind = value.get("type", "mcp-process")
    if kind not in _KEYS:
        raise StudyError(f"{where}: field 'type' must be {' or '.join(_KEYS)}, it is {kind!r}")
    if unknown := set(value) - _KEYS[kind]:
        raise StudyError(f"{where}: unknown field {', '.join(sorted(map(repr, unknown)))}; fields of {kind}: "
                         f"{', '.join(sorted(_KEYS[kind]))}")
    if kind == "mcp-remote":
        url, transport = value.get("endpoint"), value.get("transport", "streamable-http")
        if not isinstance(url, str):
            raise StudyError(f"{where}: field 'endpoint' must be a URL, it is {url!r}")
        if transport != "streamable-http":
            raise StudyError(f"{where}: field 'transport' must be streamable-http, it is {transport!r}")
        if value.get("credential") is not None:
            raise StudyError(f"{where}: field 'credential' is not supported; put a token into 'headers', as "
                             "'{env[NAME]}'")
        return ServerSpec(name, kind, url=url, headers=_texts(value, "headers", where), transport=transport)
    command = value.get("command")
    if not isinstance(command, list) or not command or not all(isinstance(c, str) for c in command):
        raise StudyError(f"{where}: field 'command' must be a list of text, it is {command!r}")
    if value.get("transport", "stdio") != "stdio":
        raise StudyError(f"{where}: field 'transport' must be stdio, it is {value['transport']!r}")
    if shown := [n for c in command for n in _VARIABLE.findall(c) if secrets.is_secret_name(n)]:
        raise StudyError(f"{where}: field 'command' would show {', '.join(shown)} in the list of processes; put "
                         f"'{{env[{shown[0]}]}}' under 'env'")
    try:
        filled = tuple(c.format(python=python, env=os.environ) for c in command)
    except (KeyError, IndexError, ValueError) as error:
        raise StudyError(f"{where}: field 'command' has a placeholder that is not {{python}} or a set "
                         f"{{env[NAME]}}: {error}") from error
    cwd, in_process = (value.get(key) for key in ("cwd", "in_process"))
    for key, text in (("cwd", cwd), ("in_process", in_process)):
        if not isinstance(text, (str, type(None))):
            raise StudyError(f"{where}: field {key!r} must be text, it is {text!r}")
    return ServerSpec(name, kind, filled, {**env, **_texts(value, "env", where)},
                      None if cwd is None else str((folder / cwd).resolve()), in_process=in_process)


def _texts(value: Mapping[str, Any], name: str, where: str) -> dict[str, str]:
    found = value.get(name) or {}
    if not isinstance(found, dict) or not all(isinstance(v, str) for v in found.values()):
        raise StudyError(f"{where}: field {name!r} must map names to text, not to "
                         f"{_kinds(found)}")
    return {key: _VARIABLE.sub(lambda match: _variable(match[1], f"{where}: {name}.{key}"), text)
            for key, text in found.items()}


def _kinds(found: Any) -> str:
    values = found.values() if isinstance(found, dict) else [found]
    return ", ".join(sorted({type(v).__name__ for v in values if not isinstance(v, str)})) or "something else"


def _variable(name: str, where: str) -> str:
    value = os.environ.get(name)
    if value is None:
        raise StudyError(f"{where}: the environment variable {name} is not set")
    return secrets.use(value) if secrets.is_secret_name(name) else value
