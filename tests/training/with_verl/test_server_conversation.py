"""Episodes over a token server: what is trained on is what was shown and said, token by token."""

from __future__ import annotations

import asyncio

import pytest
from rollout_server import ScriptedServer, check_alignment
from verl_cases import DEMO

from tbstudy.errors import StudyError
from tbstudy.sandbox.episode import run_episode
from tbstudy.sandbox.servers import read_servers
from tbstudy.sandbox.transports import open_sandbox
from tbstudy.sandbox.users import ScriptedUser
from tbstudy.tasks.loader import load_dataset
from tbstudy.training.verl.conversation import ServerPolicy

UIDS = [f"telecom_plan_change.py:test_{i:03d}" for i in range(10)]
LIMITS = {"prompt": 4096, "response": 4096, "total": 8192, "turn": 400}


@pytest.fixture(scope="module")
def tasks():
    return load_dataset(DEMO, UIDS).tasks


def play(tokenizer, task, seed, limits=LIMITS, **options):
    server = ScriptedServer(tokenizer, next(iter(task.world_state.values()))["golden_test_case"]["tool_interactions"],
                            seed, **options)
    policy = ServerPolicy(server, tokenizer, {"temperature": 1.0}, **limits)

    async def once():
        sandbox = open_sandbox("inprocess", read_servers(DEMO / "servers.yaml"))
        try:
            return await run_episode(task, 0, policy=policy, sandbox=sandbox, user=ScriptedUser())
        finally:
            await sandbox.close()

    return server, asyncio.run(once())


def test_sixty_random_episodes_are_token_exact(tokenizer, tasks):
    seen = {"tool error": 0, "cut": 0, "fault": 0, "turns": 0, "truncated": 0}
    for seed in range(60):
        limits = LIMITS if seed % 3 else {**LIMITS, "response": 300}
        server, episode = play(tokenizer, tasks[UIDS[seed % 10]], seed, limits, trouble=0.03, cut=0.1)
        talk = episode.conversation
        if server.calls:
            t = talk.trajectory
            check_alignment(server, t.prompt_ids, t.response_ids, t.response_mask, t.logprobs)
            assert len(t.response_ids) <= limits["response"]
            assert len({call["request_id"] for call in server.calls}) == 1
            assert all(call["sampling"]["max_tokens"] <= limits["turn"] for call in server.calls)
        seen["turns"] += len(server.calls)
        seen["fault"] += episode.fault is not None
        seen["truncated"] += episode.cut
        seen["cut"] += any(call["ids"][-1] != tokenizer.eos_token_id for call in server.calls)
        seen["tool error"] += any("rror" in m["content"] for m in episode.messages if m["role"] == "tool")
    # The script reaches every case, or the test would prove little.
    assert seen["turns"] > 180 and min(seen.values()) >= 4, seen


def test_server_trouble_is_a_fault_of_the_policy(tokenizer, tasks):
    for seed in range(12):
        _, episode = play(tokenizer, tasks[UIDS[0]], seed, trouble=1.0)
        assert episode.fault is not None and episode.fault.cause == "policy"
        assert "rollout server" in str(episode.fault)


def test_a_prompt_that_does_not_fit_is_refused_not_cut(tokenizer, tasks):
    with pytest.raises(StudyError, match=r"test_000: the prompt has \d+ tokens, lengths.prompt allows 50"):
        play(tokenizer, tasks[UIDS[0]], 0, {**LIMITS, "prompt": 50})


def test_weight_versions_are_remembered(tokenizer, tasks):
    server, episode = play(tokenizer, tasks[UIDS[1]], 5)
    steps = episode.conversation.steps
    assert steps and min(steps) == 3 and max(steps) == 3 + len(server.calls) // 4
