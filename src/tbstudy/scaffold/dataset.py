"""Writes the dataset of a new domain."""

from __future__ import annotations

import keyword
import re
from pathlib import Path

from tbstudy.errors import StudyError
from tbstudy.scaffold import texts

_PEOPLE = ("Ada Brandt", "Ben Okafor", "Cleo Marin")
_TITLES = ("Cargo bike", "Sewing machine", "Drill")
#: (template, twin, status, deposit): twins read alike to the policy until it looks the item up.
_TWINS = (("lend", "free", "free", False), ("lend", "lent", "lent", False), ("deposit", "needed", "free", True),
          ("deposit", "not_needed", "free", False))
_QUERIES = {"lend": "Hello, I would like to borrow the {title}.",
            "deposit": "Good day. May I take the {title} home, with a deposit if you need one?"}


def write_domain(name: str, out: str | Path) -> list[Path]:
    """Write the dataset of the domain `name` to the folder `out` and its study's configuration to `<out>.yaml`; returns
    the files.

    Raises:
        StudyError: the name cannot name a module, the folder is not empty, or the configuration exists.
    """
    out = Path(out)
    if keyword.iskeyword(name):
        raise StudyError(f"{name!r} cannot name a domain: the word is Python's own, and the domain's tool server "
                         "becomes a module; use another, such as 'library'")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise StudyError(f"{name!r} cannot name a domain: use lower-case letters, digits and underscores, such as "
                         "'library'")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise StudyError(f"{out} exists and is not an empty folder; name another one with --out")
    study = out.with_name(f"{out.name}.yaml")
    if study.exists():
        raise StudyError(f"{study} exists; name another folder with --out")
    files = {out / path: text for path, text in _files(name).items()}
    files[study] = texts.STUDY.replace("FOLDER", out.name).replace("NAME", name)
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    return list(files)


def _files(name: str) -> dict[str, str]:
    cases = {template: texts.CHECK for template in ("lend", "deposit")}
    uids: dict[str, list[str]] = {"candidates": [], "benchmark": []}
    number = 10
    for template, twin, status, deposit in _TWINS:
        for index, (member, title) in enumerate(zip(_PEOPLE, _TITLES, strict=True)):
            number += 1
            function = f"test_{twin}_{index}"
            cases[template] += _task(function, template, twin, status, deposit, member, title, f"I-{number}",
                                     days=3 + index)
            uids["benchmark" if index == 2 else "candidates"].append(f"{name}_{template}.py:{function}")
    files = {"README.md": texts.README, f"{name}_server.py": texts.SERVER, "servers.yaml": texts.SERVERS,
             "agent/assistant.yaml": texts.AGENT, f"scenario/{name}.yaml": texts.SCENARIO,
             **{f"test_case/{name}/{name}_{template}.py": text for template, text in cases.items()},
             **{f"lists/{which}.yaml": "".join(f"- {uid}\n" for uid in of) for which, of in uids.items()},
             f"tests/test_{name}.py": texts.TESTS}
    title = name.replace("_", " ").capitalize()
    return {path: text.replace("NAME", name).replace("TITLE", title) for path, text in files.items()}


def _task(function: str, template: str, twin: str, status: str, deposit: bool, member: str, title: str, item: str,
          days: int) -> str:
    lend = ("lend_item", f"{{item_id: {item}, member: {member}, days: {days}}}")
    calls = [lend] if status == "free" else [("join_waiting_list", f"{{item_id: {item}, member: {member}}}")]
    if deposit:
        calls.insert(0, ("take_deposit", f"{{item_id: {item}, amount: 20}}"))
    lines = "\n".join(f"          - tool: {tool}\n            parameters: {given}" for tool, given in calls)
    return texts.TASK.format(
        function=function, query=_QUERIES[template].format(title=title.lower()), member=member, item=item, title=title,
        status=status, deposit=str(deposit).lower(), days=days, calls=lines, template=template, twin=twin)
