import pytest
from campaign_records import READ, WRITE, record, write

from tbstudy.evaluation import anatomy, finish_reasons, read_attempts
from tbstudy.evaluation.anatomy import failures


def chat(*steps):
    """`steps` are tool calls (dicts) and tool answers (strings), in order."""
    return [
        {"role": "tool", "content": s}
        if isinstance(s, str)
        else {"role": "assistant", "content": "", "tool_calls": [s]}
        for s in steps
    ]


def diff(*kinds):
    return [{"kind": kind} for kind in kinds]


ATTEMPTS = [
    # signature, terminated cleanly, diff kinds
    ("no_state_change", False, record("a.py:t", 0, False, messages=chat(READ, "{}"), diff=diff("missing"))),
    (
        "tool_usage",
        True,
        record("a.py:t", 1, False, messages=chat(READ, "[]", WRITE, "ok"), diff=diff("wrong", "missing")),
    ),
    ("tool_usage", False, record("a.py:t", 2, False, messages=chat(WRITE, "Error: no"), diff=diff("missing"))),
    ("wrong_update", True, record("a.py:t", 3, False, messages=chat(WRITE, "ok"), diff=diff("extra", "wrong"))),
    ("incomplete", True, record("a.py:t", 4, False, messages=chat(WRITE, "ok"), diff=diff("missing"))),
    ("incomplete", False, record("a.py:t", 5, False, messages=chat(WRITE, "ok"), finish_reason="agent_limit")),
]
OTHERS = [record("a.py:t", 6, True, messages=chat(WRITE, "ok")), record("a.py:t", 7, broken=True)]


@pytest.fixture
def attempts(tmp_path):
    return read_attempts(write(tmp_path / "a.jsonl", [r for _, _, r in ATTEMPTS] + OTHERS))


def test_every_failure_gets_the_signature_of_its_definition(attempts):
    found = failures(attempts)
    assert found.signature.tolist() == [signature for signature, _, _ in ATTEMPTS]
    assert found.terminated_cleanly.tolist() == [clean for _, clean, _ in ATTEMPTS]


def test_a_turn_ended_by_a_tool_is_a_clean_end(tmp_path):
    said = chat(WRITE, "null", READ, "")
    row = record("a.py:t", 0, False, messages=said, diff=diff("wrong"), finish_reason="end_turn_tool")
    found = failures(read_attempts(write(tmp_path / "a.jsonl", [row])))
    assert found.signature.tolist() == ["wrong_update"] and found.terminated_cleanly.tolist() == [True]


def test_shares(attempts):
    row = anatomy(attempts).iloc[0]
    assert (row.policy, row.attempts, row.failed) == ("base", 7, 6)
    assert row.terminated_cleanly == pytest.approx(3 / 6)
    assert (row.wrong_field, row.extra_effect, row.missing_effect) == pytest.approx((2 / 3, 1 / 3, 2 / 3))
    assert row.nothing_recorded == 0
    signatures = row[["no_state_change", "tool_usage", "wrong_update", "incomplete"]]
    assert signatures.tolist() == pytest.approx([1 / 6, 2 / 6, 1 / 6, 2 / 6])


def test_finish_reasons(attempts):
    table = finish_reasons(attempts).set_index("finish_reason")
    assert table.loc["done", ["attempts", "passed"]].tolist() == [6, 1]
    assert table.loc["agent_limit", "pass_rate"] == 0
