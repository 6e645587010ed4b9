"""Faults at exact, seeded points of a miniature study: killed, interrupted, out of disk; then started again.

    python benchmarks/faults.py [--points 72] [--seed 0] [--tmpfs 4]

A point is the n-th change of the study's folders (open, write, fsync, rename, ...) in probe, train, evaluate or report,
counted over all processes; two workers play, two arms train. After each fault every visible file must be whole; then
the part is started again and must end with the records, weights and tables of the undisturbed run, every key once. With
--tmpfs, that many times a part runs on a file system that is really too small and is made larger afterwards (for root
only). Needs Linux and a C compiler.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "faults"))

from pipeline_faults import KINDS, PARTS, Bench, Point, small_disk  # noqa: E402


def run_point(bench: Bench, point: Point) -> tuple[str, str]:
    """Whether the point was reached, and what went wrong."""
    case = bench.begin(point.part, str(point))
    try:
        hit = bench.disturb(case, point).hit
        bench.finish(case, point.part)
    except AssertionError as error:
        return "reached", str(error)[:2000]
    shutil.rmtree(case)
    return ("reached" if hit else "not reached"), ""


def run_small_disk(bench: Bench, part: str, share: float) -> str:
    """What went wrong with a part on a disk that holds only a share of what it writes."""
    case = bench.folder / "cases" / f"{part}-tmpfs"
    size = bench.sizes[part]
    try:
        with small_disk(case, size[0] + int(share * (size[1] - size[0]))) as enlarge:
            bench.begin(part, case.name)
            bench.disturb(case, Point(part, "small_disk", 0, 0))
            enlarge(size[1] * 4 + (64 << 20))
            bench.finish(case, part)
    except AssertionError as error:
        return str(error)[:2000]
    return ""


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--points", type=int, default=72)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--tmpfs", type=int, default=0)
    p.add_argument("--parts", type=lambda s: s.split(","), default=list(PARTS), help="comma-separated")
    p.add_argument("--keep", type=Path, help="work here and leave the cases that failed")
    args = p.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        bench = Bench(folder)
        changes = ", ".join(f"{part} {len(found)}" for part, found in bench.changes.items())
        print(f"changes of the undisturbed run: {changes}", flush=True)
        reached, missed, wrong = Counter(), Counter(), []
        for point in bench.points(args.points, args.seed, args.parts):
            how, problem = run_point(bench, point)
            (reached if how == "reached" else missed)[point.part, point.kind] += 1
            if problem:
                wrong.append(f"{point}: {problem}")
                print(f"WRONG {wrong[-1]}", flush=True)
        rng = random.Random(args.seed)
        for i in range(args.tmpfs):
            part, share = args.parts[i % len(args.parts)], rng.uniform(0.1, 0.9)
            reached[part, "small_disk"] += 1
            if problem := run_small_disk(bench, part, share):
                wrong.append(f"{part} on a small disk: {problem}")
                print(f"WRONG {wrong[-1]}", flush=True)
    kinds = [*KINDS, "small_disk"]
    print(f"{'':10}" + "".join(f"{k:>12}" for k in kinds))
    for part in args.parts:
        print(f"{part:10}" + "".join(f"{reached[part, k]:>12}" for k in kinds))
    print(f"{sum(reached.values())} points reached, {sum(missed.values())} behind a run's end, {len(wrong)} wrong; "
          f"{time.monotonic() - started:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
