"""The local trainer: its log-probabilities are the sampler's, and what an update without a signal leaves."""

from __future__ import annotations

import json

import pandas as pd
import pytest
import torch

from tbstudy import stages
from tbstudy.config import load_study
from tbstudy.errors import StudyError
from tbstudy.evaluation.api import training_summary
from tbstudy.report.figures.training import training_curves
from tbstudy.tasks.loader import load_list
from tbstudy.training import local

MEASURED = ("loss", "grad_norm", "clip_fraction", "kl", "entropy")


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


def strict(line: str) -> dict:
    """A line of JSON as other readers take it: NaN is none."""
    return json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


@pytest.mark.parametrize("both", [False, True], ids=["one arm", "both arms"])
def test_an_update_without_a_signal_has_no_values_and_every_reader_copes(mini_config, tmp_path, monkeypatch, both):
    study = load_study(mini_config, tmp_path / "study", train__updates=2, policy__sampling={"max_turn_tokens": 1})
    uids = load_list(study.existing("candidates"))[:4]
    for arm in ("selected", "whole"):
        trainer = local.Trainer(study, arm, uids, stages.train_folder(study, arm))
        # With one token a turn every attempt fails alike.
        if both or arm == "selected":
            trainer.run()
        else:
            monkeypatch.setattr(trainer, "_update", lambda groups: dict.fromkeys(MEASURED, 0.5) | {"tokens": 9})
            trainer.run()
    lines = (stages.train_folder(study, "selected") / "training.jsonl").read_text().splitlines()
    rows = [strict(line) for line in lines]
    assert len(rows) == 2
    assert all(row[name] is None for row in rows for name in MEASURED) and {row["groups"] for row in rows} == {0}
    table = pd.concat([stages.training_table(study, arm) for arm in ("selected", "whole")], ignore_index=True)
    assert all(pd.api.types.is_float_dtype(table[name]) for name in MEASURED)
    assert training_summary(table).updates.tolist() == [2, 2] and training_curves(table).axes
    again = local.Trainer(study, "selected", uids, stages.train_folder(study, "selected"))
    again.run()
    assert (stages.train_folder(study, "selected") / "training.jsonl").read_text().splitlines() == lines


def test_an_update_of_system_errors_alone_ends_the_training_with_their_cause(mini_config, tmp_path, monkeypatch):
    study = load_study(mini_config, tmp_path / "study", train__updates=2)
    uids = load_list(study.existing("candidates"))[:4]
    trainer = local.Trainer(study, "selected", uids, tmp_path / "arm")
    with monkeypatch.context() as m:
        m.setattr(trainer.player.policy, "max_tokens", 300)
        with pytest.raises(StudyError, match=r"update 1: all \d+ groups were lost to system errors, the last one "
                                             r".*: policy: context overflow: .*; put that right and start again"):
            trainer.run()
    assert trainer.updates == 0 and not (tmp_path / "arm" / "checkpoint").exists()
    trainer = local.Trainer(study, "selected", uids, tmp_path / "arm")
    trainer.run()
    assert trainer.updates == 2 and (tmp_path / "arm" / "checkpoint").is_dir()


def test_a_policy_behind_an_endpoint_is_not_for_the_local_trainer(mini_config, tmp_path, monkeypatch):
    study = load_study(mini_config, tmp_path / "study", policy={
        "kind": "endpoint", "endpoint": {"base_url": "http://127.0.0.1:1/v1", "model": "m"}})
    monkeypatch.setattr(stages, "pool_of", lambda study: None)
    for start in (lambda: stages.train(study), lambda: local.Trainer(study, "selected", ["a"], tmp_path / "arm")):
        with pytest.raises(StudyError, match="policy.kind 'endpoint'.*needs the policy's weights.*backend 'verl'"):
            start()
