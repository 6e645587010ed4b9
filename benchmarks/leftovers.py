"""What many sessions leave behind, with clients that break off and servers that break down among them.

    python benchmarks/leftovers.py --sessions 1500
    python benchmarks/leftovers.py DATASET --list LIST --python PYTHON --sessions 1500 --transports forked

Plays golden episodes; of each ten sessions several go wrong, each in a way of its own, four at once. Then counts, with
the sandbox open and after it is closed: processes that carry this run's mark in their environment, wherever they are;
zombies; file descriptors, ours and the keepers'; files in the run's own temporary folder; asyncio tasks. The exit code
is 1 when anything is left.

The default dataset has a server that misbehaves on request. A server of any other is stopped or killed from outside.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import signal
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tbstudy.errors import SystemFault
from tbstudy.reward.checks import CheckRunner
from tbstudy.reward.judge import ScriptedJudge
from tbstudy.sandbox.base import Sandbox
from tbstudy.sandbox.replay import CLOSING, golden_calls
from tbstudy.sandbox.search import check_search
from tbstudy.sandbox.servers import read_servers
from tbstudy.sandbox.transports import open_sandbox
from tbstudy.tasks.loader import load_dataset
from tbstudy.tasks.model import Task

LEDGER = Path(__file__).parents[1] / "tests" / "data" / "ledger"
MARK = "TBSTUDY_LEFTOVERS"
#: What happens in ten sessions, again and again: on request of a call, or done to the server from outside.
ON_REQUEST = ("golden", "exit", "hang", "flood", "garbage", "cancelled in a call", "cancelled at the start",
              "init fails", "our exception", "children")
FROM_OUTSIDE = ("golden", "killed", "stopped", "golden", "cancelled in a call", "cancelled at the start", "golden",
                "our exception", "golden", "golden")


class Ours(Exception):
    """An exception in the client's own code."""


async def one(sandbox: Sandbox, runner: CheckRunner, task: Task, how: str, number: int) -> str:
    """One session in which `how` happens; what came of it."""
    if how == "init fails":
        task = replace(task, world_state={n: {**s, "fail": "exit"} for n, s in task.world_state.items()})
    if how == "cancelled at the start":
        return await _cancelled(_opened(sandbox, task), 0.001 * (number % 40))
    return await _outcome(_played(sandbox, runner, task, how, number))


async def _opened(sandbox: Sandbox, task: Task) -> str:
    async with sandbox.session(task):
        await asyncio.sleep(60)
    return "opened"


async def _played(sandbox: Sandbox, runner: CheckRunner, task: Task, how: str, number: int) -> str:
    async with sandbox.session(task) as session:
        calls = [(c.tool, dict(c.parameters)) for c in golden_calls(task)]
        for tool, arguments in calls[:1]:
            await session.call(tool, arguments)
        if how == "our exception":
            raise Ours
        if how in ("killed", "stopped"):
            _signal_servers(session, signal.SIGKILL if how == "killed" else signal.SIGSTOP)
        elif how == "cancelled in a call":
            if "misbehave" in {t["function"]["name"] for t in await session.tools()}:
                hanging = session.call("misbehave", {"how": "hang"})
            else:
                _signal_servers(session, signal.SIGSTOP)  # else the call may be over before we break it off
                hanging = session.call(*calls[-1])
            return await _cancelled(hanging, 0.001 * (number % 20))
        elif how in ON_REQUEST[1:]:
            await session.call("misbehave", {"how": how})
        for tool, arguments in calls[1:]:
            await session.call(tool, arguments)
        effects = await session.effects()
        verdict = await runner.judge(task, effects, [{"role": "user", "content": task.query},
                                                     {"role": "assistant", "content": CLOSING}])
        return "passed" if verdict.passed else f"failed: {verdict.reason}"


def _signal_servers(session: Any, number: int) -> None:
    for server in session._servers.values():
        os.kill(server.wire.process.pid, number)


async def _cancelled(work: Any, after: float) -> str:
    job = asyncio.ensure_future(work)
    await asyncio.sleep(after)
    job.cancel()
    return await _outcome(job)


async def _outcome(work: Any) -> str:
    try:
        return await work
    except asyncio.CancelledError:
        return "cancelled"
    except Ours:
        return "ours"
    except SystemFault:
        return "system fault"


def _keepers(sandbox: Any) -> list[Any]:
    return [k for k in (sandbox._keeper, *sandbox._images.values()) if k is not None and k.process is not None]


def standing(keepers: Sequence[Any] = ()) -> dict[str, Any]:
    """What there is now: marked processes, zombies below them and us, descriptors of us and the keepers, files."""
    marked, parents = {os.getpid()}, {}
    mark = f"{MARK}={os.environ[MARK]}".encode()
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            state, parent = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[:2]
            parents[int(entry)] = (state, int(parent))
            if mark in Path(f"/proc/{entry}/environ").read_bytes().split(b"\0"):
                marked.add(int(entry))
        except OSError:
            continue  # it has ended, or is a zombie, which has no environment any more
    return {"processes": len(marked - {os.getpid()}),
            "zombies": sum(state == "Z" and parent in marked for state, parent in parents.values()),
            "descriptors": len(os.listdir("/proc/self/fd")),
            "keepers": [len(os.listdir(f"/proc/{k.process.pid}/fd")) for k in keepers],
            "files": sum(len(files) + len(folders) for _, folders, files in os.walk(tempfile.gettempdir())),
            "tasks": len(asyncio.all_tasks()),
            "mib": [round(_rss(pid), 1) for pid in (os.getpid(), *(k.process.pid for k in keepers))]}


def _rss(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


async def settled(keepers: Sequence[Any], like: dict[str, Any], seconds: float = 5.0) -> dict[str, Any]:
    """`standing`, once it is as `like` but for memory, or after some seconds."""
    end = time.monotonic() + seconds
    while leftovers(like, now := standing(keepers)) and time.monotonic() < end:
        await asyncio.sleep(0.05)
    return now


def leftovers(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """What there is more of than before. (A keeper that is gone comes back with the next session.)"""
    def number(value: Any) -> int:
        return sum(value) if isinstance(value, list) else value

    return {k: [before[k], after[k]] for k in before if k != "mib" and number(after[k]) > number(before[k])}


async def measure(transport: str, args: argparse.Namespace) -> dict[str, Any]:
    """Run the sessions over one transport."""
    data = load_dataset(args.dataset, args.list)
    tasks = [t for t in data.tasks.values() if golden_calls(t) and not t.history
             and (args.domain is None or t.domain == args.domain)]
    places = [args.dataset / "servers.yaml", args.dataset / "servers" / "servers.yaml",
              args.dataset.parent / "servers" / "servers.yaml"]
    servers = read_servers(next(p for p in places if p.is_file()), args.python)
    servers = {n: s for n, s in servers.items() if any(n in t.world_state for t in tasks)}
    on_request = args.dataset.resolve() == LEDGER
    kinds = ON_REQUEST if on_request else FROM_OUTSIDE
    if not on_request:
        check_search(servers.values())
    outcomes: dict[str, Counter[str]] = {how: Counter() for how in kinds}
    first = standing()
    began = time.monotonic()
    with CheckRunner(judge=ScriptedJudge(), timeout=60) as runner:
        sandbox = open_sandbox(transport, servers, start_seconds=60, call_seconds=args.call_seconds)
        limit = asyncio.Semaphore(args.concurrency)

        async def limited(number: int, how: str) -> None:
            async with limit:
                outcomes[how][await one(sandbox, runner, tasks[number % len(tasks)], how, number)] += 1

        async def many(numbers: range) -> None:
            await asyncio.gather(*(limited(n, kinds[n % len(kinds)]) for n in numbers))
            while sandbox._ending:  # type: ignore[attr-defined]
                await asyncio.sleep(0.01)

        # Keepers, the check's children and connections come with the first sessions.
        for task in {t.domain: t for t in tasks}.values():
            for _ in range(3):
                await asyncio.gather(*(one(sandbox, runner, task, "golden", 0) for _ in range(args.concurrency)))
        warm = min(100, args.sessions // 5)
        await many(range(warm))
        idle = standing(_keepers(sandbox))
        await many(range(warm, args.sessions))
        now = await settled(_keepers(sandbox), idle)
        await sandbox.close()
    last = await settled((), first)
    return {"sessions": args.sessions, "seconds": round(time.monotonic() - began, 1), "before": first,
            f"after {warm}": idle, f"after {args.sessions}": now, "closed": last,
            "left": leftovers(idle, now), "left when closed": leftovers(first, last),
            "outcomes": {how: dict(c) for how, c in outcomes.items()}}


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("dataset", type=Path, nargs="?", default=LEDGER)
    p.add_argument("--list", type=Path)
    p.add_argument("--domain", help="only this scenario")
    p.add_argument("--python", help="interpreter of the tool servers")
    p.add_argument("--transports", type=lambda s: s.split(","), default=["forked", "process"])
    p.add_argument("--sessions", type=int, default=1500, help="for each transport (default: %(default)s)")
    p.add_argument("--concurrency", type=int, default=4)
    p.add_argument("--call-seconds", type=float, default=2.0, help="limit of a call (default: %(default)s)")
    p.add_argument("--json", type=Path)
    args = p.parse_args()
    logging.disable(logging.WARNING)
    os.environ[MARK] = uuid.uuid4().hex
    out = {}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        for transport in args.transports:
            out[transport] = found = asyncio.run(measure(transport, args))
            print(f"{transport}: {found['sessions']} sessions in {found['seconds']} s")
            for how, counts in found["outcomes"].items():
                print(f"  {how}: {', '.join(f'{n} {what}' for what, n in sorted(counts.items()))}")
            for when in [k for k in found if isinstance(found[k], dict) and "mib" in found[k]]:
                print(f"  {when}: {', '.join(f'{what} {n}' for what, n in found[when].items())}")
            print(f"  left: {found['left'] or 'nothing'}; when closed: {found['left when closed'] or 'nothing'}",
                  flush=True)
    if args.json:
        args.json.write_text(json.dumps(out, indent=1))
    return int(any(f["left"] or f["left when closed"] for f in out.values()))


if __name__ == "__main__":
    sys.exit(main())
