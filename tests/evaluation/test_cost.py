import datetime

import numpy as np
import pandas as pd
import pytest
from campaign_records import record, write
from hypothesis import given
from hypothesis import strategies as st

from tbstudy.errors import StudyError
from tbstudy.evaluation import read_attempts
from tbstudy.evaluation.cost import attempt_costs, cost_summary, load_prices, pareto_frontier, token_table

PRICES = """
date: 2026-09-20
source: a price page
user: gpt
models:
  base: {input: 2.0, output: 10.0, cached_input: 0.5}
  gpt: {input: 1.0, output: 4.0}
"""
USAGE = [
    {"role": "policy", "input_tokens": 1000, "output_tokens": 100, "input_tokens_details": {"cached_tokens": 400}},
    {"role": "user", "input_tokens": 200, "output_tokens": 20},
]


@pytest.fixture
def prices(tmp_path):
    (tmp_path / "prices.yaml").write_text(PRICES)
    return load_prices(tmp_path / "prices.yaml")


@pytest.fixture
def attempts(tmp_path):
    rows = [record(f"a.py:t{t}", r, r < k, usage=USAGE) for t, k in enumerate((2, 1, 2)) for r in range(2)]
    return read_attempts(write(tmp_path / "a.jsonl", rows))


def test_cost_by_role_by_hand(attempts, prices):
    assert prices.date == datetime.date(2026, 9, 20)
    costs = attempt_costs(attempts, prices)
    assert costs.policy[0] == pytest.approx((600 * 2 + 400 * 0.5 + 100 * 10) / 1e6)
    assert costs.user[0] == pytest.approx((200 * 1 + 20 * 4) / 1e6)
    assert np.isnan(costs.judge[0]), "an unrecorded judge is unknown, not free"
    assert costs.total[0] == pytest.approx(costs.policy[0] + costs.user[0])


def test_cost_per_success_and_per_reliable_task(attempts, prices):
    total = attempt_costs(attempts, prices).total
    found = cost_summary(attempts, total, 2)
    assert (found["passed"], found["reliable_tasks"]) == (5, 2)
    assert found["campaign_cost"] == pytest.approx(6 * total[0])
    assert found["cost_per_success"].value == pytest.approx(6 * total[0] / 5)
    assert found["cost_per_reliable_task"].value == pytest.approx(6 * total[0] / 2)
    assert found["cost_per_success"].low <= found["cost_per_success"].value <= found["cost_per_success"].high


def test_token_table(attempts):
    table = token_table(attempts).set_index("role")
    assert table.loc["policy", ["input", "cached_input", "output", "per_attempt"]].tolist() == [6000, 2400, 600, 1100]
    assert "judge" not in table.index


def test_missing_usage_and_missing_prices_are_refused(tmp_path, prices):
    path = write(tmp_path / "b.jsonl", [record("a.py:t1", 0, usage=[])])
    with pytest.raises(StudyError, match="1 attempts record no policy usage \\(a.py:t1 #0"):
        attempt_costs(read_attempts(path), prices)
    path = write(tmp_path / "c.jsonl", [record("a.py:t1", 0, policy="other")])
    with pytest.raises(StudyError, match="no price for 'other'.*base, gpt"):
        attempt_costs(read_attempts(path), prices)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (PRICES.replace("source: a price page\n", ""), "field source"),
        (PRICES.replace("output: 4.0", "output: -1"), "field models.gpt.output"),
        (PRICES.replace("user: gpt", "usr: gpt"), "field usr"),
        ("a: [", "not YAML"),
    ],
)
def test_a_bad_price_table_names_file_and_field(tmp_path, text, says):
    path = tmp_path / "prices.yaml"
    path.write_text(text)
    with pytest.raises(StudyError, match=f"prices.yaml: {says}"):
        load_prices(path)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=12))
def test_frontier_agrees_with_brute_force(points):
    cost, score = (pd.Series(column, dtype=float) for column in zip(*points, strict=True))
    found = pareto_frontier(cost, score)
    for i, (c, s) in enumerate(points):
        beaten = any((a <= c and b >= s) and (a < c or b > s) for a, b in points)
        assert found[i] == (not beaten)


def test_unknown_costs_are_never_on_the_frontier():
    found = pareto_frontier(pd.Series([np.nan, 1.0, 2.0]), pd.Series([99.0, 1.0, np.nan]))
    assert found.tolist() == [False, True, False]
