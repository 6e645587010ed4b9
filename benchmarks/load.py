"""Load: one campaign of at least 10,140 episodes of the bundled benchmark, 64 at a time, watched from outside.

    python benchmarks/load.py [--policy scripted|local] [--episodes 10140] [--at-once 64]

Prints the memory of the campaign's processes as the episodes go by, the time an episode takes among the first and the
last thousand, the size of the records, and whether every key is there once. The scripted policy replays golden calls
with mistakes, so that the sandbox, the checks and the store are what is loaded; the local one is the bundled small
policy in waves of that size.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "faults"))


def resident(process: int) -> tuple[float, float]:
    """MiB of memory that is in no file's cache: of the process, and of everything below it."""
    def own(pid: str) -> float:
        try:
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            return sum(int(line.split()[1]) for line in lines if line.startswith(("RssAnon:", "RssShmem:"))) / 1024
        except OSError:
            return 0.0

    def children(pid: str) -> list[str]:
        try:
            return [c for t in os.listdir(f"/proc/{pid}/task")
                    for c in Path(f"/proc/{pid}/task/{t}/children").read_text().split()]
        except OSError:
            return []

    below, waiting = 0.0, children(str(process))
    while waiting:
        pid = waiting.pop()
        below += own(pid)
        waiting += children(pid)
    return own(str(process)), below


def run(args: argparse.Namespace, folder: Path) -> None:
    from scripted_load import erring_policy

    from tbstudy.campaign import load_tasks, run_campaign
    from tbstudy.config import load_study
    from tbstudy.store import is_system_error, key_of, read_lines

    study = load_study(ROOT / "configs" / "laptop.yaml", folder, policy__wave=args.at_once, policy__workers=1)
    tasks = load_tasks(study, "benchmark")
    store = folder / "load.jsonl"
    done, first, started, seen, stop = 0, True, time.monotonic(), [], threading.Event()

    def advance(count: int) -> None:
        nonlocal done, first
        # The first call says what was there.
        done, first = done + (0 if first else count), False

    def watch() -> None:
        while not stop.wait(0.25):
            seen.append((done, time.monotonic() - started, *resident(os.getpid())))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    rounds = math.ceil(args.episodes / len(tasks))
    options = {"name": args.policy, "stage": "load", "progress": advance} | (
        {"policy": erring_policy(), "at_once": args.at_once} if args.policy == "scripted" else {})
    # What is prepared once for each task, at its first attempt, must not look like growth: one round goes ahead. (The
    # local policy would play its waves again, which are others then; its worker keeps the tasks, not this process.)
    for repetitions in (1, rounds) if args.policy == "scripted" else (rounds,):
        first = True
        run_campaign(study, tasks, repetitions, store, **options)
    seconds = time.monotonic() - started
    stop.set()
    watcher.join()
    records = [(key_of(r), r["metadata"]["seconds"], is_system_error(r), bool((r["test_result"] or {}).get("result")))
               for _, r in read_lines(store)]
    report(args, records, seen, seconds, store.stat().st_size, rounds * len(tasks))


def report(args: argparse.Namespace, records: list, seen: list, seconds: float, size: int, wanted: int) -> None:
    """Print what was measured."""
    keys = {r[0] for r in records}
    passed = sum(r[3] for r in records)
    print(f"{args.policy} policy, {args.at_once} at a time: {len(records)} records, {len(keys)} keys, "
          f"{sum(r[2] for r in records)} system errors, {passed} passed")
    print(f"{seconds:.0f} s, {60 * len(records) / seconds:.0f} episodes a minute; {size / 1e6:.1f} MB, "
          f"{size / len(records) / 1024:.1f} KiB a record")
    print(f"{'episodes':>9} {'seconds':>8} {'MiB':>8} {'MiB below':>10}")
    marks = [round(len(records) * i / 10) for i in range(1, 11)]
    for mark in marks:
        at = next((s for s in seen if s[0] >= mark), seen[-1])
        print(f"{at[0]:>9} {at[1]:>8.0f} {at[2]:>8.1f} {at[3]:>10.1f}")
    n = min(1000, len(records) // 2)
    for name, part in (("first", records[:n]), ("last", records[-n:])):
        times = sorted(r[1] for r in part)
        print(f"{name} {n}: median {1e3 * median(times):.1f} ms an episode, 95 % within "
              f"{1e3 * times[int(0.95 * n)]:.1f} ms")
    if len(keys) != wanted or len(records) != wanted:
        raise SystemExit(f"expected {wanted} records, one a key")


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--policy", choices=("scripted", "local"), default="scripted")
    p.add_argument("--episodes", type=int, default=10_140)
    p.add_argument("--at-once", type=int, default=64)
    args = p.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        run(args, Path(scratch))


if __name__ == "__main__":  # workers import this module when they are spawned
    main()
