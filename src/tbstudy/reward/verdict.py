"""The verdict of one attempt."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the task's own check said about the terminal state.

    `reward` is 1.0 or 0.0 for a clean attempt. With `system_error` there is no verdict: `passed` is False, `reward`
    is 0.0 and neither may be counted. `diff` explains a failure: one dict a difference, with keys `kind` (wrong,
    missing, extra), `server`, `table`, `row`, `field`, `expected`, `actual`.
    """

    passed: bool
    reward: float
    system_error: bool = False
    reason: str = ""
    diff: list[dict[str, Any]] = field(default_factory=list)
