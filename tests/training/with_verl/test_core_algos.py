"""The local trainer's arithmetic equals verl's on random batches."""

from __future__ import annotations

import pytest
import torch
from verl_cases import needs_verl

from tbstudy.training.grpo import group_advantages, policy_loss

pytestmark = needs_verl


def batch(seed: int):
    """Rewards, groups, mask and two sets of log-probabilities of a random batch of ragged multi-turn rollouts."""
    rng = torch.Generator().manual_seed(seed)
    groups = torch.arange(6).repeat_interleave(torch.randint(1, 9, (6,), generator=rng))
    groups = groups[torch.randperm(len(groups), generator=rng)]
    rows, width = len(groups), int(torch.randint(5, 40, (1,), generator=rng))
    mask = (torch.rand(rows, width, generator=rng) < 0.6).float()
    mask[:, 0] = 1
    rewards = torch.rand(rows, generator=rng) if seed % 3 == 0 else (torch.rand(rows, generator=rng) < 0.4).float()
    old = -3 * torch.rand(rows, width, generator=rng)
    new = old + 0.6 * torch.randn(rows, width, generator=rng) * (1 if seed % 2 else 0.05)
    return rewards, groups, mask, old, new


@pytest.mark.parametrize("by_std", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_group_advantages(seed, by_std):
    from verl.trainer.ppo.core_algos import compute_grpo_outcome_advantage

    rewards, groups, mask, _, _ = batch(seed)
    token_rewards = torch.zeros_like(mask)
    token_rewards[:, -1] = rewards
    theirs, _ = compute_grpo_outcome_advantage(token_rewards, mask, groups.numpy(), norm_adv_by_std_in_grpo=by_std)
    ours = group_advantages(rewards, groups, normalise_by_std=by_std)
    assert torch.allclose(ours[:, None] * mask, theirs, atol=1e-5)


@pytest.mark.parametrize("clip", [(0.2, 0.2), (0.2, 0.28)])
@pytest.mark.parametrize("seed", range(12))
def test_token_mean_loss_and_its_gradient(seed, clip):
    from verl.trainer.ppo.core_algos import compute_policy_loss_vanilla
    from verl.workers.config import FSDPActorConfig

    rewards, groups, mask, old, new = batch(seed)
    advantages = group_advantages(rewards, groups)
    # The dual clip is far away: the local trainer has none, and neither acts on these ratios.
    config = FSDPActorConfig(strategy="fsdp", rollout_n=8, ppo_micro_batch_size_per_gpu=1, ppo_mini_batch_size=4,
                             clip_ratio=0.2, clip_ratio_low=clip[0], clip_ratio_high=clip[1], clip_ratio_c=1e6)
    x, y = new.clone().requires_grad_(), new.clone().requires_grad_()
    theirs, metrics = compute_policy_loss_vanilla(
        old, x, advantages[:, None].expand_as(mask), mask, loss_agg_mode="token-mean", config=config)
    ours = policy_loss(y, old, advantages, mask, *clip)
    assert ours.loss.item() == pytest.approx(theirs.item(), abs=1e-6)
    theirs.backward()
    ours.loss.backward()
    assert torch.allclose(x.grad, y.grad, atol=1e-7)
    assert ours.kl == pytest.approx(float(metrics["actor/ppo_kl"]), abs=1e-6)
    assert ours.clip_fraction == pytest.approx(float(metrics["actor/pg_clipfrac"]), abs=1e-6)


def test_agg_loss_is_the_token_mean():
    from verl.trainer.ppo.core_algos import agg_loss

    _, _, mask, old, new = batch(4)
    losses = (new - old) ** 2
    assert agg_loss(losses, mask, "token-mean").item() == pytest.approx(
        ((losses * mask).sum() / mask.sum()).item(), abs=1e-6)
