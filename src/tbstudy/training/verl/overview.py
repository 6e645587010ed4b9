"""A verl run for the notebook: what would start, what it would need, and what its metrics say so far."""

from __future__ import annotations

import html
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from tbstudy.errors import StudyError
from tbstudy.selection import load_pool
from tbstudy.training.verl import forecast, launch, preflight
from tbstudy.training.verl.config import load_run
from tbstudy.training.verl.metrics import training_table


@dataclass(frozen=True, slots=True, repr=False)
class Overview:
    """`command` is the dry run's text, `rules` the rules on paper (columns rule, problem), `tables` the forecast by
    title, `training` the training table, None before the first update."""

    command: str
    rules: pd.DataFrame
    tables: dict[str, pd.DataFrame]
    training: pd.DataFrame | None

    def html(self) -> str:
        """The rules and the tables, the command folded; no ids, no script."""
        parts = [_html("Rules on paper", self.rules), *(_html(title, table) for title, table in self.tables.items())]
        return (f'<div class="tbstudy-overview">{"".join(parts)}<details><summary>The command (dry run)</summary>'
                f'<pre style="white-space:pre-wrap;overflow-wrap:anywhere">{html.escape(self.command)}</pre></details>'
                "</div>")

    def text(self) -> str:
        """The same for a terminal."""
        tables = [f"{title}\n\n{table.to_string(index=False, float_format=_number)}"
                  for title, table in {"Rules on paper": self.rules, **self.tables}.items()]
        return "\n\n".join([*tables, self.command])

    def _repr_html_(self) -> str:
        return self.html()

    def __repr__(self) -> str:
        return self.text()


def overview(config: str | Path, *, pool: str | Path | None = None, parameters: float | None = None,
             given: forecast.Assumptions | None = None, changes: dict[str, Any] | None = None,
             arm: str = "selected") -> Overview:
    """Everything that can be said about a run without starting it.

    `pool` stands in for the configuration's, and `parameters` for counting them in the model's folder.

    Raises:
        StudyError: as for `launch.dry_run` and `forecast.tables`.
    """
    run = load_run(config, {**(changes or {}), **({"data.pool": str(Path(pool).resolve())} if pool else {})})
    findings = preflight.on_paper(run)
    try:
        training = training_table(run, arm)
    except StudyError:
        training = None
    return Overview(
        launch.dry_run(run), pd.DataFrame([(f.rule, f.problem or "ok") for f in findings], columns=["rule", "problem"]),
        forecast.tables(run, load_pool(run.path(run.config.data.pool)), given, parameters), training)


def _html(title: str, table: pd.DataFrame) -> str:
    shown = table.to_html(index=False, border=0, float_format=_number, justify="left")
    return f"<p><b>{html.escape(title)}</b></p>" + shown.replace("<td>", '<td style="text-align:left">')


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.4g}"
