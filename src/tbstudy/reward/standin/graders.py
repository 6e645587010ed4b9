"""Partial credit for checks that return a number."""

from __future__ import annotations

from typing import Any


def average_reward(rewards: dict[str, float], weights: dict[str, float] | None = None) -> float:
    """Mean of the rewards by name, or their weighted mean over the names that have a weight; 0 if there are none."""
    if not weights:
        return sum(rewards.values()) / len(rewards) if rewards else 0.0
    names = rewards.keys() & weights.keys()
    if not names:
        return 0.0
    return sum(rewards[n] * weights[n] for n in names) / sum(weights[n] for n in names)


def match_score(result: Any, expected: Any, partial: bool = False, is_critical: bool = False) -> float:
    """1 for equal values, else 0; with `partial`, the share of an expected mapping's items that the result has.

    Raises:
        ValueError: values of different types, or `partial` without a mapping.
        AssertionError: `is_critical` and the score is below 1.
    """
    if type(result) is not type(expected):
        raise ValueError(f"cannot compare a {type(result).__name__} with a {type(expected).__name__}")
    if partial and not isinstance(expected, dict):
        raise ValueError("partial matching needs mappings")
    if partial:
        score = sum(k in result and result[k] == v for k, v in expected.items()) / len(expected)
    else:
        score = float(result == expected)
    if is_critical and score < 1:
        raise AssertionError(f"critical match failed with score {score}: expected {expected!r}, got {result!r}")
    return score
