"""The local trainer: its log-probabilities are the sampler's, and what an update without a signal leaves."""

from __future__ import annotations

import pytest
import torch

from tbstudy.config import load_study
from tbstudy.tasks.loader import load_list
from tbstudy.training import local


@pytest.mark.parametrize("sampling", [
    {"temperature": 0.7}, {"temperature": 1.5}, {"temperature": 1.5, "top_k": 3, "top_p": 0.9}], ids=str)
def test_ratios_are_one_before_the_first_update(mini_config, tmp_path, monkeypatch, sampling):
    study = load_study(mini_config, tmp_path / "study", policy__sampling=sampling, train__max_rounds=2)
    trainer = local.Trainer(study, "selected", load_list(study.existing("candidates")), tmp_path / "arm")
    groups = trainer._gather(0).groups
    assert groups and len(groups[0]) == 4
    loss, seen = local.policy_loss, []

    def spy(logprobs, old, advantages, mask, *clip):
        seen.append(((logprobs.detach() - old) * mask).exp())
        return loss(logprobs, old, advantages, mask, *clip)

    monkeypatch.setattr(local, "policy_loss", spy)
    row = trainer._update(groups)
    assert row["tokens"] > 100 and sum(r.numel() for r in seen) >= row["tokens"]
    off = torch.cat([(r - 1).abs().flatten() for r in seen])
    # Two orders of summation in single precision; with another temperature they would differ by tenths.
    assert off.mean() < 1e-6 and off.max() < 1e-4
    assert row["clip_fraction"] == 0 and abs(row["kl"]) < 1e-5
    # After it they are not: the next rollouts are sampled from the changed weights.
    part = [r for group in groups for r in group][:1]
    changed, _, mask = local.token_logprobs(trainer.model, part, trainer.temperature)
    assert ((changed[0] - torch.tensor(part[0].logprobs)) * mask[0]).abs().max() > 1e-4
