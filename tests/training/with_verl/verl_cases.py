"""What the tests of verl runs share."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tbstudy.training.verl.compose import verl_missing

ROOT = Path(__file__).parents[3]
CONFIGS = ROOT / "configs"
DEMO = ROOT / "data" / "demo"

needs_verl = pytest.mark.skipif(bool(verl_missing()), reason=f"the tests against verl: {verl_missing()}")


def write_pool(path: Path, train: list[str], test: list[str]) -> Path:
    """A pool manifest with a probe count of 3 of 8 for every task."""
    tasks = [{"uid": uid, "domain": uid.partition("_")[0], "band": "hard", "k": 3, "n": 8, "split": split}
             for split, uids in (("train", train), ("test", test)) for uid in uids]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({
        "format": "tbstudy-pool-1", "tasks": tasks, "outside": [], "funnel": [], "kept_bands": ["hard"], "seed": 1,
        "test_fraction": 0.4, "config_hash": "0" * 16}))
    return path
