import json

import numpy as np
import pytest
from campaign_records import READ, WRITE, campaign, openenv, record, thinkingbox, write

from tbstudy.errors import StudyError
from tbstudy.evaluation.anatomy import failures
from tbstudy.evaluation.attempts import (
    COLUMNS,
    domain_name,
    failed_answers,
    is_read_tool,
    is_tool_error,
    latest,
    read_attempts,
)


def test_our_records(tmp_path):
    diff = [{"kind": "wrong", "field": "plan"}, {"kind": "extra"}, {"kind": "wrong"}]
    chat = [
        {"role": "user", "content": "please"},
        {"role": "assistant", "content": "", "tool_calls": [READ, WRITE]},
        {"role": "tool", "content": "[]"},
        {"role": "tool", "content": "Error: not allowed"},
        {"role": "assistant", "content": "done"},
    ]
    two_calls = [{"role": "policy", "input_tokens": 5, "output_tokens": 2}] * 2 + [
        {"role": "judge", "input_tokens": 9, "output_tokens": 1}
    ]
    path = write(
        tmp_path / "a.jsonl",
        [
            record("a.py:t1", 0, True, domain="clinic"),
            record("a.py:t1", 1, False, diff=diff, messages=chat, usage=two_calls),
            record("a.py:t1", 2, broken=True),
        ],
    )
    table = read_attempts(path)
    assert list(table.columns) == list(COLUMNS)
    assert table.passed.tolist() == [True, False, False]
    assert table.system_error.tolist() == [False, False, True]
    assert table.error_type.tolist() == ["", "", "backend"]
    assert table.domain.tolist() == ["clinic", "telecom", "telecom"]
    assert table.loc[1, ["wrong", "missing", "extra"]].tolist() == [2, 0, 1]
    assert table.loc[1, ["tool_calls", "write_calls", "tool_errors", "last_tool_error"]].tolist() == [2, 1, 2, True]
    assert table.policy_input_tokens.tolist() == [100, 10, 100]
    assert table.judge_input_tokens[1] == 9 and np.isnan(table.judge_input_tokens[0])
    assert np.isnan(table.reward[2]) and table.reward[0] == 1.0
    assert table.line.tolist() == [1, 2, 3] and set(table.source) == {"a.jsonl"}


def test_a_check_that_broke_is_a_system_error(tmp_path):
    broken = record("a.py:t1", 0, True)
    broken["test_result"]["is_system_error"] = True
    table = read_attempts(write(tmp_path / "a.jsonl", [broken]))
    assert table.system_error[0] and not table.passed[0] and table.error_type[0] == "check"


def test_thinkingbox_records(tmp_path):
    tb = (
        "AssertionError: Database hash ...\n1. Path: tickets[0].status\n   Type: value mismatch\n   Result:  1\n"
        "2. Path: refunds[1]\n   Type: missing in result (present in golden)\n3. Path: notes[0]\n"
        "   Type: present in result (missing in golden)\n"
    )
    chat = [
        {"T": "Text", "role": "user", "content": "hi", "metadata": {}},
        {
            "T": "ParallelToolCall",
            "tool_calls": [{"T": "ToolCall", "name": "update_ticket", "arguments": {}, "id": "c"}],
        },
        {"T": "ToolResponse", "name": "update_ticket", "content": '{"success": false}', "id": "c"},
        {"T": "ToolCall", "name": "get_order", "arguments": {}, "id": "d"},
        {"T": "ToolResponse", "name": "get_order", "content": '{"id": 1}', "id": "d"},
    ]
    uid = "sandbox_external_retail_group1.py:test_case_ST002_001"
    rows = [
        thinkingbox(uid, 0, False, tb=tb, messages=chat),
        thinkingbox(uid, 1, True),
        thinkingbox(uid, 2, False, broken=True),
    ]
    table = read_attempts(write(tmp_path / "q38.jsonl", rows))
    assert set(table.policy) == {"q38"} and set(table.domain) == {"retail"}
    assert table.loc[0, ["wrong", "missing", "extra"]].tolist() == [1, 1, 1]
    assert table.loc[0, ["tool_calls", "write_calls", "tool_errors", "last_tool_error"]].tolist() == [2, 1, 1, False]
    assert table.policy_cached_tokens[0] == 600 and table.seconds[0] == 12.5
    assert table.system_error.tolist() == [False, False, True] and table.error_type[2] == "HTTPError"
    assert set(read_attempts(tmp_path / "q38.jsonl", policy="Qwen").policy) == {"Qwen"}


def test_openenv_records_and_errors_sidecar(tmp_path):
    uid = "external_booking_v1_group1_rubrics_yesno.py:test_1"
    results = write(tmp_path / "results.jsonl", [openenv(uid, 0, True), openenv(uid, 1, False)])
    entry = {"uid": uid, "repetition": 2, "attempt": 1, "classification": "operational_system_error", "retryable": True}
    errors = write(tmp_path / "errors.jsonl", [entry | {"provenance": openenv(uid, 2, True)["metadata"]["provenance"]}])
    table = read_attempts(results, errors=errors)
    assert (
        set(table.policy) == {"q38-rlft"} and set(table.domain) == {"travel"} and set(table.config_hash) == {"f" * 16}
    )
    assert table.system_error.tolist() == [False, False, True] and table.error_type[2] == "operational_system_error"
    with pytest.raises(StudyError, match="errors.jsonl:1"):
        write(errors, [{"repetition": 2}])
        read_attempts(results, errors=errors)


def test_a_packed_file_that_was_cut_and_a_reward_that_is_no_number_are_told_in_a_line(tmp_path):
    import gzip

    line = (json.dumps(record("a:b", 0)) + "\n").encode()
    packed = tmp_path / "cut.jsonl.gz"
    packed.write_bytes(gzip.compress(line * 200)[:-20])
    with pytest.raises(StudyError, match=r"cut.jsonl.gz: cannot be read beyond line \d+"):
        read_attempts(packed)
    (tmp_path / "r.jsonl").write_bytes(line.replace(b'"reward": 1.0', b'"reward": "yes"'))
    with pytest.raises(StudyError, match=r"r.jsonl:1: not an attempt record \(ValueError"):
        read_attempts(tmp_path / "r.jsonl")


def test_torn_last_line_is_reported_and_a_bad_line_inside_is_not_survived(tmp_path):
    path = write(tmp_path / "a.jsonl", campaign({"a.py:t1": 1}, 2), tail='{"uid": "a.py:t1", "metad')
    torn = []
    assert len(read_attempts(path, on_torn=torn.append)) == 2
    assert len(torn) == 1 and "a.jsonl:3: torn last line of 25 bytes" in torn[0]
    path.write_text('{"uid": \n' + json.dumps(record("a.py:t1", 0)) + "\n")
    with pytest.raises(StudyError, match="a.jsonl:1: not JSON"):
        read_attempts(path)


def test_foreign_files_and_incomplete_records_are_named(tmp_path):
    with pytest.raises(StudyError, match="unknown format"):
        read_attempts(write(tmp_path / "x.jsonl", [{"id": 3}]))
    lacking = record("a.py:t1", 1)
    del lacking["metadata"]["repetition"]
    with pytest.raises(StudyError, match="y.jsonl:2.*repetition"):
        read_attempts(write(tmp_path / "y.jsonl", [record("a.py:t1", 0), lacking]))
    with pytest.raises(StudyError, match="none.jsonl: cannot read"):
        read_attempts(tmp_path / "none.jsonl")


def test_latest_keeps_what_came_after_a_repair(tmp_path):
    rows = [
        record("a.py:t1", 0, broken=True),
        record("a.py:t1", 1, False),
        record("a.py:t2", 0, broken=True),
        record("a.py:t2", 0, broken=True),
        record("a.py:t1", 0, True),
        record("a.py:t3", 0, True),
        record("a.py:t3", 0, False),
    ]
    kept = latest(read_attempts(write(tmp_path / "a.jsonl", rows)))
    assert kept.line.tolist() == [2, 4, 5, 6, 7]


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("Error: no such line", True),
        ("[]", True),
        ("", True),
        ('{"error": "x"}', True),
        ('{"status": "error", "a": 1}', True),
        ('{"success": false}', True),
        ('{"status": "ERROR"}', True),
        ('{"id": 3, "note": "' + "x" * 300 + '", "error": {"code": 4}}', True),
        ('{"error": "no such line"}\n{"hint": "look first"}', True),
        ('{"error": null, "id": 3}', False),
        ('{"error": "", "errors": 0, "success": true}', False),
        ('{"rows": [{"kind": "error"}], "note": "the \\"error\\" of last week"}', False),
        ('{"error": ' * 5000, False),
        ('{"plan": "Max"}', False),
        ("errands: 3", False),
        ("No error here", False),
    ],
)
def test_tool_error_rule(content, error):
    assert is_tool_error(content) is error


def test_an_empty_answer_is_an_error_of_a_tool_that_reads():
    asks = {"role": "assistant", "content": "", "tool_calls": [READ, WRITE]}
    nameless = [asks, {"role": "tool", "content": "null"}, {"role": "tool", "content": "null"}]
    assert failed_answers(nameless) == [None, True, False]
    named = [asks, {"role": "tool", "name": "change_plan", "content": ""}, {"role": "tool", "content": "Error: no"}]
    assert failed_answers(named) == [None, False, True]
    assert failed_answers(nameless, changes=lambda name: name == "get_line") == [None, False, True]


def test_calls_of_the_turn_that_an_end_turn_tool_ended_have_no_answer(tmp_path):
    def chat(last):
        return [
            {"role": "assistant", "content": "", "tool_calls": [WRITE]},
            {"role": "tool", "content": "ok"},
            {"role": "assistant", "content": "", "tool_calls": [READ, READ]},
            {"role": "tool", "content": ""},
            {"role": "tool", "content": last},
        ]

    rows = [
        record("a.py:t1", 0, False, messages=chat(""), finish_reason="end_turn_tool"),
        record("a.py:t1", 1, False, messages=chat(""), finish_reason="agent_limit"),
        record("a.py:t1", 2, False, messages=chat("Error: busy"), finish_reason="end_turn_tool"),
    ]
    table = read_attempts(write(tmp_path / "a.jsonl", rows))
    assert table.tool_calls.tolist() == [3, 3, 3] and table.tool_errors.tolist() == [0, 2, 1]
    assert table.last_tool_error.tolist() == [False, True, True]


def test_a_call_that_an_end_turn_tool_kept_from_being_made_changes_no_state(tmp_path):
    chat = [
        {"role": "assistant", "content": "", "tool_calls": [READ]},
        {"role": "tool", "content": "ok"},
        {"role": "assistant", "content": "", "tool_calls": [WRITE, WRITE]},
        {"role": "tool", "content": ""},
        {"role": "tool", "content": ""},
    ]
    reasons = ("end_turn_tool", "agent_limit")
    rows = [record("a.py:t1", i, False, messages=chat, finish_reason=reason) for i, reason in enumerate(reasons)]
    table = read_attempts(write(tmp_path / "a.jsonl", rows))
    assert table.write_calls.tolist() == [0, 2] and table.tool_calls.tolist() == [3, 3]
    failed = failures(table)
    assert failed.signature.tolist()[0] == "no_state_change" and not failed.terminated_cleanly.iloc[0]


def test_read_tool_rule_and_override(tmp_path):
    assert is_read_tool("get_line") and is_read_tool("search") and not is_read_tool("getaway_book")
    chat = [{"role": "assistant", "content": "", "tool_calls": [READ, WRITE]}]
    path = write(tmp_path / "a.jsonl", [record("a.py:t1", 0, messages=chat)])
    assert read_attempts(path, writes=lambda name: True).write_calls[0] == 2


@pytest.mark.parametrize(
    ("name", "domain"),
    [
        ("sandbox_neobank_support_v1_group1_rubrics_yesno.py", "neobank"),
        ("sandbox_auto_insurance", "auto_insurance"),
        ("clinic.py", "clinic"),
        ("plan_change.py", "plan_change"),
    ],
)
def test_domain_names(name, domain):
    assert domain_name(name) == domain


def test_domain_override(tmp_path):
    path = write(tmp_path / "a.jsonl", [record("a.py:t1", 0)])
    assert read_attempts(path, domain_of=lambda uid: uid.upper()).domain[0] == "A.PY:T1"
