"""The calls a notebook makes: load a campaign, summarise it, compare two policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from tbstudy.errors import StudyError
from tbstudy.evaluation import metrics
from tbstudy.evaluation.attempts import read_attempts
from tbstudy.evaluation.coverage import Coverage, check_coverage, scored


@dataclass(frozen=True, slots=True)
class Campaign:
    """One policy's attempts that count (`attempts.latest`), and how they cover the plan.

    `k` is the number of attempts a task has under the plan; `label` says what was scored and must accompany a table.
    """

    policy: str
    attempts: pd.DataFrame
    coverage: Coverage
    k: int

    @property
    def label(self) -> str:
        return f"{self.policy}: {self.coverage.label()}"


def load_campaign(
    path: str | Path | Sequence[str | Path],
    *,
    policy: str | None = None,
    uids: Sequence[str] | None = None,
    repeats: int | None = None,
    errors: str | Path | None = None,
    allow_incomplete: bool = False,
) -> Campaign:
    """Read one policy's campaign and insist on exact coverage of `uids` x range(`repeats`).

    `policy` picks one of several policies in our records, and names the policy of a file that does not. Raises
    `StudyError` naming the faults when coverage is not exact; `allow_incomplete` scores what is there and labels it
    (never with duplicate or unexpected keys).
    """
    torn: list[str] = []
    attempts = read_attempts(path, policy=policy, errors=errors, on_torn=torn.append)
    if attempts.empty:
        raise StudyError(f"{path}: no attempt recorded; run the campaign first")
    names = sorted(set(attempts.policy.astype(str)))
    if policy is not None and names != [policy]:
        if policy not in names:
            raise StudyError(f"{path}: no attempt of policy {policy!r}; recorded are {', '.join(names)}")
        attempts = attempts[attempts.policy == policy].reset_index(drop=True)
        attempts["policy"] = attempts.policy.cat.remove_unused_categories()
    coverage = check_coverage(attempts, uids, repeats, torn=torn)
    kept = scored(attempts, coverage, allow_incomplete=allow_incomplete)
    return Campaign(policy or names[0], kept, coverage, repeats or int(attempts.repetition.max()) + 1)


def load_campaigns(paths: Sequence[str | Path], **options) -> dict[str, Campaign]:
    """`load_campaign` for each path, by policy name. Raises `StudyError` when two files hold the same policy."""
    found: dict[str, Campaign] = {}
    for path in paths:
        campaign = load_campaign(path, **options)
        if campaign.policy in found:
            raise StudyError(f"{path}: policy {campaign.policy!r} was already read from another file; rename one")
        found[campaign.policy] = campaign
    return found


def attempts_of(source: Campaign | pd.DataFrame) -> pd.DataFrame:
    """The attempts table of a campaign, or the table itself."""
    return source.attempts if isinstance(source, Campaign) else source


def summary_table(
    source: Campaign | pd.DataFrame | Sequence[Campaign | pd.DataFrame] | Mapping[str, Campaign | pd.DataFrame],
    by: str = "domain",
    *,
    k: int | None = None,
    system_errors: metrics.SystemErrors = "exclude",
    resamples: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """One row per policy and per value of `by`, plus a row "all" per policy: the columns of `metrics.summary_row`.

    `by` is an attempts column such as "domain" or "file"; "policy" gives the "all" rows only. A mapping renames the
    policies. Fractions, not percent.
    """
    tables = []
    for name, attempts in _named(source):
        if by != "policy" and by not in attempts:
            raise StudyError(f"cannot summarise by {by!r}; columns are {', '.join(attempts.columns)}")
        counts = metrics.task_counts(attempts, system_errors)
        if by == "policy":
            counts = counts.assign(domain="all")
        elif by != "domain":
            group = attempts.assign(uid=attempts.uid.astype(str)).groupby("uid")[by].first().astype(str)
            counts = counts.assign(domain=counts.uid.map(group))
        table = metrics.summary(counts, k, resamples=resamples, seed=seed)
        if by == "policy":
            table = table.iloc[[-1]]
        table.insert(0, "policy", name)
        tables.append(table.rename(columns={"domain": by}) if by not in ("domain", "policy") else table)
    out = pd.concat(tables, ignore_index=True)
    return out.drop(columns="domain") if by == "policy" else out


def curve_table(
    source: Campaign | pd.DataFrame | Sequence[Campaign | pd.DataFrame] | Mapping[str, Campaign | pd.DataFrame],
    *,
    system_errors: metrics.SystemErrors = "exclude",
    resamples: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """pass@k and pass^k curves: columns policy, k, metric, value, low, high."""
    tables = []
    for name, attempts in _named(source):
        table = metrics.curves(metrics.task_counts(attempts, system_errors), resamples=resamples, seed=seed)
        table.insert(0, "policy", name)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def both_treatments(source, *, k: int | None = None, resamples: int = 2000, seed: int = 0) -> pd.DataFrame:
    """The "all" rows under both treatments of system errors: column `treatment` is exclude or fail."""
    tables = []
    for treatment in ("exclude", "fail"):
        table = summary_table(source, "policy", k=k, system_errors=treatment, resamples=resamples, seed=seed)
        table.insert(1, "treatment", treatment)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything said about two policies on the same tasks; tables are DataFrames with fractions, not percent.

    differences: metric, base, other, difference, low, high, file_low, file_high, mde (`metrics.paired_differences`).
    domains: the same per domain, with columns domain, tasks. transition: tasks by pass-count class before and after.
    matrix: (k + 1, k + 1) tasks by exact count. ledger: one row a task with p, q, verdict. null: the ledger's counts
    beside a measured null. treatments: both treatments of system errors. curves: pass@k and pass^k of both.
    """

    base: str
    other: str
    k: int
    pairs: pd.DataFrame
    summary: pd.DataFrame
    differences: pd.DataFrame
    domains: pd.DataFrame
    mcnemar: metrics.McNemar
    transition: pd.DataFrame
    matrix: np.ndarray
    ledger: pd.DataFrame
    null: pd.DataFrame
    treatments: pd.DataFrame
    curves: pd.DataFrame


def compare(
    base: Campaign | pd.DataFrame,
    other: Campaign | pd.DataFrame,
    *,
    second_base: Campaign | pd.DataFrame | None = None,
    names: tuple[str, str] | None = None,
    k: int | None = None,
    fdr: float = 0.05,
    system_errors: metrics.SystemErrors = "exclude",
    resamples: int = 2000,
    seed: int = 0,
) -> Comparison:
    """Compare a second policy with a base on the same tasks, paired by task.

    `second_base` is another campaign of the base policy, the best null there is; without one the null is a
    split-half. `names` renames the two; `k` defaults to the base campaign's attempts per task. Raises `StudyError`
    when the task lists differ.
    """
    first, second = attempts_of(base), attempts_of(other)
    if names is None:
        names = (_name(base), _name(other))
        if names[0] == names[1]:
            names = (f"{names[0]} (first)", f"{names[1]} (second)")
    both = dict(zip(names, (first, second), strict=True))
    counts = [metrics.task_counts(attempts, system_errors) for attempts in (first, second)]
    k = k or (base.k if isinstance(base, Campaign) else int(counts[0].n.max()))
    pairs = metrics.paired_counts(*counts)
    options = {"resamples": resamples, "seed": seed}
    again = None if second_base is None else attempts_of(second_base)
    return Comparison(
        base=names[0],
        other=names[1],
        k=k,
        pairs=pairs,
        summary=summary_table(both, k=k, system_errors=system_errors, **options),
        differences=metrics.paired_differences(pairs, k, **options),
        domains=metrics.domain_differences(pairs, k, **options),
        mcnemar=metrics.mcnemar(
            metrics.observed_all(pairs.n0, pairs.k0, k), metrics.observed_all(pairs.n1, pairs.k1, k)
        ),
        transition=metrics.transition_table(pairs, k),
        matrix=metrics.count_matrix(pairs, k),
        ledger=metrics.ledger(pairs, fdr=fdr),
        null=metrics.ledger_against_null(first, second, again, names=names, system_errors=system_errors, fdr=fdr),
        treatments=both_treatments(both, k=k, **options),
        curves=curve_table(both, system_errors=system_errors, **options),
    )


CASE_OUTCOMES = ("wrong or extra effect", "only missing effects", "other failure", "system error", "all records match")


def case_table(
    source: Campaign | pd.DataFrame | Sequence[Campaign | pd.DataFrame] | Mapping[str, Campaign | pd.DataFrame],
    uid: str,
) -> pd.DataFrame:
    """Every attempt at one task by outcome (of `CASE_OUTCOMES`, worst to best): columns policy, attempt, outcome."""
    tables = []
    for name, attempts in _named(source):
        rows = attempts[attempts.uid.astype(str) == uid].sort_values("repetition")
        if rows.empty:
            raise StudyError(f"policy {name!r} has no attempt at {uid!r}; pick a uid of its campaign")
        choices = [rows.system_error, rows.passed, rows.wrong + rows.extra > 0, rows.missing > 0]
        named = [CASE_OUTCOMES[3], CASE_OUTCOMES[4], CASE_OUTCOMES[0], CASE_OUTCOMES[1]]
        outcome = np.select(choices, named, CASE_OUTCOMES[2])
        tables.append(pd.DataFrame({"policy": name, "attempt": rows.repetition.to_numpy(), "outcome": outcome}))
    return pd.concat(tables, ignore_index=True)


def compare_arms(
    base: Campaign | pd.DataFrame,
    arms: Mapping[str, Campaign | pd.DataFrame],
    *,
    k: int | None = None,
    resamples: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """Training arms (such as selected and whole pool) against one base, and each other arm against the first.

    Columns comparison, then those of `metrics.paired_differences`.
    """
    counts = {name: metrics.task_counts(attempts_of(arm)) for name, arm in arms.items()}
    start = metrics.task_counts(attempts_of(base))
    k = k or (base.k if isinstance(base, Campaign) else int(start.n.max()))
    first = next(iter(counts))
    plan = [(f"base -> {name}", start, other) for name, other in counts.items()]
    plan += [(f"{name} -> {first}", other, counts[first]) for name, other in counts.items() if name != first]
    tables = []
    for name, left, right in plan:
        table = metrics.paired_differences(metrics.paired_counts(left, right), k, resamples=resamples, seed=seed)
        table.insert(0, "comparison", name)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


_TRAINING_SUMMARY = [
    "arm", "updates", "groups_rolled_out", "groups_learned_from", "rollouts", "zero_variance_share",
    "all_pass_share", "all_fail_share", "rollouts_per_useful_group", "reward_first_fifth", "reward_last_fifth",
    "seconds",
]  # fmt: skip


def training_summary(training: pd.DataFrame) -> pd.DataFrame:
    """What each training arm spent and saw: one row an arm.

    From a training table (one row an update): updates, groups rolled out, groups learned from, rollouts, mean
    zero-variance, all-pass and all-fail share of the groups rolled out (weighted by groups), rollouts per useful group,
    mean reward of the first and of the last fifth of the updates, seconds. A useful group has rewards that differ and
    no system error; an update learns from no more of them than it has room for, so that fewer can be learned from. A
    table without `groups_rolled_out` counts as `groups` what was rolled out, and what was learned from is NaN. A table
    without updates gives no row.
    """
    rows = []
    for arm, table in training.groupby("arm", sort=False):
        table = table.sort_values("update")
        # Our trainers tell the groups they rolled out from those they learned from; other tables know one number only.
        both = "groups_rolled_out" in table
        weights = table.get("groups_rolled_out", table.groups).to_numpy(float)
        share = {
            name: float(np.average(table[name].to_numpy(float), weights=weights))
            for name in ("zero_variance_share", "all_pass_share", "all_fail_share")
        }
        fifth = max(1, len(table) // 5)
        lost = table.zero_variance_share.to_numpy(float)
        if "system_error_share" in table:
            lost = lost + table.system_error_share.fillna(0.0).to_numpy(float)
        useful = round(float((weights * (1 - lost)).sum()), 6)
        rows.append(
            {
                "arm": arm,
                "updates": len(table),
                "groups_rolled_out": int(weights.sum()),
                "groups_learned_from": int(table.groups.sum()) if both else np.nan,
                "rollouts": int(table.rollouts.sum()),
                **share,
                "rollouts_per_useful_group": float(table.rollouts.sum()) / useful if useful else np.inf,
                "reward_first_fifth": float(table.mean_reward.head(fifth).mean()),
                "reward_last_fifth": float(table.mean_reward.tail(fifth).mean()),
                "seconds": float(table.seconds.sum()),
            }
        )
    return pd.DataFrame(rows, columns=_TRAINING_SUMMARY)


def _named(source) -> list[tuple[str, pd.DataFrame]]:
    if isinstance(source, Mapping):
        return [(name, attempts_of(item)) for name, item in source.items()]
    found = []
    for item in [source] if isinstance(source, (Campaign, pd.DataFrame)) else source:
        if isinstance(item, Campaign):
            found.append((item.policy, item.attempts))
        else:
            found += [(str(name), rows) for name, rows in item.groupby("policy", observed=True)]
    return found


def _name(source: Campaign | pd.DataFrame) -> str:
    if isinstance(source, Campaign):
        return source.policy
    return "+".join(sorted(set(source.policy.astype(str))))
