"""Injected faults: campaigns in which every attempt meets one, counted by place and kind.

    python benchmarks/injected.py [--faults 1200] [--seed 1] [--at-once 16] [--limit 4]

Tool servers (forked, processes, remote over HTTP) and the endpoints of policy, user and judge go wrong in every way
that tests/faults knows; real campaigns must make each a system error with its cause. Prints a table; the exit status
is 1 when an attempt got a verdict, hung, or had another cause. Attempts without a fault run among the others and must
pass.
"""

from __future__ import annotations

import argparse
import logging
import random
import resource
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "faults"), str(ROOT / "tests" / "sandbox")]

import injection  # noqa: E402
from injection import HANGS, Outcome, all_cases, run_cases  # noqa: E402
from ledgers import descendants, gone, open_files  # noqa: E402

#: Campaigns: name, transport, parties that go wrong, share of the faults.
CAMPAIGNS = (("servers, forked", "forked", ("server",), 0.35), ("servers, processes", "process", ("server",), 0.1),
             ("remote servers", "http", ("remote",), 0.2), ("endpoints", "forked", ("policy", "user", "judge"), 0.35))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--faults", type=int, default=1200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at-once", type=int, default=16)
    parser.add_argument("--limit", type=float, default=4.0, help="seconds that a call may take")
    options = parser.parse_args()
    injection.CALL = options.limit
    logging.getLogger("stamina").setLevel(logging.ERROR)
    rng, ok, everything = random.Random(options.seed), True, Counter()
    before, files = descendants(), open_files()
    for name, transport, parties, share in CAMPAIGNS:
        cases = all_cases(*parties)
        rng.shuffle(cases)
        wanted = round(options.faults * share)
        rounds = max(1, round(wanted / len(cases)))
        chosen = cases[:max(1, round(wanted / rounds))]
        with tempfile.TemporaryDirectory() as folder:
            outcome = run_cases(Path(folder), chosen, rounds, transport, controls=10, at_once=options.at_once,
                                deadline=3600)
        show(name, outcome)
        ok &= not outcome.wrong
        everything += Counter({what: outcome.total(what) for what in ("injected", "system_error", "verdict", "hang")})
        everything["controls"] += outcome.controls
        everything["seconds"] += round(outcome.seconds)
    left = not gone(descendants() - before) or open_files().keys() != files.keys()
    print(f"\nall: {everything['injected']} injected, {everything['system_error']} system errors with the right cause, "
          f"{everything['verdict']} verdicts, {everything['hang']} hangs (longer than {HANGS:g} s); "
          f"{everything['controls']} attempts without a fault passed; {everything['seconds']} s; "
          f"processes or file descriptors left: {'yes' if left else 'none'}; "
          f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MB")
    return 0 if ok and not left else 1


def show(name: str, outcome: Outcome) -> None:
    places: dict[str, Counter[str]] = {}
    kinds: dict[str, set[str]] = {}
    for (place, kind), row in outcome.rows.items():
        places.setdefault(place, Counter()).update(row)
        kinds.setdefault(place, set()).add(kind)
    print(f"\n{name}: {outcome.seconds:.0f} s, longest attempt {outcome.slowest:.1f} s, "
          f"{outcome.controls} without a fault")
    print(f"{'place':24}{'kinds':>6}{'injected':>10}{'system errors':>15}{'verdicts':>10}{'hangs':>7}")
    for place, row in sorted(places.items()):
        print(f"{place:24}{len(kinds[place]):6}{row['injected']:10}{row['system_error']:15}{row['verdict']:10}"
              f"{row['hang']:7}")
    by_kind: Counter[str] = Counter()
    for (_, kind), row in outcome.rows.items():
        by_kind[kind] += row["injected"]
    print("kinds: " + ", ".join(f"{kind} {count}" for kind, count in sorted(by_kind.items())))
    for line in outcome.wrong:
        print(f"WRONG {line[:300]}")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
