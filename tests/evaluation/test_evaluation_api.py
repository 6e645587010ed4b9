import numpy as np
import pandas as pd
import pytest
from campaign_records import frame

from tbstudy.errors import StudyError
from tbstudy.evaluation import both_treatments, compare, compare_arms, curve_table, summary_table, training_summary


@pytest.fixture
def policies():
    rng = np.random.default_rng(0)
    p = rng.beta(0.8, 0.8, (60, 1))
    base = frame(rng.random((60, 10)) < p, domains=("clinic", "parcel"), files=6)
    trained = frame(
        rng.random((60, 10)) < np.clip(p + 0.3, 0, 1), policy="trained", domains=("clinic", "parcel"), files=6
    )
    return base, trained


def test_compare_holds_together(policies):
    base, trained = policies
    found = compare(base, trained, resamples=300)
    assert (found.base, found.other, found.k) == ("base", "trained", 10)
    row = found.differences.set_index("metric").loc["pass@1"]
    assert row.base == pytest.approx(base.passed.mean()) and row.other == pytest.approx(trained.passed.mean())
    assert row.difference == pytest.approx(row.other - row.base) and row.low < row.difference < row.high
    assert row.low > 0
    assert found.transition.to_numpy().sum() == found.matrix.sum() == len(found.ledger) == 60
    assert set(found.domains.domain) == {"clinic", "parcel", "all"}
    observed = found.differences.set_index("metric").loc["observed 10/10"]
    assert found.mcnemar.gained - found.mcnemar.lost == pytest.approx(observed.difference * 60)
    assert found.null.null.tolist() == [False, False, True]
    named = compare(base, trained, second_base=base, names=("3B", "8B"), resamples=10).null
    assert named.comparison.tolist() == [
        "3B -> 8B", "3B -> 3B again", "3B half -> 8B half", "3B half -> other 3B half"
    ]  # fmt: skip
    assert len(found.curves) == 2 * 2 * 10
    assert set(found.treatments.treatment) == {"exclude", "fail"}


def test_compare_is_repeatable_and_a_policy_can_be_compared_with_itself(policies):
    base, _ = policies
    one, two = (compare(base, base, resamples=200, seed=3) for _ in range(2))
    pd.testing.assert_frame_equal(one.differences, two.differences)
    assert (one.base, one.other) == ("base (first)", "base (second)")
    assert (one.differences.difference == 0).all() and one.mcnemar.p_value == 1


def test_summary_table_by_anything(policies):
    both = pd.concat(policies, ignore_index=True)
    by_policy = summary_table(both, "policy", resamples=100)
    assert by_policy.policy.tolist() == ["base", "trained"] and "domain" not in by_policy
    by_file = summary_table(policies[0], "file", resamples=100)
    assert by_file.file.tolist() == [*(f"f{i}.py" for i in range(6)), "all"]
    assert by_file.tasks.tolist() == [10] * 6 + [60]
    named = summary_table({"Base": policies[0], "RLFT": policies[1]}, resamples=100)
    assert named.policy.tolist() == ["Base"] * 3 + ["RLFT"] * 3
    with pytest.raises(StudyError, match="summarise by 'colour'"):
        summary_table(policies[0], "colour")


def test_curves_of_several(policies):
    table = curve_table({"a": policies[0], "b": policies[1]}, resamples=100)
    assert table.groupby("policy").size().to_dict() == {"a": 20, "b": 20}


def test_both_treatments_differ_only_by_system_errors(policies):
    base = policies[0].copy()
    base.loc[:4, "system_error"] = True
    table = both_treatments(base, resamples=100).set_index("treatment")
    assert table.loc["fail", "pass_1"] < table.loc["exclude", "pass_1"]
    assert table.system_errors.tolist() == [5, 5]


def test_compare_arms(policies):
    base, trained = policies
    table = compare_arms(base, {"selected": trained, "whole": base}, resamples=200)
    assert table.comparison.unique().tolist() == ["base -> selected", "base -> whole", "whole -> selected"]
    direct = table.set_index(["comparison", "metric"]).difference
    assert direct["base -> selected", "pass@1"] == pytest.approx(direct["whole -> selected", "pass@1"])
    assert direct["base -> whole", "pass@1"] == 0


def test_training_summary_of_no_update_has_its_columns():
    summary = training_summary(pd.DataFrame(columns=["arm", "update", "groups"]))
    assert summary.empty and {"arm", "rollouts_per_useful_group", "seconds"} <= set(summary.columns)


def test_training_summary_by_hand():
    rows = [
        {
            "arm": "selected",
            "update": u,
            "mean_reward": 0.2 + 0.1 * u,
            "zero_variance_share": z,
            "all_pass_share": z / 2,
            "all_fail_share": z / 2,
            "groups": g,
            "rollouts": 8 * g,
            "seconds": 2.0,
        }
        for u, (g, z) in enumerate([(10, 0.2), (30, 0.4)])
    ]
    row = training_summary(pd.DataFrame(rows)).iloc[0]
    assert (row.updates, row.groups_rolled_out, row.rollouts, row.seconds) == (2, 40, 320, 4.0)
    assert np.isnan(row.groups_learned_from), "one number of groups does not say how many were learned from"
    assert row.zero_variance_share == pytest.approx((2 + 12) / 40)
    assert row.rollouts_per_useful_group == pytest.approx(320 / (8 + 18))
    assert (row.reward_first_fifth, row.reward_last_fifth) == pytest.approx((0.2, 0.3))


def test_groups_lost_to_system_errors_are_not_useful():
    rows = pd.DataFrame(
        {
            "arm": "selected",
            "update": [1, 2],
            "mean_reward": 0.5,
            "zero_variance_share": [0.25, 0.0],
            "all_pass_share": [0.25, 0.0],
            "all_fail_share": 0.0,
            "system_error_share": [0.125, np.nan],
            "groups": [8, 4],
            "groups_rolled_out": [16, 4],
            "rollouts": [128, 32],
            "seconds": 1.0,
        }
    )
    row = training_summary(rows).iloc[0]
    assert (row.groups_rolled_out, row.groups_learned_from) == (20, 12)
    # Of 16 groups 4 were all-pass and 2 broke; all 4 of the second update taught something.
    assert row.rollouts_per_useful_group == pytest.approx(160 / (10 + 4))
    broken = rows.head(1).assign(system_error_share=0.75)
    assert training_summary(broken).rollouts_per_useful_group.tolist() == [np.inf]
