"""What a stage shows of its progress."""

from __future__ import annotations

import json

import pytest

from tbstudy.progress import MODE, Progress


@pytest.fixture(autouse=True)
def lines(monkeypatch):
    monkeypatch.setenv(MODE, "lines")


def test_what_was_there_already_is_not_shown(capsys, tmp_path):
    with Progress("evaluate", 30, tmp_path) as progress:
        for _ in range(3):
            progress.campaign()(10)
        assert json.loads((tmp_path / ".progress.json").read_text())["count"] == 30
    assert capsys.readouterr().out == "" and not list(tmp_path.iterdir())


def test_the_first_new_one_opens_with_all_that_was_there(capsys):
    with Progress("evaluate", 30) as progress:
        progress.campaign()(10)
        second = progress.campaign()
        second(5)
        assert capsys.readouterr().out == ""
        second(1)
        assert capsys.readouterr().out == "evaluate: 15 of 30 episodes were there\n"
        second(4)
        assert capsys.readouterr().out == "evaluate: 20 of 30 episodes\n"
        progress.campaign()(10)
        assert progress.count == 30
