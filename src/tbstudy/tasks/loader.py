"""Reads a dataset in ThinkingBox's layout into tasks.

    <root>/agent/<name>.yaml            system instructions and built-in tools
    <root>/scenario/<name>.yaml         world state by server, tools, instructions, fixtures
    <root>/test_case/**/<file>.py       functions whose docstring is YAML after a `!`; the body is the check
    <root>/test_case/**/<file>.yaml     the same as YAML, with the check's code as text
    <root>/test_case/**/conftest.yaml   fixtures of the checks below that folder
    <root>/test_case/**/<file>.meta.yaml  earlier conversations, named by a task's `history`

A task's uid is `<file>:<function>`. Test-case files are parsed, never imported.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tbstudy.errors import StudyError
from tbstudy.tasks.history import load_history
from tbstudy.tasks.model import Task, ToolOverride, system_messages
from tbstudy.tasks.source import CHECK_NAME, TestFunction, read_cases, read_yaml

#: Keys of a task's YAML with the types that they may have.
FIELDS: dict[str, tuple[type, ...]] = {
    "scenario": (str,), "query": (str,), "user_context": (str, type(None)), "bot_instructions": (str, type(None)),
    "max_user_sim_turns": (int, type(None)), "max_agent_sim_turns": (int,), "init": (dict, type(None)),
    "format_query": (bool,), "tags": (list,), "history": (str, dict, type(None)),
}


@dataclass(frozen=True, slots=True)
class Dataset:
    """Tasks by uid, in the order of the list or, without one, of the files."""

    root: Path
    agent: str
    tasks: dict[str, Task] = field(default_factory=dict)

    def by_domain(self) -> dict[str, int]:
        """Number of tasks of each domain."""
        counts: dict[str, int] = {}
        for task in self.tasks.values():
            counts[task.domain] = counts.get(task.domain, 0) + 1
        return dict(sorted(counts.items()))


def load_list(path: str | Path) -> list[str]:
    """A YAML list of uids.

    Raises:
        StudyError: the file is not a list of `<file>:<function>`, or a uid comes twice.
    """
    path = Path(path)
    value = read_yaml(path, "task list")
    if not isinstance(value, list):
        raise StudyError(f"{path}: a task list is a YAML list of uids, this is a {type(value).__name__}")
    return _distinct([_uid(item, f"{path}: item {i}") for i, item in enumerate(value, 1)], str(path))


def load_dataset(root: str | Path, uids: str | Path | Iterable[str] | None = None, agent: str | None = None,
                 include_skipped: bool = False) -> Dataset:
    """Hydrate tasks of the dataset at `root`: all of them, the given uids, or those of a YAML list file.

    `agent` may be left out when the dataset has one. Tasks tagged `skip` (by themselves or their scenario) are left
    out, and asking for one by uid is an error, unless `include_skipped`.

    Raises:
        StudyError: naming file, line and field of what is wrong, or the uids that do not exist or come twice.
    """
    root = Path(root)
    if not root.is_dir():
        raise StudyError(f"dataset {root} is not a folder")
    reader = _Reader(root, _agent_name(root, agent))
    if uids is None:
        tasks = [t for t in reader.all() if include_skipped or not t.tags["skip"]]
    else:
        where = str(uids) if isinstance(uids, (str, Path)) else "the list of uids"
        wanted = load_list(uids) if isinstance(uids, (str, Path)) else _distinct(
            [_uid(u, where) for u in uids], where)
        tasks = reader.named(wanted, where)
        if skipped := [t.uid for t in tasks if t.tags["skip"] and not include_skipped]:
            raise StudyError(f"{where}: tagged skip: {', '.join(skipped)}")
    found: dict[str, Task] = {}
    for task in tasks:
        if task.uid in found:
            raise StudyError(f"two test cases have the uid {task.uid}: {found[task.uid].file} and {task.file}")
        found[task.uid] = task
    return Dataset(root, reader.agent_name, found)


def merge(base: Any, over: Any) -> Any:
    """`over` merged into `base` without changing either: mappings key by key, lists joined, else `over` wins."""
    if isinstance(base, dict) and isinstance(over, dict):
        out = dict(base)
        for key, value in over.items():
            out[key] = merge(out[key], value) if key in out else value
        return out
    if isinstance(base, list) and isinstance(over, list):
        return base + over
    return over


def _uid(value: Any, where: str) -> str:
    if not isinstance(value, str) or value.count(":") != 1 or not all(value.split(":")):
        raise StudyError(f"{where}: a uid is '<file>:<function>', this is {value!r:.200}")
    _plain(value.split(":")[0], where)
    return value


def _plain(name: str, where: str) -> str:
    """A file's own name: what is looked for stays in the folder where it is looked for."""
    if "/" in name or "\\" in name or "\0" in name or name in (".", ".."):
        raise StudyError(f"{where}: {name!r:.200} must be the name of a file, without a path")
    return name


def _distinct(uids: list[str], where: str) -> list[str]:
    seen: set[str] = set()
    twice = [u for u in uids if u in seen or seen.add(u)]
    if twice:
        raise StudyError(f"{where}: listed more than once: {', '.join(dict.fromkeys(twice))}")
    return uids


def _agent_name(root: Path, agent: str | None) -> str:
    names = sorted(p.stem for p in (root / "agent").glob("*.yaml"))
    if agent is None and len(names) == 1:
        return names[0]
    if agent in names:
        return agent
    what = "which agent to use must be said" if agent is None else f"there is no agent {agent!r}"
    raise StudyError(f"{root / 'agent'}: {what}; agents: {', '.join(names) or 'none'}")


@dataclass(frozen=True, slots=True)
class _Scenario:
    world_state: dict[str, dict[str, Any]]
    tools: tuple[ToolOverride, ...] | None
    instructions: str | None
    tags: dict[str, Any]
    fixtures: dict[str, dict[str, Any]]


class _Reader:
    """Reads each agent, scenario and fixture file of a dataset once."""

    def __init__(self, root: Path, agent: str):
        self.root, self.agent_name = root, agent
        self.cases = root / "test_case"
        if not self.cases.is_dir():
            raise StudyError(f"dataset {root} has no folder test_case")
        path = root / "agent" / f"{agent}.yaml"
        config = _section(read_yaml(path, "agent"), str(path))
        self.system = _get(config, "system_instructions", (str,), str(path))
        self.builtin = tuple(_tool(t, f"{path}: builtin_tools[{i}]", builtin=True) for i, t in enumerate(
            _get(config, "builtin_tools", (list,), str(path), [])))
        self._scenarios: dict[str, _Scenario] = {}
        self._fixtures: dict[Path, dict[str, dict[str, Any]]] = {}

    def all(self) -> list[Task]:
        files = sorted(p for kind in ("*.py", "*.yaml") for p in self.cases.rglob(kind)
                       if p.name != "conftest.yaml" and not p.name.endswith(".meta.yaml"))
        return [self.hydrate(path, fn) for path in files for fn in read_cases(path)]

    def named(self, uids: Sequence[str], where: str) -> list[Task]:
        wanted: dict[str, dict[str, None]] = {}
        for uid in uids:
            file, function = uid.split(":")
            wanted.setdefault(file, {})[function] = None
        found: dict[str, Task] = {}
        for file, functions in wanted.items():
            path = self.file(file)
            read = read_cases(path, functions) if path else []
            found.update({f"{file}:{fn.name}": self.hydrate(path, fn) for fn in read})
        if missing := [uid for uid in uids if uid not in found]:
            raise StudyError(f"{where}: not in dataset {self.root}: {', '.join(missing)}")
        return [found[uid] for uid in uids]

    def file(self, name: str) -> Path | None:
        """Path of a test-case file: in test_case itself or in the sub-folder that the longest prefix of its name,
        cut at an underscore, names."""
        candidates = [self.cases / name]
        parts = name.split("_")
        candidates += [self.cases / "_".join(parts[:k]) / name for k in range(len(parts) - 1, 0, -1)]
        return next((p for p in candidates if p.is_file()), None)

    def scenario(self, name: str, where: str) -> _Scenario:
        if name not in self._scenarios:
            path = self.root / "scenario" / f"{_plain(name, where)}.yaml"
            if not path.is_file():
                raise StudyError(f"{where}: field 'scenario' names {name!r}, but {path} does not exist")
            config, here = _section(read_yaml(path, "scenario"), str(path)), str(path)
            world = _get(config, "world_state", (dict,), here)
            for server, state in world.items():
                if not isinstance(state, (dict, type(None))):
                    raise StudyError(f"{here}: field 'world_state.{server}' must be a mapping, it is {state!r}")
            tools = _get(config, "tools", (list, type(None)), here, None)
            self._scenarios[name] = _Scenario(
                {server: state or {} for server, state in world.items()},
                None if tools is None else tuple(_tool(t, f"{here}: tools[{i}]") for i, t in enumerate(tools)),
                _get(config, "bot_instructions", (str, type(None)), here, None),
                _tags(_get(config, "tags", (list, type(None)), here, None), here),
                _fixture_map(_get(config, "fixtures", (dict, type(None)), here, None), here))
        return self._scenarios[name]

    def fixtures(self, folder: Path) -> dict[str, dict[str, Any]]:
        """Fixtures that hold in `folder`: those of every conftest.yaml from test_case down, the deeper ones winning."""
        if folder not in self._fixtures:
            above = {} if folder == self.cases else self.fixtures(folder.parent)
            path = folder / "conftest.yaml"
            own: dict[str, dict[str, Any]] = {}
            if path.is_file():
                config = _section(read_yaml(path, "fixtures file") or {}, str(path))
                own = _fixture_map(_get(config, "fixtures", (dict, type(None)), str(path), None), str(path))
            self._fixtures[folder] = {**above, **own}
        return self._fixtures[folder]

    def hydrate(self, path: Path, fn: TestFunction) -> Task:
        where = f"{path}:{fn.line}: {fn.name}"
        config = fn.config
        for name, value in config.items():
            if name not in FIELDS:
                raise StudyError(f"{where}: unknown field {name!r}; fields: {', '.join(FIELDS)}")
            _check_type(value, name, FIELDS[name], where)
        for name in ("scenario", "query"):
            if name not in config:
                raise StudyError(f"{where}: field {name!r} is missing")
        scenario = self.scenario(config["scenario"], where)
        world = dict(scenario.world_state)
        for server, state in (config.get("init") or {}).items():
            if not isinstance(state, dict):
                raise StudyError(f"{where}: field 'init.{server}' must be a mapping, it is {state!r}")
            world[server] = merge(world.get(server) or {}, state)
        limits = {name: config[name] for name in ("max_user_sim_turns", "max_agent_sim_turns")
                  if config.get(name) is not None}
        for name, value in limits.items():
            if value < 0:
                raise StudyError(f"{where}: field {name!r} must not be negative, it is {value}")
        own_tags = _tags(config.get("tags"), where)
        history = config.get("history")
        return Task(
            uid=f"{path.name}:{fn.name}", file=path, function=fn.name if fn.code is None else CHECK_NAME,
            scenario=config["scenario"], check_code=fn.code,
            system=system_messages(self.system, scenario.instructions, config.get("bot_instructions")),
            query=config["query"], user_context=config.get("user_context"), world_state=world, tools=scenario.tools,
            builtin_tools=self.builtin, max_user_sim_turns=limits.get("max_user_sim_turns", 10),
            max_agent_sim_turns=limits.get("max_agent_sim_turns", math.inf),
            format_query=config.get("format_query", False), tags=_join_tags(scenario.tags, own_tags),
            history=load_history(path, history, where) if history is not None else (),
            metadata={"scenario": config["scenario"], "agent": self.agent_name, "test_case_name": fn.name,
                      "test_case_file": path.relative_to(self.root).as_posix()},
            fixtures={**self.fixtures(path.parent), **scenario.fixtures},
            scenario_instructions=scenario.instructions, task_instructions=config.get("bot_instructions"))


def _section(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise StudyError(f"{where}: must be a YAML mapping, it is a {type(value).__name__}")
    return value


_REQUIRED: Any = object()


def _get(config: Mapping[str, Any], name: str, kinds: tuple[type, ...], where: str, default: Any = _REQUIRED) -> Any:
    if name not in config:
        if default is _REQUIRED:
            raise StudyError(f"{where}: field {name!r} is missing")
        return default
    _check_type(config[name], name, kinds, where)
    return config[name]


def _check_type(value: Any, name: str, kinds: tuple[type, ...], where: str) -> None:
    # bool is an int to Python, never to the author of a task.
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        words = {str: "text", int: "a whole number", dict: "a mapping", list: "a list", bool: "true or false",
                 type(None): "empty"}
        raise StudyError(f"{where}: field {name!r} must be {' or '.join(words[k] for k in kinds)}, it is {value!r:.80}")


def _tool(value: Any, where: str, builtin: bool = False) -> ToolOverride:
    config = _section(value, where)
    text = (str, type(None))
    described = "description" if builtin else "override_description"
    arguments = _get(config, "override_arg_description", (dict, type(None)), where, None) or {}
    return ToolOverride(
        _get(config, "name", (str,), where), _get(config, described, text, where, None),
        _get(config, "input_schema", (dict,), where) if builtin else None,
        _get(config, "direct_response", text, where, None), _get(config, "is_end_turn", (bool,), where, False),
        builtin, {k: v for k, v in arguments.items() if isinstance(v, str)})


def _fixture_map(value: dict[str, Any] | None, where: str) -> dict[str, dict[str, Any]]:
    out = {}
    for name, config in (value or {}).items():
        kind = _get(_section(config, f"{where}: fixtures.{name}"), "type", (str,), f"{where}: fixtures.{name}")
        if "." not in kind:
            raise StudyError(f"{where}: field 'fixtures.{name}.type' must be a dotted path, it is {kind!r}")
        out[name] = config
    return out


def _tags(value: list[Any] | None, where: str) -> dict[str, Any]:
    """`domain:x`, `eval:x`, `category:x` and `skip` (in any case) by kind; everything else is a label."""
    tags: dict[str, Any] = {"labels": [], "category": [], "domain": None, "eval": None, "skip": False}
    for tag in value or ():
        if not isinstance(tag, str):
            raise StudyError(f"{where}: field 'tags' must be a list of text, it holds {tag!r}")
        kind, _, rest = tag.partition(":")
        kind = kind.lower()
        if kind == "category" and rest:
            tags["category"].append(rest.lower())
        elif kind in ("domain", "eval") and rest:
            tags[kind] = rest.lower()
        elif tag.lower() == "skip":
            tags["skip"] = True
        else:
            tags["labels"].append(tag)
    return tags


def _join_tags(scenario: dict[str, Any], task: dict[str, Any]) -> dict[str, Any]:
    return {"labels": scenario["labels"] + task["labels"], "category": task["category"],
            "domain": task["domain"] or scenario["domain"], "eval": task["eval"] or scenario["eval"],
            "skip": scenario["skip"] or task["skip"]}
