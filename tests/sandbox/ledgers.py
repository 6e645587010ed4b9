"""What the sandbox tests share: the ledger dataset, its servers, and watching processes."""

import asyncio
import os
import time
from dataclasses import replace
from pathlib import Path

from tbstudy.sandbox.servers import read_servers
from tbstudy.sandbox.transports import open_sandbox
from tbstudy.tasks.loader import load_dataset

LEDGER = Path(__file__).parents[1] / "data" / "ledger"
SERVERS = read_servers(LEDGER / "servers" / "servers.yaml")
TASKS = load_dataset(LEDGER).tasks
TRANSFER = TASKS["ledger_group_basic.py:test_transfer"]
GOLDEN = TRANSFER.world_state["ledger"]["golden_test_case"]["tool_interactions"]


def with_state(task=TRANSFER, server="ledger", **state):
    """The task with more in its world state, or on another server."""
    return replace(task, world_state={server: {**task.world_state["ledger"], **state}})


def open_ledger(transport="forked", servers=SERVERS, **options):
    return open_sandbox(transport, servers, **{"start_seconds": 20, "call_seconds": 10, **options})


def in_sandbox(work, transport="forked", **options):
    """Run `await work(sandbox)`, then close the sandbox, in a loop of its own."""
    async def run():
        sandbox = open_ledger(transport, **options)
        try:
            return await work(sandbox)
        finally:
            await sandbox.close()

    return asyncio.run(run())


def descendants(pid=None):
    """All processes below `pid`, by id."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry)] = (int(stat[1]), stat[0])
    below, found = {pid or os.getpid()}, set()
    while below:
        below = {p for p, (parent, _) in parents.items() if parent in below and p not in found}
        found |= below
    return {p for p in found if parents[p][1] != "Z"}


def gone(pids, seconds=5.0):
    """Whether none of the processes runs any more within `seconds`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        alive = []
        for pid in pids:
            try:
                if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
                    alive.append(pid)
            except OSError:
                pass
        if not alive:
            return True
        time.sleep(0.02)
    return False


def open_files():
    return {fd: target for fd in os.listdir("/proc/self/fd") if (target := _link(fd))}


def _link(fd):
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return None
