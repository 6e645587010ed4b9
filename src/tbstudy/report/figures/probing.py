"""Probing and banding: the histogram of passes, the posterior of every task, the posteriors of the bands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tbstudy.difficulty import BANDED, DEFAULT_BANDS, Band, assign, posterior
from tbstudy.report import style
from tbstudy.report.figures.common import band_colour, need, pretty
from tbstudy.report.style import PAPER_WIDTH, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@styled
def probe_histogram(table: pd.DataFrame, bands: Sequence[Band] = DEFAULT_BANDS) -> Figure:
    """Tasks by passes k of n probe attempts, coloured by band. `table` is `difficulty.band_table`.

    Tasks whose n differs from the commonest (system errors) are counted in the title, not drawn into a wrong bar.
    """
    need(table, ["k", "n", "band", "status"], "the band table")
    n = int(table.n.mode().iloc[0])
    whole = table[(table.n == n) & (table.status == BANDED)]
    counts = np.bincount(whole.k.to_numpy(int), minlength=n + 1)
    names = [assign(k, n, bands).band for k in range(n + 1)]
    figure, axes = new_figure(4.6, 2.5)
    drawn: set[str] = set()
    for k, (count, name) in enumerate(zip(counts, names, strict=True)):
        label = pretty(name) if name not in drawn else None
        drawn.add(name)
        axes.bar(k, count, width=0.85, color=band_colour(name), label=label)
        axes.text(k, count, f"{count}", ha="center", va="bottom", fontsize=7)
    axes.set_xticks(range(n + 1))
    axes.set_xlabel(f"passes in {n} probe attempts")
    axes.set_ylabel("tasks")
    axes.set_ylim(0, counts.max() * 1.14 + 1)
    left_out = len(table) - len(whole)
    axes.set_title(f"{len(whole)} tasks" + (f" ({left_out} with fewer clean attempts not drawn)" if left_out else ""))
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), title="band")
    return figure


@styled
def task_posteriors(table: pd.DataFrame, bands: Sequence[Band] = DEFAULT_BANDS, *, level: float = 0.8) -> Figure:
    """Every task's posterior: mean and central `level` interval, sorted by mean, coloured by band over the band
    edges.
    """
    from scipy.special import betaincinv

    need(table, ["a", "b", "mean", "band", "status"], "the band table")
    rows = table[table.status == BANDED].sort_values(["mean", "uid"]).reset_index(drop=True)
    low = betaincinv(rows.a, rows.b, (1 - level) / 2)
    high = betaincinv(rows.a, rows.b, (1 + level) / 2)
    figure, axes = new_figure(PAPER_WIDTH, 2.7)
    for band in bands:
        axes.axhspan(band.low, band.high, color=band_colour(band.name), alpha=0.12, lw=0)
    for index, band in enumerate(bands):
        inside = (rows.band == band.name).to_numpy()
        colour = band_colour(band.name, index)
        axes.vlines(np.flatnonzero(inside), low[inside], high[inside], color=colour, lw=0.8, alpha=0.7)
        axes.plot(
            np.flatnonzero(inside),
            rows["mean"][inside],
            ".",
            color=colour,
            ms=3.5,
            label=f"{pretty(band.name)} ({inside.sum()})",
        )
    axes.set_xlim(-1, len(rows))
    axes.set_ylim(0, 1)
    axes.set_yticks([0, *(band.high for band in bands)])
    axes.set_xlabel(f"{len(rows)} tasks, sorted by posterior mean")
    axes.set_ylabel("pass rate")
    axes.set_title(f"Posterior mean and central {100 * level:.0f} % interval")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), title="band (tasks)", handletextpad=0.2)
    return figure


@styled
def band_posteriors(
    n: int, ks: Sequence[int] | None = None, bands: Sequence[Band] = DEFAULT_BANDS, *, highlight: int | None = None
) -> Figure:
    """Posterior densities of the pass rate for k of n passes over the bands; `highlight` is filled and annotated."""
    from scipy.special import betaln

    ks = range(n + 1) if ks is None else ks
    grid = np.linspace(0.0015, 0.9985, 600)
    figure, axes = new_figure(PAPER_WIDTH, 2.9)
    top = 7.0
    for band in bands:
        axes.axvspan(band.low, band.high, color=band_colour(band.name), alpha=0.16, lw=0)
        keep = "kept" if band.keep else "left out"
        axes.text(
            (band.low + band.high) / 2,
            top * 1.02,
            pretty(band.name).replace(" ", "\n") + f"\n{keep}",
            ha="center",
            va="bottom",
            fontsize=6.8,
        )
    placed = []
    for k in ks:
        a, b = posterior(k, n)
        density = np.exp((a - 1) * np.log(grid) + (b - 1) * np.log1p(-grid) - betaln(a, b))
        found = assign(k, n, bands)
        chosen = k == highlight
        colour = band_colour(found.band)
        axes.plot(grid, density, color=colour, lw=2.2 if chosen else 1.1)
        if chosen:
            band = next(band for band in bands if band.name == found.band)
            inside = (grid >= band.low) & (grid <= band.high)
            axes.fill_between(grid[inside], density[inside], color=colour, alpha=0.35, lw=0)
            axes.annotate(
                f"{k} of {n}: Beta({a:g}, {b:g})\n{100 * found.mass:.1f} % of the mass in {pretty(found.band).lower()}",
                (0.3, np.interp(0.3, grid, density)), (0.345, top * 0.72), fontsize=7.5,
                arrowprops={"arrowstyle": "-", "color": style.INK, "lw": 0.7},
            )  # fmt: skip
        peak = np.clip(a / (a + b), 0.035, 0.965) if k in (0, n) else grid[density.argmax()]
        placed.append((peak, min(np.interp(peak, grid, density), top), k))
    for x, y, k in placed:
        axes.text(x, min(y + 0.12, top * 0.93), f"{k}", ha="center", va="bottom", fontsize=7, fontweight="bold")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, top)
    axes.set_xticks([0, *(band.high for band in bands)])
    axes.set_xlabel("pass rate of the task under the policy")
    axes.set_ylabel("posterior density")
    axes.text(0.75, top * 0.97, f"bold: passes of {n} attempts", ha="center", va="top", fontsize=7, color=style.INK)
    return figure
