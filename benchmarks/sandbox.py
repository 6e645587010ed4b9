"""Speed of the sandbox: golden episodes over several transports, side by side on the same tasks in the same run.

    python benchmarks/sandbox.py data/demo --transports inprocess
    python benchmarks/sandbox.py DATASET --list LIST --python PYTHON --transports forked,proxy --proxy-url URL

Prints, for each transport: medians of what an episode consists of, one at a time; golden episodes a minute by how many
run at once; memory a session adds; and, with --sessions, whether the last session starts as fast as the first ones.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import statistics
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tbstudy.reward.checks import CheckRunner
from tbstudy.reward.judge import ScriptedJudge
from tbstudy.sandbox.base import Sandbox
from tbstudy.sandbox.replay import CLOSING, golden_calls
from tbstudy.sandbox.search import check_search
from tbstudy.sandbox.servers import read_servers
from tbstudy.sandbox.transports import open_sandbox
from tbstudy.tasks.loader import load_dataset
from tbstudy.tasks.model import Task

PHASES = ("create", "tools", "call", "effects", "verdict", "end", "episode")


async def episode(sandbox: Sandbox, runner: CheckRunner, task: Task, times: dict[str, list[float]]) -> None:
    """One golden episode; seconds of each phase go to `times`. Fails if the verdict is not a pass."""
    clock, at = time.perf_counter, {}
    began = clock()

    def lap(phase: str) -> None:
        at[phase] = clock()
        times[phase].append(at[phase] - at["last"])
        at["last"] = clock()

    at["last"] = began
    async with sandbox.session(task) as session:
        lap("create")
        await session.tools()
        lap("tools")
        for call in golden_calls(task):
            await session.call(call.tool, dict(call.parameters))
            lap("call")
        effects = await session.effects()
        lap("effects")
        verdict = await runner.judge(task, effects, [{"role": "user", "content": task.query},
                                                     {"role": "assistant", "content": CLOSING}])
        lap("verdict")
    lap("end")
    times["episode"].append(clock() - began)
    if not verdict.passed:
        raise SystemExit(f"{task.uid} does not pass: {verdict.reason}")


async def throughput(sandbox: Sandbox, runner: CheckRunner, tasks: Sequence[Task], at_once: int,
                     seconds: float) -> tuple[float, dict[str, list[float]]]:
    """Golden episodes a minute with `at_once` of them running for about `seconds`, and the phases' times."""
    times: dict[str, list[float]] = defaultdict(list)
    end, position = time.perf_counter() + seconds, 0

    async def worker() -> None:
        nonlocal position
        while time.perf_counter() < end:
            position += 1
            await episode(sandbox, runner, tasks[position % len(tasks)], times)

    began = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(at_once)))
    return 60 * len(times["episode"]) / (time.perf_counter() - began), times


async def memory(sandbox: Sandbox, tasks: Sequence[Task], count: int, root: int) -> float:
    """MiB that each of `count` open sessions adds to the processes below `root` (proportional set size)."""
    sessions = [sandbox.session(tasks[i % len(tasks)]) for i in range(count)]
    before = _pss(root)
    for session in sessions:
        await session.__aenter__()
    inside = _pss(root)
    for session in sessions:
        await session.__aexit__(None, None, None)
    return (inside - before) / count / 1024


def _pss(root: int) -> int:
    total, waiting = 0, [root]
    while waiting:
        pid = waiting.pop()
        try:
            waiting += [int(p) for t in os.listdir(f"/proc/{pid}/task")
                        for p in Path(f"/proc/{pid}/task/{t}/children").read_text().split()]
            total += next(int(line.split()[1]) for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
                          if line.startswith("Pss:"))
        except (OSError, StopIteration):
            continue
    return total


async def endurance(sandbox: Sandbox, runner: CheckRunner, tasks: Sequence[Task], sessions: int) -> dict[str, Any]:
    """Milliseconds (median of 50) that sessions take to create among the first and the last of many; `blocks` has the
    medians of every 100 in between. One task throughout, so that only age differs."""
    times: dict[str, list[float]] = defaultdict(list)
    for _ in range(sessions):
        await episode(sandbox, runner, tasks[0], times)
    create = [1e3 * t for t in times["create"]]
    return {"sessions": sessions, "first": statistics.median(create[10:60]), "last": statistics.median(create[-50:]),
            "blocks": [round(statistics.median(create[i:i + 100]), 2) for i in range(0, len(create), 100)]}


async def run(args: argparse.Namespace) -> dict:
    data = load_dataset(args.dataset, args.list)
    by_domain: dict[str, list[Task]] = defaultdict(list)
    for task in data.tasks.values():
        if golden_calls(task) and (args.domain is None or task.domain == args.domain):
            by_domain[task.domain].append(task)
    tasks = [t for i in range(args.tasks) for ts in by_domain.values() if i < len(ts) for t in [ts[i]]]
    places = [args.servers] if args.servers else [args.dataset / "servers.yaml",
                                                 args.dataset.parent / "servers" / "servers.yaml"]
    servers = read_servers(next(p for p in places if p.is_file()), args.python)
    servers = {n: s for n, s in servers.items() if any(n in t.world_state for t in tasks)}
    out: dict = {"dataset": args.dataset.name, "tasks": len(tasks), "domains": list(by_domain),
                 "search": check_search(servers.values()), "cpus": os.cpu_count(), "transports": {}}
    boxes = {name: open_sandbox(name, servers, proxy_url=args.proxy_url, start_seconds=300, call_seconds=120)
             for name in args.transports}
    try:
        with CheckRunner(judge=ScriptedJudge(), timeout=60) as runner:
            for name, box in boxes.items():
                out["transports"][name] = {"a_minute": {}}
                for task in {t.domain: t for t in tasks}.values():  # imports, caches
                    for _ in range(3):
                        await episode(box, runner, task, defaultdict(list))
            for at_once in args.concurrency:
                for name, box in boxes.items():
                    rate, times = await throughput(box, runner, tasks, at_once, args.seconds)
                    found = out["transports"][name]
                    found["a_minute"][at_once] = round(rate, 1)
                    if at_once == min(args.concurrency):
                        found["ms"] = {p: {"median": round(1e3 * statistics.median(times[p]), 3),
                                           "p95": round(1e3 * sorted(times[p])[int(0.95 * len(times[p]))], 3)}
                                       for p in PHASES}
                        found["episodes"] = len(times["episode"])
            for name, box in boxes.items():
                root = args.proxy_pid if name == "proxy" else os.getpid()
                if root and name != "inprocess":
                    out["transports"][name]["mib_a_session"] = round(await memory(box, tasks, 8, root), 1)
                if args.sessions and name != "proxy":
                    out["transports"][name]["endurance"] = await endurance(box, runner, tasks, args.sessions)
    finally:
        for box in boxes.values():
            await box.close()
    return out


def show(out: dict) -> str:
    """The result as text."""
    lines = [f"{out['tasks']} tasks of {', '.join(out['domains'])}; {out['cpus']} CPUs" + (
        "" if not out["search"] else f"; search by {out['search']['service']}")]
    names = list(out["transports"])
    lines.append(f"{'ms, median (p95)':22}" + "".join(f"{n:>24}" for n in names))
    for phase in PHASES:
        cells = [out["transports"][n]["ms"][phase] for n in names]
        lines.append(f"{phase:22}" + "".join(f"{c['median']:.2f} ({c['p95']:.2f})".rjust(24) for c in cells))
    lines.append("golden episodes a minute, by how many at once")
    for at_once in out["transports"][names[0]]["a_minute"]:
        lines.append(f"{at_once:<22}" + "".join(f"{out['transports'][n]['a_minute'][at_once]:>24.1f}" for n in names))
    for name in names:
        found = out["transports"][name]
        if "mib_a_session" in found:
            lines.append(f"{name}: {found['mib_a_session']} MiB a session")
        if "endurance" in found:
            e = found["endurance"]
            lines.append(f"{name}: create {e['first']:.2f} ms among the first, {e['last']:.2f} ms among the last of "
                         f"{e['sessions']} sessions")
    return "\n".join(lines)


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("dataset", type=Path)
    p.add_argument("--list", type=Path)
    p.add_argument("--domain", help="only this scenario")
    p.add_argument("--servers", type=Path)
    p.add_argument("--python", help="interpreter of the tool servers")
    p.add_argument("--transports", type=lambda s: s.split(","), default=["inprocess"])
    p.add_argument("--proxy-url")
    p.add_argument("--proxy-pid", type=int, help="process of a proxy on this machine, to measure its memory")
    p.add_argument("--tasks", type=int, default=10, help="tasks of each domain (default: %(default)s)")
    p.add_argument("--concurrency", type=lambda s: [int(n) for n in s.split(",")], default=[1, 2, 4, 8])
    p.add_argument("--seconds", type=float, default=15.0, help="of each measurement (default: %(default)s)")
    p.add_argument("--sessions", type=int, default=0, help="also run that many, one after another")
    p.add_argument("--json", type=Path)
    args = p.parse_args()
    # Importing an in-process server sets up logging, which would then write a line for each request to the proxy.
    logging.disable(logging.INFO)
    out = asyncio.run(run(args))
    print(show(out))
    if args.json:
        args.json.write_text(json.dumps(out, indent=1))


if __name__ == "__main__":
    main()
