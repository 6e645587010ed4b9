"""Records as tables, in both formats."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from shown_records import OPENING, RECORDS, THINKINGBOX, UID, answer, assistant, record, write

from tbstudy.errors import StudyError
from tbstudy.report import frames


def test_tasks_count_clean_attempts_and_keep_system_errors_apart(tmp_path):
    table = frames.tasks(write(tmp_path / "probe.jsonl")).set_index(["policy", "uid"])
    assert table.loc[("base", UID), ["n", "k", "system_errors", "pass_rate"]].tolist() == [2, 1, 0, 0.5]
    assert table.loc[("trained", UID), ["n", "k", "pass_rate"]].tolist() == [2, 2, 1.0]
    assert table.loc[("base", UID), ["tool_calls", "write_calls", "tool_errors"]].tolist() == [1.5, 0.5, 0.5]
    assert table.loc[("base", UID), "policy_output_tokens"] == 60


def test_a_task_without_a_clean_attempt_has_no_rate(tmp_path):
    table = frames.tasks(write(tmp_path / "probe.jsonl", [RECORDS[1]]))
    assert table.n.tolist() == [0] and table.system_errors.tolist() == [1] and table.pass_rate.isna().all()


def test_messages_and_tool_calls():
    talk = frames.messages(RECORDS[:1])
    assert talk.role.tolist() == ["system", "user", "assistant", "tool", "assistant", "tool", "assistant"]
    assert talk["calls"].tolist() == [0, 0, 1, 0, 1, 0, 0] and talk.tool_error.tolist() == [False] * 5 + [True, False]
    assert talk.reasoning.iloc[2] == "Hm.\nWell." and talk.index.tolist() == talk["index"].tolist()
    calls = frames.tool_calls(RECORDS[:1])
    assert calls.tool.tolist() == ["get_item", "lend_item"] and calls.call.tolist() == [0, 1]
    assert calls.arguments.tolist() == [{"item": "I-1", "deep": True, "days": 3}, {"(unreadable)": '{"item": "I-'}]
    assert calls.answer.tolist() == ['{"free": true}', "Error: no such item"], "though both calls have one id"
    assert calls.error.tolist() == [False, True]
    assert calls.write.tolist() == [False, True]
    assert frames.tool_calls(RECORDS[:1], writes=lambda name: name == "get_item").write.tolist() == [True, False]


def test_thinkingbox_records_read_alike(tmp_path):
    path = tmp_path / "their-model.jsonl"
    path.write_text(json.dumps(THINKINGBOX) + "\n")
    talk = frames.messages(path)
    assert talk.policy.unique().tolist() == ["their-model"]
    assert talk.role.tolist() == ["system", "user", "assistant", "tool", "tool", "assistant"]
    assert talk.reasoning.iloc[2] == "I look." and talk["calls"].iloc[2] == 2
    calls = frames.tool_calls(path)
    assert calls.arguments.tolist() == [{"item": 1}, {"item": 2}] and calls.answer.tolist() == ["{}", '{"ok": true}']
    assert calls.error.tolist() == [True, False], "an empty look-up counts as an error"


def test_a_call_that_ended_the_turn_has_no_answer_and_is_no_error():
    talk = [*OPENING, assistant(None, None, get_item={"item": "I-1"}), answer("get_item", '{"error": null, "free": 1}'),
            assistant(None, None, get_nothing={}), answer("get_nothing", "")]
    ended = {**record("base", 0, False, talk), "finish_reason": "end_turn_tool"}
    assert not frames.messages([ended]).tool_error.any()
    calls = frames.tool_calls([ended])
    assert calls.answer.isna().tolist() == [False, True] and not calls.error.any()
    assert frames.tool_calls([{**ended, "finish_reason": "agent_limit"}]).error.tolist() == [False, True]


def test_finding_one_attempt(tmp_path):
    path = write(tmp_path / "all.jsonl")
    assert frames.find_record(path, UID, 1, "base")["test_result"]["result"], "clean replaces the system error"
    with pytest.raises(StudyError, match="played by base, trained; name the policy"):
        frames.find_record(path, UID)
    with pytest.raises(StudyError, match="no attempt lend.py:test_a repetition 9 of policy 'base' in .*all.jsonl"):
        frames.find_record(path, UID, 9, "base")
    with pytest.raises(StudyError, match="there are no records"):
        frames.find_record(tmp_path / "none.jsonl", UID)


def test_a_study_is_searched_probe_first_zipped_or_not(tmp_path):
    with pytest.raises(StudyError, match="holds no records"):
        frames.record_files(tmp_path)
    write(tmp_path / "evaluate_test.jsonl.gz", RECORDS[3:])
    write(tmp_path / "probe.jsonl.gz", RECORDS[:1])
    study = SimpleNamespace(folder=tmp_path)
    assert frames.find_record(study, UID)["metadata"]["policy"] == "base"
    assert frames.messages(study).source.unique().tolist() == ["probe.jsonl.gz", "evaluate_test.jsonl.gz"]


def test_a_torn_end_is_passed_over_and_a_broken_line_named(tmp_path):
    path = write(tmp_path / "a.jsonl", RECORDS[:2])
    path.write_bytes(path.read_bytes()[:-40])
    assert len(list(frames.read_records(path))) == 1
    path.write_text('{"uid": "a", "metadata": {"policy": "p"}}\n')
    with pytest.raises(StudyError, match=r"a.jsonl:1: not an attempt record \(KeyError: 'repetition'\)"):
        list(frames.read_records(path))
    path.write_text("{\n{}\n")
    with pytest.raises(StudyError, match="a.jsonl:1: not JSON"):
        list(frames.read_records(path))
