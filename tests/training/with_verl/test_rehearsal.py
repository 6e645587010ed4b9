"""The reference run in miniature: minutes, so it is marked slow."""

from __future__ import annotations

from pathlib import Path

import pytest
from verl_cases import CONFIGS, ROOT, needs_verl

RECORDED = ROOT / "data" / "recorded"


@needs_verl
@pytest.mark.slow
@pytest.mark.skipif(not (RECORDED / "base_policy" / "model.safetensors").is_file(), reason="no recorded base policy")
@pytest.mark.filterwarnings("ignore")
def test_train_resume_merge_and_evaluate(tmp_path):
    from tbstudy.policies.small_model import SmallLM
    from tbstudy.training.verl import checkpoints
    from tbstudy.training.verl.cpu.rehearsal import rehearse

    found = rehearse(CONFIGS / "reference-small-cpu.yaml", CONFIGS / "laptop.yaml", tmp_path, updates=3, attempts=2)
    assert found["updates"] == [1, 2, 3] and found["updates_in_all"] == [1, 2, 3, 4]
    table = found["table"]
    assert (table.groups == 4).all() and (table.rollouts >= 16).all() and (table.grad_norm > 0).all()
    # Groups of equal rewards are no part of an update, so no update's kept rewards are all alike.
    assert ((table.mean_reward > 0) & (table.mean_reward < 1)).all()
    folder = tmp_path / "checkpoints"
    assert [checkpoints.verify(folder / f"global_step_{step}", 1).complete for step in (1, 2, 3, 4)] == [True] * 4
    base, trained = SmallLM.load(RECORDED / "base_policy"), SmallLM.load(Path(found["merged"]))
    moved = [float((a - b).abs().max()) for a, b in zip(base.parameters(), trained.parameters(), strict=True)]
    assert max(moved) > 0 and max(moved) < 0.1
    assert 0 <= found["trained"] <= 1
