"""GRPO's arithmetic: group-centred advantages and the clipped, token-mean policy loss.

Sources: group-relative advantages, DeepSeekMath (arXiv 2402.03300); the token-mean loss and the replacement of
zero-variance groups, DAPO (arXiv 2503.14476).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class PolicyLoss:
    """`loss` is a scalar with gradient; the rest are plain numbers over the masked tokens."""

    loss: torch.Tensor
    clip_fraction: float
    kl: float


def group_advantages(rewards: torch.Tensor, groups: torch.Tensor, normalise_by_std: bool = False,
                     epsilon: float = 1e-6) -> torch.Tensor:
    """Advantage of each rollout, shape (B,): its reward minus the mean reward of its group.

    `rewards` is (B,) and `groups` (B,) holds a group id each. With `normalise_by_std` the difference is divided by
    the group's sample standard deviation plus `epsilon`; a group of one keeps its reward, as there is nothing to
    compare with.
    """
    advantages = torch.empty_like(rewards, dtype=torch.float32)
    for group in groups.unique():
        member = groups == group
        r = rewards[member].float()
        if len(r) == 1:
            advantages[member] = r
            continue
        centred = r - r.mean()
        advantages[member] = centred / (r.std() + epsilon) if normalise_by_std else centred
    return advantages


def is_zero_variance(rewards: list[float]) -> bool:
    """A group whose rewards are all equal: its advantages are all zero, so it teaches nothing."""
    return len(set(rewards)) <= 1


def policy_loss(logprobs: torch.Tensor, old_logprobs: torch.Tensor, advantages: torch.Tensor, mask: torch.Tensor,
                clip_low: float = 0.2, clip_high: float = 0.2) -> PolicyLoss:
    """PPO's clipped surrogate averaged over all generated tokens of the batch.

    `logprobs`, `old_logprobs` and `mask` are (B, T); `advantages` is (B,), one number for all tokens of a rollout.
    Long rollouts weigh more than short ones: the mean runs over tokens, not over rollouts.
    """
    mask = mask.float()
    count = mask.sum().clamp(min=1)
    log_ratio = (logprobs - old_logprobs) * mask
    ratio = log_ratio.exp()
    a = advantages[:, None]
    surrogate = torch.minimum(ratio * a, ratio.clamp(1 - clip_low, 1 + clip_high) * a)
    clipped = ((ratio < 1 - clip_low) & (a < 0)) | ((ratio > 1 + clip_high) & (a > 0))
    with torch.no_grad():
        clip_fraction = ((clipped * mask).sum() / count).item()
        kl = (-(log_ratio).sum() / count).item()
    return PolicyLoss(-(surrogate * mask).sum() / count, clip_fraction, kl)
