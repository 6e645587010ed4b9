"""The forecast against closed forms and a direct simulation."""

from __future__ import annotations

import numpy as np
import pytest
from verl_cases import CONFIGS, write_pool

from tbstudy.difficulty import zero_variance_probability
from tbstudy.errors import StudyError
from tbstudy.selection import load_pool
from tbstudy.training.verl import forecast
from tbstudy.training.verl.config import load_run

REFERENCE = CONFIGS / "reference-q38.yaml"


@pytest.fixture
def manifest(tmp_path):
    return load_pool(write_pool(tmp_path / "p.json", [f"a.py:t{i}" for i in range(30)], ["a.py:u"]))


def test_topology_of_the_reference():
    table = forecast.topology(load_run(REFERENCE)).set_index("what").value
    assert table["data-parallel ranks"] == 6 and table["rollout servers"] == 6 and table["GPUs"] == 24
    assert table["episodes an update"] == 144 and table["episodes a data-parallel rank"] == 24
    assert table["tokens a GPU, longest sequence"] == 33280


def test_memory_by_hand():
    table = forecast.memory(load_run(REFERENCE), 27e9, 2 * 2 * 64 * 4 * 128).set_index("what")
    gib = 2.0 ** 30
    assert table.gib["rollout: weights"] == pytest.approx(2 * 27e9 / 4 / gib)
    assert table.gib["update: Adam moments"] == pytest.approx(8 * 27e9 / 24 / gib)
    assert table.loc["update: Adam moments", "where"] == "host"
    assert table.gib["rollout: key/value cache"] == pytest.approx(0.7 * 80 - 2 * 27e9 / 4 / gib)


def test_zero_variance_share_is_the_posteriors(manifest):
    found = forecast.rollouts(load_run(REFERENCE), manifest)
    z = zero_variance_probability(3, 8, 8)
    assert found.zero_variance_share == pytest.approx(z) and found.replaced_share == pytest.approx(z)
    assert found.groups_needed == pytest.approx(18 / (1 - z))
    # Two for one over-plays; nothing can do with less than is needed.
    assert found.groups_needed < found.groups_played < found.groups_played_p95
    assert found.rollouts == pytest.approx(8 * found.groups_played)


def test_system_errors_replace_whole_groups(manifest):
    run = load_run(REFERENCE)
    z = zero_variance_probability(3, 8, 8)
    found = forecast.rollouts(run, manifest, 0.02)
    assert found.replaced_share == pytest.approx(1 - (1 - z) * 0.98 ** 8)


def test_refill_rule_without_waste_plays_what_is_needed():
    rng = np.random.default_rng(0)
    assert forecast._one_update(rng, np.zeros(3), 0.0, 18) == 18
    played = [forecast._one_update(rng, np.zeros(3), 0.3, 18) for _ in range(4000)]
    # One new group for each failed one: the number of trials until 18 successes.
    assert np.mean(played) == pytest.approx(18 / 0.7, rel=0.01)


def test_refill_rule_never_has_more_in_flight_than_an_update():
    rng = np.random.default_rng(1)
    played = [forecast._one_update(rng, np.full(4, 0.5), 0.0, 10) for _ in range(2000)]
    # Two for one: at least the trials of a negative binomial, at most one full flight beyond it.
    assert 20 < np.mean(played) < 30


def test_plan_multiplies_out(manifest):
    run = load_run(REFERENCE)
    found = forecast.rollouts(run, manifest)
    given = forecast.Assumptions(user_calls=2, generated_tokens=100, generate_rate=10, train_rate=20, prompt_tokens=50,
                                 observation_tokens=50, overhead_seconds=0)
    table = forecast.plan(run, found, given).set_index("what")
    assert table.per_update["simulated-user calls"] == pytest.approx(2 * found.rollouts)
    seconds = found.rollouts * 100 / (10 * 24) + 144 * 200 / (20 * 24)
    assert table.per_update["GPU-hours"] == pytest.approx(seconds / 3600 * 24)
    assert table.whole_run["GPU-hours"] == pytest.approx(50 * table.per_update["GPU-hours"])


def test_model_shape_counts_a_checkpoint(small_config):
    import torch  # noqa: F401

    from tbstudy.policies.small_model import SmallLM

    folder = small_config.parent / "model"
    shape = forecast.model_shape(folder)
    assert shape["parameters"] == sum(p.numel() for p in SmallLM.load(folder).parameters())
    assert shape["kv_bytes"] == 2 * 2 * 2 * 1 * 16
    with pytest.raises(StudyError, match="--parameters"):
        forecast.model_shape(small_config.parent)


def test_an_empty_split_is_refused(manifest):
    run = load_run(REFERENCE, {"data.split": "test"})
    manifest.tasks = [task for task in manifest.tasks if task.split == "train"]
    with pytest.raises(StudyError, match="is empty"):
        forecast.rollouts(run, manifest)


def test_overview_holds_what_a_notebook_shows(manifest, tmp_path, monkeypatch):
    from tbstudy.training.verl import launch
    from tbstudy.training.verl.overview import overview

    monkeypatch.setattr(launch, "verl_missing", lambda: "not installed: verl")
    seen = overview(REFERENCE, pool=tmp_path / "p.json", parameters=27e9, changes={"root": str(tmp_path)})
    assert "verl.trainer.main_ppo" in seen.command and (seen.rules.problem == "ok").all()
    assert list(seen.tables) == ["Topology", "Memory", "Rollouts of an update, before any training", "On paper",
                                 "Assumptions"]
    assert seen.training is None
    page, text = seen.html(), repr(seen)
    for said in ("Rules on paper", "Memory", "data-parallel ranks", "rollouts an update", "verl.trainer.main_ppo"):
        assert said in page and said in text
    assert page == seen._repr_html_() and "<script" not in page and page.count("<table") == 6
    hostile = type(seen)("<b>&", seen.rules, {"<i>": seen.rules.assign(problem="<u>")}, None).html()
    assert "&lt;b&gt;&amp;" in hostile and "<i>" not in hostile and "<u>" not in hostile


def test_the_size_comes_from_the_configuration_where_the_model_is_elsewhere(manifest, tmp_path):
    here = load_run(REFERENCE, {"root": str(tmp_path)})
    assert forecast.tables(here, manifest)["Memory"].gib[0] == pytest.approx(2 * 27e9 / 4 / 2.0 ** 30)
    nothing = load_run(REFERENCE, {"root": str(tmp_path), "model.parameters": None})
    with pytest.raises(StudyError, match="give --parameters \\(or model.parameters\\)"):
        forecast.tables(nothing, manifest)


def test_the_train_stage_shows_a_verl_run_and_reads_its_metrics(small_config, tmp_path, monkeypatch):
    import json

    from tbstudy import stages
    from tbstudy.config import load_study
    from tbstudy.evaluation.api import training_summary
    from tbstudy.report.figures import training_curves
    from tbstudy.training.verl import launch
    from tbstudy.training.verl.overrides import metrics_folder

    monkeypatch.setattr(launch, "verl_missing", lambda: "not installed: verl")
    (tmp_path / "study").mkdir()
    write_pool(tmp_path / "study" / "pool.json", [f"telecom_plan_change.py:test_{i:03d}" for i in range(8)], ["x:t"])
    study = load_study(CONFIGS / "laptop.yaml", tmp_path / "study", train__backend="verl", verl_run=str(small_config))
    plan = stages.training_plan(study)
    assert "main_ppo" in plan.command and plan.tables["Topology"].value[0] == 1
    updates = stages.train(study)
    assert updates.empty and training_summary(updates).empty and training_curves(updates).axes, "nothing so far"
    folder = metrics_folder(load_run(small_config))
    folder.mkdir(parents=True)
    line = {"step": 1, "data": {"actor/grad_norm": 0.5, "critic/score/mean": 0.25, "actor/pg_loss": 0.1,
                                "timing_s/step": 3.0}}
    (folder / "attempt-001.jsonl").write_text(json.dumps(line) + "\n")
    updates = stages.train(study)
    assert updates[["arm", "update", "mean_reward", "groups"]].values.tolist() == [["selected", 1, 0.25, 4]]
    assert training_summary(updates).rollouts.tolist() == [16] and len(training_curves(updates).axes) > 2
    with pytest.raises(StudyError, match="served and evaluated as docs/reference-run.md"):
        stages.evaluate(study)
    local = stages.training_plan(load_study(CONFIGS / "laptop.yaml", tmp_path / "study"))
    assert local.arm.tolist() == ["selected", "whole"]
    assert local["episodes to learn from, at most"].tolist() == [3200, 3200]
