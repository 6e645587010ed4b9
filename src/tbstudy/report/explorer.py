"""The probe under other rules: move band edges, attempts, kept bands and gates, and see what would be selected.

`probe_view(...)` is a plain call and needs nothing but the attempts. `explore(...)` shows the static histogram and
counts first, so that an executed notebook and its HTML hold them, then the controls where ipywidgets is installed.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tbstudy.difficulty import (
    DEFAULT_BANDS,
    Band,
    GroupForecast,
    assign,
    band_summary,
    band_table,
    check_bands,
    forecast,
    posterior,
)
from tbstudy.errors import StudyError
from tbstudy.evaluation.api import Campaign, attempts_of
from tbstudy.report import style
from tbstudy.report.figures.common import band_colour, pretty
from tbstudy.report.figures.probing import probe_histogram
from tbstudy.report.style import new_figure, styled
from tbstudy.report.tables import Table, percent, to_html
from tbstudy.selection import Gate, pass_gates

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: What is said of tasks that a gate stopped, by its name; that of too few attempts has their number in its name.
_STOPPED = {"solved by the reference policy": "not solved by the reference policy", "not excluded": "excluded",
            "not a benchmark task": "of the benchmark"}
_WIDGET = "application/vnd.jupyter.widget-view+json"


@dataclass(frozen=True)
class ProbeView:
    """A probe's attempts under one set of rules.

    `n` uses the first n attempts of each task (None: all), `domain` one domain. The pool is what passes the gates of
    `selection.select_pool`: enough clean attempts, one of `solvable` when given (the reference gate), none of `exclude`
    and `benchmark`, in a band that is kept. Groups have `group_size` rollouts.
    """

    attempts: pd.DataFrame
    bands: tuple[Band, ...] = DEFAULT_BANDS
    n: int | None = None
    domain: str | None = None
    solvable: frozenset[str] | None = None
    min_clean: int = 4
    group_size: int = 8
    exclude: frozenset[str] = frozenset()
    benchmark: frozenset[str] = frozenset()

    @property
    def _min_clean(self) -> int:
        return min(self.min_clean, self.n or self.min_clean)

    @cached_property
    def _gated(self) -> tuple[list[Gate], pd.Series]:
        kept = [band.name for band in self.bands if band.keep]
        return pass_gates(self._banded, kept, min_clean=self._min_clean, solvable=self.solvable, exclude=self.exclude,
                          benchmark=self.benchmark)[:2]

    @cached_property
    def _banded(self) -> pd.DataFrame:
        rows = self.attempts
        if self.domain is not None:
            rows = rows[rows.domain.astype(str) == self.domain]
            if rows.empty:
                names = sorted(set(self.attempts.domain.astype(str)))
                raise StudyError(f"domain {self.domain!r} has no attempts; domains are {', '.join(names)}")
        if self.n is not None:
            rows = rows[rows.repetition < self.n]
        return band_table(rows, self.bands, min_clean=self._min_clean)

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row a task (`difficulty.band_table`), with `kept`: whether it would be in the pool."""
        return self._banded.assign(kept=self._gated[1])

    @property
    def pool(self) -> pd.DataFrame:
        """The rows of `table` that would be in the pool."""
        return self.table[self.table.kept]

    @property
    def forecast(self) -> GroupForecast | None:
        """What groups drawn from the pool would yield, None for an empty pool."""
        return forecast(self.pool, self.group_size) if len(self.pool) else None

    @property
    def counts(self) -> pd.DataFrame:
        """One row a band: band, low, high, keep, tasks, kept (in the pool), zero_variance_forecast (of its tasks)."""
        summary = band_summary(self.table, self.bands)
        inside = [self.table[self.table.band == name] for name in summary.band]
        return summary[["band", "low", "high", "keep", "tasks"]].assign(
            kept=[int(rows.kept.sum()) for rows in inside],
            zero_variance_forecast=[forecast(rows, self.group_size).zero_variance_share if len(rows) else np.nan
                                    for rows in inside])

    def headline(self) -> str:
        """One sentence: the pool and what its groups promise."""
        text = f"{len(self.pool)} of {len(self.table)} tasks kept"
        # What the bands leave out is what the view is about; the other gates are not seen in it.
        stopped = [f"{gate.dropped} {_STOPPED.get(gate.name, 'with too few clean attempts')}"
                   for gate in self._gated[0][:-1] if gate.dropped]
        if stopped:
            text += f" ({', '.join(stopped)})"
        found = self.forecast
        if found is None:
            return f"{text}; no group to draw"
        return (f"{text}; {found.zero_variance_share:.1%} of groups of {self.group_size} are expected to teach "
                f"nothing, {found.rollouts_per_useful_group:.1f} rollouts per useful group")

    def figure(self) -> Figure:
        """The histogram of passes, coloured by band."""
        return probe_histogram(self.table, self.bands)

    def posterior(self, uid: str) -> Figure:
        """The posterior of one task's pass rate over the bands.

        Raises:
            StudyError: the task is not among those shown.
        """
        found = self.table[self.table.uid == uid]
        if found.empty:
            raise StudyError(f"{uid} is not among the {len(self.table)} tasks shown")
        return task_posterior(uid, int(found.k.iloc[0]), int(found.n.iloc[0]), self.bands)

    def with_edges(self, *edges: float) -> ProbeView:
        """The same under other inner band edges, ascending, one fewer than there are bands."""
        return replace(self, bands=moved(self.bands, edges))

    def keeping(self, *names: str) -> ProbeView:
        """The same with other bands kept.

        Raises:
            StudyError: a band of that name does not exist.
        """
        unknown = sorted(set(names) - {band.name for band in self.bands})
        if unknown:
            raise StudyError(f"no band {unknown[0]!r}; bands are {', '.join(b.name for b in self.bands)}")
        return replace(self, bands=tuple(replace(band, keep=band.name in names) for band in self.bands))

    def _repr_html_(self) -> str:
        shown = Table(self.counts, self.headline(), {"zero_variance_forecast": percent(), "low": ".2f", "high": ".2f",
                                                     "band": pretty, "keep": lambda keep: "yes" if keep else "no"},
                      {"zero_variance_forecast": "zero-variance groups, %"})
        return to_html(shown)

    def __repr__(self) -> str:
        return f"{self.headline()}\n{self.counts.round(3).to_string(index=False)}"


def moved(bands: Sequence[Band], edges: Sequence[float]) -> tuple[Band, ...]:
    """The bands with other inner edges.

    Raises:
        StudyError: there are not as many edges as gaps between bands, or they do not ascend inside (0, 1).
    """
    if len(edges) != len(bands) - 1:
        raise StudyError(f"edges: {len(bands)} bands have {len(bands) - 1} inner edges, these are {len(edges)}")
    outer = (0.0, *map(float, edges), 1.0)
    new = tuple(replace(band, low=low, high=high) for band, low, high in zip(bands, outer, outer[1:], strict=False))
    check_bands(new)
    return new


def probe_view(source: Any, *, bands: Sequence[Band] | None = None, edges: Sequence[float] | None = None,
               n: int | None = None, keep: Iterable[str] | None = None, domain: str | None = None,
               solvable: Iterable[str] | None = None, min_clean: int | None = None, group_size: int | None = None,
               exclude: Iterable[str] | None = None, benchmark: Iterable[str] | None = None) -> ProbeView:
    """The probe of a study, a campaign or an attempts table under these rules; what is left out is the study's.

    An attempts table does not know what a study excludes nor what its benchmark is: give `exclude` and `benchmark`
    (uids), or the study itself, for the pool that the stage select makes.

    Raises:
        StudyError: the probe is not complete, or a rule is impossible.
    """
    defaults: dict[str, Any] = {"bands": DEFAULT_BANDS, "min_clean": 4, "group_size": 8, "exclude": (),
                                "benchmark": ()}
    if isinstance(source, (Campaign, pd.DataFrame)):
        attempts = attempts_of(source)
    else:
        from tbstudy import stages
        from tbstudy.tasks.loader import load_list

        attempts = stages.probe_attempts(source)
        defaults = {"bands": stages.bands_of(source), "min_clean": source.config.probe.min_clean,
                    "group_size": source.config.train.rollouts, "exclude": source.config.select.exclude,
                    "benchmark": load_list(source.existing("benchmark"))}
    given = {"bands": bands, "min_clean": min_clean, "group_size": group_size, "exclude": exclude,
             "benchmark": benchmark}
    rules = {name: defaults[name] if value is None else value for name, value in given.items()}
    view = ProbeView(attempts, tuple(rules["bands"]), n, domain, None if solvable is None else frozenset(solvable),
                     rules["min_clean"], rules["group_size"], frozenset(rules["exclude"]),
                     frozenset(rules["benchmark"]))
    if edges is not None:
        view = view.with_edges(*edges)
    return view if keep is None else view.keeping(*keep)


@styled
def task_posterior(uid: str, k: int, n: int, bands: Sequence[Band] = DEFAULT_BANDS) -> Figure:
    """Posterior density of one task's pass rate over the bands; the band with most mass is filled."""
    from scipy.special import betaln

    a, b = posterior(k, n)
    found = assign(k, n, bands)
    grid = np.linspace(0.002, 0.998, 500)
    density = np.exp((a - 1) * np.log(grid) + (b - 1) * np.log1p(-grid) - betaln(a, b))
    figure, axes = new_figure(4.6, 2.2)
    for index, band in enumerate(bands):
        colour = band_colour(band.name, index)
        axes.axvspan(band.low, band.high, color=colour, alpha=0.14, lw=0)
        if band.name == found.band:
            inside = (grid >= band.low) & (grid <= band.high)
            axes.fill_between(grid[inside], density[inside], color=colour, alpha=0.6, lw=0)
    axes.plot(grid, density, color=style.INK, lw=1.2)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, min(float(density.max()), 12.0) * 1.08)
    axes.set_xticks([0, *(band.high for band in bands)])
    axes.set_xlabel("pass rate of the task under the policy")
    axes.set_ylabel("posterior density")
    axes.set_title(f"{uid}\n{k} of {n}: {pretty(found.band).lower()}, {found.mass:.1%} of the mass", fontsize=7.5)
    return figure


class Explorer:
    """Controls over a `ProbeView`: `controls` holds the widgets by name, `view` what they currently say.

    Shown as the last value of a cell: the static figure and counts of the first view, then the controls. Without
    ipywidgets only the static part is there and `controls` is empty.
    """

    def __init__(self, view: ProbeView, reference: Iterable[str] | None = None):
        self.first = self.view = view
        self.reference = None if reference is None else frozenset(reference)
        self.controls: dict[str, Any] = {}
        self.widget: Any = None
        try:
            import ipywidgets
        except ImportError:
            return
        self._build(ipywidgets)

    def _build(self, w: Any) -> None:
        view, c = self.first, self.controls
        most = int(view.attempts.repetition.max()) + 1
        slim = w.Layout(width="27em")
        wide = {"description_width": "11em"}
        for index, band in enumerate(view.bands[:-1]):
            c[f"edge_{index + 1}"] = w.FloatSlider(
                band.high, min=0.01, max=0.99, step=0.01, continuous_update=False, layout=slim, style=wide,
                description=f"{pretty(band.name)} | {pretty(view.bands[index + 1].name)}", readout_format=".2f")
        c["n"] = w.IntSlider(view.n or most, min=1, max=most, continuous_update=False, description="attempts used",
                             layout=slim, style=wide)
        domains = sorted(set(view.attempts.domain.astype(str)))
        # None would mean that nothing is chosen.
        c["domain"] = w.Dropdown(options=[("all", ""), *((pretty(d), d) for d in domains)], value=view.domain or "",
                                 description="domain", layout=slim, style=wide)
        c["keep"] = w.SelectMultiple(options=[(pretty(b.name), b.name) for b in view.bands], rows=len(view.bands),
                                     value=[b.name for b in view.bands if b.keep], description="bands kept",
                                     layout=slim, style=wide)
        if self.reference is not None:
            c["gate"] = w.Checkbox(view.solvable is not None, description="only what the reference policy solved")
        c["task"] = w.Select(options=[], rows=9, description="task", layout=w.Layout(width="38em"), style=wide)
        self._counts, self._bars, self._curve = w.HTML(), w.Image(format="png"), w.Image(format="png")
        for name, control in c.items():
            control.observe(self._choose_task if name == "task" else self._recount, names="value")
        left = w.VBox([control for name, control in c.items() if name != "task"])
        self.widget = w.VBox([w.HBox([left, w.VBox([self._counts, self._bars])]), w.HBox([c["task"], self._curve])])
        self._recount(None)

    def _keep_order(self, moved_edge: Any) -> None:
        """Stop an edge before its neighbours."""
        edges = self._edges()
        at = edges.index(moved_edge)
        low = edges[at - 1].value + 0.01 if at else moved_edge.min
        high = edges[at + 1].value - 0.01 if at + 1 < len(edges) else moved_edge.max
        moved_edge.value = round(min(max(moved_edge.value, low), high), 2)

    def _edges(self) -> list[Any]:
        return [control for name, control in self.controls.items() if name.startswith("edge_")]

    def _recount(self, change: Any) -> None:
        c, edges = self.controls, self._edges()
        if change is not None and change.owner in edges:
            before = change.owner.value
            self._keep_order(change.owner)
            if change.owner.value != before:
                return  # the correction comes in as a change of its own
        gated = self.reference if "gate" in c and c["gate"].value else None
        view = replace(self.first, n=c["n"].value, domain=c["domain"].value or None, solvable=gated)
        view = view.with_edges(*(edge.value for edge in edges)).keeping(*c["keep"].value)
        counts, bars = view._repr_html_(), png(view.figure())
        self.view, self._counts.value, self._bars.value = view, counts, bars
        chosen = c["task"].value
        rows = view.table.sort_values(["mean", "uid"])
        c["task"].options = [(f"{row.k} of {row.n}  {row.uid}", row.uid) for row in rows.itertuples()]
        c["task"].value = chosen if chosen in set(rows.uid) else rows.uid.iloc[len(rows) // 2]
        self._choose_task(None)

    def _choose_task(self, change: Any) -> None:
        uid = self.controls["task"].value
        if uid is not None and uid in set(self.view.table.uid):
            self._curve.value = png(self.view.posterior(uid))

    def _ipython_display_(self) -> None:
        from IPython.display import HTML, Image, display

        display(Image(data=png(self.first.figure())))
        display(HTML(self.first._repr_html_()))
        if self.widget is not None:
            # The widget alone: a text beside it would differ where ipywidgets is not installed.
            bundle = self.widget._repr_mimebundle_()
            data = bundle[0] if isinstance(bundle, tuple) else bundle
            display({_WIDGET: data[_WIDGET]}, raw=True)

    def __repr__(self) -> str:
        return repr(self.view)


def explore(source: Any, *, reference: Iterable[str] | None = None, **rules: Any) -> Explorer:
    """The explorer of a study, campaign or attempts table; `rules` are those of `probe_view`.

    `reference` holds the uids that a reference policy solved (`selection.solvable_uids`) and adds its gate.
    """
    return Explorer(probe_view(source, **rules), reference)


def png(figure: Figure) -> bytes:
    """A figure as PNG; the same figure gives the same bytes."""
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=110, metadata={"Software": None})
    return out.getvalue()
