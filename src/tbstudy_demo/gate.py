"""The gate that a base policy passes before anything is trained on it: it copies, and it branches on what it reads.

Measured on fresh cases, never on the dataset's tasks. A policy that only knows each template's favourite outcome
would make reinforcement learning look good for the wrong reason: it would adopt the majority branch.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from tbstudy.policies.local import LocalPolicy
from tbstudy.policies.sampler import Sampling
from tbstudy.sandbox.episode import Episode, run_episode
from tbstudy.sandbox.inprocess import InProcessSandbox
from tbstudy.sandbox.users import ScriptedUser
from tbstudy.store import write_atomic
from tbstudy.tasks.model import Task
from tbstudy_demo.base_policy import systems_of
from tbstudy_demo.cases import Ask, Call, Case, Domain, Step
from tbstudy_demo.demonstrate import Cell, cells, user_context
from tbstudy_demo.registry import DOMAINS, load

#: Least share of id arguments that name an entity of the episode's database.
COPY_FLOOR = 0.9
#: Least P(branch A | fact A) - P(branch A | fact B) of a template, and largest p-value of the difference.
BRANCH_FLOOR, P_VALUE = 0.2, 0.001


@dataclass(frozen=True, slots=True)
class Played:
    """One gate episode with the case behind it."""

    cell: Cell
    case: Case
    episode: Episode
    passed: bool


def check_gate(folder: Path, dataset: Path, seed: int, cases: int = 24, repetitions: int = 4) -> int:
    """Play fresh cases with the checkpoint, write gate.json beside it, print the tables; 0 when it passes, else 1."""
    played = play_fresh_cases(folder, dataset, seed, cases, repetitions)
    copying, branching = copy_table(played), branch_table(played)
    reasons = [f"{row.domain} copies ids in {row.copied:.0%} of calls" for row in copying.itertuples()
               if row.copied < COPY_FLOOR]
    reasons += [f"{row.template} branches with {row.discrimination:+.2f} (p = {row.p_value:.2g})"
                for row in branching.itertuples()
                if row.discrimination < BRANCH_FLOOR or row.p_value > P_VALUE]
    print(copying.to_string(index=False))
    print(branching.to_string(index=False))
    print("gate: passed" if not reasons else "gate: failed: " + "; ".join(reasons))
    report = {"passed": not reasons, "reasons": reasons, "episodes": len(played),
              "copying": copying.to_dict("records"), "branching": branching.to_dict("records")}
    write_atomic(folder / "gate.json", (json.dumps(report, indent=1) + "\n").encode())
    return 1 if reasons else 0


def play_fresh_cases(folder: Path, dataset: Path, seed: int, cases: int, repetitions: int) -> list[Played]:
    """`cases` fresh cases of every cell, `repetitions` episodes each."""
    systems, domains = systems_of(dataset), [load(name) for name in DOMAINS]
    policy = LocalPolicy.load(folder, name="gate", sampling=Sampling(), seed=seed)
    sandbox = InProcessSandbox({d.name: d.server for d in domains})
    habits = cells(domains, seed)
    played: list[Played] = []
    for domain in domains:
        drawn = [(cell, cell.template.draw(cell.twin, f"gate|{seed}|{cell.name}|{i}"), i)
                 for cell in habits if cell.domain.name == domain.name for i in range(cases)]
        tasks = [(cell, case, fresh_task(domain, case, f"gate_{cell.name}:{i}", systems[domain.name]))
                 for cell, case, i in drawn]
        attempts = [(cell, case, task, r) for cell, case, task in tasks for r in range(repetitions)]
        for start in range(0, len(attempts), 128):
            wave = attempts[start:start + 128]
            for (cell, case, _, _), episode in zip(wave, asyncio.run(_wave(policy, sandbox, wave)), strict=True):
                effects = episode.effects[domain.name]
                played.append(Played(cell, case, episode, effects["result_db_hash"] == effects["golden_db_hash"]))
    return played


async def _wave(policy: LocalPolicy, sandbox: InProcessSandbox, wave: list[tuple]) -> list[Episode]:
    policy.start_wave(len(wave))
    return await asyncio.gather(*(run_episode(task, r, policy=policy, sandbox=sandbox, user=ScriptedUser())
                                  for _, _, task, r in wave))


def fresh_task(domain: Domain, case: Case, uid: str, system: tuple[str, ...]) -> Task:
    """A case as a task without a file."""
    state = {"data": domain.data, "data_patch": case.rows, "golden_test_case": {"tool_interactions": case.golden}}
    return Task(uid=uid, file=Path("fresh"), function="", scenario=domain.name, system=system, query=case.query,
                user_context=user_context(case) or "none", world_state={domain.name: state})


def copy_table(played: list[Played]) -> pd.DataFrame:
    """Per domain: calls made, and the share whose ids are known to the episode's database."""
    rows = []
    for name in dict.fromkeys(p.cell.domain.name for p in played):
        answers = [call["response"] for p in played if p.cell.domain.name == name for call in p.episode.tool_calls]
        unknown = sum(a.startswith("Error: no ") for a in answers)
        passed = [p.passed for p in played if p.cell.domain.name == name]
        rows.append({"domain": name, "calls": len(answers), "copied": 1 - unknown / max(1, len(answers)),
                     "pass_rate": sum(passed) / len(passed)})
    return pd.DataFrame(rows)


def branch_table(played: list[Played]) -> pd.DataFrame:
    """Per template: how often its first branch is taken after the first twin's fact and after the second's.

    Counted among episodes that took one of the two; `neither` is the share of those at the parting that did not.
    """
    from scipy.stats import fisher_exact

    counts: dict[str, dict[tuple[str, str], int]] = {}
    twins: dict[str, tuple[str, ...]] = {}
    for p in played:
        name = f"{p.cell.domain.name}/{p.cell.template.name}"
        twins[name] = p.cell.template.twins
        taken = branch_taken(p.episode, p.case)
        if taken is not None:
            seen = counts.setdefault(name, {})
            seen[p.cell.twin, taken] = seen.get((p.cell.twin, taken), 0) + 1
    rows = []
    for name, (first, second) in twins.items():
        seen = counts.get(name, {})
        table = [[seen.get((first, "own"), 0), seen.get((first, "other"), 0)],
                 [seen.get((second, "other"), 0), seen.get((second, "own"), 0)]]
        after_first, after_second = (row[0] / max(1, sum(row)) for row in table)
        taken = sum(map(sum, table))
        rows.append({"template": name, "took_one": taken,
                     "neither": 1 - taken / max(1, sum(seen.values())),
                     "first_after_first": after_first, "first_after_second": after_second,
                     "discrimination": after_first - after_second,
                     "p_value": float(fisher_exact(table, alternative="greater").pvalue)})
    return pd.DataFrame(rows)


def branch_taken(episode: Episode, case: Case) -> str | None:
    """What an episode did where the twins part: its "own" twin's branch, the "other" one's, "neither"; None when it
    never got there, because it left the steps that both share."""
    right, wrong = case.script, case.mistakes["wrong_branch"]
    at = next(i for i, (a, b) in enumerate(zip(right, wrong, strict=False)) if not _same(a, b))
    actions = _actions(episode)
    if len(actions) <= at or not all(_matches(actions[i], right[i]) for i in range(at)):
        return None
    if _matches(actions[at], right[at], wrong[at]):
        return "own"
    return "other" if _matches(actions[at], wrong[at], right[at]) else "neither"


def _same(a: Step, b: Step) -> bool:
    if isinstance(a, Call) and isinstance(b, Call):
        return a.tool == b.tool and a.arguments == b.arguments
    return type(a) is type(b)


def _actions(episode: Episode) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for message in episode.messages:
        if message["role"] != "assistant":
            continue
        calls = message.get("tool_calls") or []
        found += [(c["function"]["name"], json.loads(c["function"]["arguments"])) for c in calls]
        if not calls:
            found.append(("", message["content"] or ""))
    return found


def _matches(action: tuple[str, Any], step: Step, other: Step | None = None) -> bool:
    tool, what = action
    if isinstance(step, Call):
        if tool != step.tool:
            return False
        if isinstance(other, Call) and other.tool == step.tool:
            decisive = [k for k, v in step.arguments.items() if other.arguments.get(k) != v]
            return all(what.get(k) == step.arguments[k] for k in decisive)
        return True
    return tool == "" and ("?" in what) == isinstance(step, Ask)
