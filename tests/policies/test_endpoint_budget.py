"""A budget over policy, user and judge ends a campaign cleanly, and the next run continues it."""

from __future__ import annotations

import asyncio
import json
import signal

import pytest
from model_server import ModelServer, hang, status
from test_endpoint_campaign import Desk, probe, study  # noqa: F401

from tbstudy.errors import StudyError


def test_a_spent_budget_stops_the_campaign_and_a_larger_one_continues(study, no_pauses):  # noqa: F811
    with ModelServer(None, script=Desk()) as server:
        small = study(server.url, policy__endpoint__budget_tokens=9000)
        with pytest.raises(StudyError, match="budget reached: .* of 9000 tokens are spent"):
            probe(small)
        spent = 110 * len(server.seen)
        assert 9000 <= spent <= 9000 + 4 * 110, "at most the calls in flight are above it"
        larger = study(server.url, policy__endpoint__budget_tokens=10**6, policy__endpoint__concurrency=2)
        result, attempts = probe(larger)
    assert 0 < result.stored < 48 and result.played == 48 - result.stored and len(attempts) == 48
    assert not attempts.system_error.any()


def test_users_and_judges_share_the_budget_and_their_tokens_are_recorded(study, no_pauses):  # noqa: F811
    answers = {"role": "assistant", "content": "My full name is Ada Brandt. My item number is I-11."}
    with ModelServer(None, script=Desk()) as server, ModelServer(None, script=lambda body: dict(answers)) as users:
        user = {"kind": "endpoint", "endpoint": {"base_url": users.url, "model": "user", "tries": 2}}
        one = study(server.url, user=user, probe__attempts=1)
        result, attempts = probe(one)
        assert attempts.user_input_tokens.sum() == 100 * len(users.seen) > 0
        users.faults = [status(401)]
        result.path.unlink()
        with pytest.raises(StudyError, match="user endpoint .* HTTP 401"):
            probe(one)


def test_a_wrong_key_stops_the_campaign_at_once(study, no_pauses):  # noqa: F811
    with ModelServer(None, script=Desk()) as server:
        server.faults = [status(401)] * 100
        with pytest.raises(StudyError, match="HTTP 401"):
            probe(study(server.url))
        assert len(server.seen) <= 4


def test_the_judge_of_a_campaign_is_recorded(study, no_pauses, tmp_path):  # noqa: F811
    file = tmp_path / "library" / "test_case" / "library" / "library_lend.py"
    text = file.read_text().replace("def validate(x: TestContext):", "def validate(x: TestContext, judge):").replace(
        "    validate(x)", "    validate(x, judge)").replace("(x: TestContext):", "(x: TestContext, judge):").replace(
        "    effects = x.effects", "    assert judge.text_yesno(x.response, 'Is it polite?')\n    effects = x.effects")
    file.write_text(text)
    with ModelServer(None, script=Desk()) as server, \
            ModelServer(None, script=lambda body: {"role": "assistant", "content": "Yes"}) as judges:
        judge = {"endpoint": {"base_url": judges.url, "model": "judge", "tries": 2}}
        one = study(server.url, judge=judge, probe__attempts=2, policy__endpoint__concurrency=1)
        judges.faults = [status(500), status(500)]
        result, attempts = probe(one)
    asked = attempts.judge_input_tokens.notna()
    assert asked.sum() == len(judges.seen) - 2 > 0
    assert attempts.error_type[attempts.system_error].tolist() == ["judge"]
    records = [json.loads(line) for line in result.path.read_text().splitlines()]
    used = {"role": "judge", "input_tokens": 100, "output_tokens": 10, "input_tokens_details": {"cached_tokens": 50}}
    assert all(used in r["usage"] for r, a in zip(records, asked, strict=True) if a)
    assert (attempts.policy_cached_tokens == attempts.policy_input_tokens / 2).all()


def test_arguments_that_are_no_object_are_told_to_the_policy_and_run_nothing(study, no_pauses):  # noqa: F811
    def desk(body: dict) -> dict:
        if any(m["role"] == "tool" for m in body["messages"]):
            return {"role": "assistant", "content": "Sorry. <DONE>"}
        return {"role": "assistant", "content": None, "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "get_item", "arguments": '{"item_id": '}}]}

    with ModelServer(None, script=desk) as server:
        probe(study(server.url, probe__attempts=1))
        told = {m["content"] for body in server.seen for m in body["messages"] if m["role"] == "tool"}
    assert len(told) == 1 and "the arguments are not a JSON object" in told.pop()


def test_a_campaign_also_runs_inside_a_running_loop(study, no_pauses):  # noqa: F811
    async def notebook():
        return probe(study(server.url, probe__attempts=1))

    with ModelServer(None, script=Desk()) as server:
        result, attempts = asyncio.run(notebook())
    assert result.played == len(attempts) == 8


def test_interrupting_a_notebook_gives_up_what_is_in_flight(study, no_pauses):  # noqa: F811
    def interrupt(*_):
        raise KeyboardInterrupt

    async def notebook():
        return probe(one)

    with ModelServer(None, script=Desk()) as server:
        one = study(server.url, probe__attempts=2, policy__endpoint__concurrency=1)
        server.faults = [None] * 12 + [hang(30)]
        before = signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, 4)
        try:
            with pytest.raises(KeyboardInterrupt):
                asyncio.run(notebook())
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        result, attempts = probe(one)
    assert 0 < result.stored < 16 and len(attempts) == 16 and not attempts.system_error.any()
