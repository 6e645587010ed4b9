"""verl's metrics as the training table: shares, resumed attempts, torn lines."""

from __future__ import annotations

import json

import pytest

from tbstudy.errors import StudyError
from tbstudy.report.figures.training import training_curves
from tbstudy.training.verl.config import load_run
from tbstudy.training.verl.hooks import Evictions
from tbstudy.training.verl.metrics import COLUMNS, episode_table, note_episode, training_table
from tbstudy.training.verl.overrides import metrics_folder


@pytest.fixture
def run(small_config):
    run = load_run(small_config)  # 4 groups of 4
    metrics_folder(run).mkdir(parents=True)
    return run


def write(run, attempt, *steps):
    path = metrics_folder(run) / f"attempt-{attempt:03d}.jsonl"
    path.write_text("".join(json.dumps({"step": step, "data": data}) + "\n" for step, data in steps))
    return path


def data(reward, **more):
    return {"critic/score/mean": reward, "actor/grad_norm": 0.5, "actor/ppo_kl": 0.01, "timing_s/step": 9.0, **more}


def test_shares_are_of_all_groups_played(run, monkeypatch):
    path = write(run, 1, (1, data(0.5, **{"training/filter_groups/evicted_samples": 5,
                                          "training/rollout_failure/evicted_samples": 1,
                                          "training/filter_groups/discarded_surplus_samples": 2})), (2, data(0.25)))
    monkeypatch.setenv("VERL_FILE_LOGGER_PATH", str(path))
    seen = Evictions(4, 100)
    seen.add(1, 3, {"_dapo_filtered_reward_counts": {0.0: 2, 1.0: 1}})
    seen.add(1, 3, {"_dapo_filtered_reward_counts": {0.0: 2}, "training/rollout_failure/evicted_samples": 1})
    table = training_table(run)
    assert list(table.columns) == COLUMNS and list(table["update"]) == [1, 2]
    first = table.iloc[0]
    assert first.groups_rolled_out == 12 and first.rollouts == 48 and first.groups == 4
    assert first.zero_variance_share == pytest.approx(5 / 12) and first.all_pass_share == pytest.approx(1 / 12)
    assert first.all_fail_share == pytest.approx(4 / 12) and first.system_error_share == pytest.approx(1 / 12)
    assert first.mean_reward == pytest.approx((4 * 0.5 + 1) / 9)
    assert table.iloc[1].mean_reward == 0.25 and table.iloc[1].zero_variance_share == 0
    training_curves(table)


def test_a_repeated_update_counts_once_as_last(run):
    write(run, 1, (1, data(0.1)), (2, data(0.2)), (3, data(0.3)))
    write(run, 2, (3, data(0.7)), (4, data(0.4)), (4, {"val-core/telecom/acc/mean@1": 0.5}))
    table = training_table(run)
    assert list(table["update"]) == [1, 2, 3, 4] and table.mean_reward.tolist() == [0.1, 0.2, 0.7, 0.4]


def test_a_torn_last_line_is_left_out_and_another_is_an_error(run):
    path = write(run, 1, (1, data(0.1)))
    path.write_text(path.read_text() + '{"step": 2, "da')
    assert len(training_table(run)) == 1
    path.write_text('{"step"\n' + path.read_text())
    with pytest.raises(StudyError, match=r"attempt-001.jsonl:1: not JSON"):
        training_table(run)


def test_rollouts_are_noted_beside_the_metrics(run, monkeypatch):
    path = write(run, 1, (1, data(0.5)))
    note_episode({"step": 1})  # outside a trainer: nowhere
    monkeypatch.setenv("VERL_FILE_LOGGER_PATH", str(path))
    for truncated, fault in ((True, False), (False, False), (False, False), (True, True)):
        note_episode({"step": 1, "uid": "a", "truncated": truncated, "system_error": fault, "generated_tokens": 7})
    table = training_table(run)
    assert table.truncated_share.tolist() == [pytest.approx(1 / 3)] and table.tokens.tolist() == [28]
    episodes = episode_table(run)
    assert len(episodes) == 4 and set(episodes.attempt) == {"attempt-001"}


def test_columns_mean_what_they_mean_for_the_local_trainer(run):
    write(run, 1, (1, data(0.5, **{"perf/total_num_tokens": 9000, "actor/entropy": 0.2})))
    table = training_table(run)
    assert table.entropy.tolist() == [0.2]
    assert table.tokens.isna().all(), "prompts and responses are no count of generated tokens"
    assert table.kl.isna().all(), "verl's is not that of sampler to trainer"
    assert not any("KL" in axis.get_title(loc="left") for axis in training_curves(table).axes)


def test_no_metrics_is_an_error(run):
    with pytest.raises(StudyError, match="no update recorded"):
        training_table(run)
