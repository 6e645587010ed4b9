"""Episodes as text and HTML: everything is there, nothing a model wrote acts."""

from __future__ import annotations

import argparse
import json
import re
from html.parser import HTMLParser

import pytest
from shown_records import OPENING, RECORDS, RIGHT, THINKINGBOX, UID, answer, assistant, record, write

from tbstudy.errors import StudyError
from tbstudy.report import cli_show
from tbstudy.report.style import VERMILION
from tbstudy.report.viewer import EpisodeView, call_line, compare_episodes, show_episode, write_page


class Checked(HTMLParser):
    """Collects tags and text, and insists that tags are closed in order."""

    def __init__(self, text: str):
        super().__init__()
        self.open, self.tags, self.attributes, self.data = [], [], [], ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        if tag not in ("br", "meta"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.data += data


def test_a_failed_attempt_shows_conversation_and_what_decided_it():
    view = show_episode(RECORDS, UID, 0, "base")
    assert (view.outcome, view.title) == ("failed", "lend.py:test_a #0 by base")
    page = Checked(view.html())
    assert page.tags.count("details") == 2, "system message and reasoning are folded"
    for text in ("failed", "Lend me the drill.", "reasoning, 2 words", "get_item", "answer of lend_item",
                 "Error: no such item", "2 differences in the final state", "missing", "loans", '{"item": "I-1"}',
                 "wrong", "due", "null", "policy tokens", "2,400 in, 60 out", "2 (unclosed_call)", "(unreadable)"):
        assert text in page.data, text
    types = [value for name, value in page.attributes if name == "title"]
    assert types == ["string", "boolean", "integer", "string"], "arguments show their type"
    text = view.text(80)
    assert 'missing row in loans: {"item": "I-1"}' in text
    assert "wrong items I-1, due: expected null, found 3" in text
    assert '-> get_item(item="I-1", deep=true, days=3)' in text and "<- Error: no such item" in text
    assert max(map(len, text.split("\n"))) <= 80


def test_columns_that_say_nothing_take_no_room():
    failed = json.loads(json.dumps(RECORDS[0]))
    failed["test_result"]["metadata"]["diff"] = failed["test_result"]["metadata"]["diff"][:1]
    page = EpisodeView(failed).html()
    assert ">expected<" in page and not any(f">{name}</th>" in page for name in ("row", "field", "actual"))


def test_nothing_that_a_model_wrote_acts():
    view = show_episode(RECORDS, UID, 0, "base")
    page = Checked(view.html())
    assert "script" not in page.tags and "b" in page.tags and "<script>alert(1)</script>" in page.data
    assert not any(name == "id" or name.startswith("on") for name, _ in page.attributes)
    assert "\x1b" not in view.text(80), "no terminal codes but ours"
    assert re.findall(r"\x1b\[[0-9;]*m", view.text(80, color=True))


def test_the_same_record_gives_the_same_text():
    views = [EpisodeView(json.loads(json.dumps(RECORDS[0]))) for _ in range(2)]
    assert views[0].html() == views[1].html() == views[0]._repr_html_()
    assert repr(views[0]) == repr(views[1]) and "reasoning, 2 words" in repr(views[0])


@pytest.mark.parametrize("which, outcome, told", [(1, "system error", "user: HTTP 500 from the user's endpoint"),
                                                  (2, "passed", "")])
def test_other_outcomes(which, outcome, told):
    view = EpisodeView(RECORDS[which])
    assert (view.outcome, view.why) == (outcome, told)
    assert told in Checked(view.html()).data and outcome.upper() in view.text()


def test_only_answers_that_failed_are_red():
    talk = [*OPENING, assistant(None, None, lend_item={}), answer("lend_item", "null"),
            assistant(None, None, get_nothing={}), answer("get_nothing", "")]
    ended = EpisodeView({**record("base", 0, True, talk), "finish_reason": "end_turn_tool"})
    cut = EpisodeView({**ended.record, "finish_reason": "agent_limit"})
    for view, red in ((ended, 0), (cut, 1)):
        assert view.html().count(f";color:{VERMILION}") == red
        assert view.text(80, color=True).count("\x1b[31m") == red


def test_a_thinkingbox_record_shows_its_traceback():
    view = show_episode([THINKINGBOX], UID)
    assert view.why == "AssertionError: hashes differ" and "hashes differ" in Checked(view.html()).data
    assert "-> lend_item(item=2)" in view.text() and "finish: done" in view.text()


def test_two_side_by_side_part_where_they_part(tmp_path):
    pair = compare_episodes(RECORDS, UID, 0, ("base", "trained"))
    assert pair.divergence == 4
    text = pair.text(130, reasoning=False)
    assert "from here on the two differ" in text and max(map(len, text.split("\n"))) <= 130
    rows = [line for line in text.split("\n") if "get_item" in line]
    assert all(line.count("get_item") == 2 for line in rows), "equal messages stand in one row"
    page = Checked(pair.html())
    assert page.data.count("from here on the two differ") == 2 and "failed" in page.data and "passed" in page.data
    assert "\n\nlend.py" in pair.text(90), "one after the other where it is narrow"
    same = compare_episodes([record("base", 0, True, RIGHT), record("trained", 3, True, RIGHT)], UID, (0, 3),
                            ("base", "trained"))
    assert same.divergence is None
    with pytest.raises(StudyError, match="two are compared"):
        compare_episodes(RECORDS, UID, 0, ("base",))
    page = write_page(pair, tmp_path / "deep" / "pair.html").read_text()
    assert page.startswith("<!doctype html>") and "http" not in page.replace("HTTP", "")


def test_the_pair_comes_from_one_campaign(tmp_path):
    write(tmp_path / "probe.jsonl", [record("base", 0, False, RIGHT)])
    write(tmp_path / "evaluate_test.jsonl", [record("base", 0, True, RIGHT), record("trained", 0, True, RIGHT)])
    pair = compare_episodes(tmp_path, UID, 0, ("base", "trained"))
    assert pair.left.outcome == "passed", "not the probe's attempt"


def test_call_line_is_typed():
    assert call_line("f", {"a": "x", "b": 1, "c": 1.0, "d": None, "e": [True]}) == \
        'f(a="x", b=1, c=1.0, d=null, e=[true])'


def show(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    cli_show.add_parser(parser.add_subparsers())
    args = parser.parse_args(["show", *map(str, arguments)])
    return args.run(args)


def test_the_command(tmp_path, capsys):
    path = write(tmp_path / "all.jsonl")
    assert show(path) == 0
    assert "all.jsonl, base: 1 tasks, 1 of 2 clean attempts passed, 0 system errors" in capsys.readouterr().out
    assert show(path, "--task", "test_a", "--policy", "base", "--width", "90") == 0
    out = capsys.readouterr().out
    assert "lend.py:test_a #0 by base" in out and "FAILED" in out, "a failed attempt is shown first"
    assert show(path, "--task", UID, "--policy", "base", "-r", "1") == 0
    assert "PASSED" in capsys.readouterr().out
    assert show(path, "--task", UID, "--against", "trained", "--width", "140") == 0
    assert "base" in (out := capsys.readouterr().out) and "from here on" in out
    assert show(path, "--task", UID, "--policy", "trained", "--html", tmp_path / "a.html") == 0
    assert (tmp_path / "a.html").exists()
    for arguments, told in ((["--task", "lend"], "more than one recorded task; it fits"),
                            (["--task", "xyz"], "names no recorded task"), (["--task", UID], "say which with --policy"),
                            (["--task", UID, "--policy", "nobody"], "recorded are base, trained")):
        with pytest.raises(StudyError, match=told):
            show(path, *arguments)


def test_a_long_list_is_a_short_table_with_the_next_command(tmp_path, capsys):
    outcomes = [(True, True), (True, False), (False, False)]
    records = [record(policy, r, passed, RIGHT, f"lend.py:test_{i:02d}") for policy in ("base", "trained")
               for i in range(12) for r, passed in enumerate(outcomes[i % 3])]
    path = write(tmp_path / "evaluate_test.jsonl", records)
    assert show(path) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5 and lines[1].split() == "evaluate_test.jsonl base 12 24 50.0 % 4 4 4 0".split()
    assert lines[3].endswith(f"tbstudy show {path} --task lend.py:test_01 --policy base"), "one that passes sometimes"
    assert lines[4].endswith(f"tbstudy show {path} --list")
    assert show(path, "--list") == 0
    assert "lend.py:test_11    0 of 2" in capsys.readouterr().out
    assert show(path, "--task", "test_01", "--policy", "base") == 0, "the hint is a command that works"
