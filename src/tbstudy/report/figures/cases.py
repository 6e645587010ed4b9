"""One task: its attempts as strips, and its way through the six stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tbstudy.difficulty import DEFAULT_BANDS, Band, assign, posterior
from tbstudy.errors import StudyError
from tbstudy.evaluation.metrics import fisher_p
from tbstudy.report import style
from tbstudy.report.figures.common import band_colour, need, pretty, readable
from tbstudy.report.style import PAPER_WIDTH, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@styled
def case_strips(
    attempts: pd.DataFrame,
    *,
    outcomes: Sequence[str] | None = None,
    title: str = "",
    order_stated: bool = True,
) -> Figure:
    """The attempts of each policy on one task as a strip of cells, one colour and letter an outcome.

    `attempts`: columns policy, attempt (0, 1, ...), outcome. `outcomes` lists them from worst to best (default: as
    they first appear); the worst is vermilion and the best blue. `order_stated` False says that only the counts are
    known, not which attempt had which outcome.
    """
    need(attempts, ["policy", "attempt", "outcome"], "the case table")
    from matplotlib.patches import Patch, Rectangle

    policies = list(dict.fromkeys(attempts.policy.astype(str)))
    outcomes = list(dict.fromkeys(attempts.outcome.astype(str)) if outcomes is None else outcomes)
    unknown = sorted(set(attempts.outcome.astype(str)) - set(outcomes))
    if unknown:
        raise StudyError(f"outcomes {unknown} are not among {outcomes}; list every outcome")
    between = (style.LIGHT, style.SKY, style.ORANGE, style.YELLOW, style.GREEN, style.PURPLE)
    colours = dict(zip(outcomes, (style.VERMILION, *between[: max(0, len(outcomes) - 2)], style.BLUE), strict=False))
    letters = {name: chr(65 + index) for index, name in enumerate(outcomes)}
    width = int(attempts.attempt.max()) + 1
    figure, axes = new_figure(PAPER_WIDTH, 0.42 * len(policies) + 0.42 + 0.2 * len(outcomes))
    for y, policy in enumerate(policies):
        for row in attempts[attempts.policy == policy].itertuples():
            colour = colours[row.outcome]
            axes.add_patch(Rectangle((row.attempt + 0.04, y + 0.1), 0.92, 0.8, fc=colour, ec=style.GREY, lw=0.5))
            axes.text(
                row.attempt + 0.5,
                y + 0.5,
                letters[row.outcome],
                ha="center",
                va="center",
                fontsize=7,
                color=readable(colour),
            )
    axes.set_xlim(0, width)
    axes.set_ylim(len(policies), 0)
    axes.set_yticks(np.arange(len(policies)) + 0.5, policies)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    if order_stated:
        step = 1 if width <= 20 else 5
        axes.set_xticks(np.arange(0, width, step) + 0.5, [str(i + 1) for i in range(0, width, step)])
        axes.set_xlabel("attempt")
    else:
        axes.set_xticks([])
        axes.set_xlabel(f"{width} attempts a policy, sorted by outcome (their order is not stated)")
    if title:
        axes.set_title(title)
    counts = attempts.groupby(["outcome", "policy"], observed=True).size()
    handles = []
    for name in outcomes:
        per_policy = ", ".join(f"{policy} {counts.get((name, policy), 0)}" for policy in policies)
        handles.append(Patch(fc=colours[name], ec=style.GREY, lw=0.5, label=f"{letters[name]}  {name} ({per_policy})"))
    figure.legend(handles=handles, loc="outside lower left", ncols=1)
    return figure


@dataclass(frozen=True, slots=True)
class TaskJourney:
    """One task through the six stages; None where a stage's outcome is not known.

    `probe`, `group`, `base` and `trained` are outcomes in order of attempt (True passed). `pool` says what selection
    did with the task, `note` what must be known to read the figure.
    """

    uid: str
    probe: Sequence[bool]
    pool: str
    group: Sequence[bool] | None = None
    base: Sequence[bool] | None = None
    trained: Sequence[bool] | None = None
    note: str = ""


@styled
def task_journey(journey: TaskJourney, bands: Sequence[Band] = DEFAULT_BANDS) -> Figure:
    """One task: probe strip, posterior and band, selection, one training group with its advantages, evaluation
    strips.
    """
    from matplotlib.patches import Rectangle
    from scipy.special import betaln

    n, k = len(journey.probe), int(sum(journey.probe))
    found, (a, b) = assign(k, n, bands), posterior(k, n)
    figure, found_axes = new_figure(PAPER_WIDTH, 3.2, nrows=2, ncols=3)
    probe, band, select, train, evaluate, analyse = found_axes.flat

    def blank(axis: Axes, title: str) -> None:
        axis.set_title(title)
        axis.set_xlim(0, 1)
        axis.set_ylim(0, 1)
        axis.set_axis_off()

    def strip(axis: Axes, outcomes: Sequence[bool], top: float, label: str, height: float = 0.16) -> None:
        width = min(0.98 / len(outcomes), 0.12)
        axis.text(0.01, top + 0.03, label, fontsize=7, va="bottom")
        for index, passed in enumerate(outcomes):
            colour = style.BLUE if passed else style.VERMILION
            axis.add_patch(Rectangle((0.01 + index * width, top - height), width * 0.9, height, fc=colour, lw=0))
            if len(outcomes) <= 10:
                x, y = 0.01 + (index + 0.45) * width, top - height / 2
                axis.text(x, y, "1" if passed else "0", ha="center", va="center", fontsize=7, color=readable(colour))

    blank(probe, "1 Probe")
    strip(probe, journey.probe, 0.72, f"{n} attempts of the base policy")
    probe.text(0.01, 0.4, f"{k} of {n} passed", fontsize=8)
    grid = np.linspace(0.002, 0.998, 400)
    density = np.exp((a - 1) * np.log(grid) + (b - 1) * np.log1p(-grid) - betaln(a, b))
    chosen = next(item for item in bands if item.name == found.band)
    inside = (grid >= chosen.low) & (grid <= chosen.high)
    colour = band_colour(found.band)
    band.plot(grid, density, color=style.INK, lw=1.1)
    band.fill_between(grid[inside], density[inside], color=colour, alpha=0.6, lw=0)
    band.set_xticks([0, *(item.high for item in bands)])
    band.tick_params(axis="x", labelsize=6, rotation=45)
    band.set_yticks([])
    band.set_xlabel("pass rate", labelpad=1)
    band.set_ylim(0, None)
    band.set_title(f"2 Band: {pretty(found.band).lower()} ({100 * found.mass:.1f} %)")
    blank(select, "3 Select")
    select.text(0.01, 0.86, journey.pool, fontsize=7.5, va="top", linespacing=1.4)
    blank(train, "4 Train")
    if journey.group is None:
        train.text(0.01, 0.7, "not stated for this task", fontsize=7.5, color=style.INK)
    else:
        mean = float(np.mean(journey.group))
        strip(train, journey.group, 0.72, f"one group of {len(journey.group)} rollouts, mean reward {mean:.3f}")
        text = f"advantage of a pass {1 - mean:+.3f}\nadvantage of a fail {-mean:+.3f}"
        if mean in (0.0, 1.0):
            text = "zero variance: no advantage, the group is replaced"
        train.text(0.01, 0.42, text, fontsize=7.5, va="top", linespacing=1.4)
    blank(evaluate, "5 Evaluate")
    known = [
        (name, outcomes)
        for name, outcomes in (("base", journey.base), ("trained", journey.trained))
        if outcomes is not None
    ]
    for index, (name, outcomes) in enumerate(known):
        strip(evaluate, outcomes, 0.78 - 0.42 * index, f"{name}: {sum(outcomes)} of {len(outcomes)}")
    blank(analyse, "6 Analyse")
    if len(known) == 2:
        p = fisher_p(int(sum(journey.base)), len(journey.base), int(sum(journey.trained)), len(journey.trained))
        change = 100 * (np.mean(journey.trained) - np.mean(journey.base))
        reliable = "yes" if all(journey.trained) else "no"
        text = f"pass@1 {change:+.0f} pp\nFisher exact p = {p:.2g}\npasses every attempt after training: {reliable}"
        analyse.text(0.01, 0.86, text, fontsize=7.5, va="top", linespacing=1.5)
    else:
        evaluate.text(0.01, 0.7 - 0.42 * len(known), "not stated for this task", fontsize=7.5)
        analyse.text(0.01, 0.7, "not stated for this task", fontsize=7.5)
    figure.suptitle(journey.uid, x=0.01, ha="left", fontsize=8.5, fontweight="bold")
    if journey.note:
        figure.supxlabel(journey.note, fontsize=6.8, x=0.01, ha="left")
    return figure
