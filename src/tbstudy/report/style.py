"""How figures look and how they are written: one palette, one type size, the same bytes every time."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec

from tbstudy.disk import write_atomic

if TYPE_CHECKING:
    from matplotlib.figure import Figure

P = ParamSpec("P")

# Okabe and Ito's palette: told apart by people with any of the common colour vision deficiencies.
BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILION, PURPLE = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7",
)  # fmt: skip
GREY, LIGHT, INK = "#8C8C8C", "#E8E8E8", "#222222"
BASE, TRAINED = ORANGE, BLUE
CYCLE = (BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, BLACK, YELLOW)
# Warm for bands below one half, cold above, dark at both ends.
BAND_COLOURS = {
    "rarely": "#4D4D4D",
    "hard": VERMILION,
    "medium": ORANGE,
    "often": SKY,
    "nearly_always": BLUE,
}
PAPER_WIDTH, COLUMN_WIDTH = 6.9, 3.35  # inches: both columns and one column of a two-column page

RC = {
    "font.family": "DejaVu Sans",
    "font.size": 8.0,
    "axes.titlesize": 8.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 8.0,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "legend.fontsize": 7.0,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "axes.grid": False,
    "grid.color": LIGHT,
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.4,
    "figure.dpi": 110,
    "savefig.dpi": 150,
    "svg.hashsalt": "tbstudy",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
    "path.simplify": True,
}


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Draw under this style, whatever the caller's rcParams are, and detached from pyplot (no window, no leak)."""

    @wraps(draw)
    def inner(*args: P.args, **kwargs: P.kwargs) -> Figure:
        import matplotlib as mpl

        with mpl.rc_context({**mpl.rcParamsDefault, **RC, "backend": mpl.rcParams["backend"]}):
            return draw(*args, **kwargs)

    return inner


@cache
def _figure_class() -> type[Figure]:
    from matplotlib.figure import Figure

    class PaperFigure(Figure):
        """A figure that a notebook shows by itself, whether or not pyplot was imported."""

        def _repr_png_(self) -> bytes:
            buffer = BytesIO()
            self.savefig(buffer, format="png", metadata={"Software": None})
            return buffer.getvalue()

    return PaperFigure


def new_figure(width: float = PAPER_WIDTH, height: float = 2.6, **grid):
    """A figure with constrained layout and its axes: (Figure, Axes or array of Axes); `grid` goes to `subplots`."""
    figure = _figure_class()(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(**grid)


def save_figure(figure: Figure, stem: str | Path) -> list[Path]:
    """Write `stem`.pdf, .svg and .png; the same figure gives the same bytes: no date, a fixed salt for SVG ids."""
    import matplotlib as mpl

    stem = Path(stem)
    metadata = {
        "pdf": {"CreationDate": None, "ModDate": None, "Producer": None, "Creator": None},
        "svg": {"Date": None, "Creator": None},
        "png": {"Software": None},
    }
    paths = []
    with mpl.rc_context(RC):
        for kind, fields in metadata.items():
            path = stem.with_name(f"{stem.name}.{kind}")
            image = BytesIO()
            figure.savefig(image, format=kind, metadata=fields)
            write_atomic(path, image.getvalue())
            paths.append(path)
    return paths
