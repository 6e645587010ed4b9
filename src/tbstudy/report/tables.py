"""Tables in four formats from one DataFrame: CSV keeps the numbers, Markdown, LaTeX and HTML the printed cells."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from tbstudy.disk import write_atomic

NOT_STATED = "not stated"
_LATEX = {character: "\\" + character for character in "&%$#_{}"} | {
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\\": r"\textbackslash{}",
    "→": r"$\to$",
    "×": r"$\times$",
}

Formatter = Callable[[Any], str] | str


@dataclass(frozen=True, slots=True)
class Table:
    """A table ready to be written.

    `formats` maps a column to a format spec (".2f") or a function; a missing value prints as `missing`. `labels`
    renames columns for print. `derived` columns are computed here and not stated by a source: their header says so.
    """

    data: pd.DataFrame
    caption: str
    formats: Mapping[str, Formatter] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    derived: frozenset[str] = frozenset()
    note: str = ""
    missing: str = ""

    def cells(self) -> pd.DataFrame:
        """The printed cells, all strings, under the printed headers."""
        out = {}
        for name in self.data.columns:
            header = self.labels.get(name, str(name)) + (" (derived)" if name in self.derived else "")
            out[header] = [self._cell(name, value) for value in self.data[name]]
        return pd.DataFrame(out)

    def _cell(self, name: str, value: Any) -> str:
        if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
            return self.missing
        spec = self.formats.get(name)
        if callable(spec):
            return spec(value)
        if spec:
            return format(value, spec)
        return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def percent(digits: int = 1) -> Callable[[float], str]:
    """Formatter of a fraction as percent, without the sign: the header carries the unit."""
    return lambda value: f"{100 * value:.{digits}f}"


def points(digits: int = 1) -> Callable[[float], str]:
    """Formatter of a difference of fractions in percentage points, with its sign."""
    return lambda value: f"{100 * value:+.{digits}f}"


def with_interval(
    data: pd.DataFrame, value: str, low: str, high: str, *, digits: int = 1, signed: bool = False
) -> pd.Series:
    """Text cells "51.7 [49.9, 53.6]" in percent from three columns of fractions; empty where the value is missing."""
    sign = "+" if signed else ""

    def cell(row) -> str:
        if pd.isna(row[value]):
            return ""
        text = f"{100 * row[value]:{sign}.{digits}f}"
        if pd.isna(row[low]) or pd.isna(row[high]):
            return text
        return f"{text} [{100 * row[low]:{sign}.{digits}f}, {100 * row[high]:{sign}.{digits}f}]"

    return data.apply(cell, axis=1) if len(data) else pd.Series([], dtype=object)


def to_markdown(table: Table) -> str:
    """GitHub Markdown with the caption above and the note below."""
    cells = table.cells()
    lines = [f"**{table.caption}**", ""]
    rows = [list(cells.columns), ["---:" if numeric else "---" for numeric in _numeric(cells)]]
    rows += cells.to_numpy().tolist()
    lines += ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines + (["", table.note] if table.note else [])) + "\n"


def to_latex(table: Table, label: str) -> str:
    """A LaTeX table float with booktabs rules."""
    cells = table.cells()
    align = "".join("r" if numeric else "l" for numeric in _numeric(cells))
    body = [" & ".join(_latex(cell) for cell in row) + r" \\" for row in cells.to_numpy().tolist()]
    head = " & ".join(_latex(cell) for cell in cells.columns) + r" \\"
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{_latex(table.caption)}}}", rf"\label{{tab:{label}}}"]
    lines += [rf"\begin{{tabular}}{{{align}}}", r"\toprule", head, r"\midrule", *body, r"\bottomrule"]
    lines.append(r"\end{tabular}")
    if table.note:
        lines.append(rf"\par\smallskip\footnotesize {_latex(table.note)}")
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def to_html(table: Table) -> str:
    """An HTML table without ids or scripts, so that the same table gives the same text."""
    cells = table.cells()
    numeric = _numeric(cells)

    def row(values, tag: str) -> str:
        parts = [
            f"<{tag}{' class=num' if right else ''}>{html.escape(str(value))}</{tag}>"
            for value, right in zip(values, numeric, strict=True)
        ]
        return "<tr>" + "".join(parts) + "</tr>"

    lines = [
        "<table>",
        f"<caption>{html.escape(table.caption)}</caption>",
        "<thead>",
        row(cells.columns, "th"),
        "</thead>",
    ]
    lines += ["<tbody>", *(row(values, "td") for values in cells.to_numpy().tolist()), "</tbody>", "</table>"]
    if table.note:
        lines.append(f"<p class=note>{html.escape(table.note)}</p>")
    return "\n".join(lines) + "\n"


def write_table(table: Table, stem: str | Path) -> list[Path]:
    """Write `stem`.csv (unformatted values), .md, .tex and .html; returns the four paths."""
    stem = Path(stem)
    texts = {
        "csv": table.data.to_csv(index=False, lineterminator="\n"),
        "md": to_markdown(table),
        "tex": to_latex(table, stem.name.replace("_", "-")),
        "html": to_html(table),
    }
    paths = []
    for kind, text in texts.items():
        path = stem.with_name(f"{stem.name}.{kind}")
        write_atomic(path, text.encode())
        paths.append(path)
    return paths


def _numeric(cells: pd.DataFrame) -> list[bool]:
    number = re.compile(r"^[-+$]*[\d.,]+( ?%)?( [\[(].*[\])])?$")
    found = []
    for column in cells.columns:
        filled = [value for value in cells[column] if value not in ("", NOT_STATED)]
        found.append(bool(filled) and all(number.match(str(value)) for value in filled))
    return found


def _latex(text: Any) -> str:
    return "".join(_LATEX.get(character, character) for character in str(text))
