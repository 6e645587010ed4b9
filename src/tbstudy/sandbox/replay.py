"""Plays golden tool calls through a dataset and asks what its checks notice: a conformance test.

Variants of a task's golden calls: `golden` itself; `noop`, no call at all; `dropped`, one write left out; `repeated`,
one write made twice; `stray`, one more write, borrowed from another task of the scenario; `rewritten`, one free text
of a write replaced. A call is a write when what the servers report as state differs after it. A variant that ends in
another state than the golden calls and passes all the same is a blind spot of the check.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from tbstudy.errors import SystemFault
from tbstudy.reward.checks import CheckRunner
from tbstudy.sandbox.base import Sandbox, Session
from tbstudy.tasks.history import replay_calls
from tbstudy.tasks.model import Task

VARIANTS = ("golden", "noop", "dropped", "repeated", "stray", "rewritten")
#: What a replayed assistant says at the end, for checks that judge the response.
CLOSING = "Everything that you asked for is done. <DONE>"
_OTHER_TEXT = "Quite another text."
_STRAY_ATTEMPTS = 12


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call of a replay."""

    tool: str
    parameters: Mapping[str, Any]


@dataclass(slots=True)
class Trial:
    """One variant of one task. `changed` says whether it ended in another state than the golden calls."""

    uid: str
    domain: str
    variant: str
    what: str = ""
    passed: bool = False
    system_error: bool = False
    changed: bool = True
    reason: str = ""
    hashes: dict[str, str] = field(default_factory=dict)
    diff: list[dict[str, Any]] = field(default_factory=list)

    @property
    def key(self) -> tuple[str, str, str]:
        return self.uid, self.variant, self.what

    @property
    def blind(self) -> bool:
        """The check passes what it should not."""
        return self.passed and self.changed and self.variant != "golden"


@dataclass(slots=True)
class Report:
    """All trials of a replay; `skipped` counts tasks that have nothing to vary, by variant."""

    trials: list[Trial] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    writes: dict[str, int] = field(default_factory=dict)

    @property
    def sound(self) -> bool:
        """Whether every golden replay passes and nothing was a system error."""
        return all(not t.system_error and (t.passed or t.variant != "golden") for t in self.trials)

    def counts(self) -> dict[str, dict[str, dict[str, int]]]:
        """By domain (and `all`) and variant: trials, passed, failed, system_error, unchanged, tasks."""
        out: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
        tasks: dict[tuple[str, str], set[str]] = defaultdict(set)
        for t in self.trials:
            for domain in (t.domain, "all"):
                c = out[domain][t.variant]
                c["trials"] += 1
                c["system_error" if t.system_error else "passed" if t.passed else "failed"] += 1
                c["unchanged"] += not t.changed and t.variant != "golden"
                tasks[domain, t.variant].add(t.uid)
        return {d: {v: {**{k: c[k] for k in ("trials", "passed", "failed", "system_error", "unchanged")},
                        "tasks": len(tasks[d, v])} for v, c in variants.items()} for d, variants in sorted(out.items())}

    def blind_spots(self) -> list[dict[str, Any]]:
        """What passed although the state was another: by variant and call, how often and where."""
        found: dict[tuple[str, str, str], list[str]] = defaultdict(list)
        tried: Counter[tuple[str, str, str]] = Counter()
        for t in self.trials:
            key = (t.domain, t.variant, t.what.partition(" #")[0])
            tried[key] += t.changed
            if t.blind:
                found[key].append(t.uid)
        return [{"domain": d, "variant": v, "what": w, "passed": len(uids), "of": tried[d, v, w],
                 "uids": sorted(set(uids))} for (d, v, w), uids in sorted(found.items())]

    def as_json(self) -> dict[str, Any]:
        """The whole report as plain values."""
        return {"counts": self.counts(), "skipped": dict(self.skipped), "writes": self.writes,
                "blind_spots": self.blind_spots(), "trials": [asdict(t) for t in self.trials]}

    def table(self) -> str:
        """Passed of all, by domain and variant, then the blind spots and what went wrong."""
        counts = self.counts()
        variants = [v for v in VARIANTS if v in counts.get("all", {})]
        rows = [["domain", "tasks", *variants]]
        for domain in [d for d in counts if d != "all"] + ["all"] * ("all" in counts):
            cells = [f"{c['passed']}/{c['trials']}" + (f" ({c['system_error']} errors)" if c["system_error"] else "")
                     if (c := counts[domain].get(v)) else "-" for v in variants]
            rows.append([domain, str(max(c["tasks"] for c in counts[domain].values())), *cells])
        lines = _aligned(rows)
        lines.append("Passed of trials; golden should pass, the others fail unless they end in the golden state.")
        if self.skipped["golden"]:
            lines.append(f"{self.skipped['golden']} tasks have no golden calls.")
        if spots := self.blind_spots():
            lines += ["", "Blind spots (passed although the state differs):"]
            lines += _aligned([["domain", "variant", "call", "passed", "example"]] + [
                [s["domain"], s["variant"], s["what"] or "-", f"{s['passed']}/{s['of']}", s["uids"][0]] for s in spots])
        bad = [t for t in self.trials if t.system_error or (t.variant == "golden" and not t.passed)]
        if bad:
            lines += ["", "Not as they should be:"]
            lines += [f"  {t.uid} {t.variant} {t.what}: {(t.reason.splitlines() or [''])[0]}" for t in bad[:50]]
        return "\n".join(lines)


def compare(ours: Report, theirs: Sequence[Mapping[str, Any]]) -> list[str]:
    """How the verdicts and state hashes of another report's trials differ from ours, one line each."""
    other = {(t["uid"], t["variant"], t["what"]): t for t in theirs}
    lines = []
    for trial in ours.trials:
        there = other.get(trial.key)
        if there is None:
            continue
        name = " ".join(trial.key).strip()
        if (trial.passed, trial.system_error) != (there["passed"], there["system_error"]):
            lines.append(f"{name}: passed {trial.passed}, system error {trial.system_error}; there "
                         f"{there['passed']}, {there['system_error']}")
        elif trial.hashes != there["hashes"]:
            lines.append(f"{name}: state hash {trial.hashes}; there {there['hashes']}")
    return lines


def golden_calls(task: Task) -> list[Call]:
    """The golden calls of a task, server by server, without those that its history has made already."""
    calls = [Call(c["tool"], c.get("parameters") or {}) for state in task.world_state.values()
             for c in (state.get("golden_test_case") or {}).get("tool_interactions", ())]
    for name, arguments in replay_calls(task.history, {t.name for t in task.builtin_tools}):
        if Call(name, arguments) in calls:
            calls.remove(Call(name, arguments))
    return calls


class Replay:
    """Runs variants of tasks in a sandbox, at most `concurrency` at once."""

    def __init__(self, sandbox: Sandbox, runner: CheckRunner, concurrency: int = 4,
                 progress: Callable[[Trial], None] | None = None):
        self.sandbox, self.runner = sandbox, runner
        self._slots = asyncio.Semaphore(concurrency)
        self._progress = progress or (lambda _: None)

    async def run(self, tasks: Iterable[Task], variants: Sequence[str] = VARIANTS[:5]) -> Report:
        """All trials of the given variants, golden included, in the order of tasks and variants."""
        report, tasks = Report(), list(tasks)
        traces = await asyncio.gather(*(self._golden(t, trace=len(variants) > 1) for t in tasks))
        pool: dict[str, Counter[str]] = defaultdict(Counter)
        for task, trace in zip(tasks, traces, strict=True):
            report.writes[task.uid] = len(trace.writes)
            for position in trace.writes:
                call = trace.calls[position]
                pool[task.domain][json.dumps([call.tool, call.parameters], sort_keys=True)] += 1
        more = await asyncio.gather(*(self._variants(t, trace, variants, pool[t.domain], report.skipped)
                                      for t, trace in zip(tasks, traces, strict=True)))
        for trace, trials in zip(traces, more, strict=True):
            if trace.calls or trace.trial.system_error:
                report.trials.append(trace.trial)
            else:
                report.skipped["golden"] += 1
            report.trials += trials
        return report

    async def _golden(self, task: Task, trace: bool) -> _Trace:
        trial = Trial(task.uid, task.domain, "golden", changed=False)
        found = _Trace(trial, golden_calls(task))
        async with self._slots:
            await self._play(task, trial, found.calls, found if trace else None)
        self._progress(trial)
        return found

    async def _variants(self, task: Task, trace: _Trace, variants: Sequence[str], pool: Counter[str],
                        skipped: Counter[str]) -> list[Trial]:
        planned: list[tuple[str, str, list[Call]]] = []
        calls = trace.calls
        if trace.trial.system_error:
            return []
        if "noop" in variants:
            planned.append(("noop", "", []))
        for variant in ("dropped", "repeated"):
            if variant in variants:
                for i in trace.writes:
                    changed = calls[:i] + calls[i + 1:] if variant == "dropped" else calls[:i + 1] + calls[i:]
                    planned.append((variant, f"{calls[i].tool} #{i}", changed))
        if "rewritten" in variants:
            planned += [("rewritten", f"{calls[i].tool}.{name} #{i}", [*calls[:i], call, *calls[i + 1:]])
                        for i in trace.writes for name, call in rewritten(calls[i])]
        for variant in ("dropped", "repeated", "rewritten"):
            if variant in variants and not any(v == variant for v, _, _ in planned):
                skipped[variant] += 1
        trials = [self._trial(task, trace, variant, what, changed) for variant, what, changed in planned]
        if "stray" in variants:
            trials.append(self._stray(task, trace, pool, skipped))
        done = await asyncio.gather(*trials)
        return [t for t in done if t is not None]

    async def _trial(self, task: Task, trace: _Trace, variant: str, what: str, calls: Sequence[Call]) -> Trial:
        trial = Trial(task.uid, task.domain, variant, what)
        async with self._slots:
            state = await self._play(task, trial, calls)
        trial.changed = state != trace.state
        self._progress(trial)
        return trial

    async def _stray(self, task: Task, trace: _Trace, pool: Counter[str], skipped: Counter[str]) -> Trial | None:
        own = {json.dumps([c.tool, c.parameters], sort_keys=True) for c in trace.calls}
        borrowed = _varied([Call(*json.loads(text)) for text, _ in sorted(
            pool.items(), key=lambda item: (-item[1], item[0])) if text not in own])[:_STRAY_ATTEMPTS]
        # Rows of other tasks may not exist here, so each is tried with this task's ids and values first.
        here = {name: value for call in trace.calls for name, value in call.parameters.items()}
        candidates = [Call(c.tool, {k: here.get(k, v) for k, v in c.parameters.items()}) for c in borrowed] + borrowed
        trial = Trial(task.uid, task.domain, "stray")
        async with self._slots:
            found = await self._play(task, trial, trace.calls, strays=candidates)
        if not trial.what and not trial.system_error:
            skipped["stray"] += 1
            return None
        trial.changed = found != trace.state
        self._progress(trial)
        return trial

    async def _play(self, task: Task, trial: Trial, calls: Sequence[Call], trace: _Trace | None = None,
                    strays: Sequence[Call] = ()) -> str:
        """Run calls in a session of their own and judge; returns the state's fingerprint."""
        state = ""
        try:
            async with self.sandbox.session(task) as session:
                task = task.with_init(session.init_result)
                messages: list[dict[str, Any]] = [{"role": "user", "content": task.query}]
                for name, arguments in replay_calls(task.history, {t.name for t in task.builtin_tools}):
                    await session.call(name, arguments)
                if trace is not None:
                    trace.states.append(fingerprint(await session.effects()))
                for call in calls:
                    await _make(session, call, messages)
                    if trace is not None:
                        trace.states.append(fingerprint(await session.effects()))
                effects = await session.effects()
                state = fingerprint(effects)
                for stray in strays:
                    await _make(session, stray, messages)
                    effects = await session.effects()
                    if fingerprint(effects) != state:
                        state, trial.what = fingerprint(effects), stray.tool
                        break
                messages.append({"role": "assistant", "content": CLOSING})
                verdict = await self.runner.judge(task, effects, messages, init_result=session.init_result)
        except SystemFault as fault:
            trial.system_error, trial.reason = True, str(fault)
            return state
        trial.passed, trial.system_error, trial.reason = verdict.passed, verdict.system_error, verdict.reason
        trial.diff, trial.hashes = verdict.diff, hashes(effects)
        if trace is not None:
            trace.writes = [i for i in range(len(calls)) if trace.states[i] != trace.states[i + 1]]
        if trial.variant == "golden" and trace is not None:
            trace.state = state
        return state


@dataclass(slots=True)
class _Trace:
    """A golden replay with the state after each call."""

    trial: Trial
    calls: list[Call]
    states: list[str] = field(default_factory=list)
    writes: list[int] = field(default_factory=list)
    state: str = ""


async def _make(session: Session, call: Call, messages: list[dict[str, Any]]) -> None:
    answer = await session.call(call.tool, dict(call.parameters))
    key = f"call_{len(messages)}"
    messages.append({"role": "assistant", "content": None, "tool_calls": [{
        "id": key, "type": "function", "function": {"name": call.tool, "arguments": json.dumps(call.parameters)}}]})
    messages.append({"role": "tool", "tool_call_id": key, "name": call.tool, "content": answer})


def rewritten(call: Call) -> list[tuple[str, Call]]:
    """The call with each of its free texts (those with a space in them) replaced, by the path to the argument."""
    return [(path, replace(call, parameters=parameters)) for path, parameters in _with_other_text(call.parameters)]


def _with_other_text(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, str) and " " in value.strip():
        yield "", _OTHER_TEXT
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            for path, changed in _with_other_text(inner):
                yield f"{key}.{path}".rstrip("."), {**value, key: changed}
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            for path, changed in _with_other_text(inner):
                yield f"[].{path}".rstrip("."), [*value[:i], changed, *value[i + 1:]]


def _varied(calls: list[Call]) -> list[Call]:
    """Calls in an order that takes each tool in turn."""
    by_tool: dict[str, list[Call]] = {}
    for call in calls:
        by_tool.setdefault(call.tool, []).append(call)
    out = []
    while by_tool:
        for tool in list(by_tool):
            out.append(by_tool[tool].pop(0))
            if not by_tool[tool]:
                del by_tool[tool]
    return out


def fingerprint(effects: Mapping[str, Any]) -> str:
    """What the servers report as the session's state, without what stays the same and without the comparison."""
    kept = {name: {k: v for k, v in effect.items() if k != "diff" and not k.startswith(("golden", "initial"))}
            if isinstance(effect, dict) else effect for name, effect in effects.items()}
    return hashlib.sha256(json.dumps(kept, sort_keys=True, default=str).encode()).hexdigest()


def hashes(effects: Mapping[str, Any]) -> dict[str, str]:
    """The state hashes that servers report."""
    return {name: effect["result_db_hash"] for name, effect in effects.items()
            if isinstance(effect, dict) and "result_db_hash" in effect}


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    return ["  ".join(cell.ljust(w) for cell, w in zip(r, widths, strict=True)).rstrip() for r in rows]
