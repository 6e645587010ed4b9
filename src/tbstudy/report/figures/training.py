"""Training: rewards and group shares per update, and what selecting the pool changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tbstudy.report import style
from tbstudy.report.figures.common import arm_legend, need
from tbstudy.report.style import PAPER_WIDTH, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _smooth(values: pd.Series, window: int = 5) -> pd.Series:
    return values.rolling(window, min_periods=1, center=True).mean()


def _arm_colours(arms: Sequence[str]) -> dict[str, str]:
    return {arm: style.CYCLE[index % len(style.CYCLE)] for index, arm in enumerate(arms)}


@styled
def training_curves(training: pd.DataFrame, *, window: int = 5) -> Figure:
    """Reward and group shares per update, one line an arm (thin: each update, thick: moving mean of `window`).

    Columns arm, update, mean_reward, zero_variance_share, all_pass_share, all_fail_share; system_error_share,
    truncated_share, entropy, kl and grad_norm are drawn when there. Without an update the figure says so.
    """
    if training.empty:
        figure, axis = new_figure(PAPER_WIDTH, 0.8)
        axis.set_axis_off()
        axis.text(0.5, 0.5, "No update recorded yet.", ha="center", va="center")
        return figure
    need(
        training,
        ["arm", "update", "mean_reward", "zero_variance_share", "all_pass_share", "all_fail_share"],
        "training",
    )
    panels = [
        ("Mean reward of the groups drawn", [("mean_reward", "-")], "reward"),
        ("Zero-variance groups", [("zero_variance_share", "-")], "share of groups"),
        (
            "All-pass (solid) and all-fail (dashed) groups",
            [("all_pass_share", "-"), ("all_fail_share", "--")],
            "share of groups",
        ),
    ]

    def given(*names: str) -> bool:
        return all(name in training and training[name].notna().any() for name in names)

    if given("entropy"):
        panels.append(("Entropy", [("entropy", "-")], "nats per token"))
    if given("kl") and training.kl.abs().max() > 0:
        panels.append(("KL, sampler to trainer", [("kl", "-")], "nats per token"))
    # A group is lost when one of its rollouts breaks; rollouts are truncated one by one.
    if given("system_error_share"):
        panels.append(("Groups lost to system errors", [("system_error_share", "-")], "share of groups"))
    if given("truncated_share"):
        panels.append(("Rollouts truncated", [("truncated_share", "-")], "share of rollouts"))
    if len(panels) % 2 and given("grad_norm"):
        panels.append(("Gradient norm before clipping", [("grad_norm", "-")], "norm"))
    rows = (len(panels) + 1) // 2
    figure, axes = new_figure(PAPER_WIDTH, 1.75 * rows + 0.3, nrows=rows, ncols=2, squeeze=False, sharex=True)
    colours = _arm_colours(list(dict.fromkeys(training.arm.astype(str))))
    for axis, (title, lines, unit) in zip(axes.flat, panels, strict=False):
        for arm, table in training.groupby("arm", sort=False):
            table = table.sort_values("update")
            for name, dash in lines:
                axis.plot(table["update"], table[name], color=colours[str(arm)], lw=0.6, alpha=0.35, ls=dash)
                axis.plot(table["update"], _smooth(table[name], window), color=colours[str(arm)], ls=dash)
        axis.set_title(title)
        axis.set_ylabel(unit)
        axis.grid(True, axis="y")
        if "share" in unit or unit == "reward":
            axis.set_ylim(0, None)
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    for column in range(2):
        shown = [axis for axis in axes[:, column] if axis.get_visible()]
        shown[-1].set_xlabel("update")
        shown[-1].tick_params(labelbottom=True)
    arm_legend(figure, colours)
    return figure


@styled
def pool_comparison(training: pd.DataFrame, effects: pd.DataFrame, *, window: int = 5) -> Figure:
    """Selected pool against whole pool: zero-variance share by rollouts spent, and the effect of training.

    The arms have the same number of updates. An update stops at its number of groups to learn from or at its number
    of rounds, so rollouts spent and groups learned from differ between the arms (`evaluation.training_summary`).

    `training` has columns arm, rollouts, zero_variance_share; `effects` is `evaluation.compare_arms` (comparison,
    metric, difference, low, high in fractions), whose "base -> arm" rows are drawn for every metric.
    """
    need(training, ["arm", "update", "rollouts", "zero_variance_share"], "training")
    need(effects, ["comparison", "metric", "difference", "low", "high"], "effects")
    arms = list(dict.fromkeys(training.arm.astype(str)))
    colours = _arm_colours(arms)
    figure, (left, right) = new_figure(PAPER_WIDTH, 2.6, ncols=2, width_ratios=[1.05, 1])
    for arm, table in training.groupby("arm", sort=False):
        table = table.sort_values("update")
        spent = table.rollouts.cumsum() / 1000
        left.plot(spent, table.zero_variance_share, color=colours[str(arm)], lw=0.6, alpha=0.35)
        left.plot(spent, _smooth(table.zero_variance_share, window), color=colours[str(arm)])
    left.set_xlabel("rollouts spent (thousands)")
    left.set_ylabel("zero-variance share of groups")
    left.set_ylim(0, None)
    left.grid(True, axis="y")
    left.set_title("Groups without a signal")
    metrics = list(dict.fromkeys(effects.metric))
    for index, arm in enumerate(arms):
        rows = effects[effects.comparison == f"base -> {arm}"].set_index("metric").reindex(metrics)
        y = np.arange(len(metrics)) + (index - (len(arms) - 1) / 2) * 0.28
        value = 100 * rows.difference.to_numpy(float)
        error = np.abs(100 * rows[["low", "high"]].to_numpy(float).T - value)
        right.errorbar(value, y, xerr=error, fmt="o", ms=4, color=colours[arm], capsize=2, lw=1.2)
    right.axvline(0, color=style.GREY, lw=0.8)
    right.set_yticks(range(len(metrics)), metrics)
    right.invert_yaxis()
    right.set_xlabel("change from base (pp, 95 %)")
    right.set_title("Effect on held-out tasks")
    right.grid(True, axis="x")
    arm_legend(figure, colours)
    return figure
