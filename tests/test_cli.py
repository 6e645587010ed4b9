"""The command line as a stranger meets it: every option explained, pipes and wrong input handled."""

from __future__ import annotations

import argparse
import subprocess
import sys

import pytest

from tbstudy import cli
from tbstudy.pipeline import STAGES

TBSTUDY = [sys.executable, "-m", "tbstudy.cli"]


def commands(monkeypatch) -> dict[str, argparse.ArgumentParser]:
    """Every command's parser, by name."""
    caught = {}

    def stop(self, *_):
        caught["top"] = self
        raise SystemExit

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", stop)
    with pytest.raises(SystemExit):
        cli.main([])
    (subparsers,) = [a for a in caught["top"]._actions if isinstance(a, argparse._SubParsersAction)]
    return subparsers.choices


def test_every_option_says_what_it_does(monkeypatch):
    found = commands(monkeypatch)
    assert {"run", "record", "base-policy", "show", "evaluate", "launch", "new-domain"} <= set(found)
    silent = [f"{name} {'/'.join(a.option_strings)}" for name, parser in found.items() for a in parser._actions
              if a.option_strings and not a.help]
    assert silent == []


def test_run_names_the_stages(monkeypatch):
    text = " ".join(commands(monkeypatch)["run"].format_help().split())
    assert ", ".join(STAGES) in text


def test_help_states_the_exit_code_of_a_refused_score(monkeypatch, tmp_path):
    text = " ".join(commands(monkeypatch)["evaluate"].format_help().split())
    assert "Exits with 2 when coverage is not exact" in text
    monkeypatch.undo()
    empty = tmp_path / "x.jsonl"
    empty.write_text("")
    assert cli.main(["evaluate", str(empty)]) == 2


def test_a_pipe_that_closes_early_is_no_traceback():
    done = subprocess.run(["bash", "-c", f"{' '.join(TBSTUDY)} launch configs/reference-q38.yaml --dry-run | head -1"],
                          capture_output=True, text=True)
    assert done.stdout.startswith("# reference-q38") and "Traceback" not in done.stderr and "Broken" not in done.stderr
