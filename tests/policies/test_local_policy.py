"""Local episodes: one interpreter, exact tokens, reproducible waves, no episode stuck in a wave."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

import tbstudy.interpreter
import tbstudy.policies.endpoint
import tbstudy.policies.local
from tbstudy.campaign import WavePlayer, load_tasks, to_record, waves
from tbstudy.config import load_study
from tbstudy.errors import StudyError, SystemFault
from tbstudy.interpreter import interpret

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def study():
    return load_study(ROOT / "configs" / "laptop.yaml")


@pytest.fixture(scope="module")
def player(study) -> WavePlayer:
    return WavePlayer(study, study.checkpoint, "base", seed=11)


@pytest.fixture(scope="module")
def attempts(study):
    tasks = [t for t in load_tasks(study, "candidates") if t.domain == "clinic"]
    return [(t.uid, r) for t in tasks[::6] for r in range(2)]


@pytest.fixture(scope="module")
def played(player, attempts):
    return player.play(attempts)


def test_training_evaluation_and_endpoint_read_with_one_function():
    assert tbstudy.policies.local.interpret is tbstudy.interpreter.interpret
    assert tbstudy.policies.endpoint.interpret is tbstudy.interpreter.interpret


def test_stored_calls_are_what_the_interpreter_reads_in_the_stored_text(played, player):
    tools = player.sandbox.route(played[0][0].task)[0]
    turns = [m for e, _ in played for m in e.messages if m["role"] == "assistant"]
    assert len(turns) > 50
    for message in turns:
        found = interpret(message["raw_text"], tools, special_tokens=player.policy.tokenizer.all_special_tokens)
        stored = [(c["function"]["name"], c["function"]["arguments"]) for c in message.get("tool_calls", [])]
        assert stored == [(c.name, c.arguments) for c in found.tool_calls]
        assert message["content"] == found.content


def test_trajectories_hold_the_sampled_ids_and_equal_the_template_where_the_turns_are_well_formed(played, player):
    tokenizer, exact = player.policy.tokenizer, 0
    for episode, _ in played:
        trajectory = episode.conversation.trajectory
        assert len(trajectory.response_ids) == len(trajectory.response_mask) == len(trajectory.logprobs)
        assert sum(trajectory.response_mask) == sum(u.output_tokens for u in episode.usage)
        assert all(lp <= 0 and (m or lp == 0) for lp, m in
                   zip(trajectory.logprobs, trajectory.response_mask, strict=True))
        messages = [m for m in episode.messages if m["role"] != "system"]
        system = "\n\n".join(m["content"] for m in episode.messages if m["role"] == "system")
        chat = [{"role": "system", "content": system}]
        for m in messages:
            calls = [{"function": {"name": c["function"]["name"], "arguments": json.loads(c["function"]["arguments"])}}
                     for c in m.get("tool_calls", [])]
            chat.append({**m, "tool_calls": calls} if calls else m)
        text = tokenizer.apply_chat_template(chat, tools=player.sandbox.route(episode.task)[0], tokenize=False)
        exact += tokenizer.encode(text)[:len(trajectory)] == trajectory.ids
    # A policy this small sometimes writes calls that the template would write otherwise.
    assert exact > 0.8 * len(played)


def test_the_same_wave_gives_the_same_records(played, player, attempts):
    def content(results):
        records = [to_record(e, v, "base", "x") for e, v in results]
        for record in records:
            record["metadata"].pop("seconds")
        return json.dumps(records)

    assert content(player.play(attempts)) == content(played)


def test_waves_cover_every_attempt_once_and_keep_domains_apart(study):
    tasks = load_tasks(study, "candidates")
    found = waves(tasks, 3, 50)
    flat = [a for w in found for a in w]
    assert sorted(flat) == sorted((t.uid, r) for t in tasks for r in range(3))
    domain = {t.uid: t.domain for t in tasks}
    assert all(len({domain[uid] for uid, _ in w}) == 1 and len(w) <= 50 for w in found)


def test_a_session_that_cannot_start_is_a_system_error_and_does_not_stop_the_wave(player, attempts, monkeypatch):
    broken = attempts[0][0]
    start = player.sandbox.session

    def session(task):
        if task.uid == broken:
            raise SystemFault("backend", "no such server today")
        return start(task)

    monkeypatch.setattr(player.sandbox, "session", session)
    results = asyncio.run(asyncio.wait_for(asyncio.to_thread(player.play, attempts), 60))
    for (uid, _), (episode, verdict) in zip(attempts, results, strict=True):
        if uid == broken:
            record = to_record(episode, verdict, "base", "x")
            assert record["is_system_error"] and record["test_result"] is None
            assert record["metadata"]["error"] == {"type": "backend", "message": "no such server today"}
        else:
            assert episode.fault is None and verdict is not None


def test_a_first_prompt_that_does_not_fit_is_a_system_error_and_does_not_stop_the_wave(player, attempts, monkeypatch):
    keys = [attempts[0], attempts[2], attempts[4]]
    sizes = [len(e.conversation.trajectory.prompt_ids) for e, _ in player.play(keys)]
    longest = max(sizes)
    assert min(sizes) < longest, "one of the prompts is to fit"
    monkeypatch.setattr(player.policy, "max_tokens", longest)
    results = asyncio.run(asyncio.wait_for(asyncio.to_thread(player.play, keys), 60))
    for size, (episode, verdict) in zip(sizes, results, strict=True):
        record = to_record(episode, verdict, "base", "x")
        if size < longest:
            assert episode.fault is None and verdict is not None
        else:
            assert record["is_system_error"] and record["test_result"] is None
            assert record["metadata"]["error"] == {"type": "policy", "message": (
                "context overflow: the first prompt does not fit: max_episode_tokens is "
                f"{longest}, the prompt alone has {size}")}
    monkeypatch.setattr(player.policy, "max_tokens", 20)  # nobody's prompt fits: a wave that never samples
    assert all(e.fault is not None and v is None for e, v in player.play(keys))


def test_a_second_wave_waits_for_the_first(player):
    player.policy.start_wave(2)
    with pytest.raises(StudyError, match="still open"):
        player.policy.start_wave(1)
    player.policy.leave()
    player.policy.leave()
