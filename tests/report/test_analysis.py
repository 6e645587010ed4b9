import numpy as np
import pandas as pd
import pytest

from tbstudy.difficulty import band_summary, band_table
from tbstudy.errors import StudyError
from tbstudy.evaluation import case_table, compare, training_summary
from tbstudy.evaluation.api import Campaign
from tbstudy.evaluation.attempts import COLUMNS
from tbstudy.evaluation.coverage import check_coverage
from tbstudy.report import analysis
from tbstudy.selection import select_pool


def campaign(passed, policy):
    tasks, n = passed.shape
    table = pd.DataFrame(
        {
            "policy": pd.Categorical([policy] * tasks * n),
            "uid": pd.Categorical(np.repeat([f"f{t % 2}.py:t{t}" for t in range(tasks)], n)),
            "repetition": np.tile(np.arange(n), tasks),
            "domain": pd.Categorical(np.repeat([("clinic", "parcel")[t % 2] for t in range(tasks)], n)),
            "file": pd.Categorical(np.repeat([f"f{t % 2}.py" for t in range(tasks)], n)),
            "passed": passed.ravel(),
            "policy_input_tokens": 100.0,
            "policy_output_tokens": 20.0,
        }
    )
    for name, dtype in COLUMNS.items():
        if name not in table:
            table[name] = pd.Categorical([""] * len(table)) if dtype == "category" else np.zeros(len(table), dtype)
    return Campaign(policy, table[list(COLUMNS)], check_coverage(table), n)


@pytest.fixture(scope="module")
def pair():
    base = np.array([[1, 0, 0, 0], [0, 0, 0, 0], [1, 1, 0, 1], [1, 1, 1, 1]], bool)
    return campaign(base, "base"), campaign(np.ones((4, 4), bool), "trained")


@pytest.fixture(scope="module")
def table(pair):
    return band_table(pair[0].attempts)


def test_bands_funnel_and_training_tables(table):
    bands = analysis.bands_as_table(band_summary(table)).cells()
    assert bands["Tasks"].tolist() == ["1", "1", "0", "1", "1"] and bands["Pool"].tolist()[1] == "kept"
    pool = select_pool(table, test_fraction=0.5, seed=1)
    funnel = analysis.funnel_as_table(pool)
    assert funnel.cells()["Left"].tolist()[-1] == "2" and "1 tasks to train on, 1 held out, seed 1" in funnel.note
    rows = {"arm": "a", "update": 0, "mean_reward": 0.5, "zero_variance_share": 0.25, "all_pass_share": 0.1}
    rows |= {"all_fail_share": 0.15, "groups": 8, "rollouts": 64, "seconds": 3.0}
    cells = analysis.training_as_table(training_summary(pd.DataFrame([rows]))).cells()
    assert cells["Groups rolled out"][0] == "8" and cells["Groups learned from"][0] == ""
    assert cells["Zero variance (%)"][0] == "25.0" and cells["Rollouts a useful group"][0] == "10.7"


def test_comparison_tables_and_heat_map(pair):
    found = compare(*pair, resamples=100)
    cells = analysis.differences_as_table(found.differences, "x").cells().set_index("Metric")
    assert cells.loc["pass@1", ["Before (%)", "After (%)"]].tolist() == ["50.0", "100.0"]
    assert cells.loc["observed 4/4", "Change (pp) [95 % by task]"].startswith("+75.0 [")
    transition = analysis.transition_as_table(found).cells()
    assert transition["After: 4"].tolist() == ["1", "2", "1"]
    assert "3 gained, 0 lost" in analysis.ledger_as_table(found).note
    figure = analysis.comparison_heatmap(found)
    labels = [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
    assert labels == ["base", "trained"]


def test_token_points(pair):
    points = analysis.token_points({"base": pair[0], "trained": pair[1]}).set_index("policy")
    assert points.loc["base"].tolist() == [16 * 120 / 8, 50.0] and points.loc["trained"].tolist() == [120.0, 100.0]


def test_journey_of_a_task(pair, table):
    pool = select_pool(table, test_fraction=0.0)
    way = analysis.journey_of("f0.py:t0", probe=pair[0], pool=pool, base=pair[0], trained=pair[1])
    assert way.probe == [True, False, False, False] and "to train on" in way.pool and way.trained == [True] * 4
    assert "left out" in analysis.journey_of("f1.py:t3", probe=pair[0], pool=pool).pool
    with pytest.raises(StudyError, match="no clean attempt at 'nope'"):
        analysis.journey_of("nope", probe=pair[0], pool=pool)


def test_case_table(pair):
    attempts = pair[0].attempts.copy()
    attempts.loc[1, "extra"], attempts.loc[2, "missing"], attempts.loc[3, "system_error"] = 1, 2, True
    case = case_table({"base": attempts, "trained": pair[1]}, "f0.py:t0")
    assert case.outcome.tolist()[:4] == [
        "all records match", "wrong or extra effect", "only missing effects", "system error",
    ]  # fmt: skip
    assert (case[case.policy == "trained"].outcome == "all records match").all()
    with pytest.raises(StudyError, match="no attempt at 'nope'"):
        case_table(pair[0], "nope")
