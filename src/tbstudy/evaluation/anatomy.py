"""How attempts fail: what the verdict's diff says, how the episode ended, and one signature a failure.

Definitions are in docs/metrics.md. They describe what a record shows; they are no causal explanation.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

CLEAN_FINISH = ("done", "end_turn_tool", "user_done", "no_user_llm")
SIGNATURES = ("no_state_change", "tool_usage", "wrong_update", "incomplete")


def failures(attempts: pd.DataFrame) -> pd.DataFrame:
    """The failed clean attempts with two more columns: `terminated_cleanly` (bool) and `signature` (of `SIGNATURES`).

    Terminated cleanly: a regular finish reason, at least one call to a state-changing tool, and no error as the last
    tool answer: the attempt looks done and the state says it is not. Signatures are tried in the order of
    `SIGNATURES`: no state-changing call; a tool answer that was an error or empty; a wrong or extra effect; anything
    else.
    """
    failed = attempts[~attempts.system_error.astype(bool) & ~attempts.passed.astype(bool)].copy()
    wrote = failed.write_calls > 0
    regular = failed.finish_reason.astype(str).isin(CLEAN_FINISH)
    failed["terminated_cleanly"] = wrote & regular & ~failed.last_tool_error.astype(bool)
    choices = [~wrote, failed.tool_errors > 0, (failed.wrong + failed.extra) > 0]
    failed["signature"] = np.select(choices, SIGNATURES[:3], SIGNATURES[3])
    return failed


def anatomy(attempts: pd.DataFrame) -> pd.DataFrame:
    """Failure anatomy per policy: one row a policy, shares as fractions.

    Columns policy, attempts (clean), failed, terminated_cleanly (share of the failed), then shares of the cleanly
    terminated failures whose diff has a wrong field, an extra effect, a missing effect (they overlap) or no recorded
    difference, then one column a signature (shares of the failed, sum to 1).
    """
    rows = []
    for policy, group in attempts.groupby("policy", observed=True):
        failed = failures(group)
        clean = failed[failed.terminated_cleanly]
        explained = clean.wrong + clean.extra + clean.missing
        row = {
            "policy": policy,
            "attempts": int((~group.system_error.astype(bool)).sum()),
            "failed": len(failed),
            "terminated_cleanly": failed.terminated_cleanly.mean() if len(failed) else np.nan,
            "wrong_field": (clean.wrong > 0).mean() if len(clean) else np.nan,
            "extra_effect": (clean.extra > 0).mean() if len(clean) else np.nan,
            "missing_effect": (clean.missing > 0).mean() if len(clean) else np.nan,
            "nothing_recorded": (explained == 0).mean() if len(clean) else np.nan,
        }
        row |= {name: (failed.signature == name).mean() if len(failed) else np.nan for name in SIGNATURES}
        rows.append(row)
    return pd.DataFrame(rows)


def finish_reasons(attempts: pd.DataFrame) -> pd.DataFrame:
    """How episodes ended: policy, finish_reason, attempts, passed (count), pass_rate; system errors left out."""
    clean = attempts[~attempts.system_error.astype(bool)]
    grouped = clean.groupby(["policy", "finish_reason"], observed=True).passed
    table = grouped.agg(attempts="size", passed="sum").reset_index()
    return table.assign(pass_rate=table.passed / table.attempts)
