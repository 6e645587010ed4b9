"""Scripted demonstrators of the bundled domains: they know the right script and, by design, often do not follow it.

A *cell* is one twin of one template. Each cell has a competence, the share of demonstrations that are right; the
rest are the template's named mistakes in proportions that differ by cell. Competences are spread evenly over [0, 1]
and shuffled over the cells, so that a policy that imitates them passes some tasks always, some never, and the rest
in between: the material of a probe histogram.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tbstudy.sandbox.sqlite import open_database
from tbstudy.sandbox.users import facts
from tbstudy_demo.cases import Ask, Call, Case, Domain, Say, Step, Template

#: How often each mistake is made relative to the others, before a cell's own preferences.
MISTAKE_WEIGHTS = {"wrong_branch": 1.0, "wrong_field": 1.6, "stops_early": 1.0, "extra_write": 0.8,
                   "skips_lookup": 0.5, "gives_up": 0.4}


@dataclass(frozen=True, slots=True)
class Cell:
    """One twin of one template with its demonstrators' habits: `mistakes` maps name to probability given an error."""

    domain: Domain
    template: Template
    twin: str
    competence: float
    mistakes: dict[str, float]

    @property
    def name(self) -> str:
        return f"{self.domain.name}/{self.template.name}/{self.twin}"


@dataclass(frozen=True, slots=True)
class Demonstration:
    """One played script. `turns` alternate what the agent writes and the messages that answer it (last one empty)."""

    cell: Cell
    behaviour: str
    query: str
    turns: tuple[tuple[str, dict[str, Any], tuple[dict[str, Any], ...]], ...]


def cells(domains: list[Domain], seed: int) -> list[Cell]:
    """Every cell of the domains with its habits, fixed by `seed` and the domain's name."""
    found = []
    for domain in domains:
        rng = random.Random(f"habits|{seed}|{domain.name}")
        twins = [(t, twin) for t in domain.templates for twin in t.twins]
        # A policy that imitates pulls rare conduct towards the usual: the lowest cells are never done right.
        ladder = [min(1.0, max(0.0, 1.25 * ((i + 0.5) / len(twins) - 0.125))) for i in range(len(twins))]
        middle = ladder[len(twins) // 2]
        rng.shuffle(ladder)
        named = [template.draw(twin, f"names|{seed}").mistakes for template, twin in twins]
        for i, names in enumerate(named):
            if "gives_up" not in names and ladder[i] < middle:
                # Where changing nothing is right, only competence shows that the fact was read.
                j = ladder.index(middle)
                ladder[i], ladder[j] = ladder[j], ladder[i]
        for (template, twin), competence, names in zip(twins, ladder, named, strict=True):
            raw = {m: MISTAKE_WEIGHTS.get(m, 1.0) * rng.uniform(0.5, 1.5) for m in sorted(names)}
            # Demonstrators that hardly ever do right still read facts rightly: what they look up shows in what they do.
            others = sum(w for m, w in raw.items() if m != "wrong_branch")
            most = (0.5 * competence + 0.05) / max(1e-9, 1 - competence)
            share = min(raw["wrong_branch"] / (raw["wrong_branch"] + others), most)
            raw = {m: share if m == "wrong_branch" else (1 - share) * w / others for m, w in raw.items()}
            found.append(Cell(domain, template, twin, competence, raw))
    return found


def demonstrations(of: list[Cell], seed: int) -> Iterator[Demonstration]:
    """An endless stream: a random cell, a fresh case, a right or a mistaken script, played on the real backend."""
    rng = random.Random(f"demonstrations|{seed}")
    while True:
        cell = rng.choice(of)
        case = cell.template.draw(cell.twin, f"demo|{seed}|{cell.name}|{rng.getrandbits(48)}")
        script, behaviour = case.script, "right"
        if rng.random() > cell.competence and case.mistakes:
            known = {m: cell.mistakes.get(m, 0.1) for m in case.mistakes}
            behaviour = rng.choices(list(known), weights=list(known.values()))[0]
            script = case.mistakes[behaviour]
        yield Demonstration(cell, behaviour, case.query, tuple(_play(cell.domain, case, script)))


def user_context(case: Case) -> str:
    """The private context of a case's simulated user."""
    return "\n".join(f"{key}: {value}" for key, value in case.facts.items())


def write_turn(step: Step) -> tuple[str, dict[str, Any]]:
    """What the agent writes after `<think>` and newline, and the message that this is read as."""
    reasoning = f"{step.thought}\n"
    if isinstance(step, Call):
        body = "".join(f"<parameter={k}>\n{_written(v)}\n</parameter>\n" for k, v in step.arguments.items())
        text = f"{reasoning}</think>\n\n<tool_call>\n<function={step.tool}>\n{body}</function>\n</tool_call>"
        call = {"id": "call_0", "type": "function", "function": {"name": step.tool, "arguments": step.arguments}}
        return text, {"role": "assistant", "content": None, "reasoning_content": reasoning, "tool_calls": [call]}
    content = f"\n\n{step.text}"
    return f"{reasoning}</think>{content}", {"role": "assistant", "content": content, "reasoning_content": reasoning}


def _written(value: Any) -> str:
    import json

    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _play(domain: Domain, case: Case, script: tuple[Step, ...]
          ) -> Iterator[tuple[str, dict[str, Any], tuple[dict[str, Any], ...]]]:
    server = domain.server
    db = open_database(server.prepare({"data": domain.data, "data_patch": case.rows}))
    known = facts(user_context(case))
    try:
        for step in script:
            text, message = write_turn(step)
            match step:
                case Call():
                    answer = server.invoke(db, step.tool, step.arguments)
                    after = ({"role": "tool", "tool_call_id": "call_0", "name": step.tool, "content": answer},)
                case Ask():
                    said = " ".join(f"My {k} is {v}." for k, v in known.items() if k in step.text.lower())
                    after = ({"role": "user", "content": said or "I don't know."},)
                case Say():
                    after = ()
            yield text, message, after
    finally:
        db.close()
