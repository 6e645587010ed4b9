import argparse
import json

import pytest
import yaml

from tbstudy.errors import StudyError
from tbstudy.evaluation.cli import add_parser

UIDS = ["a.py:t1", "a.py:t2", "b.py:t1"]


def attempt(uid, repetition, passed, policy, broken=False):
    verdict = {"result": passed, "reward": float(passed), "is_system_error": False, "metadata": {"diff": []}}
    return {
        "uid": uid, "is_system_error": broken, "finish_reason": "done", "messages": [],
        "test_result": None if broken else verdict,
        "metadata": {"repetition": repetition, "policy": policy, "domain": uid[0], "config_hash": "c"},
        "usage": [{"role": "policy", "input_tokens": 100, "output_tokens": 10}],
    }  # fmt: skip


@pytest.fixture
def files(tmp_path):
    def write(name, rows):
        path = tmp_path / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    base = [attempt(u, r, (i + r) % 2 == 0, "base") for i, u in enumerate(UIDS) for r in range(4)]
    trained = [attempt(u, r, True, "trained") for u in UIDS for r in range(4)]
    (tmp_path / "tasks.yaml").write_text(yaml.safe_dump(UIDS))
    (tmp_path / "prices.yaml").write_text(
        "date: 2026-09-20\nsource: test\nmodels: {base: {input: 1, output: 2}, trained: {input: 1, output: 2}}\n"
    )
    return {
        "base": write("base.jsonl", base),
        "both": write("both.jsonl", base + trained),
        "short": write("short.jsonl", base[:-1] + [attempt("b.py:t1", 3, False, "base", broken=True)]),
        "tasks": tmp_path / "tasks.yaml",
        "prices": tmp_path / "prices.yaml",
        "out": tmp_path / "study",
    }


def command(*arguments):
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers(required=True))
    options = parser.parse_args([str(argument) for argument in arguments])
    return options.run(options)


def test_evaluate_prints_coverage_and_scores(files, capsys):
    assert command("evaluate", files["base"], "--tasks", files["tasks"], "--repeats", 4) == 0
    out = capsys.readouterr().out
    assert "| missing       |      0 |" in out and "base: 12 of 12 keys" in out
    assert "| base | all | 3 | 12 | 0 | 50.0" in out


def test_evaluate_refuses_and_then_labels(files, capsys):
    arguments = ["evaluate", files["short"], "--tasks", files["tasks"], "--repeats", 4]
    with pytest.raises(StudyError, match="system_errors 1: b.py:t1 #3"):
        command(*arguments)
    assert "pass@1" not in capsys.readouterr().out
    assert command(*arguments, "--allow-incomplete", "--system-errors", "fail") == 0
    assert "INCOMPLETE" in capsys.readouterr().out


def test_analyse_compares_and_writes_a_study_folder(files, capsys):
    assert command("analyse", files["both"], "--repeats", 4, "--prices", files["prices"], "--out", files["out"]) == 0
    out = capsys.readouterr().out
    assert "Change, base to trained" in out and "+50.0" in out and "Per success (USD)" in out
    index = json.loads((files["out"] / "report.json").read_text())
    names = {entry["name"] for entry in index["entries"]}
    assert {"summary", "differences", "transition", "ledger", "failures", "tokens", "cost", "pass_curves"} <= names
    assert (files["out"] / "tables" / "differences.tex").is_file() and (files["out"] / "figures" / "cost.pdf").is_file()


def test_analyse_renames_and_refuses_the_same_policy_twice(files, capsys):
    assert command("analyse", f"first={files['base']}", f"second={files['base']}", "--null", files["base"]) == 0
    assert "first to second" in capsys.readouterr().out
    with pytest.raises(StudyError, match="already given"):
        command("analyse", files["base"], files["base"])


def test_both_treatments_are_shown_when_there_are_system_errors(files, capsys):
    assert command("analyse", files["short"], "--allow-incomplete") == 0
    assert "System errors left out, and counted as failures" in capsys.readouterr().out


def test_a_task_list_that_is_none_is_named(files):
    files["tasks"].write_text("uids: 3\n")
    with pytest.raises(StudyError, match="tasks.yaml: expected a YAML list of uids"):
        command("evaluate", files["base"], "--tasks", files["tasks"])


def test_evaluate_asks_which_of_several_policies(files, capsys):
    with pytest.raises(StudyError, match=r"attempts of 2 policies; name one with --policy base\|trained"):
        command("evaluate", files["both"])
    assert capsys.readouterr().out == "", "no coverage of a mixture"
    assert command("evaluate", files["both"], "--policy", "trained") == 0
    assert "| trained | all | 3 | 12 | 0 | 100.0" in capsys.readouterr().out
