"""The endpoint policy over a real server: chat and completions mode, whole episodes, and what errors become."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest
from model_server import Brain, ModelServer, hang, overflow, said, status, torn

from tbstudy.config import PolicyConfig
from tbstudy.errors import StudyError
from tbstudy.policies.client import BudgetReached, Endpoint
from tbstudy.policies.endpoint import EndpointPolicy
from tbstudy.policies.local import LocalPolicy
from tbstudy.policies.sampler import Sampling
from tbstudy.sandbox.episode import run_episode
from tbstudy.sandbox.inprocess import InProcessSandbox
from tbstudy.sandbox.users import ScriptedUser
from tbstudy.tasks.loader import load_dataset

ROOT = Path(__file__).parents[2]
UID = "telecom_plan_change.py:test_001"  # no contract: look up, change the plan
SANDBOX = InProcessSandbox({"telecom": "tbstudy_demo.telecom:server"})


@pytest.fixture(scope="module")
def task():
    return load_dataset(ROOT / "data" / "demo", [UID]).tasks[UID]


def policy(server: ModelServer, tokenizer=None, **fields) -> EndpointPolicy:
    options = {k: fields.pop(k) for k in ("max_turn_tokens", "max_tokens", "seed", "sampling") if k in fields}
    endpoint = Endpoint.of({"base_url": server.url, "model": "small", "tries": 2, **fields})
    return EndpointPolicy(endpoint, name="remote", tokenizer=tokenizer, **options)


def play(one: EndpointPolicy, task, user=ScriptedUser):
    async def go():
        episode = await run_episode(task, 0, policy=one, sandbox=SANDBOX, user=user())
        await one.close()
        return episode
    return asyncio.run(go())


def call(name: str, **arguments) -> dict:
    return {"role": "assistant", "content": None, "reasoning_content": f"I use {name}.", "tool_calls": [
        {"id": "srv-1", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}]}


def speak(text: str, **extra) -> dict:
    return {"role": "assistant", "content": text, **extra}


def in_turn(*messages):
    """A script that gives these messages by the number of assistant turns so far."""
    return lambda body: dict(messages[sum(m["role"] == "assistant" for m in body["messages"])])


RIGHT = (speak("What is your line number?"), call("get_line", line_id="L-787"),
         call("change_plan", line_id="L-787", plan="Basic"), speak("Done. <DONE>"))


def test_an_episode_over_chat_passes_and_its_record_is_that_of_any_policy(task):
    with ModelServer(None, script=in_turn(*RIGHT)) as server:
        episode = play(policy(server, sampling={"temperature": 0.7, "top_k": None}), task)
    assert episode.fault is None and episode.finish_reason == "done"
    assert episode.effects["telecom"]["diff"] == []
    roles = [m["role"] for m in episode.messages]
    assert roles == ["system", "system", "user", "assistant", "user", "assistant", "tool", "assistant", "tool",
                     "assistant"]
    assert [(u.role, u.input_tokens, u.output_tokens) for u in episode.usage] == [("policy", 100, 10)] * 4
    assert episode.messages[5]["reasoning_content"] == "I use get_line."
    assert all(m["raw_text"] is None for m in episode.messages if m["role"] == "assistant"), "not known, not empty"
    last = server.seen[-1]
    assert last["temperature"] == 0.7 and "top_k" not in last
    assert [t["function"]["name"] for t in last["tools"]][:2] == ["find_lines", "get_line"]
    assert [m["role"] for m in last["messages"]] == roles[1:-1], "leading system messages are merged"
    # Calls keep the ids under which the tool messages answer, and reasoning goes back under the server's own name.
    for said_, answered in ((last["messages"][4], last["messages"][5]), (last["messages"][6], last["messages"][7])):
        assert said_["tool_calls"][0]["id"] == answered["tool_call_id"]
    assert last["messages"][4]["reasoning_content"] == "I use get_line."
    assert set(last["messages"][5]) == {"role", "content", "tool_call_id"}


def test_each_call_carries_a_seed_of_its_own_unless_the_server_refuses_it(task, no_pauses):
    def seeds(uid: str = UID, repetition: int = 0, faults=(), **fields) -> list:
        async def go():
            await run_episode(replace(task, uid=uid), repetition, policy=one, sandbox=SANDBOX, user=ScriptedUser())
            await one.close()
        with ModelServer(None, script=in_turn(*RIGHT)) as server:
            server.faults = list(faults)
            one = policy(server, **fields)
            asyncio.run(go())
        return [body.get("seed", "none") for body in server.seen]

    first = seeds(seed=5)
    others = [seeds(seed=5, repetition=1), seeds(seed=5, uid="telecom_plan_change.py:test_002"), seeds(seed=6)]
    numbers = [n for found in (first, *others) for n in found]
    assert len(numbers) == len(set(numbers)) == 16, "by turn, repetition, uid and the policy's seed"
    assert all(type(n) is int and 0 <= n < 2 ** 31 for n in numbers)
    assert seeds(seed=5) == first and seeds(seed=5, faults=[status(500)]) == [first[0], *first], "a retry is the same"
    assert seeds() == ["none"] * 4
    assert seeds(seed=5, extra_body={"seed": None}) == ["none"] * 4


def test_reasoning_goes_back_only_to_a_server_that_gave_it(task):
    with ModelServer(None, script=in_turn(speak("What is your line number?"), speak("Bye <DONE>"))) as server:
        play(policy(server), task)
    assert set(server.seen[-1]["messages"][2]) == {"role", "content"}
    with ModelServer(None, script=in_turn(speak("Your line number?", reasoning="Hm."), speak("Bye <DONE>"))) as server:
        episode = play(policy(server), task)
    assert server.seen[-1]["messages"][2] == {"role": "assistant", "content": "Your line number?", "reasoning": "Hm."}
    assert episode.messages[3]["reasoning_content"] == "Hm."


TRANSIENT = {"429": status(429, Retry_After="1"), "500": status(500), "time-out": hang(30),
             "malformed JSON": said('{"choices": [{"mess'), "dropped": torn}


@pytest.mark.parametrize("kind", TRANSIENT)
def test_trouble_is_retried_or_a_system_error_never_a_failure(task, no_pauses, kind):
    fault = TRANSIENT[kind]
    with ModelServer(None, script=in_turn(*RIGHT)) as server:
        one = policy(server, timeout_seconds=3.0 if kind == "time-out" else 600.0)
        server.faults = [None, fault]
        episode = play(one, task)
        assert episode.fault is None and episode.finish_reason == "done" and one.meter.of("policy").retries == 1
        server.faults = [None, fault, fault]
        episode = play(one, task)
    assert episode.fault is not None and episode.fault.cause == "policy"
    assert episode.messages[-1]["role"] == "user", "the conversation so far is kept"


def test_a_context_overflow_ends_the_episode_under_its_own_name(task):
    too_long = lambda request: overflow(9000, 4096)  # noqa: E731
    with ModelServer(None, script=in_turn(*RIGHT)) as server:
        server.faults = [None, None, too_long]
        episode = play(policy(server), task)
        assert episode.fault is None and episode.cut and episode.finish_reason == "agent_limit"
        assert episode.warnings == ["context_overflow"] and episode.effects, "judged like any cut episode"
        server.faults = [too_long]
        episode = play(policy(server), task)
    assert episode.fault.cause == "policy" and "the first prompt does not fit" in str(episode.fault)


def test_limits_of_turn_and_episode(task):
    with ModelServer(None, script=in_turn(*RIGHT)) as server:
        episode = play(policy(server, max_turn_tokens=50, max_tokens=150), task)
        assert [b["max_completion_tokens"] for b in server.seen] == [50, 40, 40, 40]
        assert episode.finish_reason == "done"
        # The scripted server always counts 110 tokens.
        episode = play(policy(server, max_tokens=110), task)
        assert episode.finish_reason == "agent_limit" and episode.warnings == ["context_overflow"]
        episode = play(policy(server, max_tokens=90), task)
        assert "max_episode_tokens is 90, the prompt alone has 100" in str(episode.fault)
    long = in_turn(speak("Your line number is", finish_reason="length"), speak("Bye <DONE>"))
    with ModelServer(None, script=long) as server:
        assert play(policy(server, max_turn_tokens=10), task).finish_reason == "done", "a turn's own cap goes on"
        assert play(policy(server), task).finish_reason == "agent_limit", "the context is full"


def test_a_budget_stops_before_the_next_policy_call(task):
    with ModelServer(None, script=in_turn(*RIGHT)) as server:
        with pytest.raises(BudgetReached):
            play(policy(server, budget_tokens=150), task)
        assert len(server.seen) == 2


def test_arguments_that_are_no_object_stay_on_record_as_served(task):
    bad = call("get_line")
    bad["tool_calls"][0]["function"]["arguments"] = '{"line_id": "L-7'
    with ModelServer(None, script=in_turn(speak("What is your line number?"), bad, speak("Bye <DONE>"))) as server:
        episode = play(policy(server), task)
    assert episode.messages[5]["tool_calls"][0]["function"]["arguments"] == '{"line_id": "L-7'
    assert episode.messages[6]["content"].startswith("Error")


def test_raw_text_is_recorded_and_a_different_reading_is_a_warning(task):
    text = "I ask.</think>What is your line number?"
    turns = in_turn(speak("What is your line number?", reasoning_content="I ask.", raw_text=text),
                    speak("Bye <DONE>", reasoning_content="x", raw_text="y</think>Bye <DONE>"))
    with ModelServer(None, script=turns) as server:
        episode = play(policy(server), task)
    assert episode.messages[3]["raw_text"] == text
    assert episode.messages[5]["content"] == "Bye <DONE>" and episode.warnings == ["server_reads_otherwise"]


@pytest.mark.parametrize("raw", ["text", "ids"])
def test_a_real_model_over_chat(task, tiny_brain, raw):
    with ModelServer(tiny_brain, raw=raw) as server:
        one = policy(server, tiny_brain.tokenizer, max_turn_tokens=24, max_tokens=3000, seed=1)
        first, again = play(one, task), play(one, task)
    assert first.fault is None and first.finish_reason
    turns = [m for m in first.messages if m["role"] == "assistant"]
    assert [m["raw_text"] for m in turns] == [m["raw_text"] for m in again.messages if m["role"] == "assistant"], \
        "seeded"
    assert any(turns) and "server_reads_otherwise" not in first.warnings
    assert all(u.input_tokens > 100 and 0 < u.output_tokens <= 24 for u in first.usage)


def test_a_real_model_over_completions_is_token_exact_and_reads_like_the_local_policy(task, tiny_brain):
    tokenizer = tiny_brain.tokenizer
    with ModelServer(tiny_brain, raw="ids") as server:
        one = policy(server, tokenizer, api="completions", max_turn_tokens=24, max_tokens=3000, seed=1)
        episode = play(one, task)
    assert episode.fault is None and "retokenised" not in episode.warnings
    trajectory = episode.conversation.trajectory
    sent = [body["prompt"] for body in server.seen]
    assert sent[0] == trajectory.prompt_ids
    for prompt, (start, _) in zip(sent, trajectory.turns, strict=True):
        assert prompt == trajectory.ids[:len(trajectory.prompt_ids) + start], "each prompt continues what was sampled"
    # The same prompt through the local policy: one interpreter, one template, one prompt.
    local = LocalPolicy(tiny_brain.model, tokenizer, name="local", sampling=Sampling(), seed=1, max_turn_tokens=24,
                        max_tokens=3000)

    async def go():
        local.start_wave(1)
        return await run_episode(task, 0, policy=local, sandbox=SANDBOX, user=ScriptedUser())

    assert asyncio.run(go()).conversation.trajectory.prompt_ids == trajectory.prompt_ids


def test_completions_of_a_server_without_token_ids_say_so(task, tiny_brain):
    with ModelServer(tiny_brain) as server:
        one = policy(server, tiny_brain.tokenizer, api="completions", max_turn_tokens=8, max_tokens=3000)
        episode = play(one, task)
    assert episode.fault is None and "retokenised" in episode.warnings
    assert all(m["raw_text"] is not None for m in episode.messages if m["role"] == "assistant")


def test_completions_that_no_longer_fit(task, tiny_brain, no_pauses):
    with ModelServer(tiny_brain, raw="ids") as server:
        # The tiny model hardly ever ends a turn by itself: the third turn is the one that meets the limit.
        first = play(policy(server, tiny_brain.tokenizer, api="completions", max_turn_tokens=8, max_tokens=3000), task)
        size = len(first.conversation.trajectory.prompt_ids)
        one = policy(server, tiny_brain.tokenizer, api="completions", max_turn_tokens=8, max_tokens=size + 12)
        episode = play(one, task)
        assert episode.fault is None and episode.finish_reason in ("agent_limit", "agent_error")
        episode = play(policy(server, tiny_brain.tokenizer, api="completions", max_tokens=size), task)
        assert "the first prompt does not fit" in str(episode.fault)


def test_a_server_that_does_not_count(task):
    with ModelServer(None, script=in_turn(*RIGHT), usage=False) as server:
        episode = play(policy(server), task)
    assert episode.finish_reason == "done" and episode.warnings == ["no_usage"] * 4


def test_from_config_and_what_is_missing(tmp_path):
    config = PolicyConfig.model_validate_json(json.dumps({
        "kind": "endpoint", "endpoint": {"base_url": "http://127.0.0.1:1/v1", "model": "m"},
        "sampling": {"top_k": 0, "max_turn_tokens": 64, "max_episode_tokens": 9000}}))
    one = EndpointPolicy.from_config(config, name="base")
    assert (one.name, one.max_turn_tokens, one.max_tokens) == ("base", 64, 9000)
    assert one.sampling == {"temperature": 1.0, "top_p": 0.95, "top_k": None}
    endpoint = {"base_url": "http://127.0.0.1:1/v1", "model": "m", "api": "completions"}
    with pytest.raises(StudyError, match="needs tokenizer"):
        EndpointPolicy(Endpoint.of(endpoint), name="base")
    with pytest.raises(StudyError, match="not a folder with a tokenizer"):
        EndpointPolicy(Endpoint.of({**endpoint, "tokenizer": str(tmp_path)}), name="base")


def test_the_trained_policy_says_the_same_over_chat_and_over_completions(task):
    """Same seeds: what the server reads out of a text and what our interpreter reads lead to the same episode."""
    brain = Brain(ROOT / "data" / "recorded" / "base_policy")
    played = {}
    for api in ("chat", "completions"):
        with ModelServer(brain, raw="ids") as server:
            one = policy(server, brain.tokenizer, api=api, max_turn_tokens=96, max_tokens=1536, seed=3)
            episode = play(one, task)
        assert episode.fault is None and "server_reads_otherwise" not in episode.warnings
        played[api] = [(m.get("content"), m.get("raw_text"), m.get("tool_calls")) for m in episode.messages]
    assert played["chat"] == played["completions"] and any(calls for _, _, calls in played["chat"])
