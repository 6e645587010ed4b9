"""verl's reward function over our verdicts, which the agent loop has reached where the terminal state was at hand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tbstudy.errors import SystemFault
from tbstudy.reward.verdict import Verdict
from tbstudy.sandbox.episode import Episode

#: The key under which an attempt's verdict travels from the agent loop to the reward function.
KEY = "tbstudy_verdict"


def verdict_fields(episode: Episode, verdict: Verdict | None, validating: bool) -> dict[str, Any]:
    """What the agent loop hands on about an attempt: numbers and short codes, nothing of the task's secrets."""
    fault = episode.fault
    return {KEY: {
        "uid": episode.task.uid, "reward": verdict.reward if verdict is not None and fault is None else 0.0,
        "system_error": fault is not None, "cause": fault.cause if fault is not None else "",
        "finish_reason": episode.finish_reason, "truncated": episode.cut, "validating": validating,
        "policy_turns": sum(u.role == "policy" for u in episode.usage),
        "user_calls": max(0, _said_by_user(episode.messages) - _said_by_user(episode.task.history) - 1),
        "tool_calls": len(episode.tool_calls)}}


def _said_by_user(messages: Iterable[dict[str, Any]]) -> int:
    return sum(m["role"] == "user" for m in messages)


def compute_score(data_source: str, solution_str: str, ground_truth: str, extra_info: dict[str, Any],
                  **_: Any) -> dict[str, float]:
    """The score of one attempt and what is logged beside it; the text itself is never looked at.

    Raises:
        SystemFault: a training attempt without a verdict, so that its group is refilled rather than scored as failed.
        KeyError: no verdict came with the attempt: another agent loop has played it.
    """
    found = extra_info[KEY]
    if found["system_error"] and not found["validating"]:
        raise SystemFault(found["cause"], f"{found['uid']}: system error, no score")
    return {"score": float(found["reward"]), "acc": float(found["reward"]),
            "system_error": float(found["system_error"]), "truncated": float(found["truncated"]),
            "policy_turns": float(found["policy_turns"]), "user_calls": float(found["user_calls"]),
            "tool_calls": float(found["tool_calls"])}
