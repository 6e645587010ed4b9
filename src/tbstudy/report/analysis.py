"""The standard tables and figures of one or more campaigns, as `tbstudy analyse` makes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tbstudy.errors import StudyError
from tbstudy.evaluation.anatomy import anatomy
from tbstudy.evaluation.api import (
    Campaign,
    Comparison,
    attempts_of,
    both_treatments,
    compare,
    curve_table,
    summary_table,
)
from tbstudy.evaluation.cost import attempt_costs, cost_summary, load_prices, pareto_frontier, token_table
from tbstudy.evaluation.metrics import SystemErrors
from tbstudy.report import figures
from tbstudy.report.study import StudyReport
from tbstudy.report.tables import Table, percent, with_interval
from tbstudy.selection import PoolManifest

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def summary_as_table(summary: pd.DataFrame, note: str = "", caption: str = "Scores, 95 % intervals") -> Table:
    """`evaluation.summary_table` for print: one cell a metric with its interval, in percent."""
    k = "/".join(str(value) for value in sorted(set(summary.k)))
    groups = [name for name in summary.columns[: list(summary.columns).index("tasks")]]
    data = summary[[*groups, "tasks", "attempts", "system_errors"]].copy()
    data["pass_1"] = with_interval(summary, "pass_1", "pass_1_low", "pass_1_high")
    data["pass_at_k"] = with_interval(summary, "pass_at_k", "pass_at_k_low", "pass_at_k_high")
    data["pass_hat_k"] = with_interval(summary, "pass_hat_k", "pass_hat_k_low", "pass_hat_k_high")
    data["observed"] = summary.observed_k_k
    data["observed_share"] = with_interval(summary, "observed_share", "observed_low", "observed_high")
    labels = {
        "policy": "Policy",
        "treatment": "System errors are",
        "domain": "Domain",
        "tasks": "Tasks",
        "attempts": "Attempts",
        "system_errors": "System errors",
        "pass_1": "pass@1 (%)",
        "pass_at_k": f"pass@{k} (%)",
        "pass_hat_k": f"pass^{k} (%)",
        "observed": f"Passed {k} of {k}",
        "observed_share": f"Observed {k}/{k} (%)",
    }
    return Table(data, caption, labels=labels, note=note)


def differences_as_table(differences: pd.DataFrame, caption: str, note: str = "") -> Table:
    """`Comparison.differences`, `.domains` or `compare_arms` for print: change with both intervals, MDE."""
    leading = [name for name in ("comparison", "domain", "tasks") if name in differences]
    data = differences[[*leading, "metric"]].copy()
    data["base"], data["other"] = differences.base, differences.other
    data["change"] = with_interval(differences, "difference", "low", "high", signed=True)
    data["by_file"] = [
        "" if pd.isna(low) else f"[{100 * low:+.1f}, {100 * high:+.1f}]"
        for low, high in zip(differences.file_low, differences.file_high, strict=True)
    ]
    data["mde"] = differences.mde
    labels = {
        "comparison": "Comparison",
        "domain": "Domain",
        "tasks": "Tasks",
        "metric": "Metric",
        "base": "Before (%)",
        "other": "After (%)",
        "change": "Change (pp) [95 % by task]",
        "by_file": "95 % by file",
        "mde": "Detectable (pp)",
    }
    formats = {"base": percent(), "other": percent(), "mde": percent()}
    return Table(data, caption, formats=formats, labels=labels, note=note)


def transition_as_table(comparison: Comparison) -> Table:
    """Tasks by pass-count class before and after."""
    data = comparison.transition.reset_index()
    data.columns = ["before", *(str(name) for name in comparison.transition.columns)]
    data["before"] = data.before.astype(str)
    labels = {"before": f"Passes before ({comparison.base})"} | {
        name: f"After: {name}" for name in data.columns if name != "before"
    }
    return Table(data, f"Tasks by passes of {comparison.k}: {comparison.base} to {comparison.other}", labels=labels)


def ledger_as_table(comparison: Comparison, fdr: float = 0.05) -> Table:
    """Tasks gained and lost beside the measured null."""
    labels = {
        "comparison": "Comparison",
        "null": "Null",
        "attempts_per_task": "Attempts a task",
        "gained": "Gained",
        "lost": "Lost",
        "up": "Passes more often",
        "down": "Passes less often",
    }
    test = comparison.mcnemar
    note = (
        f"Gained and lost: Fisher exact by task, false-discovery rate {100 * fdr:g} %. Exact McNemar on observed "
        f"{comparison.k}/{comparison.k}: {test.gained} gained, {test.lost} lost, p = {test.p_value:.2g}."
    )
    data = comparison.null.assign(null=np.where(comparison.null.null, "yes", ""))
    return Table(data, "Tasks gained and lost, beside a policy that did not change", labels=labels, note=note)


def anatomy_as_table(table: pd.DataFrame) -> Table:
    """Failure anatomy for print, shares in percent."""
    shares = [name for name in table.columns if name not in ("policy", "attempts", "failed")]
    labels = {name: f"{figures.pretty(name)} (%)" for name in shares}
    labels |= {"policy": "Policy", "attempts": "Clean attempts", "failed": "Failed"}
    note = (
        "Terminated cleanly: share of failures. Wrong field, extra, missing, nothing recorded: shares of those, "
        "overlapping. Signatures: shares of failures. Definitions in docs/metrics.md."
    )
    return Table(table, "How attempts fail", formats=dict.fromkeys(shares, percent()), labels=labels, note=note)


def cost_as_table(campaigns: Mapping[str, Campaign], prices: str | Path, seed: int = 0) -> tuple[Table, pd.DataFrame]:
    """Cost per success and per reliable task of every campaign, and the points for `figures.cost_frontier`."""
    table = load_prices(prices)
    rows = []
    for name, campaign in campaigns.items():
        total = attempt_costs(campaign.attempts, table, model=name if name in table.models else None).total
        found = cost_summary(campaign.attempts, total, campaign.k, seed=seed)
        per_success, per_task = found["cost_per_success"], found["cost_per_reliable_task"]
        scores = summary_table(campaign, "policy", seed=seed)
        rows.append(
            {
                "policy": name,
                "pass_1": 100 * scores.pass_1.iloc[0],
                "campaign_cost": found["campaign_cost"],
                "cost": per_success.value,
                "success_interval": f"[{per_success.low:.4g}, {per_success.high:.4g}]",
                "reliable_tasks": found["reliable_tasks"],
                "cost_per_reliable_task": per_task.value,
                "reliable_interval": f"[{per_task.low:.4g}, {per_task.high:.4g}]",
            }
        )
    data = pd.DataFrame(rows)
    data["frontier"] = np.where(pareto_frontier(data.cost, data.pass_1), "yes", "")
    labels = {
        "policy": "Policy",
        "pass_1": "pass@1 (%)",
        "campaign_cost": "Campaign (USD)",
        "cost": "Per success (USD)",
        "success_interval": "95 %",
        "reliable_tasks": "Reliable tasks",
        "cost_per_reliable_task": "Per reliable task (USD)",
        "reliable_interval": "95 % ",
        "frontier": "On the frontier",
    }
    formats = {"pass_1": ".1f", "campaign_cost": ",.2f", "cost": ".4g", "cost_per_reliable_task": ".4g"}
    note = f"Prices of {table.date}: {table.source}. Intervals: ratio bootstrap by task."
    return Table(data, "Cost", formats=formats, labels=labels, note=note), data[["policy", "pass_1", "cost"]]


def tokens_as_table(campaigns: Mapping[str, Campaign]) -> Table:
    """Tokens by policy and role."""
    data = pd.concat(
        [token_table(campaign.attempts).assign(policy=name) for name, campaign in campaigns.items()], ignore_index=True
    )
    labels = {
        "policy": "Policy",
        "role": "Role",
        "attempts": "Attempts with usage",
        "input": "Input tokens",
        "cached_input": "of them cached",
        "output": "Output tokens",
        "per_attempt": "Tokens an attempt",
    }
    formats = dict.fromkeys(("input", "cached_input", "output", "per_attempt"), ",.0f")
    return Table(data, "Tokens", formats=formats, labels=labels, note="A role that no record states is not listed.")


def bands_as_table(summary: pd.DataFrame) -> Table:
    """`difficulty.band_summary` for print."""
    data = summary.assign(
        band=[figures.pretty(name) for name in summary.band], keep=np.where(summary.keep, "kept", "left out")
    )
    labels = {
        "band": "Band",
        "low": "From",
        "high": "To",
        "keep": "Pool",
        "tasks": "Tasks",
        "share": "Share (%)",
        "mean": "Mean pass rate (%)",
    }
    formats = {"low": ".2f", "high": ".2f", "share": percent(), "mean": percent()}
    return Table(data, "Tasks by difficulty band", formats=formats, labels=labels)


def funnel_as_table(pool: PoolManifest) -> Table:
    """The gates of the selection for print."""
    labels = {"name": "Gate", "entered": "Tasks in", "dropped": "Dropped", "left": "Left"}
    counts = Counter(task.split for task in pool.tasks)
    note = f"{counts['train']} tasks to train on, {counts['test']} held out, seed {pool.seed}."
    return Table(pool.funnel_table(), "From candidates to the pool", labels=labels, note=note)


def training_as_table(summary: pd.DataFrame) -> Table:
    """`evaluation.training_summary` for print."""
    shares = ("zero_variance_share", "all_pass_share", "all_fail_share")
    labels = {
        "arm": "Arm",
        "updates": "Updates",
        "groups_rolled_out": "Groups rolled out",
        "groups_learned_from": "Groups learned from",
        "rollouts": "Rollouts",
        "zero_variance_share": "Zero variance (%)",
        "all_pass_share": "All pass (%)",
        "all_fail_share": "All fail (%)",
        "rollouts_per_useful_group": "Rollouts a useful group",
        "reward_first_fifth": "Reward, first fifth",
        "reward_last_fifth": "Reward, last fifth",
        "seconds": "Seconds",
    }
    formats = dict.fromkeys(shares, percent()) | {
        "groups_learned_from": ",.0f",
        "rollouts_per_useful_group": ".1f",
        "reward_first_fifth": ".3f",
        "reward_last_fifth": ".3f",
        "seconds": ",.0f",
    }
    note = "Shares are of the groups rolled out. A useful group has rewards that differ and no system error."
    return Table(summary, "What training spent and saw", formats=formats, labels=labels, note=note)


def comparison_heatmap(comparison: Comparison) -> Figure:
    """`figures.domain_heatmap` of a comparison: pass@1 by domain, and the change of every metric."""
    domains = [name for name in dict.fromkeys(comparison.summary.domain) if name != "all"] + ["all"]
    values = 100 * comparison.summary.pivot(index="policy", columns="domain", values="pass_1")
    changes = 100 * comparison.domains.pivot(index="metric", columns="domain", values="difference")
    order = list(dict.fromkeys(comparison.domains.metric))
    return figures.domain_heatmap(
        values.loc[[comparison.base, comparison.other], domains],
        changes.loc[order, domains],
        labels={"all": "All tasks"},
    )


def token_points(campaigns: Mapping[str, Campaign]) -> pd.DataFrame:
    """Points for `figures.cost_frontier` without prices: tokens of the policy per success, and pass@1 in percent."""
    rows = []
    for name, campaign in campaigns.items():
        attempts = campaign.attempts
        tokens = (attempts.policy_input_tokens + attempts.policy_output_tokens).sum()
        passed = (attempts.passed & ~attempts.system_error).sum()
        score = 100 * summary_table(campaign, "policy", resamples=10).pass_1.iloc[0]
        rows.append({"policy": name, "cost": tokens / passed if passed else np.nan, "pass_1": score})
    return pd.DataFrame(rows)


def journey_of(
    uid: str,
    *,
    probe: Campaign | pd.DataFrame,
    pool: PoolManifest,
    group: Sequence[bool] | None = None,
    base: Campaign | pd.DataFrame | None = None,
    trained: Campaign | pd.DataFrame | None = None,
    note: str = "",
) -> figures.TaskJourney:
    """One task's way through the stages from their outputs; `group` holds the outcomes of one of its training groups.

    Raises `StudyError` when the probe has no clean attempt at the task.
    """

    def outcomes(source: Campaign | pd.DataFrame | None) -> list[bool] | None:
        if source is None:
            return None
        rows = attempts_of(source)
        rows = rows[(rows.uid.astype(str) == uid) & ~rows.system_error.astype(bool)].sort_values("repetition")
        return rows.passed.astype(bool).tolist() or None

    probed = outcomes(probe)
    if probed is None:
        raise StudyError(f"the probe has no clean attempt at {uid!r}; pick a uid of the band table")
    found = next((task for task in (*pool.tasks, *pool.outside) if task.uid == uid), None)
    where = {"train": "in the pool,\nto train on", "test": "in the pool,\nheld out", "outside": "its band is left out"}
    said = where[found.split] if found else "stopped by a gate before\nthe bands"
    return figures.TaskJourney(uid, probed, said, group, outcomes(base), outcomes(trained), note)


def analyse(
    campaigns: Mapping[str, Campaign],
    *,
    second_base: Campaign | None = None,
    prices: str | Path | None = None,
    out: str | Path | None = None,
    system_errors: SystemErrors = "exclude",
    seed: int = 0,
) -> dict[str, Table]:
    """Every standard table of the campaigns, by name; with `out`, written there with the figures (`StudyReport`).

    The first campaign is the base that each other one is compared with. `second_base` is another campaign of the
    base.
    """
    names = list(campaigns)
    base = campaigns[names[0]]
    k = base.k
    attempts = {name: campaign.attempts for name, campaign in campaigns.items()}
    label = "; ".join(f"{name}: {campaign.coverage.label()}" for name, campaign in campaigns.items())
    summary = summary_table(attempts, k=k, system_errors=system_errors, seed=seed)
    failures = pd.concat([anatomy(table).assign(policy=name) for name, table in attempts.items()], ignore_index=True)
    tables = {"summary": summary_as_table(summary, f"{label}. System errors: {system_errors}.")}
    if summary.system_errors.any():
        both = both_treatments(attempts, k=k, seed=seed)
        tables["treatments"] = summary_as_table(both, "", "System errors left out, and counted as failures")
    drawn = {"pass_curves": (figures.pass_curves(curve_table(attempts, seed=seed)), "pass@k and pass^k.")}
    options = {"k": k, "system_errors": system_errors, "seed": seed}
    for name in names[1:]:
        suffix = "" if len(names) == 2 else f"_{names.index(name)}"
        found = compare(base, campaigns[name], second_base=second_base, names=(names[0], name), **options)
        title = f"{names[0]} to {name}"
        tables[f"differences{suffix}"] = differences_as_table(found.differences, f"Change, {title}")
        tables[f"domains{suffix}"] = differences_as_table(found.domains, f"Change by domain, {title}")
        tables[f"transition{suffix}"] = transition_as_table(found)
        tables[f"ledger{suffix}"] = ledger_as_table(found)
        drawn[f"transition{suffix}"] = (figures.transition_heatmap(found.matrix, names[0], name), f"Passes, {title}.")
        drawn[f"domains{suffix}"] = (figures.dumbbell(found.summary, names[0], name), f"pass@1 by domain, {title}.")
    tables["failures"] = anatomy_as_table(failures)
    drawn["failures"] = (figures.failure_bars(failures), "How attempts fail.")
    tables["tokens"] = tokens_as_table(campaigns)
    if prices is not None:
        tables["cost"], cost = cost_as_table(campaigns, prices, seed)
        arrow = (names[0], names[1]) if len(names) == 2 else None
        drawn["cost"] = (figures.cost_frontier(cost, arrow=arrow), "Cost per success against pass@1.")
    if out is not None:
        report = StudyReport(out, title=" and ".join(names), intro=label)
        for name, table in tables.items():
            report.table(name, table)
        for name, (figure, caption) in drawn.items():
            report.figure(name, figure, caption)
        report.facts(seeds={"bootstrap": seed}, counts={"attempts": {n: len(a) for n, a in attempts.items()}})
    return tables
