"""Campaigns over tool servers that go wrong: every fault is a system error with its cause, and nothing is left.

What a single session does is in tests/sandbox/test_hostile_servers.py. All faults, many times each:
benchmarks/injected.py.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "sandbox"))
from injection import all_cases, run_cases  # noqa: E402
from ledgers import descendants, gone, open_files  # noqa: E402

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="tool servers are started on Linux only")


def each_kind_once(party, seed, most=None):
    """A seeded choice: every kind at one of its points."""
    cases, rng = all_cases(party), random.Random(seed)
    by_kind = {}
    for case in cases:
        by_kind.setdefault(case.kind, []).append(case)
    chosen = [rng.choice(found) for found in by_kind.values()]
    return chosen if most is None else rng.sample(chosen, most)


@pytest.mark.parametrize(("transport", "seed", "most"), [("forked", 1, None), ("process", 2, 10)])
def test_every_fault_of_a_server_is_a_system_error(tmp_path, transport, seed, most):
    cases = each_kind_once("server", seed, most)
    before, files = descendants(), open_files()
    outcome = run_cases(tmp_path, cases, 1, transport, at_once=40)
    assert outcome.wrong == []
    assert outcome.total("system_error") == outcome.total("injected") == len(cases) >= 10
    assert outcome.total("verdict") == outcome.total("hang") == 0 and outcome.controls == 3
    assert gone(descendants() - before), "no process is left"
    assert open_files().keys() == files.keys()


def test_every_fault_of_a_remote_server_is_a_system_error(tmp_path):
    cases = each_kind_once("remote", 3)
    outcome = run_cases(tmp_path, cases, 1, "http", at_once=40)
    assert outcome.wrong == []
    assert outcome.total("system_error") == outcome.total("injected") == len(cases) >= 30
    assert outcome.total("verdict") == outcome.total("hang") == 0 and outcome.controls == 3
