"""A study small enough for tests, on the bundled dataset and the recorded base policy."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, settings

# How fast a busy machine generates examples says nothing about the code.
settings.register_profile("study", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("study")

ROOT = Path(__file__).parents[1]


@pytest.fixture
def mini_config(tmp_path: Path) -> Path:
    """A configuration with 32 candidates, 10 benchmark tasks and 3 updates, beside its lists."""
    lists = ROOT / "data" / "demo" / "lists"
    candidates = yaml.safe_load((lists / "candidates.yaml").read_text())
    benchmark = yaml.safe_load((lists / "benchmark.yaml").read_text())
    for name, uids in (("candidates", candidates[::8][:32]), ("benchmark", benchmark[::12])):
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(uids))
    raw = {
        "study": "mini", "seed": 3, "root": str(ROOT), "dataset": "data/demo", "servers": "servers.yaml",
        "candidates": str(tmp_path / "candidates.yaml"), "benchmark": str(tmp_path / "benchmark.yaml"),
        "policy": {"kind": "local", "checkpoint": "data/recorded/base_policy", "wave": 24, "workers": 2},
        "probe": {"attempts": 4, "min_clean": 2},
        "train": {"updates": 3, "groups": 2, "rollouts": 4, "lr": 1.0e-3},
        "evaluate": {"attempts": 3}, "analyse": {"resamples": 200}}
    path = tmp_path / "mini.yaml"
    path.write_text(yaml.safe_dump(raw))
    return path
