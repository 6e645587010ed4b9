"""Exact coverage of a campaign: every (uid, repetition) key once, one policy, one config, nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tbstudy.errors import StudyError
from tbstudy.evaluation.attempts import latest

Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Coverage:
    """What a campaign's file holds against what it should hold.

    `missing` keys have no record; `system_errors` have no clean one; `duplicate` have more than one clean record;
    `unexpected` are not in the plan. `repaired` keys failed at first and have a clean record now, which is no fault.
    `planned` is False when the plan was inferred from the records, which cannot show a task that is wholly absent.
    """

    expected: int
    recorded: int
    missing: tuple[Key, ...]
    duplicate: tuple[Key, ...]
    unexpected: tuple[Key, ...]
    system_errors: tuple[Key, ...]
    repaired: tuple[Key, ...]
    torn: tuple[str, ...]
    policies: tuple[str, ...]
    config_hashes: tuple[str, ...]
    planned: bool

    @property
    def complete(self) -> bool:
        """True when a score over this campaign is exact: no fault of any kind, system errors included."""
        return not self.faults()

    def faults(self) -> dict[str, str]:
        """Fault name -> how many and which; empty when coverage is exact."""
        found: dict[str, str] = {}
        for name in ("missing", "duplicate", "unexpected", "system_errors"):
            keys = getattr(self, name)
            if keys:
                found[name] = f"{len(keys)}: {_name_keys(keys)}"
        if self.torn:
            found["torn"] = f"{len(self.torn)}: {'; '.join(self.torn)}"
        if len(self.policies) > 1:
            found["mixed_policies"] = f"{len(self.policies)}: {', '.join(self.policies)}"
        if len(self.config_hashes) > 1:
            found["mixed_configs"] = f"{len(self.config_hashes)}: {', '.join(self.config_hashes)}"
        return found

    def label(self) -> str:
        """One line for a table's note: "10,140 of 10,140 keys" or what is wrong."""
        text = f"{self.recorded:,} of {self.expected:,} keys"
        if not self.planned:
            text += " (plan inferred from the records)"
        faults = self.faults()
        return text if not faults else f"INCOMPLETE: {text}; " + "; ".join(f"{k} {v}" for k, v in faults.items())

    def require(self) -> None:
        """Raise `StudyError` naming every fault unless coverage is exact."""
        faults = self.faults()
        if faults:
            lines = "\n".join(f"  {name} {text}" for name, text in faults.items())
            of = f" for policy {self.policies[0]!r}" if len(self.policies) == 1 else ""
            raise StudyError(
                f"no score{of}: a score needs one clean attempt for each of {self.expected:,} keys (task and "
                f"repetition), of one policy and configuration\n{lines}\n{self._remedy()}"
            )

    def _remedy(self) -> str:
        if len(self.policies) > 1:
            return f"name one policy: {', '.join(self.policies)}"
        if self.duplicate or self.unexpected:
            return "remove the records that do not belong"
        return "repair the campaign, or ask for incomplete scores explicitly (they will be labelled)"

    def table(self) -> pd.DataFrame:
        """Columns check, keys, detail: one row per check, for a notebook or a report."""
        rows: list[tuple[str, int, str]] = [("expected", self.expected, ""), ("recorded", self.recorded, "")]
        for name in ("missing", "duplicate", "unexpected", "system_errors", "repaired"):
            keys = getattr(self, name)
            rows.append((name, len(keys), _name_keys(keys)))
        rows.append(("torn", len(self.torn), "; ".join(self.torn)))
        rows.append(("policies", len(self.policies), ", ".join(self.policies)))
        rows.append(("configs", len(self.config_hashes), ", ".join(self.config_hashes)))
        return pd.DataFrame(rows, columns=["check", "keys", "detail"])

    def to_run(self) -> tuple[Key, ...]:
        """The keys a repair has to run: missing and system-error keys, sorted."""
        return tuple(sorted({*self.missing, *self.system_errors}))


def check_coverage(
    attempts: pd.DataFrame,
    uids: Sequence[str] | None = None,
    repeats: int | None = None,
    *,
    torn: Sequence[str] = (),
) -> Coverage:
    """Compare attempts (as read, before `attempts.latest`) with the plan `uids` x range(`repeats`).

    Without `uids` or `repeats` the plan is inferred: the recorded uids, and the highest repetition + 1.
    """
    recorded_uids = attempts.uid.astype(str).to_numpy()
    repetition = attempts.repetition.to_numpy(int)
    broken = attempts.system_error.to_numpy(bool)
    planned = uids is not None and repeats is not None
    names = sorted(set(recorded_uids) if uids is None else set(uids))
    count = repeats if repeats is not None else int(repetition.max()) + 1 if len(repetition) else 0
    index = {uid: position for position, uid in enumerate(names)}
    position = np.array([index.get(uid, -1) for uid in recorded_uids], dtype=np.int64)
    inside = (position >= 0) & (repetition >= 0) & (repetition < count)

    slot = position * count + repetition
    clean_count = np.bincount(slot[inside & ~broken], minlength=len(names) * count)
    broken_count = np.bincount(slot[inside & broken], minlength=len(names) * count)

    def keys(mask: np.ndarray) -> tuple[Key, ...]:
        return tuple((names[place // count], int(place % count)) for place in np.flatnonzero(mask))

    return Coverage(
        expected=len(names) * count,
        recorded=int(((clean_count + broken_count) > 0).sum()),
        missing=keys((clean_count == 0) & (broken_count == 0)),
        duplicate=keys(clean_count > 1),
        unexpected=tuple(sorted(set(zip(recorded_uids[~inside].tolist(), repetition[~inside].tolist(), strict=True)))),
        system_errors=keys((clean_count == 0) & (broken_count > 0)),
        repaired=keys((clean_count == 1) & (broken_count > 0)),
        torn=tuple(torn),
        policies=tuple(sorted(set(attempts.policy.astype(str)))),
        config_hashes=tuple(sorted(set(attempts.config_hash.astype(str)) - {""})),
        planned=planned,
    )


def scored(attempts: pd.DataFrame, coverage: Coverage, *, allow_incomplete: bool = False) -> pd.DataFrame:
    """The attempts a score may be computed from. Raises `StudyError` unless coverage is exact or need not be.

    Duplicates and unexpected keys are never scored, even when allowed: which record would count is anybody's guess.
    """
    if not allow_incomplete:
        coverage.require()
    elif coverage.duplicate or coverage.unexpected or len(coverage.policies) > 1:
        coverage.require()
    return latest(attempts)


def _name_keys(keys: Sequence[Key], limit: int = 5) -> str:
    shown = ", ".join(f"{uid} #{repetition}" for uid, repetition in keys[:limit])
    return shown + (f", and {len(keys) - limit} more" if len(keys) > limit else "")
