"""Base and trained policy: transitions, domains, curves over k, failures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tbstudy.errors import StudyError
from tbstudy.report import style
from tbstudy.report.figures.common import need, policy_colours, pretty
from tbstudy.report.style import PAPER_WIDTH, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@styled
def transition_heatmap(matrix: np.ndarray, base: str = "base", other: str = "trained") -> Figure:
    """Tasks by pass count before and after. `matrix` is `metrics.count_matrix`, shape (k + 1, k + 1), [before,
    after].

    Above the diagonal a task passes more often after training; the margins hold the counts at 0 and at k.
    """
    from matplotlib.colors import LogNorm

    matrix = np.asarray(matrix)
    k = matrix.shape[0] - 1
    figure, axes = new_figure(3.9, 3.3)
    shown = np.where(matrix.T > 0, matrix.T, np.nan)
    top = max(2, int(matrix.max()))
    image = axes.imshow(shown, origin="lower", cmap="cividis_r", norm=LogNorm(1, top), aspect="equal")
    axes.plot([-0.5, k + 0.5], [-0.5, k + 0.5], color=style.GREY, lw=0.8, ls=":")
    for before in (0, k):
        for after in (0, k):
            count = int(matrix[before, after])
            if count:
                ink = "white" if np.log(count) > 0.55 * np.log(top) else style.INK
                axes.text(before, after, str(count), ha="center", va="center", fontsize=5.5, color=ink)
    ticks = np.unique(np.linspace(0, k, 5).round().astype(int))
    axes.set_xticks(ticks)
    axes.set_yticks(ticks)
    axes.set_xlabel(f"passes of {k} before ({base})")
    axes.set_ylabel(f"passes of {k} after ({other})")
    more, fewer = int(np.triu(matrix, 1).sum()), int(np.tril(matrix, -1).sum())
    axes.set_title(f"{more} tasks pass more often, {fewer} less often,\n{matrix.sum() - more - fewer} as often")
    bar = figure.colorbar(image, ax=axes, label="tasks", shrink=0.8)
    marks = [value for value in (1, 2, 5, 10, 20, 50, 100, 200, 500) if value <= top]
    bar.set_ticks(marks, labels=[str(value) for value in marks])
    bar.minorticks_off()
    for spine in ("top", "right"):
        axes.spines[spine].set_visible(True)
    return figure


@styled
def dumbbell(
    summary: pd.DataFrame,
    base: str,
    other: str,
    *,
    metric: str = "pass_1",
    label: str = "pass@1",
    labels: Mapping[str, str] | None = None,
) -> Figure:
    """A metric per domain for two policies, with intervals, joined by a line.

    `summary` is `evaluation.summary_table` of both (columns policy, domain, `metric`, `metric`_low, `metric`_high;
    for observed k/k use metric "observed_share", bounds observed_low and observed_high).
    """
    stem = metric.removesuffix("_share")
    need(summary, ["policy", "domain", "tasks", metric, f"{stem}_low", f"{stem}_high"], "the summary")
    domains = [name for name in dict.fromkeys(summary.domain) if name != "all"]
    if "all" in set(summary.domain):
        domains.append("all")
    figure, axes = new_figure(PAPER_WIDTH * 0.75, 0.34 * len(domains) + 1.0)
    rows = {name: summary[summary.policy == name].set_index("domain").reindex(domains) for name in (base, other)}
    for name, table in rows.items():
        if table[metric].isna().all():
            raise StudyError(f"the summary has no rows for policy {name!r}; it has {sorted(set(summary.policy))}")
    y = np.arange(len(domains))
    axes.hlines(y, 100 * rows[base][metric], 100 * rows[other][metric], color=style.GREY, lw=1.0, zorder=1)
    for name, colour, offset in ((base, style.BASE, -0.13), (other, style.TRAINED, 0.13)):
        table = rows[name]
        axes.hlines(
            y + offset, 100 * table[f"{stem}_low"], 100 * table[f"{stem}_high"], color=colour, lw=1.1, alpha=0.8
        )
        axes.plot(100 * table[metric], y, "o", color=colour, ms=5.5, label=name, zorder=3)
    axes.set_yticks(
        y, ["all tasks" if name == "all" else f"{(labels or {}).get(name, pretty(name))}" for name in domains]
    )
    for place, tasks in zip(y, rows[base].tasks, strict=True):
        axes.text(
            1.01, place, f"{tasks:.0f}", transform=axes.get_yaxis_transform(), va="center", fontsize=7, color=style.INK
        )
    axes.text(1.01, -0.85, "tasks", transform=axes.get_yaxis_transform(), va="center", fontsize=7, color=style.INK)
    if domains[-1] == "all" and len(domains) > 1:
        axes.axhline(len(domains) - 1.5, color=style.LIGHT, lw=0.8)
    axes.set_ylim(len(domains) - 0.45, -0.75)
    axes.set_xlim(0, 100)
    axes.set_xlabel(f"{label} (percent, 95 % intervals)")
    axes.grid(True, axis="x")
    axes.set_axisbelow(True)
    figure.legend(loc="outside upper center", ncols=2)
    return figure


@styled
def pass_curves(curves: pd.DataFrame) -> Figure:
    """pass@k (up) and pass^k (down) of each policy with intervals. `curves` is `evaluation.curve_table`."""
    need(curves, ["policy", "k", "metric", "value", "low", "high"], "the curves")
    figure, axes = new_figure(PAPER_WIDTH * 0.7, max(2.8, 0.16 * curves.policy.nunique() + 0.8))
    policies = list(dict.fromkeys(curves.policy.astype(str)))
    colours = policy_colours(policies)
    for (policy, metric), table in curves.groupby(["policy", "metric"], sort=False):
        up = metric == "pass@k"
        dash, marker = ("-", "o") if up else ("--", "s")
        colour = colours[str(policy)]
        axes.fill_between(table.k, 100 * table.low, 100 * table.high, color=colour, alpha=0.15, lw=0)
        axes.plot(table.k, 100 * table.value, dash, marker=marker, ms=2.6, color=colour, label=policy if up else None)
    last = int(curves.k.max())
    axes.set_xticks(np.unique(np.linspace(1, last, min(last, 6)).round().astype(int)))
    axes.set_xlabel("k attempts")
    axes.set_ylabel("tasks (percent)")
    axes.set_ylim(0, 100)
    axes.grid(True, axis="y")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes.set_title("Solved once (pass@k, solid), every time (pass^k, dashed)")
    return figure


@styled
def failure_bars(anatomy: pd.DataFrame) -> Figure:
    """What failures look like, per policy: clean termination and state differences (overlapping), and signatures.

    `anatomy` is `evaluation.anatomy`; the fields of the left panel are shares of cleanly terminated failures.
    """
    left_names = {
        "terminated_cleanly": "terminated cleanly\n(share of failures)",
        "wrong_field": "wrong field",
        "extra_effect": "extra effect",
        "missing_effect": "missing effect",
    }
    right_names = {
        "tool_usage": "tool usage",
        "wrong_update": "wrong state update",
        "incomplete": "incomplete",
        "no_state_change": "no state change",
    }
    need(anatomy, ["policy", *left_names, *right_names], "the anatomy table")
    policies = list(anatomy.policy.astype(str))
    colours = policy_colours(policies)
    figure, axes = new_figure(PAPER_WIDTH, max(2.4, 0.56 * len(policies) + 1.0), ncols=2)
    for axis, names, title in (
        (axes[0], left_names, "State of cleanly terminated failures"),
        (axes[1], right_names, "Signature of every failure"),
    ):
        thick = 0.8 / len(policies)
        for index, policy in enumerate(policies):
            row = anatomy.iloc[index]
            value = np.array([100 * row[name] if pd.notna(row[name]) else np.nan for name in names], dtype=float)
            y = np.arange(len(names)) + (index - (len(policies) - 1) / 2) * thick
            axis.barh(y, value, height=thick * 0.92, color=colours[policy], label=policy if axis is axes[0] else None)
            for place, number in zip(y, value, strict=True):
                text = "not stated" if np.isnan(number) else f"{number:.1f}"
                axis.text(0 if np.isnan(number) else number, place, f" {text}", va="center", fontsize=6.5)
        axis.set_yticks(range(len(names)), list(names.values()))
        axis.invert_yaxis()
        axis.set_xlim(0, 108)
        axis.set_xlabel("percent")
        axis.set_title(title)
    if len(policies) > 1:
        figure.legend(loc="outside lower center", ncols=min(5, len(policies)))
    return figure
