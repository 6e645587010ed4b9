"""One part of a study in a process of its own: pipeline_stage.py CONFIG CASE PART [--again].

CASE holds study/ and reports/. Trouble for people is one line and exit status 2. With --again the part is called a
second time in this process after a StudyError, as a notebook's cell is once there is space on the disk again.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tbstudy import stages
from tbstudy.config import load_study
from tbstudy.errors import StudyError


def run(config: str, case: Path, part: str) -> None:
    """Everything of the part that is missing."""
    study = load_study(config, case / "study")
    if part == "probe":
        stages.probe(study)
        stages.select(study)
    elif part == "train":
        stages.train(study)
    elif part == "evaluate":
        stages.evaluate(study)
    else:
        from tbstudy.outcome import outcome, write_report
        from tbstudy.pipeline import freeze_report

        write_report(study, outcome(study))
        freeze_report(study, case / "reports")


def space_returns() -> None:
    """Tell the injected disk that it is full no longer."""
    with open(os.environ["FAULT_STATE"], "r+b") as state:
        state.seek(8)
        state.write((2).to_bytes(8, "little"))


if __name__ == "__main__":  # workers import this module when they are spawned
    config, case, part = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    try:
        run(config, case, part)
    except KeyboardInterrupt:
        sys.exit(130)
    except StudyError as error:
        print(f"trouble: {error}", flush=True)
        if "--again" not in sys.argv:
            sys.exit(2)
        space_returns()
        run(config, case, part)
