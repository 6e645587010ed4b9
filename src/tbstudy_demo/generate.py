"""Writes the bundled dataset in ThinkingBox's layout.

    python -m tbstudy_demo.generate --out data/demo --seed 20260301

Every task is a case that its template draws from a seed made of the dataset's seed, domain, template, twin and index,
so that the same seed gives the same bytes and more tasks leave the earlier ones as they are.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tbstudy_demo.cases import Case, Domain, Template
from tbstudy_demo.registry import BENCHMARK, DOMAINS, POOL, load
from tbstudy_demo.words import NAMES

SEED = 20260301
#: Tasks of each domain of the pool and of the benchmark.
POOL_TASKS, BENCHMARK_TASKS = 88, 24
#: What `generate` owns below the output folder; everything else there stays.
OWNED = ("agent", "scenario", "test_case", "lists", "servers.yaml", "README.md")
_WIDTH = 96

SYSTEM = """\
You serve customers with the tools you are given.
- Call one tool at a time and wait for its answer before the next step.
- Use only what the customer or a tool told you. If something is missing, ask for it.
- Follow the policy below even where the customer would like something else.
- End your last message with <DONE>. Never write <DONE> in a message that asks something.
"""

_CHECK = '''\
from thinkingbox.common import TestContext

"""!
scenario: {domain}
"""


def validate_database(x: TestContext):
    effects = x.effects["{domain}"]
    found = ["The final state differs."]
    for d in effects["diff"]:
        place = " ".join(str(part) for part in (d["table"], d["row"], d["field"]) if part is not None)
        found.append(f"{{d['kind']}} {{place}}: expected {{d['expected']!r}}, found {{d['actual']!r}}")
    assert effects["result_db_hash"] == effects["golden_db_hash"], "\\n".join(found)
'''

_TEST = '''\


def {function}(x: TestContext):
    """!
{yaml}
    """
    validate_database(x)
'''

_README = """\
# The bundled tasks

{total} tasks over eight business domains in ThinkingBox's dataset layout, written by

    python -m tbstudy_demo.generate --out data/demo --seed {seed}

which gives the same bytes again. Do not edit the files by hand. What the domains hold and how a task is made:
`docs/demo-domains.md`.

| domain | list | templates | tasks |
|---|---|---|---|
{table}

- `agent/`, `scenario/`, `test_case/`: the tasks. A test case's docstring holds the query, what only the user knows,
  the rows that the task adds to its scenario's database, and the golden tool calls.
- `lists/candidates.yaml` ({candidates} tasks, the training pool's domains) and `lists/benchmark.yaml` ({benchmark}
  tasks, the other five domains).
- `servers.yaml`: how the tool servers start. They are ordinary MCP servers.

All names, ids, amounts and firms are invented. Licence: MIT, like the project.
"""


@dataclass(frozen=True, slots=True)
class Item:
    """One task of the dataset: where it stands and the case that it was drawn from."""

    domain: Domain
    template: Template
    twin: str
    index: int
    function: str
    case: Case

    @property
    def file(self) -> str:
        return f"{self.domain.name}_{self.template.name}.py"

    @property
    def uid(self) -> str:
        return f"{self.file}:{self.function}"


def items(name: str, seed: int = SEED) -> Iterator[Item]:
    """The tasks of a domain, template by template, twins in turn."""
    domain = load(name)
    total = POOL_TASKS if name in POOL else BENCHMARK_TASKS
    pairs, more = divmod(total // 2, len(domain.templates))
    for position, template in enumerate(domain.templates):
        seen: set[str] = set()
        number = 0
        for index in range(pairs + (position < more)):
            for twin in template.twins:
                case = _distinct(template, twin, f"{seed}|{name}|{template.name}|{twin}|{index}", seen)
                yield Item(domain, template, twin, index, f"test_{number:03d}", case)
                number += 1


def _distinct(template: Template, twin: str, seed: str, seen: set[str]) -> Case:
    """The case of a seed, or of the next one when the template has drawn an equal query with equal rows before."""
    attempt = 0
    while True:
        case = template.draw(twin, seed if attempt == 0 else f"{seed}|{attempt}")
        key = json.dumps([case.query, case.rows, case.facts], sort_keys=True)
        if key not in seen:
            seen.add(key)
            return case
        attempt += 1


def task_config(item: Item) -> dict[str, Any]:
    """The YAML of a test case as a value."""
    case = item.case
    customer = next(name for name in NAMES if name in case.query)
    context = "".join([f"You are {customer}.\n", *(f"{key}: {value}\n" for key, value in case.facts.items())])
    return {
        "query": case.query,
        "user_context": context,
        "init": {item.domain.name: {"data_patch": case.rows,
                                    "golden_test_case": {"tool_interactions": case.golden}}},
        "tags": [f"template:{item.template.name}", f"twin:{item.twin}"],
    }


def generate(out: str | Path, seed: int = SEED, names: tuple[str, ...] = tuple(DOMAINS)) -> dict[str, int]:
    """Write the dataset of the named domains to `out`, replacing what an earlier run wrote there.

    Returns the number of tasks by domain.
    """
    out = Path(out)
    for part in OWNED:
        path = out / part
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    tasks = {name: list(items(name, seed)) for name in names}
    _write(out / "agent" / "assistant.yaml", dump({
        "system_instructions": SYSTEM, "parallel_tool_calls": False, "builtin_tools": []}))
    for name, of in tasks.items():
        domain = load(name)
        _write(out / "scenario" / f"{name}.yaml", dump({
            "world_state": {name: {"data": domain.data}},
            "tools": [{"name": tool["function"]["name"]} for tool in domain.server.tool_schemas()],
            "bot_instructions": domain.policy}))
        for template in domain.templates:
            text = _CHECK.format(domain=name) + "".join(_test(i) for i in of if i.template is template)
            _write(out / "test_case" / name / f"{name}_{template.name}.py", text)
    lists = {"candidates": [n for n in names if n in POOL], "benchmark": [n for n in names if n in BENCHMARK]}
    uids = {which: [i.uid for n in of for i in tasks[n]] for which, of in lists.items()}
    for which, of in uids.items():
        _write(out / "lists" / f"{which}.yaml", "".join(f"- {uid}\n" for uid in of) or "[]\n")
    _write(out / "servers.yaml", dump({"servers": {name: {
        "type": "mcp-process", "command": ["{python}", "-m", f"tbstudy_demo.{name}"],
        "in_process": f"tbstudy_demo.{name}:server"} for name in names}}))
    counts = {name: len(of) for name, of in tasks.items()}
    table = "\n".join(f"| {n} | {'candidates' if n in POOL else 'benchmark'} | {len(load(n).templates)} | {counts[n]} |"
                      for n in names)
    _write(out / "README.md", _README.format(total=sum(counts.values()), seed=seed, table=table,
                                             candidates=len(uids["candidates"]), benchmark=len(uids["benchmark"])))
    return counts


def _test(item: Item) -> str:
    config = task_config(item)
    text = dump(config)
    if '"""' in text or "\\" in text:
        raise ValueError(f"{item.uid}: its YAML does not fit a plain Python docstring")
    indented = "\n".join(f"    {line}".rstrip() for line in text.rstrip("\n").split("\n"))
    return _TEST.format(function=item.function, yaml=indented)


class _Dumper(yaml.SafeDumper):
    """Rows and calls on one line each, several lines of text as a block, no anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)


def dump(value: Any) -> str:
    """YAML text in the order of the value; the innermost collections on one line."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH,
                     default_flow_style=None)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")


def main(arguments: list[str] | None = None) -> None:
    """Command line of the generator."""
    parser = argparse.ArgumentParser(prog="python -m tbstudy_demo.generate", description=main.__doc__)
    parser.add_argument("--out", required=True, help="folder of the dataset, for example data/demo")
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args(arguments)
    for name, count in generate(options.out, options.seed).items():
        print(f"{name}: {count} tasks")


if __name__ == "__main__":
    main()
