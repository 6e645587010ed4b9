"""A verl run for the notebook: what would start, what it would need, and what its metrics say so far."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from tbstudy.errors import StudyError
from tbstudy.selection import load_pool
from tbstudy.training.verl import forecast, launch, preflight
from tbstudy.training.verl.config import load_run
from tbstudy.training.verl.metrics import training_table


@dataclass(frozen=True, slots=True)
class Overview:
    """`command` is the dry run's text, `rules` the rules on paper (columns rule, problem), `tables` the forecast by
    title, `training` the training table, None before the first update."""

    command: str
    rules: pd.DataFrame
    tables: dict[str, pd.DataFrame]
    training: pd.DataFrame | None


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
