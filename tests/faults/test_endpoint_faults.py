"""Campaigns whose policy, user or judge endpoint goes wrong: a system error of that role, never a verdict."""

from __future__ import annotations

import asyncio
import random
import resource
import sys

import pytest
import stamina
from faulty_http import ROLES, FaultyHttp, chat, policy_turn, whole
from injection import all_cases, run_cases

from tbstudy.errors import StudyError, SystemFault
from tbstudy.policies.client import MAX_REPLY, Client, Endpoint

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="tool servers are started on Linux only")


def test_every_fault_of_an_endpoint_is_a_system_error_of_its_role(tmp_path):
    rng = random.Random(4)
    by_kind: dict[tuple[str, str], list] = {}
    for case in all_cases("policy", "user", "judge"):
        by_kind.setdefault((case.party, case.kind), []).append(case)
    cases = [rng.choice(found) for found in by_kind.values()]
    outcome = run_cases(tmp_path, cases, 1, at_once=40)
    assert outcome.wrong == []
    assert outcome.total("system_error") == outcome.total("injected") == len(cases) > 100
    assert outcome.total("verdict") == outcome.total("hang") == 0 and outcome.controls == 3


@pytest.fixture
def policy_server():
    with FaultyHttp("policy", ROLES["policy"], policy_turn) as server, stamina.set_testing(
            True, attempts=100, cap=True):
        yield server


def ask(server, kind, **options):
    options = {"timeout_seconds": 20.0, "tries": 1, "model": "m", **options}
    client = Client(Endpoint(base_url=server.url, **options), "policy")

    async def once():
        try:
            return await client.chat([{"role": "user", "content": f"[fault policy {kind}]" if kind else "hello"}])
        finally:
            await client.close()

    return asyncio.run(once())


@pytest.mark.parametrize("kind", ["flood", "flood_error", "bomb"])
def test_no_reply_fills_our_memory(policy_server, kind):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(SystemFault, match="it sent more than 16 MB"):
        ask(policy_server, kind)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 12 * (MAX_REPLY >> 10), "kB"


def test_a_reply_of_many_megabytes_is_taken(policy_server):
    policy_server.answer = lambda request: whole(chat("x" * (8 << 20)))
    assert len(ask(policy_server, "").message.content) == 8 << 20


def test_a_compressed_reply_is_read(policy_server):
    import gzip

    policy_server.answer = lambda request: whole(gzip.compress(chat("hello")), Content_Encoding="gzip")
    assert ask(policy_server, "").message.content == "hello"


@pytest.mark.parametrize("url", ["https://me:secret-word@host/v1", "http://token@host"])
def test_a_password_in_the_url_is_refused_without_quoting_it(url):
    with pytest.raises(StudyError, match="base_url: .*must not hold a user or password") as error:
        Endpoint.of({"base_url": url, "model": "m"})
    assert "secret-word" not in str(error.value)
