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
    """One conversation: `prefix` is the prompt part shared by a batch, `ids` what follows, `mask` 1 on generated."""

    prefix: tuple[int, ...]
    ids: tuple[int, ...]
    mask: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WarmStart:
    """Schedule: linear warm-up, constant, linear decay to zero over the last `decay` share of `steps`."""

    steps: int
    lr: float = 4e-3
    warmup: int = 50
    decay: float = 0.4
    clip: float = 1.0
    environment_weight: float = 0.02


def pad(rows: list[tuple[int, ...]], fill: int = 0) -> torch.Tensor:
    """Right-padded (B, T) long tensor."""
    width = max(map(len, rows))
    return torch.tensor([list(r) + [fill] * (width - len(r)) for r in rows])


def weighted_loss(model: SmallLM, batch: list[Example], environment_weight: float) -> torch.Tensor:
    """Mean next-token cross-entropy of a batch that shares its prefix; token weights are 1 (generated) or
    `environment_weight`."""
    prefix = torch.tensor([batch[0].prefix])
    ids, mask = pad([e.ids for e in batch]), pad([e.mask for e in batch])
    real = pad([(1,) * len(e.ids) for e in batch])
    _, cache = model.hidden(prefix[:, :-1], torch.arange(prefix.shape[1] - 1))
    inputs = torch.cat([prefix[:, -1:].expand(len(batch), 1), ids[:, :-1]], 1)
    start = prefix.shape[1] - 1
    hidden, _ = model.hidden(inputs, torch.arange(start, start + inputs.shape[1]), cache)
    weights = torch.where(mask == 1, 1.0, environment_weight) * real
    chosen = weights > 0
    loss = F.cross_entropy(model.logits(hidden[chosen]), ids[chosen], reduction="none")
    return (loss * weights[chosen]).sum() / weights.sum()


def warm_start(model: SmallLM, batches: Iterator[list[list[Example]]], plan: WarmStart,
               report: Callable[[int, float], None], average: Callable[[torch.Tensor], None] | None = None) -> None:
    """Train in place. Each item of `batches` is one step: batches of a shared prefix each, losses averaged.

    With several processes, `average` replaces the flat gradient by its mean over them.
    """
    optimizer = torch.optim.AdamW(model.parameters(), lr=plan.lr, betas=(0.9, 0.95), weight_decay=0.0)
    for step in range(plan.steps):
        left = (plan.steps - step) / max(1, math.ceil(plan.decay * plan.steps))
        for group in optimizer.param_groups:
            group["lr"] = plan.lr * min(1.0, (step + 1) / plan.warmup, left)
        parts = next(batches)
        total = 0.0
        for part in parts:
            loss = weighted_loss(model, part, plan.environment_weight) / len(parts)
            loss.backward()
            total += loss.item()
        if average is not None:
            flat = torch.cat([p.grad.flatten() for p in model.parameters()])
            average(flat)
            for p, part in zip(model.parameters(), flat.split([p.numel() for p in model.parameters()]), strict=True):
                p.grad.copy_(part.view_as(p))
        torch.nn.utils.clip_grad_norm_(model.parameters(), plan.clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        report(step, total)
