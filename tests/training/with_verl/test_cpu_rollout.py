"""The CPU rollout: its samples against the model's own distribution, batching, weights, and the platform's answers."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from verl_cases import needs_verl

pytestmark = [needs_verl, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def server(small_config):
    from tbstudy.training.verl.cpu.rollout import TokenServer

    return TokenServer(str(small_config.parent / "model"), 256, 64, 0)


def generate(server, prompts, **params):
    async def all_of_them():
        return await asyncio.gather(*(server.generate("r", prompt, params) for prompt in prompts))

    return asyncio.run(all_of_them())


@pytest.mark.parametrize(("top_k", "top_p", "temperature"), [(-1, 1.0, 1.0), (20, 0.95, 0.7)])
def test_log_probabilities_are_those_of_a_whole_forward(server, top_k, top_p, temperature):
    from tbstudy.training.verl.cpu.rollout import truncated

    prompts = [list(range(3, 3 + n)) for n in (5, 17, 2, 40)]
    outs = generate(server, prompts, top_k=top_k, top_p=top_p, temperature=temperature, max_tokens=12)
    turn = SimpleNamespace(top_k=top_k, top_p=top_p, temperature=temperature)
    for prompt, out in zip(prompts, outs, strict=True):
        assert 1 <= len(out.token_ids) == len(out.log_probs) <= 12
        assert server.end not in out.token_ids[:-1]
        with torch.no_grad():
            logits = server.model(torch.tensor([prompt + out.token_ids])).logits[0]
        for i, (token, logprob) in enumerate(zip(out.token_ids, out.log_probs, strict=True)):
            expected = truncated(logits[len(prompt) + i - 1], turn)
            assert float(expected[token]) == pytest.approx(logprob, abs=2e-4)
            assert not np.isinf(logprob)


def test_truncation_by_hand():
    from tbstudy.training.verl.cpu.rollout import truncated

    logits = torch.tensor([0.5, 0.3, 0.15, 0.05]).log()
    none = SimpleNamespace(temperature=1.0, top_k=-1, top_p=1.0)
    assert torch.allclose(truncated(logits, none).exp(), logits.exp())
    by_k = truncated(logits, SimpleNamespace(temperature=1.0, top_k=2, top_p=1.0)).exp()
    assert torch.allclose(by_k, torch.tensor([0.625, 0.375, 0, 0]))
    by_p = truncated(logits, SimpleNamespace(temperature=1.0, top_k=-1, top_p=0.79)).exp()
    assert torch.allclose(by_p, torch.tensor([0.625, 0.375, 0, 0]))


def test_each_turn_has_its_own_limit_and_a_full_context_is_an_error(server):
    async def both():
        short, long = await asyncio.gather(server.generate("a", [3, 4], {"max_tokens": 1}),
                                           server.generate("b", [3, 4, 5], {"max_tokens": 9}))
        return len(short.token_ids), len(long.token_ids)

    assert asyncio.run(both())[0] == 1
    with pytest.raises(ValueError, match="leaves no room"):
        generate(server, [list(range(3, 259))])


def test_new_weights_change_what_is_said_and_must_fit(server):
    named = {name: value.numpy() * 0 for name, value in server.model.state_dict().items() if name != "lm_head.weight"}
    asyncio.run(server.update_weights(named, 7))
    assert float(server.model.model.embed_tokens.weight.abs().sum()) == 0
    out = generate(server, [[3, 4]], max_tokens=3)[0]
    assert out.extra_fields["global_steps"] == 7
    assert out.log_probs[0] == pytest.approx(-np.log(server.model.config.vocab_size), abs=1e-4)
    with pytest.raises(ValueError, match="do not fit"):
        asyncio.run(server.update_weights({"nonsense": np.zeros(1, np.float32)}, 8))


def test_the_plugin_gives_verl_its_platform_and_the_gpu_path_never_loads_it():
    code = """
import json, sys, verl
from verl.plugin.platform import get_platform
from verl.utils.device import get_device_id, get_device_name
from verl.workers.rollout.replica import get_rollout_replica_class
from verl.workers.rollout.base import get_rollout_class
import verl.utils.distributed as d
print(json.dumps([get_device_name(), get_device_id(), get_platform().ray_resource_name(),
      get_rollout_replica_class("tbstudy_transformers").__name__, get_rollout_class("tbstudy_transformers").__name__,
      d.initialize_global_process_group_ray.__defaults__]))
"""
    env = {**__import__("os").environ, "VERL_PLATFORM": "cpu", "VERL_USE_EXTERNAL_MODULES":
           "tbstudy.training.verl.plugin,tbstudy.training.verl.cpu.plugin"}
    out = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, env=env)
    assert out.returncode == 0, out.stderr[-2000:]
    assert json.loads(out.stdout.splitlines()[-1]) == [
        "cpu", "cpu", "GPU", "TransformersReplica", "WeightSender", [None, "cpu:gloo"]]
    gpu = subprocess.run([sys.executable, "-c", "import tbstudy.training.verl.plugin, tbstudy.training.verl.launch, "
                          "tbstudy.training.verl.preflight, sys; print([m for m in sys.modules if 'verl.cpu' in m])"],
                         capture_output=True, text=True, check=True)
    assert gpu.stdout.strip() == "[]"
