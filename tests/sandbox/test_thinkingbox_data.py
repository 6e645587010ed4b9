"""The real benchmark: servers, golden calls and checks of a checkout of microsoft/thinkingbox-data.

    TBSTUDY_THINKINGBOX_DATA      the checkout
    TBSTUDY_THINKINGBOX_PYTHON    an interpreter with its server packages (see docs/thinkingbox.md)

A sample of the tasks; `tbstudy replay` does all of them.
"""

import asyncio
import contextlib
import os
from pathlib import Path

import pytest

from tbstudy.errors import StudyError
from tbstudy.reward.checks import CheckRunner
from tbstudy.reward.judge import ScriptedJudge
from tbstudy.sandbox.replay import Replay
from tbstudy.sandbox.search import check_search, serve
from tbstudy.sandbox.servers import read_servers
from tbstudy.sandbox.transports import open_sandbox
from tbstudy.tasks.loader import load_dataset, load_list

ROOT, PYTHON = (os.environ.get(f"TBSTUDY_THINKINGBOX_{name}") for name in ("DATA", "PYTHON"))
pytestmark = [
    pytest.mark.skipif(not ROOT, reason="TBSTUDY_THINKINGBOX_DATA is not set"),
    pytest.mark.skipif(not PYTHON, reason="TBSTUDY_THINKINGBOX_PYTHON is not set")]
BENCH = "releases/thinkingbox_bench_v1/testlist_thinkingbox_bench_v1.yaml"


@contextlib.asynccontextmanager
async def searching(specs):
    try:
        await asyncio.to_thread(check_search, specs)
        yield
    except StudyError:
        async with await serve():
            yield


def replay(uids, variants, **options):
    async def run():
        data = load_dataset(Path(ROOT) / "dataset", uids)
        specs = read_servers(Path(ROOT) / "servers" / "servers.yaml", PYTHON)
        async with searching(specs.values()):
            sandbox = open_sandbox("forked", specs, call_seconds=60, **options)
            try:
                with CheckRunner(judge=ScriptedJudge(), timeout=30) as runner:
                    report = await Replay(sandbox, runner, 2).run(data.tasks.values(), variants)
            finally:
                await sandbox.close()
        assert sandbox.notes == []
        return report

    return asyncio.run(run())


def test_golden_calls_pass_and_nothing_else_does():
    uids = load_list(Path(ROOT) / BENCH)[::40]
    report = replay(uids, ("golden", "noop", "dropped", "stray"))
    assert report.sound, report.table()
    wrong = [t.key for t in report.trials if t.blind]
    assert wrong == []


def test_the_tasks_whose_checks_are_known_to_pass_more():
    file = "sandbox_neobank_support_v1_group1.py"
    report = replay([f"{file}:test_he_017", f"{file}:test_he_004"], ("golden", "noop", "dropped"))
    found = {t.key: t.passed for t in report.trials}
    assert found[f"{file}:test_he_017", "noop", ""]  # its golden calls only read
    assert not found[f"{file}:test_he_004", "noop", ""]
    assert any(passed for (uid, variant, _), passed in found.items()
               if uid.endswith("test_he_004") and variant == "dropped")


def test_the_development_servers_run():
    uids = ["banking.py:test_check_balance_1", "email_system_org.py:test_contact_hierarchy_navigation",
            "mcs_defaults.py:test_mcs_defaults_easy", "banking_email.py:test_transfer_and_sendemail",
            "airline_tau_bench.py:test_000_book_one_way_economy_flight"]
    report = replay(uids, ("golden", "noop"))
    assert [t.reason for t in report.trials if t.system_error] == [] and len(report.trials) == 5


def test_the_clock_can_be_frozen():
    uids = load_list(Path(ROOT) / BENCH)[5::120]
    assert replay(uids, ("golden",), clock="2025-10-01T13:00:00Z").sound
