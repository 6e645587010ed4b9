"""What every notebook does first: check its parameters, load the study, say what it stands on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from tbstudy import __version__
from tbstudy.campaign import CampaignResult
from tbstudy.config import Study, check_parameters, load_study
from tbstudy.report.reprs import install
from tbstudy.report.tables import Table

NoneType = type(None)


def begin(namespace: Mapping[str, Any], overrides: Mapping[str, tuple[str, tuple[type, ...]]] | None = None,
          flags: tuple[str, ...] = ()) -> Study:
    """Check the notebook's parameters strictly and load the study they name.

    Every notebook has CONFIG (a configuration file) and STUDY (the study's folder, None for runs/<study>).
    `overrides` maps further parameters to a dotted configuration key and the types allowed; None leaves the
    configuration's value. `flags` are parameters that must be True or False.

    Raises:
        StudyError: naming every unknown or mistyped parameter or configuration key.
    """
    overrides = overrides or {}
    known: dict[str, Any] = {"CONFIG": str, "STUDY": (str, NoneType)}
    known |= {name: (*types, NoneType) for name, (_, types) in overrides.items()}
    known |= dict.fromkeys(flags, bool)
    check_parameters(known, dict(namespace))
    changed = {key.replace(".", "__"): namespace[name] for name, (key, _) in overrides.items()
               if namespace[name] is not None}
    study = load_study(namespace["CONFIG"], namespace["STUDY"], **changed)
    install()
    pd.set_option("display.max_rows", 60, "display.precision", 3, "display.width", 160)
    print(f"tbstudy {__version__}, study {study.config.study}, seed {study.config.seed}, "
          f"rollouts {study.rollout_hash()}")
    return study


def played(result: CampaignResult) -> pd.DataFrame:
    """A campaign's counts as a small table."""
    # Not what was played just now: an executed notebook must read the same when nothing is left to play.
    stored = result.stored + result.played
    return pd.DataFrame([{"attempts wanted": result.wanted, "recorded": stored, "system errors": result.system_errors}])


def show(table: Table) -> pd.DataFrame:
    """A report table as printed, for a notebook."""
    return table.cells()
