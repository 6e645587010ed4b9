"""The verdict of one attempt."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the task's own check said about the terminal state.

    `reward` is 1.0 or 0.0 for a clean attempt, or the number in [0, 1] that the check returned. With `system_error`
    there is no verdict: `passed` is False, `reward` is 0.0 and neither may be counted; `cause` is then check or judge.
    `diff` explains a failure: one dict a difference, with keys `kind` (wrong, missing, extra), `server`, `table`,
    `row`, `field`, `expected`, `actual`. `traceback` and `line` (of the test-case file) say where the check stopped,
    `prints` is what it printed, `metadata` what it or its fixtures wrote down, with the judge's answers.
    """

    passed: bool
    reward: float
    system_error: bool = False
    reason: str = ""
    diff: list[dict[str, Any]] = field(default_factory=list)
    cause: str = ""
    traceback: str = ""
    line: int | None = None
    prints: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
