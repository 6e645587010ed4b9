"""Many policies: scores by domain with changes, cost against score with the Pareto frontier."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tbstudy.report import style
from tbstudy.report.figures.common import need, pretty
from tbstudy.report.style import PAPER_WIDTH, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@styled
def domain_heatmap(
    values: pd.DataFrame,
    changes: pd.DataFrame | None = None,
    *,
    labels: Mapping[str, str] | None = None,
    groups: Mapping[str, str] | None = None,
    unit: str = "pass@1 (percent)",
) -> Figure:
    """Scores by policy (rows) and domain (columns), in percent, and under them changes in percentage points.

    `values`: index policy, columns domains. `changes`: index what changed, the same columns; a cell is a number (pp),
    or "rose" / "fell" where only the direction is known. A missing cell of either is hatched and says "n.s." (not
    stated). `groups` maps a policy to its group, which is separated by a line.
    """
    from matplotlib.colors import Normalize
    from matplotlib.patches import Rectangle

    rows, columns = values.shape
    below = 0 if changes is None else len(changes)
    height = 0.205 * rows + (0.26 * below + 0.35 if below else 0) + 0.75
    ratios = [rows, below * 1.25] if below else None
    figure, found = new_figure(PAPER_WIDTH, height, nrows=2 if below else 1, height_ratios=ratios, squeeze=False)
    names = [(labels or {}).get(name, pretty(name)) for name in values.columns]

    def hatched(axis: Axes, x: int, y: int) -> None:
        axis.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, fc="white", ec=style.LIGHT, hatch="////", lw=0))
        axis.text(x, y, "n.s.", ha="center", va="center", fontsize=6.5, color=style.INK)

    def grid(axis: Axes, height: int) -> None:
        axis.set_xticks(range(columns), names)
        axis.set_xlim(-0.5, columns - 0.5)
        axis.set_ylim(height - 0.5, -0.5)
        axis.tick_params(length=0)
        for spine in axis.spines.values():
            spine.set_visible(False)

    top = found[0][0]
    image = top.imshow(values.to_numpy(float), cmap="cividis", norm=Normalize(0, 100), aspect="auto")
    for y in range(rows):
        for x in range(columns):
            value = values.iat[y, x]
            if pd.isna(value):
                hatched(top, x, y)
            else:
                top.text(
                    x,
                    y,
                    f"{value:.1f}",
                    ha="center",
                    va="center",
                    fontsize=6.5,
                    color="white" if value < 55 else style.INK,
                )
    top.set_yticks(range(rows), list(values.index))
    grid(top, rows)
    top.xaxis.tick_top()
    group = [(groups or {}).get(name, "") for name in values.index]
    for y in range(1, rows):
        if group[y] != group[y - 1]:
            top.axhline(y - 0.5, color="white", lw=2.5)
    figure.colorbar(image, ax=top, label=unit, fraction=0.025, pad=0.01, aspect=30)
    if below:
        axis = found[1][0]
        limit = max(
            [abs(float(v)) for v in changes.to_numpy().ravel() if isinstance(v, (int, float)) and pd.notna(v)] or [1.0]
        )
        for y in range(below):
            for x in range(columns):
                value = changes.iat[y, x]
                if value is None or (isinstance(value, float) and np.isnan(value)):
                    hatched(axis, x, y)
                    continue
                known = not isinstance(value, str)
                up = value > 0 if known else value == "rose"
                strength = 0.25 + 0.6 * min(1.0, abs(value) / limit) if known else 0.25
                colour = style.BLUE if up else style.VERMILION
                axis.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, fc=colour, alpha=strength, ec="white", lw=1.2))
                text = f"{value:+.1f} pp" if known else f"{'▲' if up else '▼'} {value}"
                ink = "white" if strength > 0.6 else style.INK
                axis.text(x, y, text, ha="center", va="center", fontsize=6.5, color=ink)
        axis.set_yticks(range(below), list(changes.index))
        grid(axis, below)
        axis.set_xticks([])
    return figure


@styled
def cost_frontier(
    points: pd.DataFrame, *, arrow: tuple[str, str] | None = None, cost_label: str = "cost per success (USD)"
) -> Figure:
    """Cost against pass@1 with the Pareto frontier ringed and an arrow from one policy to another.

    `points`: columns policy, cost, pass_1 (percent), group, derived (bool; hollow marks: the cost is computed here).
    A policy without a cost is listed under the figure, not guessed.
    """
    from tbstudy.evaluation.cost import pareto_frontier

    need(points, ["policy", "cost", "pass_1"], "the cost table")
    known = points[np.isfinite(points.cost.astype(float)) & points.pass_1.notna()].reset_index(drop=True)
    need(known, [], "the part of the cost table with finite costs")
    unknown = [name for name in points.policy if name not in set(known.policy)]
    figure, axes = new_figure(PAPER_WIDTH, 3.4)
    groups = list(dict.fromkeys(known.get("group", pd.Series(["model"] * len(known)))))
    markers = dict(zip(groups, ("o", "s", "D", "^"), strict=False))
    derived = known.get("derived", pd.Series(False, index=known.index)).fillna(False).astype(bool)
    seen: set[str] = set()
    for index, row in known.iterrows():
        group = row.get("group", "model")
        colour = style.CYCLE[groups.index(group)]
        axes.plot(
            row.cost, row.pass_1, markers[group], color=colour, mfc="white" if derived[index] else colour, ms=5.5,
            label=pretty(group) if len(groups) > 1 and group not in seen and not derived[index] else None, zorder=3,
        )  # fmt: skip
        if not derived[index]:
            seen.add(group)
    frontier = known[pareto_frontier(known.cost, known.pass_1)].sort_values("cost")
    axes.plot(
        frontier.cost,
        frontier.pass_1,
        "o",
        ms=10.5,
        mfc="none",
        mec=style.INK,
        mew=1.0,
        label="Pareto frontier",
        zorder=4,
    )
    axes.step(frontier.cost, frontier.pass_1, where="post", color=style.INK, lw=0.8, ls=":", zorder=1)
    if derived.any():
        axes.plot([], [], "o", color=style.GREY, mfc="white", label="cost derived")
    if arrow and set(arrow) <= set(known.policy):
        start, end = (known[known.policy == name].iloc[0] for name in arrow)
        axes.annotate(
            "", (end.cost, end.pass_1), (start.cost, start.pass_1),
            arrowprops={"arrowstyle": "-|>", "color": style.INK, "lw": 1.1, "shrinkA": 5, "shrinkB": 5},
        )  # fmt: skip
    _label_points(axes, known, frontier)
    axes.set_xscale("log")
    span = max(known.cost.max() / known.cost.min(), 1.5)
    axes.set_xlim(known.cost.min() / span**0.12, known.cost.max() * span**0.28)
    ticks = _log_ticks(*axes.get_xlim())
    axes.set_xticks(ticks, [f"{tick:,.10g}" for tick in ticks])
    axes.minorticks_off()
    axes.margins(y=0.14)
    axes.set_xlabel(f"{cost_label}, log scale")
    axes.set_ylabel("pass@1 (percent)")
    axes.grid(True)
    axes.set_axisbelow(True)
    figure.legend(loc="outside upper center", ncols=5, columnspacing=1.4, handletextpad=0.3)
    if unknown:
        figure.supxlabel("Cost not stated: " + ", ".join(unknown), fontsize=6.5, x=0.01, ha="left", wrap=True)
    return figure


def _log_ticks(low: float, high: float) -> list[float]:
    steps = (1, 1.5, 2, 3, 5, 7)
    ticks = [step * 10.0**power for power in range(-6, 7) for step in steps]
    return [round(tick, 10) for tick in ticks if low <= tick <= high]


def _label_points(axes: Axes, known: pd.DataFrame, frontier: pd.DataFrame) -> None:
    """Names beside their points, on the side where no other name, point or step of the frontier is (in log cost)."""

    from matplotlib.patheffects import withStroke

    x = np.log(known.cost.to_numpy(float))
    y = known.pass_1.to_numpy(float)
    width, height = max(np.ptp(x), 1e-9), max(np.ptp(y), 1e-9)
    taken: list[tuple[float, float, float, float]] = [
        (a, b, 0.012 * width, 0.02 * height) for a, b in zip(x, y, strict=True)
    ]
    steps = frontier.assign(x=np.log(frontier.cost))[["x", "pass_1"]].to_numpy(float)
    for (x0, y0), (x1, y1) in zip(steps, steps[1:], strict=False):
        taken.append(((x0 + x1) / 2, y0, (x1 - x0) / 2, 0.004 * height))
        taken.append((x1, (y0 + y1) / 2, 0.002 * width, (y1 - y0) / 2))
    sides = {1: ("left", "bottom"), 0: ("center", "center"), -1: ("right", "top")}
    compass = [(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1)]
    places = [(9 * right, 9 * up, sides[right][0], sides[up][1]) for right, up in compass]
    for index in np.argsort(-y, kind="stable"):
        name = known.policy[index]
        half_w, half_h = 0.0087 * width * len(name), 0.024 * height
        best = None
        for dx, dy, horizontal, vertical in places:
            cx = x[index] + dx * 0.0033 * width + {"left": half_w, "right": -half_w, "center": 0.0}[horizontal]
            cy = y[index] + dy * 0.0065 * height + {"bottom": half_h, "top": -half_h, "center": 0.0}[vertical]
            overlap = sum(
                max(0.0, half_w + w - abs(cx - a)) * max(0.0, half_h + h - abs(cy - b)) for a, b, w, h in taken
            )
            if best is None or overlap < best[0]:
                best = (overlap, dx, dy, horizontal, vertical, cx, cy)
        _, dx, dy, horizontal, vertical, cx, cy = best
        taken.append((cx, cy, half_w, half_h))
        axes.annotate(
            name, (known.cost[index], known.pass_1[index]), (dx, dy), textcoords="offset points", fontsize=6.8,
            ha=horizontal, va=vertical, zorder=5, path_effects=[withStroke(linewidth=2.0, foreground="white")],
        )  # fmt: skip
