"""Rank shards: complete, torn, missing; where a run resumes; what merging refuses."""

from __future__ import annotations

import json
import zipfile

import pytest

from tbstudy.errors import StudyError
from tbstudy.training.verl import checkpoints


def shard(path, text="weights"):
    """A file in the container format of `torch.save`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("data.pkl", text * 50)
    return path


def save(folder, step, world=4):
    """A complete checkpoint as verl lays it out."""
    actor = folder / f"global_step_{step}" / "actor"
    for rank in range(world):
        for kind in checkpoints.KINDS:
            shard(actor / f"{kind}_world_size_{world}_rank_{rank}.pt")
    (actor / "huggingface").mkdir()
    (actor / "huggingface" / "config.json").write_text("{}")
    (actor / "fsdp_config.json").write_text(json.dumps({"FSDP_version": 1, "world_size": world}))
    shard(folder / f"global_step_{step}" / "data.pt")
    (folder / checkpoints.TRACKER).write_text(str(step))
    return folder / f"global_step_{step}"


def test_real_torch_files_are_read_alike(tmp_path):
    import torch

    path = save(tmp_path, 1, 1)
    torch.save({"w": torch.zeros(3)}, path / "actor" / "model_world_size_1_rank_0.pt")
    assert checkpoints.verify(path).complete
    whole = (path / "actor" / "model_world_size_1_rank_0.pt").read_bytes()
    for cut in (0, 1, len(whole) // 2, len(whole) - 1):
        (path / "actor" / "model_world_size_1_rank_0.pt").write_bytes(whole[:cut])
        assert not checkpoints.verify(path).complete, cut


@pytest.mark.parametrize(("spoil", "said"), [
    (lambda p: (p / "actor" / "model_world_size_4_rank_2.pt").unlink(), "model: 1 of 4 shards missing (rank 2)"),
    (lambda p: [q.unlink() for q in (p / "actor").glob("optim*")], "optim: 4 of 4 shards missing (rank 0, 1, 2, 3)"),
    (lambda p: (p / "actor" / "optim_world_size_4_rank_1.pt").write_bytes(b"PK"), "rank_1.pt is cut short (2 bytes)"),
    (lambda p: shard(p / "actor" / "model_world_size_8_rank_0.pt"), "different world sizes: 4, 8"),
    (lambda p: (p / "data.pt").unlink(), "data.pt (the position in the data)"),
    (lambda p: (p / "actor" / "fsdp_config.json").write_text("{"), "fsdp_config.json is missing or torn"),
    (lambda p: (p / "actor" / "huggingface" / "config.json").unlink(), "huggingface/config.json is missing"),
    (lambda p: [q.unlink() for q in (p / "actor").glob("*.pt")], "no shards under actor/"),
])
def test_every_kind_of_damage_is_named(tmp_path, spoil, said):
    path = save(tmp_path, 5)
    assert checkpoints.verify(path, 4).problems == ()
    spoil(path)
    assert said in "; ".join(checkpoints.verify(path, 4).problems)


def test_shards_of_another_world(tmp_path):
    assert "shards are of 4 ranks, the run has 24" in "; ".join(checkpoints.verify(save(tmp_path, 5), 24).problems)


def test_a_run_resumes_from_the_newest_complete_one(tmp_path):
    assert checkpoints.resume_point(tmp_path) is None and checkpoints.latest_problem(tmp_path) == ""
    for step in (5, 10, 15):
        save(tmp_path, step)
    assert checkpoints.steps(tmp_path) == [5, 10, 15] and checkpoints.latest_problem(tmp_path, 4) == ""
    (tmp_path / "global_step_15" / "actor" / "model_world_size_4_rank_0.pt").unlink()
    assert checkpoints.resume_point(tmp_path).step == 10
    problem = checkpoints.latest_problem(tmp_path, 4)
    assert "global_step_15: incomplete" in problem and "write 10 into" in problem
    (tmp_path / checkpoints.TRACKER).write_text("10")
    assert checkpoints.latest_problem(tmp_path, 4) == ""
    (tmp_path / checkpoints.TRACKER).write_text("20")
    assert "says step 20, which is not there" in checkpoints.latest_problem(tmp_path, 4)
    (tmp_path / checkpoints.TRACKER).unlink()
    assert "has checkpoints but no latest_checkpointed" in checkpoints.latest_problem(tmp_path, 4)
    (tmp_path / checkpoints.TRACKER).write_text("ten")
    with pytest.raises(StudyError, match="expected a step number, found 'ten'"):
        checkpoints.latest_problem(tmp_path)


def test_merging_refuses_before_it_starts(tmp_path):
    path = save(tmp_path, 5)
    with pytest.raises(StudyError, match="not a checkpoint folder"):
        checkpoints.merge(tmp_path, tmp_path / "out")
    (path / "actor" / "model_world_size_4_rank_0.pt").unlink()
    with pytest.raises(StudyError, match="incomplete: model"):
        checkpoints.merge(path, tmp_path / "out")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("")
    with pytest.raises(StudyError, match="not empty"):
        checkpoints.merge(save(tmp_path, 10), tmp_path / "full")


def test_merging_does_not_need_the_optimizer(tmp_path):
    path = save(tmp_path, 5)
    for file in (path / "actor").glob("optim*"):
        file.unlink()
    assert checkpoints.verify(path, kinds=("model",)).complete
