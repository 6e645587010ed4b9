"""Replays a bundled task's calls on its own server and judges the end with the check of its file."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

from tbstudy.sandbox.sqlite import dump, open_database
from tbstudy.tasks.loader import load_dataset
from tbstudy_demo.generate import items
from tbstudy_demo.registry import DOMAINS

ROOT = Path(__file__).parents[2] / "data" / "demo"


class Replay:
    """One task as its files hold it, prepared once and replayed many times; `item` is what it was drawn from."""

    def __init__(self, task, item, check):
        self.task, self.item, self.server = task, item, item.domain.server
        config = task.world_state[task.domain]
        self.calls = [(c["tool"], c["parameters"]) for c in config["golden_test_case"]["tool_interactions"]]
        self.snapshot, self.golden, self._check = self.server.prepare(config), self.server.golden_state(config), check

    def run(self, calls):
        """(answers, indices of the calls that changed the state, whether the task's check passes)."""
        db = open_database(self.snapshot)
        answers, writes, before = [], [], dump(db, self.server.keys)
        for i, (tool, arguments) in enumerate(calls):
            answers.append(self.server.invoke(db, tool, arguments))
            after = dump(db, self.server.keys)
            if after != before:
                writes.append(i)
            before = after
        return answers, writes, self._judge(db)

    def passes(self, calls) -> bool:
        """Whether the task's check passes after the calls."""
        db = open_database(self.snapshot)
        for tool, arguments in calls:
            self.server.invoke(db, tool, arguments)
        return self._judge(db)

    def _judge(self, db) -> bool:
        effects = self.server.effects(db, self.golden)
        db.close()
        try:
            self._check(types.SimpleNamespace(effects={self.task.domain: effects}))
        except AssertionError as failure:
            assert effects["diff"] and all(d["table"] in str(failure) for d in effects["diff"]), "explained"
            return False
        assert not effects["diff"]
        return True


@pytest.fixture(scope="session")
def dataset():
    return load_dataset(ROOT)


@pytest.fixture(scope="session")
def replays(dataset):
    """Every task of the committed dataset by domain."""
    api = types.ModuleType("thinkingbox.common")
    api.TestContext = types.SimpleNamespace
    checks: dict[Path, dict] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "thinkingbox", types.ModuleType("thinkingbox"))
        patch.setitem(sys.modules, "thinkingbox.common", api)
        for task in dataset.tasks.values():
            if task.file not in checks:
                checks[task.file] = {}
                exec(compile(task.file.read_text(encoding="utf-8"), str(task.file), "exec"), checks[task.file])
    return {name: [Replay(dataset.tasks[i.uid], i, checks[dataset.tasks[i.uid].file][i.function])
                   for i in items(name)] for name in DOMAINS}
