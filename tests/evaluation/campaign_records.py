"""Makes small campaigns: attempt records in our format, ThinkingBox's and OpenEnv's."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd

from tbstudy.evaluation.attempts import COLUMNS

READ = {"function": {"name": "get_line", "arguments": "{}"}, "id": "call_0", "type": "function"}
WRITE = {"function": {"name": "change_plan", "arguments": "{}"}, "id": "call_1", "type": "function"}


def record(uid, repetition, passed=True, *, policy="base", domain=None, broken=False, diff=(), messages=(), **changes):
    """One attempt in our format; `broken` makes a system error without a verdict."""
    metadata = {
        "repetition": repetition,
        "policy": policy,
        "scenario": "telecom",
        "domain": domain or "telecom",
        "config_hash": "0123456789abcdef",
        "interpretation_warnings": 0,
        "seconds": 0.5,
    }
    if broken:
        metadata["error"] = {"type": "backend", "message": "server died"}
    verdict = {
        "result": passed,
        "reward": float(passed),
        "is_system_error": False,
        "tb": "",
        "metadata": {"diff": list(diff)},
    }
    return {
        "uid": uid,
        "metadata": metadata | changes.pop("metadata", {}),
        "is_system_error": broken,
        "finish_reason": "done",
        "test_result": None if broken else verdict,
        "messages": list(messages),
        "usage": [{"role": "policy", "input_tokens": 100, "output_tokens": 10}],
        "tokens": {"prompt": 90, "generated": 10},
    } | changes


def write(path: Path, records: list[dict], tail: str = "") -> Path:
    path.write_text("".join(json.dumps(r) + "\n" for r in records) + tail, encoding="utf-8")
    return path


def campaign(counts: dict[str, int], n: int, **options) -> list[dict]:
    """`n` attempts of each task, the first `counts[uid]` of them passed."""
    return [record(uid, r, r < k, **options) for uid, k in counts.items() for r in range(n)]


def frame(passed: np.ndarray, *, policy="base", domains=("telecom",), files=1) -> pd.DataFrame:
    """An attempts table from a boolean array (tasks, attempts)."""
    tasks, n = passed.shape
    uid = [f"f{t % files}.py:test_{t:04}" for t in range(tasks)]
    table = pd.DataFrame(
        {
            "policy": pd.Categorical.from_codes(np.zeros(tasks * n, int), [policy]),
            "uid": pd.Categorical(np.repeat(uid, n)),
            "repetition": np.tile(np.arange(n), tasks),
            "domain": pd.Categorical(np.repeat([domains[t % len(domains)] for t in range(tasks)], n)),
            "file": pd.Categorical(np.repeat([u.partition(":")[0] for u in uid], n)),
            "passed": passed.ravel(),
            "reward": passed.ravel().astype(float),
            "system_error": False,
        }
    )
    for name, dtype in COLUMNS.items():
        if name not in table:
            table[name] = pd.Categorical([""] * len(table)) if dtype == "category" else np.zeros(len(table), dtype)
    return table


def thinkingbox(uid, repetition, passed, *, tb="", messages=(), broken=False) -> dict:
    """One attempt as `tb infer` writes it."""
    verdict = {
        "result": passed,
        "reward": float(passed),
        "is_system_error": False,
        "tb": tb,
        "prints": "",
        "lineno": 1,
        "line_content": "",
        "metadata": {},
    }
    return {
        "uid": uid,
        "messages": list(messages),
        "test_result": None if broken else verdict,
        "test_context": None,
        "usage": [
            {
                "input_tokens": 1000,
                "input_tokens_details": {"cached_tokens": 600},
                "output_tokens": 50,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": 1050,
            }
        ],
        "metadata": {
            "test_case_file": uid.split(":")[0],
            "repetition": repetition,
            "scenario": "sandbox_external_retail",
            "execution_time": 12.5,
        }
        | ({"error": {"type": "HTTPError", "message": "503"}} if broken else {}),
        "is_system_error": broken,
        "finish_reason": "done",
    }


def openenv(uid, repetition, passed) -> dict:
    """One canonical result of OpenEnv's `thinkingbox-eval`."""
    provenance = {"schema_version": 3, "config": {"sha256": "f" * 64, "agent_model": {"deployment": "q38-rlft"}}}
    return {
        "uid": uid,
        "messages": [],
        "test_result": {"result": passed, "reward": float(passed), "is_system_error": False},
        "test_tags": {},
        "usage": [{"input_tokens": 7, "output_tokens": 3}],
        "metadata": {
            "schema_version": 3,
            "repetition": repetition,
            "repetition_id": f"{uid}#{repetition}",
            "attempt": 1,
            "steps_taken": 4,
            "step_counts": {},
            "execution_provenance": {},
            "provenance": provenance,
        },
        "is_system_error": False,
        "finish_reason": "done",
    }
