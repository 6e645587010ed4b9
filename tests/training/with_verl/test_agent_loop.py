"""The agent loop under verl's own classes, on a CPU: outputs, rewards, system errors, and no way round it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from rollout_server import ScriptedServer, check_alignment
from verl_cases import needs_verl

from tbstudy.errors import StudyError, SystemFault
from tbstudy.training.verl.config import load_run
from tbstudy.training.verl.workplace import Workplace

pytestmark = needs_verl
UIDS = [f"telecom_plan_change.py:test_{i:03d}" for i in range(12)]


@pytest.fixture(scope="module")
def verl_side():
    from omegaconf import OmegaConf
    from verl.experimental.agent_loop.agent_loop import DictConfigWrap
    from verl.workers.rollout.replica import TokenOutput

    from tbstudy.training.verl.agent_loop import EpisodeAgentLoop

    def loop(place, server, tokenizer):
        lengths = place.run.config.lengths
        trainer = OmegaConf.create({"actor_rollout_ref": {
            "rollout": {"prompt_length": lengths.prompt, "response_length": lengths.response}}})
        return EpisodeAgentLoop(
            trainer_config=DictConfigWrap(trainer), server_manager=server, tokenizer=tokenizer, processor=None,
            dataset_cls=None, data_config=DictConfigWrap(OmegaConf.create({"apply_chat_template_kwargs": {}})),
            hf_model_type="qwen3", place=place)

    return SimpleNamespace(loop=loop, output=TokenOutput)


def play(verl_side, config, tokenizer, uid, seed, validate=False, changes=None, **options):
    run = load_run(config, changes)

    async def once():
        place = Workplace(run)
        try:
            task = place.task(uid)
            golden = next(iter(task.world_state.values()))["golden_test_case"]["tool_interactions"]
            server = ScriptedServer(tokenizer, golden, seed, output=verl_side.output, **options)
            loop = verl_side.loop(place, server, tokenizer)
            try:
                out = await loop.run({"temperature": 1.0, "logprobs": True}, session_id=seed, extra_info={
                    "uid": uid, "split": "train", "validate": validate})
            except SystemFault as fault:
                out = fault
            return server, out
        finally:
            await place.close()

    return asyncio.run(once())


def test_fifty_random_episodes(verl_side, small_config, tokenizer):
    from tbstudy.training.verl.reward import KEY, compute_score

    faults, rewards, truncated = 0, set(), 0
    for seed in range(54):
        short = {"lengths.response": 300} if seed % 4 == 0 else None
        server, out = play(verl_side, small_config, tokenizer, UIDS[seed % 8], seed, changes=short, trouble=0.03,
                           cut=0.08)
        if isinstance(out, SystemFault):
            faults += 1
            continue
        check_alignment(server, out.prompt_ids, out.response_ids, out.response_mask, out.response_logprobs)
        assert sum(out.response_mask) == sum(len(call["ids"]) for call in server.calls)
        row = out.as_dict()  # what the trainer is given
        assert row["prompts"].tolist() == out.prompt_ids and row["responses"].tolist() == out.response_ids
        assert row["rollout_log_probs"].shape == row["response_mask"].shape
        assert out.extra_fields["min_global_steps"] == 3 and out.extra_fields["max_global_steps"] >= 3
        score = compute_score("telecom", "", "", out.extra_fields)
        assert score["score"] == out.extra_fields[KEY]["reward"] and score["system_error"] == 0
        rewards.add(score["score"])
        truncated += int(score["truncated"])
    assert faults >= 4 and rewards == {0.0, 1.0} and truncated >= 4


def test_a_system_error_raises_in_training_and_is_flagged_in_validation(verl_side, small_config, tokenizer):
    from tbstudy.training.verl.reward import KEY, compute_score

    server, out = play(verl_side, small_config, tokenizer, UIDS[0], 1, trouble=1.0)
    assert isinstance(out, SystemFault) and out.cause == "policy"
    _, out = play(verl_side, small_config, tokenizer, UIDS[9], 1, validate=True, trouble=1.0)
    assert out.extra_fields[KEY]["system_error"] and sum(out.response_mask) == 0
    assert len(out.response_ids) == len(out.response_logprobs) == 1 and out.prompt_ids
    assert compute_score("telecom", "", "", out.extra_fields)["system_error"] == 1.0


def test_rows_of_another_dataset_and_long_prompts_are_refused(verl_side, small_config, tokenizer):
    with pytest.raises(StudyError, match="lengths.prompt allows 64"):
        play(verl_side, small_config, tokenizer, UIDS[0], 0,
             changes={"lengths.prompt": 64, "lengths.response": 900, "lengths.model": 1000})
    run = load_run(small_config)

    async def once():
        place = Workplace(run)
        try:
            await verl_side.loop(place, None, tokenizer).run({}, extra_info={"index": 0})
        finally:
            await place.close()

    with pytest.raises(StudyError, match="PoolDataset"):
        asyncio.run(once())


def test_nothing_secret_travels_with_an_attempt(verl_side, small_config, tokenizer):
    run = load_run(small_config)
    task = Workplace(run).task(UIDS[2])
    _, out = play(verl_side, small_config, tokenizer, UIDS[2], 7)
    told = repr(out.extra_fields)
    assert task.user_context not in told and "golden" not in told


def test_verl_finds_the_loop_by_the_name_that_rows_carry(small_config):
    from verl.experimental.agent_loop.agent_loop import _agent_loop_registry

    import tbstudy.training.verl.agent_loop  # noqa: F401
    from tbstudy.training.verl.dataset import PoolDataset
    from tbstudy.training.verl.overrides import AGENT_LOOP, verl_settings

    run = load_run(small_config)
    settings = verl_settings(run)
    row = PoolDataset(settings["data.train_files"])[0]
    assert row["agent_name"] == settings["actor_rollout_ref.rollout.agent.default_agent_loop"]
    assert _agent_loop_registry[row["agent_name"]]["_target_"] == AGENT_LOOP
