"""GRPO's arithmetic against hand-computed cases, a second formulation, and finite differences."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tbstudy.training.grpo import group_advantages, is_zero_variance, policy_loss


def test_advantages_by_hand():
    rewards = torch.tensor([1.0, 0, 0, 0, 1, 1, 1, 1])
    groups = torch.tensor([0, 0, 0, 0, 7, 7, 7, 7])
    assert group_advantages(rewards, groups).tolist() == [0.75, -0.25, -0.25, -0.25, 0, 0, 0, 0]
    scaled = group_advantages(rewards, groups, normalise_by_std=True)
    assert scaled[:4].tolist() == pytest.approx([1.5, -0.5, -0.5, -0.5], abs=1e-4)


@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from([0.0, 1.0])), min_size=2, max_size=40))
def test_advantages_against_a_loop(pairs):
    groups, rewards = zip(*pairs, strict=True)
    found = group_advantages(torch.tensor(rewards), torch.tensor(groups))
    for i, (g, r) in enumerate(pairs):
        mates = [x for h, x in pairs if h == g]
        expected = r if len(mates) == 1 else r - sum(mates) / len(mates)
        assert found[i].item() == pytest.approx(expected, abs=1e-6)


def test_zero_variance():
    assert is_zero_variance([1.0, 1.0]) and is_zero_variance([0.0] * 8) and not is_zero_variance([0.0, 1.0])


def naive_loss(new, old, advantages, mask, low, high):
    """The same objective token by token in plain Python."""
    total, count = 0.0, 0
    for b in range(len(new)):
        for t in range(len(new[b])):
            if mask[b][t]:
                ratio = math.exp(new[b][t] - old[b][t])
                clipped = min(max(ratio, 1 - low), 1 + high)
                total -= min(ratio * advantages[b], clipped * advantages[b])
                count += 1
    return total / count


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(1, 7))
def test_loss_against_a_second_formulation(seed, rows, width):
    g = torch.Generator().manual_seed(seed)
    new, old = (torch.randn(rows, width, generator=g) * 0.4 - 1 for _ in range(2))
    advantages, mask = torch.randn(rows, generator=g), torch.rand(rows, width, generator=g) < 0.6
    mask[0, 0] = True
    found = policy_loss(new, old, advantages, mask, 0.2, 0.3)
    assert found.loss.item() == pytest.approx(
        naive_loss(new.tolist(), old.tolist(), advantages.tolist(), mask.tolist(), 0.2, 0.3), abs=1e-5)


def test_tokens_weigh_alike_whatever_their_rollout():
    zeros = torch.zeros(2, 4)
    mask = torch.tensor([[1, 1, 1, 1], [1, 0, 0, 0]])
    loss = policy_loss(zeros, zeros, torch.tensor([1.0, -1.0]), mask).loss
    assert loss.item() == pytest.approx(-(4 - 1) / 5)


def test_gradient_against_finite_differences_on_a_tiny_model():
    from tbstudy.policies.small_model import SmallConfig, SmallLM

    torch.manual_seed(0)
    model = SmallLM(SmallConfig(vocab_size=11, hidden_size=8, intermediate_size=8, num_hidden_layers=2,
                                num_attention_heads=2, num_key_value_heads=1, head_dim=4)).initialise(3).double()
    ids = torch.randint(0, 11, (4, 6))
    mask = torch.rand(4, 5) < 0.7
    mask[0, 0] = True
    advantages = group_advantages(torch.tensor([1.0, 0, 0, 1]), torch.tensor([0, 0, 1, 1]))

    def loss_of() -> torch.Tensor:
        logprobs = model(ids[:, :-1]).log_softmax(-1).gather(-1, ids[:, 1:, None])[..., 0]
        return policy_loss(logprobs, old, advantages, mask).loss

    with torch.no_grad():
        old = model(ids[:, :-1]).log_softmax(-1).gather(-1, ids[:, 1:, None])[..., 0] + 0.05 * torch.randn(4, 5)
    model.zero_grad()
    loss_of().backward()
    checked = 0
    for parameter in model.parameters():
        flat, gradient = parameter.data.view(-1), parameter.grad.view(-1)
        for i in torch.randperm(len(flat))[:3].tolist():
            keep, step = flat[i].item(), 1e-5
            values = []
            for sign in (1, -1):
                flat[i] = keep + sign * step
                values.append(loss_of().item())
            flat[i] = keep
            assert gradient[i].item() == pytest.approx((values[0] - values[1]) / (2 * step), rel=1e-3, abs=1e-7)
            checked += 1
    assert checked > 50
