"""Every number that the authors state is reproduced to its printed digits, by code, from data/published."""

from pathlib import Path

import numpy as np
import pytest

from tbstudy.difficulty import DEFAULT_BANDS, assign
from tbstudy.errors import StudyError
from tbstudy.report import published as p
from tbstudy.report.tables import NOT_STATED

DATA = Path(__file__).parents[2] / "data" / "published"


@pytest.fixture(scope="module")
def study():
    return p.load_published(DATA)


def printed(table, key, columns):
    """Cells of one row, by the first column's text."""
    cells = table.cells().set_index(table.cells().columns[0])
    return cells.loc[key, columns].tolist()


def test_campaign_size(study):
    assert (study.tasks, study.attempts) == (507, 10_140)
    assert study.setup["evaluation"] | {"tasks": study.tasks, "attempts": study.attempts} == study.setup["evaluation"]


def test_training_table_1_outcome(study):
    table = p.outcome_table(study)
    three = [p.BASE, p.TRAINED, "Change (derived)"]
    assert printed(table, "pass@1 (%)", three) == ["51.70", "60.78", "+9.08"]
    assert printed(table, "observed 20/20 (tasks)", three) == ["38", "107", "+69"]
    assert printed(table, "observed 20/20 (%)", three) == ["7.5", "21.1", "+13.6"]
    assert printed(table, "pass@20 (%)", three) == ["89.35", "87.97", "-1.38"]
    bounds = ["Base 95 % (derived)", "RLFT 95 % (derived)", "Change 95 % (derived)"]
    assert printed(table, "observed 20/20 (%)", bounds) == ["[5.5, 10.1]", "[17.8, 24.9]", "[9.4, 17.9]"]
    assert printed(table, "pass@20 (%)", bounds)[2] == "[-5.3, 2.5]"


def test_training_table_2_cost(study):
    table = p.cost_table(study)
    columns = ["Campaign cost (USD)", "Cost per success (USD)", "Cost per reliable task (USD)"]
    assert printed(table, p.BASE, columns) == ["925.80", "0.177", "24.36"]
    assert printed(table, p.TRAINED, columns) == ["856.00 (derived)", "0.139", "8.00"]
    assert printed(table, "GPT-6 Astra", columns) == ["1,720.60", "0.291 (derived)", "7.45"]


def test_stated_costs_per_success_follow_from_campaign_cost_and_pass_1(study):
    points = p.cost_points(study).set_index("policy")
    for model, stated in {
        "GPT-5.4": "0.131", "Claude Opus 5.5": "0.276", "Claude Opus 5": "0.475", p.BASE: "0.177", p.TRAINED: "0.139",
    }.items():  # fmt: skip
        row = points.loc[model]
        assert f"{row.cost:.3f}" == stated
        assert f"{row.campaign_cost / (study.attempts * row.pass_1 / 100):.3f}" == stated


def test_frontier(study):
    points = p.cost_points(study)
    assert points[points.frontier].policy.tolist() == ["GPT-5.6 Sol", "GPT-5.4", "Claude Opus 5.5"]


def test_training_table_3_setup(study):
    cells = dict(p.setup_table(study).cells().to_numpy().tolist())
    assert (
        cells["Pool"] == "187 tasks" and cells["Groups x rollouts"] == "18 x 8" and cells["Episodes an update"] == "144"
    )
    assert cells["GPUs"] == "3 x 8 H100" and cells["Bands kept"] == "hard, medium, often"
    assert int(cells["Episodes an update"]) == study.setup["episodes_per_update"]
    parallel = study.setup["parallelism"]
    assert parallel["world"] == 24 == parallel["ulysses_sp"] * parallel["effective_dp"]


def test_bands_are_the_defaults_and_the_probe_example_is_reproduced(study):
    assert study.bands == DEFAULT_BANDS
    example = study.setup["probe_example"]
    found = assign(example["k"], example["n"], study.bands)
    assert (found.band, round(found.mass, 3)) == (example["band"], example["band_mass"])
    assert [example["k"] + 0.5, example["n"] - example["k"] + 0.5] == example["posterior"]


def test_first_post_table_2_overall_is_the_task_weighted_mean(study):
    sizes = study.domains.set_index("domain").tasks
    for row in study.pass_1.dropna(subset=["retail"]).itertuples():
        weighted = sum(getattr(row, domain) * tasks for domain, tasks in sizes.items()) / sizes.sum()
        # Both sides were rounded to two digits before.
        assert weighted == pytest.approx(row.overall, abs=0.0101), row.model
    table = p.pass_1_table(study)
    assert len(table.data) == 19
    assert printed(table, "Claude Opus 5.5", ["Retail and e-commerce (98)", "Overall (507)"]) == ["80.97", "67.16"]
    assert printed(table, p.TRAINED, ["Retail and e-commerce (98)", "Overall (507)"]) == [NOT_STATED, "60.78"]


def test_first_post_table_3(study):
    table = p.reliable_cost_table(study)
    cells = table.cells()
    assert cells["Model"].tolist() == [
        "GPT-5.4", "GPT-6 Astra", "Claude Opus 5.5", "GPT-5.6 Sol", "Claude Opus 5", "Claude Sonnet 4.6", "GPT-5.2",
        "Kimi-K3",
        p.BASE,
    ]  # fmt: skip
    assert cells["Cost per reliable task (USD)"].tolist() == cells["Cost / tasks (USD) (derived)"].tolist()
    assert cells["Share (%) (derived)"].tolist() == [
        "25.25", "45.56", "47.53", "16.17", "47.53", "20.12", "8.68", "13.41", "7.50",
    ]  # fmt: skip


def test_numbers_in_the_first_posts_prose(study):
    stated = study.in_text.set_index("key").value
    points = p.cost_points(study).set_index("policy")
    once = study.reliability.set_index("model").pass_at_20_pct * study.tasks / 100
    share = points.tasks_20_of_20 / study.tasks * 100
    models = study.pass_1.dropna(subset=["retail"])
    retained = share / points.pass_1 * 100
    derived = {
        "gpt54_cost_per_run": round(points.campaign_cost["GPT-5.4"] / 20, 2),
        "astra_cost_per_run": round(points.campaign_cost["GPT-6 Astra"] / 20, 2),
        "retained_astra": round(retained["GPT-6 Astra"]),
        "retained_opus55": round(retained["Claude Opus 5.5"]),
        "retained_opus5": round(retained["Claude Opus 5"]),
        "kimi_k3_solved_once": round(once["Kimi-K3"]),
        "kimi_k3_never": study.tasks - round(once["Kimi-K3"]),
        "opus5_never": study.tasks - round(once["Claude Opus 5"]),
        "kimi_k3_more_once": round(once["Kimi-K3"]) - round(once["Claude Opus 5"]),
        "opus5_more_always": points.tasks_20_of_20["Claude Opus 5"] - points.tasks_20_of_20["Kimi-K3"],
        "frontier_step_pass1_1": round(points.pass_1["GPT-5.4"] - points.pass_1["GPT-5.6 Sol"], 2),
        "frontier_step_cost_1": round(points.cost["GPT-5.4"] - points.cost["GPT-5.6 Sol"], 3),
        "frontier_step_pass1_2": round(points.pass_1["Claude Opus 5.5"] - points.pass_1["GPT-5.4"], 2),
        "retail_mean": round(models.retail.mean(), 2),
        "auto_insurance_mean": round(models.auto_insurance.mean(), 2),
    }
    differs = {key: (derived[key], value) for key, value in stated.items() if derived[key] != pytest.approx(value)}
    assert differs == {}
    assert set(derived) == set(stated.index)


def test_failure_table(study):
    cells = dict(p.failure_table(study).cells().to_numpy().tolist())
    assert cells["Valid trials (12 models)"] == "121,680" and cells["Failed"] == "79,853"
    assert cells["Terminated cleanly (% of failed)"] == "67.24" and cells["Wrong field (% of those)"] == "77.61"
    assert study.setup["failure_ablation"]["valid_trials"] == 12 * study.attempts
    assert sum(study.setup["failure_signatures_pct"].values()) == pytest.approx(100, abs=0.2)


def test_stated_changes_become_a_matrix_with_gaps(study):
    matrix = p.change_matrix(study)
    assert matrix.loc["observed 20/20", "retail"] == 24.5 and matrix.loc["pass@20", "auto_insurance"] == -7.0
    assert matrix.loc["pass@20", "retail"] == "fell" and matrix.loc["pass@20", "neobank"] == "rose"
    assert (matrix.loc["pass@1"].drop("overall") == "rose").all()
    assert matrix.overall.astype(float).round(1).tolist() == [9.1, 13.6, -1.4]


def test_hotel_case(study):
    counts = p.hotel_case(study).groupby(["policy", "outcome"]).size()
    assert counts[p.BASE, "room changed without approval"] == 15
    assert counts[p.TRAINED, "all records match"] == 19
    assert counts[p.TRAINED].sum() == counts[p.BASE].sum() == 20


def test_nothing_unstated_is_filled_in(study):
    row = study.pass_1[study.pass_1.model == p.TRAINED].iloc[0]
    assert row[["retail", "auto_insurance", "travel", "neobank", "consulting"]].isna().all()
    assert np.isnan(study.reliability.set_index("model").pass_at_20_pct["GPT-5.6 Sol"])


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(StudyError, match="bench_pass1_by_domain.csv: missing"):
        p.load_published(tmp_path)
