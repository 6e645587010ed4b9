"""A tiny checkpoint that any machine makes in a second, and a server of it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
import stamina

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def tiny_checkpoint(tmp_path_factory) -> Path:
    """An untrained model with a tokenizer of the telecom domain's words; it says nothing of sense."""
    import torch

    from tbstudy.policies.small_model import SmallConfig, SmallLM
    from tbstudy.policies.small_tokenizer import build_tokenizer
    from tbstudy.tasks.loader import load_dataset

    torch.set_num_threads(1)
    tasks = load_dataset(ROOT / "data" / "demo", ["telecom_plan_change.py:test_000"]).tasks.values()
    texts = [text for task in tasks for text in (*task.system, task.query, "What is your line number? <DONE>")] * 20
    tokenizer = build_tokenizer(texts, ["L-941", "Student"], 500)
    folder = tmp_path_factory.mktemp("tiny")
    SmallLM(SmallConfig(len(tokenizer), 32, 64, 2, 2, 1, 16)).initialise(0).save(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_brain(tiny_checkpoint):
    from model_server import Brain

    return Brain(tiny_checkpoint)


@pytest.fixture(autouse=True)
def direct(monkeypatch):
    """No proxy between the tests and their own server."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


@pytest.fixture
def no_pauses():
    """Retries follow at once; their number stays as configured."""
    with stamina.set_testing(True, attempts=100, cap=True):
        yield


@pytest.fixture
def run():
    """Runs a coroutine to its end."""
    return asyncio.run
