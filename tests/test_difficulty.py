import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from tbstudy import difficulty as d
from tbstudy.errors import StudyError


def attempts(counts: dict[str, tuple[int, int, int]], domain="telecom") -> pd.DataFrame:
    rows = []
    for uid, (k, n, broken) in counts.items():
        outcomes = [(True, False)] * k + [(False, False)] * (n - k) + [(False, True)] * broken
        rows += [(uid, domain, r, p, e) for r, (p, e) in enumerate(outcomes)]
    return pd.DataFrame(rows, columns=["uid", "domain", "repetition", "passed", "system_error"])


def test_published_example_three_of_eight():
    assert d.posterior(3, 8) == (3.5, 5.5)
    found = d.assign(3, 8)
    assert found.band == "hard"
    assert f"{found.mass:.3f}" == "0.540"


@pytest.mark.parametrize(
    ("k", "band"),
    # Masses of Beta(k + 1/2, 8 - k + 1/2) between the edges, by hand from Beta tables.
    [
        (0, "rarely"),
        (1, "hard"),
        (2, "hard"),
        (3, "hard"),
        (4, "medium"),
        (5, "often"),
        (6, "often"),
        (7, "often"),
        (8, "nearly_always"),
    ],
)
def test_bands_of_eight_probes(k, band):
    assert d.assign(k, 8).band == band


@given(st.integers(0, 40).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_masses_are_a_distribution_and_agree_with_quadrature(kn):
    k, n = kn
    masses = d.band_masses(k, n)
    assert sum(masses.values()) == pytest.approx(1)
    beta = stats.beta(k + 0.5, n - k + 0.5)
    for band in d.DEFAULT_BANDS:
        assert masses[band.name] == pytest.approx(beta.cdf(band.high) - beta.cdf(band.low), abs=1e-9)


@given(st.integers(0, 12).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.integers(1, 16))
def test_zero_variance_closed_form_is_the_beta_binomial_and_the_integral(kn, group):
    k, n = kn
    a, b = d.posterior(k, n)
    ends = stats.betabinom(group, a, b).pmf([0, group]).sum() if group > 1 else 1.0
    assert d.zero_variance_probability(k, n, group) == pytest.approx(min(ends, 1))
    # p = sin^2 t removes the end-point singularities of the Jeffreys prior.
    density = stats.beta(a, b).pdf

    def integrand(t):
        p = np.sin(t) ** 2
        return (p**group + (1 - p) ** group) * density(p) * 2 * np.sin(t) * np.cos(t)

    value, _ = integrate.quad(integrand, 1e-9, np.pi / 2 - 1e-9)
    assert d.zero_variance_probability(k, n, group) == pytest.approx(value, rel=1e-4)


def test_a_tie_goes_to_the_lower_band():
    halves = (d.Band("low", 0, 0.5), d.Band("high", 0.5, 1))
    assert d.assign(4, 8, halves).band == "low"
    assert d.assign(0, 0, halves).band == "low"


def test_band_table_leaves_system_errors_out_of_n():
    table = d.band_table(attempts({"b": (3, 8, 0), "a": (2, 3, 5), "c": (0, 4, 4)}), min_clean=4).set_index("uid")
    assert list(table.index) == ["a", "b", "c"]
    assert (table.loc["b", ["n", "k", "system_errors", "a", "b", "band"]] == [8, 3, 0, 3.5, 5.5, "hard"]).all()
    assert table.loc["a", "status"] == "too few clean runs" and table.loc["a", "band"] == ""
    assert np.isnan(table.loc["a", "mass_hard"])
    assert table.loc["c", "n"] == 4 and table.loc["c", "status"] == "banded"
    assert table.loc["b", [f"mass_{x.name}" for x in d.DEFAULT_BANDS]].sum() == pytest.approx(1)


def test_a_system_error_never_counts_as_passed():
    frame = attempts({"a": (4, 8, 0)})
    frame.loc[0, "system_error"] = True
    table = d.band_table(frame, min_clean=1)
    assert (table.k[0], table.n[0], table.system_errors[0]) == (3, 7, 1)


def test_summary_counts_every_banded_task_once():
    table = d.band_table(attempts({f"t{k}": (k, 8, 0) for k in range(9)} | {"x": (0, 1, 0)}))
    summary = d.band_summary(table).set_index("band")
    assert summary.tasks.to_dict() == {"rarely": 1, "hard": 3, "medium": 1, "often": 3, "nearly_always": 1}
    assert summary.share.sum() == pytest.approx(1)


def test_forecast_matches_simulation():
    table = d.band_table(attempts({"a": (1, 8, 0), "b": (4, 8, 0)}))
    cast = d.forecast(table, 8)
    rng = np.random.default_rng(0)
    p = np.concatenate([rng.beta(1.5, 7.5, 200_000), rng.beta(4.5, 4.5, 200_000)])
    passed = rng.binomial(8, p)
    share = np.mean((passed == 0) | (passed == 8))
    assert cast.zero_variance_share == pytest.approx(share, abs=0.004)
    assert cast.rollouts_per_useful_group == pytest.approx(8 / (1 - share), rel=0.01)


@pytest.mark.parametrize(
    ("bands", "says"),
    [
        ([], "none given"),
        ([{"name": "a", "low": 0, "high": 0.5, "keep": True}], "must end at 1"),
        ([{"name": "a", "low": 0, "high": 0.5}, {"name": "b", "low": 0.6, "high": 1}], "must start at 0.5"),
        ([{"name": "a", "low": 0, "high": 0.5}, {"name": "a", "low": 0.5, "high": 1}], "occurs twice"),
        ([{"name": "a", "lo": 0, "high": 1}], "bands\\[0\\]"),
    ],
)
def test_bad_bands_are_named(bands, says):
    with pytest.raises(StudyError, match=says):
        d.bands_from(bands)


def test_impossible_counts_and_empty_tables_are_refused():
    with pytest.raises(StudyError, match="9 passes of 8"):
        d.posterior(9, 8)
    with pytest.raises(StudyError, match="group_size"):
        d.zero_variance_probability(1, 8, 0)
    with pytest.raises(StudyError, match="run the probe"):
        d.band_table(attempts({}))
    with pytest.raises(StudyError, match="domain"):
        d.band_table(attempts({"a": (1, 8, 0)}).drop(columns="domain"))


def test_the_task_to_read_is_one_that_is_passed_sometimes_where_there_is_one():
    from tbstudy.stages import task_to_read

    table = pd.DataFrame({"uid": ["a", "b", "c"], "k": [0, 8, 3], "n": [8, 8, 8]})
    assert task_to_read(table) == "c" and task_to_read(table[:2]) == "a"
