"""Replay of golden calls, its variants and its report."""

import argparse
import json

import pytest
from ledgers import LEDGER, TASKS, in_sandbox, with_state

from tbstudy.errors import StudyError
from tbstudy.reward.checks import CheckRunner
from tbstudy.sandbox.cli import add_parser
from tbstudy.sandbox.replay import VARIANTS, Call, Replay, compare, golden_calls, rewritten

BASIC = [TASKS[f"ledger_group_basic.py:{n}"] for n in ("test_transfer", "test_blind", "test_nothing_to_do")]


def run(variants=VARIANTS):
    async def work(sandbox):
        with CheckRunner() as runner:
            return await Replay(sandbox, runner).run(BASIC, variants)

    return in_sandbox(work)


@pytest.fixture(scope="module")
def report():
    return run()


def outcome(report, uid):
    return {(t.variant, t.what): (t.passed, t.changed) for t in report.trials if t.uid.endswith(uid)}


def test_what_checks_notice(report):
    assert report.sound
    found = outcome(report, "test_transfer")
    assert found.pop(("golden", "")) == (True, False)
    assert found.pop(("noop", "")) == (False, True)
    assert found.pop(("dropped", "transfer #1")) == (False, True)
    assert found.pop(("dropped", "add_note #2")) == (False, True)
    assert found.pop(("repeated", "transfer #1")) == (False, True)
    assert found.pop(("repeated", "add_note #2")) == (False, True)
    # The text of a note is not part of the state that the check compares.
    assert found.pop(("rewritten", "add_note.text #2")) == (True, True)
    (variant, tool), (passed, changed) = found.popitem()
    assert (variant, tool, passed, changed) == ("stray", "add_note", False, True) and not found


def test_a_blind_check_is_found_out(report):
    found = outcome(report, "test_blind")
    assert found["noop", ""] == (False, True) and found["dropped", "set_flag #0"] == (False, True)
    assert found["dropped", "add_note #1"] == (True, True)
    assert found["repeated", "set_flag #0"] == (True, False)  # to set it again changes nothing
    spots = {(s["variant"], s["what"]): (s["passed"], s["of"]) for s in report.blind_spots()}
    assert spots["dropped", "add_note"] == (1, 2) and spots["rewritten", "add_note.text"] == (2, 2)
    assert ("repeated", "set_flag") not in spots


def test_reading_is_no_write(report):
    assert report.writes == {"ledger_group_basic.py:test_transfer": 2, "ledger_group_basic.py:test_blind": 2,
                             "ledger_group_basic.py:test_nothing_to_do": 0}
    found = outcome(report, "test_nothing_to_do")
    assert found["noop", ""] == (True, False) and ("dropped", "") not in found
    assert report.skipped["dropped"] == report.skipped["repeated"] == report.skipped["rewritten"] == 1


def test_the_report_as_table_and_json(report):
    counts = report.counts()
    assert counts["all"] == counts["ledger"] and counts["all"]["golden"]["passed"] == 3
    assert counts["all"]["noop"] == {"trials": 3, "passed": 1, "failed": 2, "system_error": 0, "unchanged": 1,
                                     "tasks": 3}
    table = report.table()
    assert "ledger  3      3/3     1/3   1/4" in table and "Blind spots" in table
    stored = json.loads(json.dumps(report.as_json()))
    assert compare(report, stored["trials"]) == []
    stored["trials"][0]["passed"] = False
    stored["trials"][1]["hashes"] = {"ledger": "other"}
    lines = compare(report, stored["trials"])
    assert len(lines) == 2 and lines[0].startswith("ledger_group_basic.py:test_transfer golden: passed True")
    assert "state hash" in lines[1]


def test_the_same_again(report):
    assert compare(run(), report.as_json()["trials"]) == []


def test_calls():
    assert [c.tool for c in golden_calls(TASKS["ledger_talk.py:test_history"])] == ["transfer"]
    call = Call("t", {"a": "some words", "b": "word", "c": 3, "d": " "})
    assert [(name, c.parameters["a"]) for name, c in rewritten(call)] == [("a", "Quite another text.")]
    deep = Call("t", {"item": {"subject": "two words", "n": 1}, "list": ["x", "y z", {"k": "v w"}]})
    changed = dict(rewritten(deep))
    assert list(changed) == ["item.subject", "list.[]", "list.[].k"]
    assert changed["list.[]"].parameters == {**deep.parameters, "list": ["x", "Quite another text.", {"k": "v w"}]}
    assert changed["item.subject"].parameters["item"] == {"subject": "Quite another text.", "n": 1}


def command(*words):
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    args = parser.parse_args(["replay", str(LEDGER), "--servers", str(LEDGER / "servers" / "servers.yaml"),
                              "--list", str(LEDGER / "lists" / "all.yaml"), *words])
    return args.run(args)


def test_the_command(tmp_path, capsys):
    path = tmp_path / "report.json"
    assert command("--json", str(path), "--variants", "golden,noop") == 0
    out = capsys.readouterr().out
    assert "3 tasks (ledger 3) over forked" in out and "ledger  3      3/3" in out
    stored = json.loads(path.read_text())
    assert stored["transport"] == "forked" and stored["dataset"] == "ledger" and len(stored["trials"]) == 6
    stored["trials"][0]["passed"] = False
    path.write_text(json.dumps(stored))
    assert command("--against", str(path), "--variants", "golden", "--transport", "process") == 1
    assert f"1 differences from {path} in 3 trials\n" in capsys.readouterr().out
    stored["trials"] = [t for t in stored["trials"] if t["variant"] == "noop"]
    path.write_text(json.dumps(stored))
    assert command("--against", str(path), "--variants", "golden") == 1
    assert f"0 differences from {path} in 0 trials; 3 trials are not there" in capsys.readouterr().out
    with pytest.raises(StudyError, match="unknown variants gold; known: golden, noop"):
        command("--variants", "golden,gold")


def test_a_golden_replay_that_fails_is_not_sound():
    async def work(sandbox):
        with CheckRunner() as runner:
            broken = with_state(TASKS["ledger_group_basic.py:test_transfer"], fail="effects")
            return await Replay(sandbox, runner).run([broken, TASKS["ledger_talk.py:test_hours"]], ("golden", "noop"))

    report = in_sandbox(work)
    assert not report.sound and "test_transfer golden : server ledger, __reserved__geteffects" in report.table()
    assert report.counts()["all"]["golden"] == {"trials": 1, "passed": 0, "failed": 0, "system_error": 1,
                                                "unchanged": 0, "tasks": 1}
    # A task without golden calls can only be looked at as it is.
    assert [(t.uid, t.variant) for t in report.trials[1:]] == [("ledger_talk.py:test_hours", "noop")]
    assert "1 tasks have no golden calls." in report.table()
