"""Warm start of the small policy: supervised learning on whole conversations, generated tokens weighted 1."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from tbstudy.policies.small_model import SmallLM


@dataclass(frozen=True, slots=True)
class Example:
    """One sequence: `prefix` is the part shared by a batch, `ids` what follows, `weights` each token's in the loss.

    A weight above 1 marks a token that repeats an earlier one: a value being copied.
    """

    prefix: tuple[int, ...]
    ids: tuple[int, ...]
    weights: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class WarmStart:
    """Schedule: linear warm-up, constant, linear decay to zero over the last `decay` share of `steps`."""

    steps: int
    lr: float = 4e-3
    warmup: int = 50
    decay: float = 0.4
    clip: float = 1.0


#: One step: batches that share their prefix, each with its factor in the step's loss.
Step = list[tuple[float, list[Example]]]


def pad(rows: list[tuple], fill: float = 0) -> torch.Tensor:
    """Right-padded (B, T) tensor."""
    width = max(map(len, rows))
    return torch.tensor([list(r) + [fill] * (width - len(r)) for r in rows])


def weighted_loss(model: SmallLM, batch: list[Example]) -> tuple[torch.Tensor, float]:
    """Weighted mean next-token cross-entropy of a batch, and the share of copied values that are the model's first
    choice (NaN without any)."""
    prefix = torch.tensor([batch[0].prefix])
    ids, weights = pad([e.ids for e in batch]), pad([e.weights for e in batch], 0.0).float()
    cache = None
    if prefix.shape[1] > 1:
        _, cache = model.hidden(prefix[:, :-1], torch.arange(prefix.shape[1] - 1))
    inputs = torch.cat([prefix[:, -1:].expand(len(batch), 1), ids[:, :-1]], 1)
    start = prefix.shape[1] - 1
    hidden, _ = model.hidden(inputs, torch.arange(start, start + inputs.shape[1]), cache)
    chosen = weights > 0
    logits, target, weight = model.logits(hidden[chosen]), ids[chosen], weights[chosen]
    loss = F.cross_entropy(logits, target, reduction="none")
    copied = weight > 1
    share = (logits[copied].argmax(-1) == target[copied]).float().mean().item() if copied.any() else math.nan
    return (loss * weight).sum() / weight.sum(), share


def warm_start(model: SmallLM, steps: Iterator[Step], plan: WarmStart,
               report: Callable[[int, float, float], None],
               average: Callable[[torch.Tensor], None] | None = None) -> None:
    """Train in place; `report` gets step, loss and the share of values copied of the step's first batch.

    With several processes, `average` replaces the flat gradient by its mean over them.
    """
    optimizer = torch.optim.AdamW(model.parameters(), lr=plan.lr, betas=(0.9, 0.95), weight_decay=0.0)
    for step in range(plan.steps):
        left = (plan.steps - step) / max(1, math.ceil(plan.decay * plan.steps))
        for group in optimizer.param_groups:
            group["lr"] = plan.lr * min(1.0, (step + 1) / plan.warmup, left)
        shown: list[tuple[float, float]] = []
        for factor, batch in next(steps):
            loss, copied = weighted_loss(model, batch)
            (factor * loss).backward()
            shown.append((loss.item(), copied))
        if average is not None:
            flat = torch.cat([p.grad.flatten() for p in model.parameters()])
            average(flat)
            for p, part in zip(model.parameters(), flat.split([p.numel() for p in model.parameters()]), strict=True):
                p.grad.copy_(part.view_as(p))
        torch.nn.utils.clip_grad_norm_(model.parameters(), plan.clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        report(step, *shown[0])
