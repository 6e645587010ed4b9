"""Every kind of trouble an endpoint can make, against a real HTTP server."""

from __future__ import annotations

import asyncio
import email.utils
import logging
import time

import pytest
import stamina
from model_server import ModelServer, hang, overflow, said, status, torn, trickle

from tbstudy.errors import StudyError, SystemFault
from tbstudy.policies.client import BudgetReached, Client, ContextOverflow, Endpoint, Meter, attempt_usage

MESSAGES = [{"role": "user", "content": "hello"}]


def answer(body: dict) -> dict:
    return {"role": "assistant", "content": "fine"}


@pytest.fixture
def server():
    with ModelServer(None, script=answer) as running:
        yield running


def client(server: ModelServer, role: str = "policy", meter: Meter | None = None, **fields) -> Client:
    return Client(Endpoint.of({"base_url": server.url, "model": "small", **fields}), role, meter)


def ask(one: Client, times: int = 1, **body):
    async def talk():
        try:
            return [await one.chat(MESSAGES, **body) for _ in range(times)][-1]
        finally:
            await one.close()
    return asyncio.run(talk())


PASSING = {
    "429": status(429, "slow down"), "500": status(500, "oops"), "502": said("<html>", "text/html"), "503": status(503),
    "malformed JSON": said('{"choices": [{"message": {"content": "hal'), "no JSON at all": said("", "text/plain"),
    "JSON of another kind": said('{"choices": []}'), "a list": said("[1, 2]"),
    "content of a wrong type": said('{"choices": [{"message": {"content": 7}}]}'),
    "null message": said('{"choices": [{"message": null}]}'),
    "a call without a name": said('{"choices": [{"message": {"tool_calls": [{"function": {}}]}}]}'),
    "connection dropped mid-body": torn,
}


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING)
def test_passing_trouble_is_tried_again_then_a_system_fault_of_the_role(server, no_pauses, fault):
    server.faults = [fault, fault]
    one = client(server, "user", tries=3)
    assert ask(one).message.content == "fine"
    assert (one.meter.of("user").calls, one.meter.of("user").retries) == (1, 2)
    server.faults = [fault] * 3
    with pytest.raises(SystemFault) as caught:
        ask(client(server, "user", tries=3))
    assert caught.value.cause == "user" and server.url in str(caught.value)
    assert len(server.seen) == 6


@pytest.mark.parametrize("fault", [hang(20), trickle], ids=["silence", "a trickle that never ends"])
def test_a_call_has_a_time_limit_whatever_the_server_does(server, no_pauses, fault):
    server.faults = [fault]
    assert ask(client(server, tries=2, timeout_seconds=2.0)).message.content == "fine", "given up, not waited for"
    server.faults = [fault] * 2
    with pytest.raises(SystemFault, match="no answer within 2 s, 2 times"):
        ask(client(server, tries=2, timeout_seconds=2.0))


def test_nobody_there_and_a_server_that_hangs_up_at_once(no_pauses):
    async def hangs_up(reader, writer):
        writer.close()

    async def talk():
        listener = await asyncio.start_server(hangs_up, "127.0.0.1", 0)
        port = listener.sockets[0].getsockname()[1]
        one = Client(Endpoint(base_url=f"http://127.0.0.1:{port}/v1", model="m", tries=2), "judge")
        with pytest.raises(SystemFault) as dropped:
            await one.chat(MESSAGES)
        listener.close()
        await listener.wait_closed()
        with pytest.raises(SystemFault) as absent:
            await one.chat(MESSAGES)
        return dropped.value, absent.value

    for fault in asyncio.run(talk()):
        assert fault.cause == "judge" and "2 tries" in str(fault)


HOPELESS = {"key": (status(401, "bad key"), "api_key_env"), "model": (status(404, "no such model"), "base_url"),
            "quota": (status(429, "pay", "insufficient_quota"), "quota")}


@pytest.mark.parametrize("fault, told", HOPELESS.values(), ids=HOPELESS)
def test_what_can_never_work_is_told_once(server, no_pauses, fault, told):
    server.faults = [fault] * 9
    with pytest.raises(StudyError, match=told):
        ask(client(server))
    assert len(server.seen) == 1


def test_a_refused_request_is_a_system_fault_and_an_overflow_has_its_own_name(server, no_pauses):
    server.faults = [status(400, "tools[0]: unknown keyword")]
    with pytest.raises(SystemFault, match="unknown keyword") as caught:
        ask(client(server))
    assert not isinstance(caught.value, ContextOverflow)
    for fault in (lambda request: overflow(5000, 4096), status(400, "no", "context_length_exceeded"),
                  status(400, "the request exceeds the available context size"),
                  status(422, "prompt is too long: 210000 tokens > 200000 maximum"),
                  status(400, "litellm.ContextWindowExceededError")):
        server.faults, before = [fault], len(server.seen)
        with pytest.raises(ContextOverflow, match="^context overflow: "):
            ask(client(server))
        assert len(server.seen) == before + 1, "not retried"


@pytest.fixture
def pauses():
    """The pauses before retries, in seconds, as they are planned."""
    found = []
    hooks = stamina.instrumentation.get_on_retry_hooks()
    stamina.instrumentation.set_on_retry_hooks([lambda details: found.append(details.wait_for)])
    yield found
    stamina.instrumentation.set_on_retry_hooks(hooks)


def test_retry_after_is_obeyed_with_jitter_and_bounded(server, pauses):
    date = email.utils.formatdate(time.time() + 3600, usegmt=True)
    server.faults = [status(429, Retry_After="0.4"), status(503, retry_after_ms="200"), status(429, Retry_After=date),
                     status(429, Retry_After="soon")]
    one = client(server, max_pause_seconds=0.5)
    assert ask(one).message.content == "fine"
    assert 0.4 <= pauses[0] <= 0.6 and 0.2 <= pauses[1] <= 0.4 and 0.5 <= pauses[2] <= 1.5 and pauses[3] <= 0.5 + 1e-9
    assert one.meter.of("policy").retries == 4
    server.faults = [status(429, Retry_After="0.01")] * 5
    ask(one)
    assert len(set(pauses[4:])) == 5, "jittered"


def test_pauses_grow_without_an_order_from_the_server(server, pauses):
    server.faults = [status(500)] * 2
    assert ask(client(server)).message.content == "fine"
    assert 0.5 <= pauses[0] <= 1.5 and 1.0 <= pauses[1] <= 2.0


def test_the_number_of_calls_at_once_is_bounded(server):
    server.script = lambda body: time.sleep(0.05) or answer(body)
    one = client(server, concurrency=3)

    async def talk():
        await asyncio.gather(*(one.chat(MESSAGES) for _ in range(12)))
        await one.close()

    asyncio.run(talk())
    assert server.most == 3 and len(server.seen) == 12


def test_one_client_serves_several_event_loops(server):
    one = client(server)
    assert [ask(one).message.content for _ in range(3)] == ["fine"] * 3


def test_a_cancelled_call_is_not_retried_and_frees_its_slot(server):
    server.faults = [hang(20)]
    one = client(server, concurrency=1)

    async def talk():
        task = asyncio.create_task(one.chat(MESSAGES))
        while not server.seen:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await one.chat(MESSAGES)

    assert asyncio.run(talk()).message.content == "fine"
    assert len(server.seen) == 2


def test_tokens_and_cost_are_kept_by_role(server):
    meter = Meter()
    prices = {"usd_per_million_input": 2.0, "usd_per_million_cached": 1.0, "usd_per_million_output": 10.0}
    ask(client(server, "policy", meter, **prices), 3)
    ask(client(server, "user", meter), 2)
    # The scripted server counts 100 input tokens, half of them cached, and 10 output tokens a call.
    assert meter.table() == [
        {"role": "policy", "calls": 3, "retries": 0, "input_tokens": 300, "cached_tokens": 150, "output_tokens": 30,
         "cost": pytest.approx(3 * (50 * 2 + 50 * 1 + 10 * 10) / 1e6)},
        {"role": "user", "calls": 2, "retries": 0, "input_tokens": 200, "cached_tokens": 100, "output_tokens": 20,
         "cost": None}]
    assert meter.tokens == 550 and meter.cost == pytest.approx(750e-6)


def test_a_budget_ends_the_run_and_says_how_to_go_on(server):
    one = client(server, budget_tokens=300)
    ask(one, 2)
    one.meter.check()
    ask(one)
    with pytest.raises(BudgetReached, match="330 of 300 tokens.*Raise the budget"):
        one.meter.check()
    server.usage = False
    with pytest.raises(StudyError, match="reports no token usage"):
        ask(client(server, budget_usd=1.0))


def test_usage_of_calls_whose_caller_cannot_pass_it_on(server):
    one = client(server, "judge")

    async def talk():
        async def verdict():
            with attempt_usage() as found:
                await one.text(MESSAGES)
                await asyncio.sleep(0.01)
                await one.text(MESSAGES)
            return found
        both = await asyncio.gather(verdict(), verdict())
        await one.close()
        return both

    for found in asyncio.run(talk()):
        assert [(u.role, u.input_tokens, u.output_tokens) for u in found] == [("judge", 100, 10)] * 2


def test_the_key_comes_from_the_environment_and_shows_up_nowhere(server, monkeypatch, caplog, no_pauses):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
    ask(client(server))
    assert server.headers[-1]["authorization"] == "Bearer none", "a key is never sent unless named"
    with pytest.raises(StudyError, match="MY_KEY is not set"):
        client(server, api_key_env="MY_KEY")
    monkeypatch.setenv("MY_KEY", "sk-secret")
    caplog.set_level(logging.DEBUG)
    one = client(server, api_key_env="MY_KEY", tries=2)
    server.faults = [status(401, "bad key sk-...")]
    with pytest.raises(StudyError, match="check the key in MY_KEY") as caught:
        ask(one)
    assert server.headers[-1]["authorization"] == "Bearer sk-secret"
    assert "sk-secret" not in f"{caught.value} {one.endpoint!r} {caplog.text}"


def test_wrong_fields_are_named_and_a_pasted_key_is_not_echoed():
    good = {"base_url": "http://h/v1", "model": "m"}
    with pytest.raises(StudyError, match="endpoint: retrys"):
        Endpoint.of({**good, "retrys": 3})
    with pytest.raises(StudyError, match="concurrency"):
        Endpoint.of({**good, "concurrency": "16"})
    with pytest.raises(StudyError, match="name of an environment variable") as caught:
        Endpoint.of({**good, "api_key_env": "sk-proj-12345"})
    assert "12345" not in str(caught.value)


def test_extra_body_reaches_the_server_and_none_leaves_a_field_out(server):
    ask(client(server, extra_body={"chat_template_kwargs": {"enable_thinking": False}}), temperature=0.5, seed=None)
    assert server.seen[-1] == {"model": "small", "messages": MESSAGES, "temperature": 0.5,
                               "chat_template_kwargs": {"enable_thinking": False}}


def test_the_first_retry_is_told_and_no_other(server, no_pauses, caplog):
    logging.getLogger("stamina").setLevel(logging.NOTSET)
    server.faults = [status(500, "oops")] * 4
    one = client(server, "user", tries=5)
    assert ask(one).message.content == "fine"
    [line] = [r.getMessage() for r in caplog.records]
    assert "user endpoint" in line and server.url in line and "up to 5 times" in line
    assert one.meter.of("user").retries == 4
    caplog.clear()
    server.faults = [status(500, "oops")]
    with pytest.raises(SystemFault):
        ask(client(server, tries=1))
    assert not caplog.records, "one that is not tried again is not told as such"


def test_a_line_for_each_request_does_not_bury_the_output(server, caplog):
    logging.getLogger("httpx2").setLevel(logging.NOTSET)
    caplog.set_level(logging.INFO)
    ask(client(server), 2)
    assert not [r for r in caplog.records if r.name == "httpx2"]
    logging.getLogger("httpx2").setLevel(logging.INFO)
    ask(client(server))
    assert [r for r in caplog.records if r.name == "httpx2"], "who asks for them gets them"
    logging.getLogger("httpx2").setLevel(logging.NOTSET)
