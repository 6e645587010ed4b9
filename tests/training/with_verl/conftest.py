"""A small tokenizer, a pool over the bundled tasks, and a run configuration that needs nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from verl_cases import CONFIGS, DEMO, write_pool


@pytest.fixture(scope="session")
def tokenizer():
    """The small policy's chat template over a vocabulary of the telecom domain's words."""
    from tbstudy.policies.small_tokenizer import build_tokenizer
    from tbstudy.tasks.loader import load_dataset

    tasks = load_dataset(DEMO, ["telecom_plan_change.py:test_000"]).tasks.values()
    texts = [text for task in tasks for text in (*task.system, task.query, "What is your line number? <DONE>")] * 20
    return build_tokenizer(texts, ["L-941", "Student"], 500)


@pytest.fixture
def pool(tmp_path) -> Path:
    uids = [f"telecom_plan_change.py:test_{i:03d}" for i in range(12)]
    return write_pool(tmp_path / "pool.json", uids[:8], uids[8:])


@pytest.fixture
def small_config(tmp_path, pool, tokenizer) -> Path:
    """A CPU run over the bundled tasks with an untrained checkpoint; everything lies in `tmp_path`."""
    from tbstudy.policies.small_model import SmallConfig, SmallLM

    model = tmp_path / "model"
    SmallLM(SmallConfig(len(tokenizer), 32, 64, 2, 2, 1, 16)).initialise(0).save(
        model, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id)
    tokenizer.save_pretrained(model)
    raw = yaml.safe_load((CONFIGS / "reference-small-cpu.yaml").read_text())
    raw |= {"root": str(tmp_path), "pins": {}}
    raw["model"]["path"] = "model"
    raw["data"] |= {"dataset": str(DEMO), "servers": str(DEMO / "servers.yaml"), "pool": str(pool),
                    "benchmark": str(DEMO / "lists" / "benchmark.yaml")}
    raw["lengths"] = {"prompt": 2500, "response": 1500, "model": 4000}
    raw["checkpoints"]["folder"] = "checkpoints"
    path = tmp_path / "run.yaml"
    path.write_text(yaml.safe_dump(raw))
    return path
