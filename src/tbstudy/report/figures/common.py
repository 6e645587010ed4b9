"""What the figures share: names as printed, colours of bands and policies, checks of the tables they are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from tbstudy.errors import StudyError
from tbstudy.report import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def pretty(name: str) -> str:
    """A name as printed: underscores become spaces, the first letter is capital."""
    text = name.replace("_", " ")
    return text[:1].upper() + text[1:]


def need(table: pd.DataFrame, columns: Sequence[str], what: str) -> None:
    """Raise `StudyError` when the table lacks a column or a row."""
    missing = [name for name in columns if name not in table.columns]
    if missing:
        raise StudyError(f"{what} lacks the columns {missing}; it has {list(table.columns)}")
    if table.empty:
        raise StudyError(f"{what} is empty; there is nothing to draw")


def band_colour(name: str, index: int = 0) -> str:
    """The colour of a default band, else one of the cycle."""
    return style.BAND_COLOURS.get(name, style.CYCLE[index % len(style.CYCLE)])


def policy_colours(policies: Sequence[str]) -> dict[str, str]:
    """Base and trained for two policies, the cycle for one or for more."""
    pair = (style.BASE, style.TRAINED)
    return {
        name: (pair if len(policies) == 2 else style.CYCLE)[i % len(style.CYCLE)] for i, name in enumerate(policies)
    }


def readable(colour: str) -> str:
    """White or dark ink, whichever is legible on `colour`."""
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(colour)
    return "white" if 0.299 * red + 0.587 * green + 0.114 * blue < 0.55 else style.INK


def arm_legend(figure: Figure, colours: Mapping[str, str]) -> None:
    """One legend for the whole figure, under it, when there is more than one arm."""
    from matplotlib.lines import Line2D

    if len(colours) > 1:
        handles = [Line2D([], [], color=colour, label=pretty(arm)) for arm, colour in colours.items()]
        figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
