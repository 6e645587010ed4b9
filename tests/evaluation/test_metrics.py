from itertools import combinations
from math import comb

import numpy as np
import pandas as pd
import pytest
from campaign_records import frame
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tbstudy.errors import StudyError
from tbstudy.evaluation import metrics as m
from tbstudy.report.analysis import differences_as_table

outcomes = st.lists(st.booleans(), min_size=1, max_size=7)
count = st.integers(1, 30).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(outcomes, st.integers(1, 8))
def test_pass_at_k_and_pass_hat_k_are_averages_over_all_subsets(passed, k):
    n, c = len(passed), sum(passed)
    at, hat = m.pass_at_k([n], [c], k)[0], m.pass_hat_k([n], [c], k)[0]
    if k > n:
        assert np.isnan(at) and np.isnan(hat)
        return
    subsets = list(combinations(passed, k))
    assert at == pytest.approx(sum(any(s) for s in subsets) / len(subsets))
    assert hat == pytest.approx(sum(all(s) for s in subsets) / len(subsets))


@given(count)
def test_curves_are_monotone_and_meet_at_pass_1(kn):
    c, n = kn
    at = [m.pass_at_k([n], [c], k)[0] for k in range(1, n + 1)]
    hat = [m.pass_hat_k([n], [c], k)[0] for k in range(1, n + 1)]
    assert at[0] == pytest.approx(c / n) and hat[0] == pytest.approx(c / n)
    assert all(np.diff(at) >= -1e-12) and all(np.diff(hat) <= 1e-12)
    assert at[-1] == float(c > 0) and hat[-1] == float(c == n)


@pytest.mark.parametrize(("n", "c", "k"), [(10, 3, 4), (20, 1, 20), (20, 19, 10)])
def test_unbiased_means_the_expectation_is_the_true_value(n, c, k):
    p = c / n
    weights = stats.binom.pmf(np.arange(n + 1), n, p)
    counts = np.arange(n + 1)
    assert weights @ m.pass_at_k(np.full(n + 1, n), counts, k) == pytest.approx(1 - (1 - p) ** k)
    assert weights @ m.pass_hat_k(np.full(n + 1, n), counts, k) == pytest.approx(p**k)


def test_observed_all_is_literal():
    assert m.observed_all([20, 20, 19, 0], [20, 19, 19, 0], 20).tolist() == [True, False, False, False]
    assert m.observed_all([20, 3, 0], [20, 3, 0]).tolist() == [True, True, False]


def test_bad_counts_are_refused():
    with pytest.raises(StudyError):
        m.pass_at_k([3], [4], 1)
    with pytest.raises(StudyError):
        m.pass_at_k([3], [1], 0)
    with pytest.raises(StudyError, match="'exclude' or 'fail'"):
        m.task_counts(frame(np.ones((1, 2), bool)), "ignore")


@given(count)
def test_wilson_and_clopper_pearson_agree_with_scipy(kn):
    k, n = kn
    test = stats.binomtest(k, n)
    for found, method in ((m.wilson(k, n), "wilson"), (m.clopper_pearson(k, n), "exact")):
        other = test.proportion_ci(method=method)
        assert (found.low, found.high) == pytest.approx((other.low, other.high), abs=1e-9)


def test_newcombe_on_the_example_of_its_paper():
    """Newcombe 1998, table II, contrast (a): 56/70 against 48/80, method 10 gives 0.0524 to 0.3339."""
    found = m.newcombe(56, 70, 48, 80)
    assert (round(found.low, 4), round(found.high, 4)) == (0.0524, 0.3339)
    swapped = m.newcombe(48, 80, 56, 70)
    assert (swapped.low, swapped.high) == pytest.approx((-found.high, -found.low))


def test_twenty_of_twenty_supports_only_so_much():
    assert f"{m.clopper_pearson(20, 20).low:.3f}" == "0.832"


# ------------------------------------------------------------------------------------------------ counts and tables


def test_both_treatments_of_system_errors():
    table = frame(np.array([[1, 1, 0, 0], [1, 1, 1, 1]], bool))
    table.loc[[2, 7], "system_error"] = True
    clean, failed = m.task_counts(table), m.task_counts(table, "fail")
    assert clean[["n", "k", "system_errors", "attempts"]].to_numpy().tolist() == [[3, 2, 1, 4], [3, 3, 1, 4]]
    assert failed[["n", "k"]].to_numpy().tolist() == [[4, 2], [4, 3]]
    assert m.summary_row(clean, 3)["pass_1"] == pytest.approx((2 / 3 + 1) / 2)
    assert m.summary_row(failed, 4)["pass_1"] == pytest.approx(5 / 8)
    assert m.summary_row(clean, 3)["observed_k_k"] == 1 and m.summary_row(failed, 4)["observed_k_k"] == 0


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 10_000))
def test_summary_agrees_with_plain_loops(tasks, n, seed):
    passed = np.random.default_rng(seed).random((tasks, n)) < 0.6
    row = m.summary_row(m.task_counts(frame(passed)), n, resamples=50)
    assert row["pass_1"] == pytest.approx(passed.mean())
    assert row["pass_at_k"] == pytest.approx(np.mean([any(r) for r in passed]))
    assert row["pass_hat_k"] == pytest.approx(np.mean([all(r) for r in passed]))
    assert row["observed_k_k"] == sum(all(r) for r in passed)


def test_summary_has_every_domain_and_all():
    passed = np.array([[1, 1], [0, 0], [1, 0], [1, 1]], bool)
    table = m.summary(m.task_counts(frame(passed, domains=("a", "b"))), resamples=200).set_index("domain")
    assert table.index.tolist() == ["a", "b", "all"]
    assert table.loc["a", "pass_1"] == 0.75 and table.loc["b", "pass_1"] == 0.5 and table.loc["all", "pass_1"] == 0.625
    assert table.loc["all", "observed_k_k"] == 2


def test_curves_table():
    table = m.curves(m.task_counts(frame(np.array([[1, 0, 0, 0], [1, 1, 1, 1]], bool))), resamples=100)
    at = table[table.metric == "pass@k"].set_index("k").value
    assert at.tolist() == pytest.approx([(comb(3, k - 1) / comb(4, k) + 1) / 2 for k in range(1, 5)])
    assert table[table.metric == "pass^k"].value.tolist() == pytest.approx([0.625, 0.5, 0.5, 0.5])


# -------------------------------------------------------------------------------------------------------- bootstrap


def test_bootstrap_is_seeded_and_brackets_the_mean():
    values = np.random.default_rng(1).random((60, 2))
    first, again = m.bootstrap_mean(values, seed=5), m.bootstrap_mean(values, seed=5)
    assert first == again and first != m.bootstrap_mean(values, seed=6)
    for column, interval in zip(values.T, first, strict=True):
        assert interval.value == pytest.approx(column.mean()) and interval.low < interval.value < interval.high


def test_bootstrap_agrees_with_resampling_by_hand():
    values = np.random.default_rng(2).random(40)
    rng = np.random.default_rng(9)
    means = np.array([values[rng.integers(0, 40, 40)].mean() for _ in range(20_000)])
    low, high = m.bca(means, values.mean(), values - values.mean())
    found = m.bootstrap_mean(values, resamples=20_000, seed=3)[0]
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.004)


def test_nan_entries_leave_the_mean_of_the_others():
    values = np.array([[0.2, np.nan], [0.4, 1.0], [0.9, 0.0]])
    one, two = m.bootstrap_mean(values, resamples=400)
    assert one.value == pytest.approx(0.5) and two.value == pytest.approx(0.5)


def test_cluster_bootstrap_is_wider_when_files_share_their_difficulty():
    rng = np.random.default_rng(0)
    files = np.repeat(np.arange(12), 10)
    values = np.repeat(rng.random(12), 10) + 0.01 * rng.random(120)
    plain = m.bootstrap_mean(values, seed=1)[0]
    cluster = m.bootstrap_mean(values, clusters=files, seed=1)[0]
    assert cluster.value == pytest.approx(plain.value)
    assert cluster.high - cluster.low > 2 * (plain.high - plain.low)


def test_ratio_bootstrap():
    cost, good = np.array([1.0, 2.0, 3.0]), np.array([1, 0, 1])
    found = m.bootstrap_ratio(cost, good)
    assert found.value == pytest.approx(3.0)
    assert found.low < 3 and found.high == np.inf
    none = m.bootstrap_ratio(cost, np.zeros(3))
    assert none.value == np.inf and np.isnan(none.low)
    many = m.bootstrap_ratio(np.arange(1.0, 101), np.ones(100))
    assert many.low < 50.5 < many.high < 60


def test_a_count_gets_wilson_and_few_changes_do_not_collapse():
    assert m.proportion(np.ones(24)) == m.wilson(24, 24)
    assert m.proportion(np.array([0.5, 1.0, 0.25])) == m.bootstrap_mean(np.array([0.5, 1.0, 0.25]))[0]
    none = m.paired_change(np.zeros(24))
    # Agresti and Min by hand: half a task up and down of 26, half-width 1.96 * sqrt(1) / 26.
    assert (none.value, none.low, none.high) == pytest.approx((0, -1.959964 / 26, 1.959964 / 26))
    some = m.paired_change(np.array([1.0] * 4 + [-1.0] + [0.0] * 45))
    assert some.value == pytest.approx(0.06) and some.low < 0.06 < some.high
    enough = np.array([1.0] * 9 + [-1.0] * 3 + [0.0] * 40)
    assert m.paired_change(enough) == m.bootstrap_mean(enough)[0]
    every = m.paired_change(np.ones(12))
    # Up 12.5, down 0.5 of 14: (12 - 1.96 * sqrt(13 - 12^2 / 14)) / 14.
    assert (every.value, every.low, every.high) == pytest.approx((1, (12 - 1.959964 * (13 - 144 / 14) ** 0.5) / 14, 1))
    assert m.paired_change(-np.ones(12)) == m.Interval(-1.0, -1.0, -every.low)
    shift = m.paired_change(np.full(12, 0.05))
    assert shift.value == pytest.approx(0.05) and np.isnan(shift.low) and np.isnan(shift.high)


def test_differences_that_are_all_the_same_promise_nothing():
    assert np.isnan(m.minimum_detectable_effect(np.zeros(24))) and np.isnan(m.minimum_detectable_effect([0.1] * 24))
    same = pairs([(f"f{i % 4}.py:t{i}", 4, 8, 8, 8) for i in range(24)])
    found = m.paired_differences(same, 8, resamples=200).set_index("metric")
    assert found.difference.tolist() == pytest.approx([0.5, 0, 1, 1], abs=0.02)
    assert found[["file_low", "file_high", "mde"]].isna().all(axis=None)
    counted = found.loc[["pass^8", "observed 8/8"], ["low", "high"]].to_numpy()
    assert (counted[:, 0] < 0.95).all() and (counted[:, 1] == 1).all()
    cells = differences_as_table(found.reset_index(), "").cells()
    assert set(cells["Detectable (pp)"]) == set(cells["95 % by file"]) == {""}
    # One task in four gained in every file: tasks differ, files do not.
    even = pairs([(f"f{i % 4}.py:t{i}", 0, 2, 2 * (i < 4), 2) for i in range(16)])
    row = m.paired_differences(even, 2, resamples=200).set_index("metric").loc["pass@1"]
    assert row.mde > 0 and row.low < 0.25 < row.high and np.isnan(row.file_low) and np.isnan(row.file_high)


def coverage_of(intervals, truth):
    return np.mean([low <= truth <= high for low, high in intervals])


@pytest.mark.parametrize("tasks", [24, 100])
def test_task_bootstrap_intervals_cover_by_simulation(tasks):
    """95 % intervals of pass@1 and of pass^5 over tasks drawn from Beta(1.2, 0.9), n = 20, cover 93-97 %."""
    rng = np.random.default_rng(tasks)
    trials, n = 1200, 20
    p = rng.beta(1.2, 0.9, (trials, tasks))
    c = rng.binomial(n, p)
    truth_1, truth_5 = 1.2 / 2.1, float(stats.beta(1.2, 0.9).expect(lambda x: x**5))
    one, five = [], []
    for trial in range(trials):
        values = np.stack([c[trial] / n, m.pass_hat_k(np.full(tasks, n), c[trial], 5)], axis=1)
        a, b = m.bootstrap_mean(values, resamples=600, seed=trial)
        one.append((a.low, a.high))
        five.append((b.low, b.high))
    assert 0.93 <= coverage_of(one, truth_1) <= 0.97
    assert 0.93 <= coverage_of(five, truth_5) <= 0.97


def test_paired_difference_intervals_cover_by_simulation():
    rng = np.random.default_rng(4)
    trials, tasks, n = 1000, 100, 20
    p0 = rng.beta(0.8, 0.8, (trials, tasks))
    p1 = np.clip(p0 + rng.normal(0.06, 0.15, (trials, tasks)), 0, 1)
    # The truth is the same for every trial up to Monte Carlo error of 2e-4, since tasks are the sampled unit.
    q0 = rng.beta(0.8, 0.8, 2_000_000)
    truth = np.mean(np.clip(q0 + rng.normal(0.06, 0.15, len(q0)), 0, 1) - q0)
    hits = []
    for trial in range(trials):
        d = (rng.binomial(n, p1[trial]) - rng.binomial(n, p0[trial])) / n
        found = m.bootstrap_mean(d, resamples=600, seed=trial)[0]
        hits.append((found.low, found.high))
    assert 0.93 <= coverage_of(hits, truth) <= 0.97


@pytest.mark.parametrize(("gain", "loss", "most"), [(0.02, 0.02, 1.0), (0.15, 0.03, 0.97)])
def test_paired_change_of_counts_covers_by_simulation(gain, loss, most):
    """Differences of observed k/k out of 100 tasks; four changed are so discrete that 95 % is only exceeded."""
    rng = np.random.default_rng(7)
    draws = rng.choice([1.0, -1.0, 0.0], p=[gain, loss, 1 - gain - loss], size=(1000, 100))
    found = [m.paired_change(draw, resamples=600, seed=i) for i, draw in enumerate(draws)]
    assert 0.93 <= coverage_of([(i.low, i.high) for i in found], gain - loss) <= most


def test_wilson_covers_by_exact_enumeration():
    """Averaged over p in [0.02, 0.98], n = 120 tasks: no simulation noise."""
    n, ks = 120, np.arange(121)
    bounds = [(m.wilson(k, n).low, m.wilson(k, n).high) for k in ks]
    grid = np.linspace(0.02, 0.98, 97)
    hit = np.array([[low <= p <= high for low, high in bounds] for p in grid])
    cover = (hit * stats.binom.pmf(ks[None, :], n, grid[:, None])).sum(axis=1)
    assert 0.93 <= cover.mean() <= 0.97


# ------------------------------------------------------------------------------------------------------- comparison


def pairs(rows):
    table = pd.DataFrame(rows, columns=["uid", "k0", "n0", "k1", "n1"])
    return table.assign(domain="d", file=table.uid.str.partition(":")[0])


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40))
def test_mcnemar_agrees_with_the_binomial_test(outcome):
    before, after = np.array(outcome).T
    found = m.mcnemar(before, after)
    gained, lost = int((~before & after).sum()), int((before & ~after).sum())
    expected = stats.binomtest(gained, gained + lost).pvalue if gained + lost else 1.0
    assert found.p_value == pytest.approx(expected)
    assert (found.gained, found.lost) == (gained, lost)
    assert found.gained + found.lost + found.both + found.neither == len(outcome)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_benjamini_hochberg_agrees_with_scipy(p):
    assert m.benjamini_hochberg(p) == pytest.approx(stats.false_discovery_control(p))


@given(count, count)
def test_fisher_agrees_with_scipy(one, two):
    expected = stats.fisher_exact([[one[0], one[1] - one[0]], [two[0], two[1] - two[0]]]).pvalue
    assert m.fisher_p(*one, *two) == pytest.approx(expected, abs=1e-9)


def test_ledger_by_hand():
    table = m.ledger(
        pairs([("up", 0, 20, 20, 20), ("down", 20, 20, 2, 20), ("same", 9, 20, 11, 20), ("none", 0, 0, 5, 5)])
    )
    assert dict(zip(table.uid, table.verdict, strict=True)) == {
        "up": "gained",
        "down": "lost",
        "same": "unchanged",
        "none": "unchanged",
    }
    by_uid = table.set_index("uid")
    assert by_uid.loc["up", "p"] == pytest.approx(2 / comb(40, 20), rel=1e-6)
    assert by_uid.loc["up", "q"] == pytest.approx(4 * by_uid.loc["up", "p"])
    assert by_uid.loc["same", "difference"] == pytest.approx(0.1)


def test_the_ledger_keeps_its_false_discovery_rate_under_the_null():
    rng = np.random.default_rng(0)
    wrong = 0
    for _ in range(40):
        p = rng.beta(0.8, 0.8, 100)
        table = m.ledger(
            pairs(
                [
                    (f"t{i}", a, 20, b, 20)
                    for i, (a, b) in enumerate(zip(rng.binomial(20, p), rng.binomial(20, p), strict=True))
                ]
            )
        )
        wrong += (table.verdict != "unchanged").any()
    assert wrong <= 5


def test_transition_table_and_matrix_count_each_task_once():
    table = pairs(
        [("a", 0, 20, 0, 20), ("b", 5, 20, 20, 20), ("c", 19, 20, 20, 20), ("d", 1, 20, 0, 20), ("e", 3, 19, 5, 20)]
    )
    found = m.transition_table(table, 20)
    assert found.to_numpy().tolist() == [[1, 0, 0], [1, 0, 2], [0, 0, 0]]
    assert found.index.tolist() == ["0", "1-19", "20"]
    matrix = m.count_matrix(table, 20)
    assert matrix.sum() == 4 and matrix[5, 20] == 1 and matrix[1, 0] == 1


def test_paired_differences_by_hand():
    table = pairs([("a", 0, 4, 4, 4), ("b", 4, 4, 4, 4), ("c", 2, 4, 1, 4), ("d", 1, 4, 0, 4)])
    found = m.paired_differences(table, 4, resamples=500).set_index("metric")
    assert found.loc["pass@1", "difference"] == pytest.approx((1 + 0 - 0.25 - 0.25) / 4)
    assert found.loc["pass@4", ["base", "other"]].tolist() == [0.75, 0.75]
    assert found.loc["observed 4/4", ["base", "other", "difference"]].tolist() == [0.25, 0.5, 0.25]
    assert found.loc["pass@1", "low"] <= 0.125 <= found.loc["pass@1", "high"]


def test_minimum_detectable_effect_has_the_promised_power():
    rng = np.random.default_rng(3)
    sample = rng.normal(0, 0.2, 100)
    effect = m.minimum_detectable_effect(sample)
    assert effect == pytest.approx((1.95996 + 0.84162) * sample.std(ddof=1) / 10, rel=1e-4)
    draws = rng.normal(effect, sample.std(ddof=1), (4000, 100))
    z = draws.mean(1) / (sample.std(ddof=1) / 10)
    assert np.mean(np.abs(z) > 1.95996) == pytest.approx(0.8, abs=0.02)


def test_null_stands_beside_the_ledger():
    rng = np.random.default_rng(8)
    p = rng.beta(0.8, 0.8, 80)[:, None]
    base, again = (frame(rng.random((80, 20)) < p) for _ in range(2))
    trained = frame(rng.random((80, 20)) < np.clip(p + 0.4, 0, 1))
    table = m.ledger_against_null(base, trained, again, names=("base", "trained")).set_index("comparison")
    assert table.null.tolist() == [False, True, False, True]
    assert table.loc["base -> trained", "gained"] > 10
    assert table.loc["base -> base again", ["gained", "lost"]].sum() <= 2
    assert table.loc["base -> base again", "up"] > 10, "an unchanged policy still moves on many tasks"
    assert table.attempts_per_task.tolist() == [20, 20, 10, 10]


def test_different_task_lists_are_refused():
    one, two = (m.task_counts(frame(np.ones((size, 2), bool))) for size in (3, 4))
    with pytest.raises(StudyError, match="0 only in the first, 1 only in the second, such as f0.py:test_0003"):
        m.paired_counts(one, two)
