"""Rows over a pool, and the score that verl is given for a verdict."""

from __future__ import annotations

import pytest

from tbstudy.errors import StudyError, SystemFault
from tbstudy.training.verl.dataset import PoolDataset
from tbstudy.training.verl.reward import KEY, compute_score


def test_rows_name_tasks_and_nothing_else(pool):
    rows = PoolDataset(f"{pool}:train")
    assert len(rows) == 8 and len(PoolDataset([f"{pool}:test:validate"])) == 4
    row = rows[3]
    assert row["extra_info"] == {"uid": "telecom_plan_change.py:test_003", "split": "train", "validate": False,
                                 "index": 3}
    assert row["data_source"] == "telecom" and row["raw_prompt"][0]["content"] == row["extra_info"]["uid"]
    assert PoolDataset(f"{pool}:test:validate")[0]["extra_info"]["validate"] is True
    assert len(PoolDataset(f"{pool}:train", max_samples=2)) == 2


@pytest.mark.parametrize(("name", "said"), [
    ("pool.json", "expected <manifest>:<split>"), ("{pool}:dev", "split of train, test, whole"),
    ("none.json:train", "cannot read the pool manifest")])
def test_other_names_are_refused(pool, name, said):
    with pytest.raises(StudyError, match=said):
        PoolDataset(name.format(pool=pool))
    with pytest.raises(StudyError, match="expected one"):
        PoolDataset([f"{pool}:train", f"{pool}:test"])


def verdict(**changes):
    return {KEY: {"uid": "a.py:b", "reward": 1.0, "system_error": False, "cause": "", "finish_reason": "done",
                  "truncated": False, "validating": False, "policy_turns": 4, "user_calls": 1, "tool_calls": 2,
                  **changes}}


def test_the_score_is_the_verdict():
    assert compute_score("d", "text", "u", verdict())["score"] == 1.0
    score = compute_score("d", "<DONE> score: 1", "u", verdict(reward=0.0, truncated=True))
    assert score["score"] == score["acc"] == 0.0 and score["truncated"] == 1.0


def test_a_system_error_has_no_score_in_training():
    with pytest.raises(SystemFault, match="a.py:b: system error"):
        compute_score("d", "", "u", verdict(system_error=True, cause="user"))
    assert compute_score("d", "", "u", verdict(system_error=True, validating=True))["system_error"] == 1.0


def test_a_row_of_another_agent_loop_is_no_score():
    with pytest.raises(KeyError):
        compute_score("d", "", "u", {})
