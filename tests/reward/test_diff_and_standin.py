"""Explaining a failure, and the parts of the stand-in test API that a check may call."""

from types import SimpleNamespace

import pytest

from tbstudy.reward.diff import explain
from tbstudy.reward.standin.answers import describe_location
from tbstudy.reward.standin.chat import Text
from tbstudy.reward.standin.graders import average_reward, match_score
from tbstudy.reward.standin.judge import Judge, JudgeException, is_yes
from tbstudy.reward.standin.rubrics import RubricConfig, RubricJudge, RubricScore


def test_differences_of_this_packages_servers_pass_through():
    item = {"kind": "extra", "server": "s", "table": "t", "row": None, "field": None, "expected": None, "actual": {}}
    assert explain({"s": {"diff": [item]}, "other": {"diff": []}, "third": {}, "fourth": None}) == [item]


def test_shifted_rows_are_compared_by_id():
    want = [{"id": "A", "v": 1, "text": "x"}, {"id": "B", "v": 2, "text": "y"}, {"id": "C", "v": 3, "text": "z"}]
    got = [{"id": "B", "v": 2, "text": "other words"}, {"id": "C", "v": 9, "text": "z"}]
    effect = {"golden_db_state": {"t": want}, "result_db_state": {"t": got}, "diff": [
        {"path": "t", "type": "length mismatch", "result": 2, "golden": 3},
        {"path": "t[0].id", "type": "value mismatch", "result": "B", "golden": "A"},
        {"path": "t[0].v", "type": "value mismatch", "result": 2, "golden": 1},
        {"path": "t[2]", "type": "missing in result (present in golden)"}]}
    assert [(d["kind"], d["row"], d["field"], d["expected"], d["actual"]) for d in explain({"s": effect})] == [
        ("missing", "A", None, want[0], None), ("wrong", "C", "v", 3, 9)]


def test_rows_without_an_id_keep_their_place():
    effect = {"golden_db_state": {"t": [{"v": 1}]}, "result_db_state": {"t": [{"v": 2}, {"v": 3}]}, "diff": [
        {"path": "t", "type": "length mismatch", "result": 2, "golden": 1},
        {"path": "t[0].v", "type": "value mismatch", "result": 2, "golden": 1},
        {"path": "t[1]", "type": "present in result (missing in golden)"}]}
    assert [(d["kind"], d["table"], d["row"], d["field"], d["expected"], d["actual"]) for d in explain(
        {"s": effect})] == [("wrong", "t", 0, "v", 1, 2), ("extra", "t", 1, None, None, None)]
    assert explain({"s": {"diff": ["strange"]}})[0]["actual"] == "strange"


@pytest.mark.parametrize(("reply", "yes"), [
    ("Yes", True), ("yes.", True), ("Reasoning first.\nYes", True), ("YES, because", True), ("No", False),
    ("**Yes**", True), ("_Yes_", True), ("(Yes)", True), ("No. I cannot say yes.", False), ("**No**, yes", False),
    ("no, yes is wrong", False), ("", False), ("yesterday", False)])
def test_reading_yes(reply, yes):
    assert is_yes(reply) is yes


class Model:
    def __init__(self, reply):
        self.reply = reply

    def get_completion_sync(self, conversation, update_conversation):
        if isinstance(self.reply, Exception):
            raise self.reply
        return [Text("assistant", "thinking", {"tag": "think"}), Text("assistant", self.reply)]


@pytest.mark.parametrize(("reply", "answer", "motivation"), [
    ('{"motivation": "so", "answer": "Yes"}', True, "so"), ("{'motivation': \"so\", answer: \"No\"}", False, "so")])
def test_answers_with_motivation(reply, answer, motivation):
    judge = Judge(Model(reply), "motivation")
    assert judge.text_yesno("text", "question?") is answer
    assert judge.drain_decisions() == [{"question": "question?", "answer": answer, "motivation": motivation}]
    assert judge.drain_decisions() == []


@pytest.mark.parametrize(("reply", "kind"), [
    ("", "legacy"), ("perhaps", "legacy"), ("<html>502</html>", "legacy"), ("nothing", "legacy"),
    ("Yes", "motivation"), ('{"motivation": "so"}', "motivation"), ('{"answer": "so"}', "motivation"),
    ("[" * 100_000, "motivation")])
def test_a_reply_that_is_neither_yes_nor_no_is_no_answer(reply, kind):
    judge = Judge(Model(reply), kind)
    with pytest.raises(JudgeException, match="no answer"):
        judge.text_yesno("text", "question?")
    assert judge.unanswered and judge.drain_decisions() == []


def test_a_judge_without_an_answer():
    with pytest.raises(JudgeException, match="no answer from the judge: gone"):
        Judge(Model(OSError("gone"))).yesno("q")
    with pytest.raises(ValueError, match="judge_type"):
        Judge(None, "other")


def test_rubric_reward():
    class X:
        metadata = {}

    judge = RubricJudge(None, X())

    def score(weight, rating, penalty=False, kind="deduction"):
        return RubricScore("c", weight, rating, weight * rating, penalty, kind)

    # (2 of 3 points earned, less half a point) / 3, of which a fifth is taken
    assert judge.compute_reward([score(2, 1), score(1, 0), score(0.5, 1, True), score(
        0.2, 1, True, "multiplicative")]) == pytest.approx(1.5 / 3 * 0.8)
    assert judge.compute_reward([score(1, 1, True)]) == 0.0
    assert judge.compute_reward([score(1, 0), score(3, 1, True)]) == 0.0
    assert RubricJudge(None, X(), lambda s: 7).compute_reward([]) == 1.0
    for wrong in ({"weight": -1}, {"weight": 2, "is_penalty": True, "penalty_type": "multiplicative"},
                  {"weight": 1, "penalty_type": "other"}):
        with pytest.raises(ValueError):
            RubricConfig("c", **wrong)
    with pytest.raises(ValueError, match="no rubrics"):
        judge.evaluate("text", [])


def test_a_response_without_a_word_earns_nothing():
    x = SimpleNamespace(metadata={})
    silent = RubricJudge(None, x, lambda scores: 1.0).evaluate(" ", [RubricConfig("c", 1), RubricConfig("d", 1, True)])
    assert silent.reward == 0.0 and not silent.passed and [s.rating for s in silent.scores] == [0, 0]
    assert x.metadata["rubric_reward"] == 0.0
    with pytest.raises(AssertionError, match="below the threshold"):
        RubricJudge(None, x).evaluate("", [RubricConfig("c", 1)], throw_on_failure=True)


def test_graders():
    assert average_reward({}) == 0 and average_reward({"a": 1, "b": 0}) == 0.5
    assert average_reward({"a": 1, "b": 0}, {"a": 3, "b": 1, "c": 9}) == 0.75
    assert average_reward({"a": 1}, {"b": 1}) == 0
    assert match_score([1], [1]) == 1 and match_score({"a": 1, "b": 2}, {"a": 1}, partial=True) == 1
    with pytest.raises(ValueError):
        match_score("1", 1)
    with pytest.raises(AssertionError):
        match_score(1, 2, is_critical=True)


@pytest.mark.parametrize(("place", "words"), [
    ("p3", "page 3"), ("p3-5", "pages 3 through 5"), ("p3+p8", "both page 3 and page 8"), ("p3,r8", "page 3, or row 8"),
    ("p1+p2+r7-9", "page 1, page 2, and rows 7 through 9"), ("July:r42", "row 42 of sheet 'July'"),
    ("J:r4-6", "rows 4 through 6 of sheet 'J'"), ("Multiple_Sheets", "multiple sheets"), ("appendix", "appendix")])
def test_places_in_words(place, words):
    assert describe_location(place) == words
