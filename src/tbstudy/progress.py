"""Progress for people: a bar in a terminal or notebook, a line now and then elsewhere, a file for the pipeline."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tbstudy.disk import write_atomic
from tbstudy.errors import StudyError

#: Set to "lines" by the pipeline: its own bar shows the stage, the notebook keeps a few lines.
MODE = "TBSTUDY_PROGRESS"


class Progress:
    """Counts towards `total` under `label`. With `folder`, the pipeline can read the count from `.progress.json`.

    Nothing is shown where everything was there, so that a finished stage executes silently.
    """

    def __init__(self, label: str, total: int, folder: Path | None = None, unit: str = "episodes"):
        self.label, self.total, self.unit = label, total, unit
        self.file = folder / ".progress.json" if folder is not None else None
        self.count = 0
        self._opened = False
        self._bar: Any = None
        self._shown, self._written = time.monotonic(), 0.0
        self._tenth = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
        if self.file is not None:
            self.file.unlink(missing_ok=True)

    def found(self, steps: int) -> None:
        """Count `steps` that were there already: what is shown begins with the first that is new."""
        self.count += steps
        if self._bar is not None:
            self._bar.update(steps)
        self._note()

    def advance(self, steps: int) -> None:
        """Count `steps` more."""
        if not self._opened:
            self._opened = True
            self._open()
        self.count += steps
        if self._bar is not None:
            self._bar.update(steps)
        else:
            tenth = 10 * self.count // max(1, self.total)
            if tenth > self._tenth or time.monotonic() - self._shown > 30:
                self._tenth, self._shown = tenth, time.monotonic()
                print(f"{self.label}: {self.count} of {self.total} {self.unit}", flush=True)
        self._note()

    def campaign(self) -> Callable[[int], None]:
        """A counter for one of several campaigns: its first call says what was there."""
        counts = itertools.chain([self.found], itertools.repeat(self.advance))
        return lambda steps: next(counts)(steps)

    def _note(self) -> None:
        now = time.monotonic()
        if self.file is not None and (now - self._written > 0.5 or self.count >= self.total):
            self._written = now
            # On a full disk the records say so; a bar that stands still is no reason to stop.
            with contextlib.suppress(StudyError):
                write_atomic(self.file, json.dumps({"label": self.label, "count": self.count,
                                                    "total": self.total}).encode(), lasting=False)

    def _open(self) -> None:
        if os.environ.get(MODE) == "lines" or not (sys.stderr.isatty() or _in_notebook()):
            if self.count:
                print(f"{self.label}: {self.count} of {self.total} {self.unit} were there", flush=True)
            self._tenth = 10 * self.count // max(1, self.total)
            return
        from tqdm.auto import tqdm

        self._bar = tqdm(total=self.total, initial=self.count, desc=self.label, unit=self.unit.rstrip("s"))


def _in_notebook() -> bool:
    return "ipykernel" in sys.modules
