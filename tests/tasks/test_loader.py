"""The dataset loader, on a dataset of its own and on broken copies of it."""

import math
import os
import shutil
from pathlib import Path

import pytest

from tbstudy.errors import StudyError, SystemFault
from tbstudy.reward.checks import CheckRunner
from tbstudy.tasks.history import replay_calls
from tbstudy.tasks.loader import load_dataset, load_list, merge
from tbstudy.tasks.source import check_module, read_functions

LEDGER = Path(__file__).parents[1] / "data" / "ledger"


@pytest.fixture
def dataset(tmp_path):
    shutil.copytree(LEDGER, tmp_path / "ledger")
    return tmp_path / "ledger"


def change(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_all_tasks_but_the_skipped_ones():
    data = load_dataset(LEDGER)
    assert data.agent == "clerk"
    assert list(data.tasks) == [f"ledger_group_basic.py:{n}" for n in (
        "test_transfer", "test_blind", "test_nothing_to_do", "test_rubric", "test_fixtures")] + [
        f"ledger_talk.py:{n}" for n in ("test_history", "test_ticket", "test_hours")]
    assert data.by_domain() == {"ledger": 8}
    everything = load_dataset(LEDGER, include_skipped=True)
    assert {u for u, t in everything.tasks.items() if t.tags["skip"]} == {
        "ledger_group_basic.py:test_skipped", "retired_case.py:test_gone"}


def test_a_task_with_all_its_parts():
    task = load_dataset(LEDGER).tasks["ledger_group_basic.py:test_transfer"]
    assert task.system == ("You keep ledgers.\n", "Write a note after every transfer.")
    assert task.query == "Please send 25 from A-1 to A-2."
    assert task.user_context == "You are Ada.\n"
    state = task.world_state["ledger"]
    assert [a["id"] for a in state["accounts"]] == ["A-1", "A-2", "A-3"]  # lists are joined
    assert len(state["golden_test_case"]["tool_interactions"]) == 3
    assert task.tags == {"labels": ["house", "shared", "own"], "category": ["user"], "domain": "banking", "eval": None,
                         "skip": False}
    assert (task.max_user_sim_turns, task.max_agent_sim_turns) == (10, math.inf)
    transfer = next(t for t in task.tools if t.name == "transfer")
    assert transfer.description == "Move money between accounts."
    assert transfer.argument_descriptions == {"amount": "In euros.", "nothing": "Ignored."}
    assert next(t for t in task.tools if t.name == "opening_hours").direct_response.startswith("On {day}")
    assert [(t.name, t.is_end_turn, t.builtin) for t in task.builtin_tools] == [("raise_alarm", True, True)]
    # The scenario's fixtures win over those of conftest.yaml, a deeper conftest.yaml over a higher one.
    assert task.fixtures["rubric_judge"] == {"type": "thinkingbox.common.rubrics_judge.RubricJudge", "max_workers": 2}
    assert {"answers", "folder", "counter"} <= task.fixtures.keys()
    assert task.metadata == {"scenario": "ledger", "agent": "clerk", "test_case_name": "test_transfer",
                             "test_case_file": "test_case/ledger_group/ledger_group_basic.py"}


def test_merging_shares_nothing_that_changes():
    tasks = load_dataset(LEDGER).tasks
    other = tasks["ledger_group_basic.py:test_blind"].world_state["ledger"]
    assert [a["id"] for a in other["accounts"]] == ["A-1", "A-2"]
    base = {"a": [1], "b": {"c": 1, "d": [2]}, "e": 3}
    assert merge(base, {"a": [2], "b": {"c": [5], "d": [6], "x": 1}, "e": {"y": 1}}) == {
        "a": [1, 2], "b": {"c": [5], "d": [2, 6], "x": 1}, "e": {"y": 1}}
    assert base == {"a": [1], "b": {"c": 1, "d": [2]}, "e": 3}


def test_lists_keep_their_order_and_are_checked(dataset):
    path = dataset / "lists" / "all.yaml"
    assert list(load_dataset(dataset, path).tasks) == load_list(path)
    path.write_text("- ledger_talk.py:test_ticket\n- ledger_talk.py:test_hours\n- ledger_talk.py:test_ticket\n")
    with pytest.raises(StudyError, match=r"all.yaml.*more than once: ledger_talk.py:test_ticket"):
        load_list(path)
    path.write_text("- ledger_talk.py:test_ticket\n- nowhere.py:a\n- ledger_talk.py:test_none\n")
    with pytest.raises(StudyError, match=r"nowhere.py:a, ledger_talk.py:test_none"):
        load_dataset(dataset, path)
    path.write_text("- 3\n")
    with pytest.raises(StudyError, match=r"all.yaml: item 1: a uid is"):
        load_list(path)
    path.write_text("a: b\n")
    with pytest.raises(StudyError, match="list of uids, this is a dict"):
        load_list(path)
    with pytest.raises(StudyError, match="tagged skip: ledger_group_basic.py:test_skipped"):
        load_dataset(dataset, ["ledger_group_basic.py:test_skipped"])


def test_format_query_fills_in_what_init_returned():
    task = load_dataset(LEDGER).tasks["ledger_talk.py:test_ticket"]
    filled = task.with_init({"ledger": {"ticket": "T-7"}})
    assert filled.query == "My ticket is T-7." and filled.user_context == "Ticket T-7"
    assert filled.system[1] == "Write a note after every transfer.\nThe ticket is T-7."
    assert filled.max_agent_sim_turns == 4 and filled.max_user_sim_turns == 3
    with pytest.raises(SystemFault, match="query does not fit what init returned"):
        task.with_init({})
    plain = load_dataset(LEDGER).tasks["ledger_talk.py:test_hours"]
    assert plain.with_init({}) is plain


def test_history_in_the_shape_of_a_record():
    task = load_dataset(LEDGER).tasks["ledger_talk.py:test_history"]
    assert [m["role"] for m in task.history] == ["user", "assistant", "tool", "assistant"]
    calls = task.history[1]
    assert calls["reasoning_content"] == "I transfer it." and calls["content"] is None
    assert [c["function"]["name"] for c in calls["tool_calls"]] == ["transfer", "transfer", "raise_alarm"]
    # Neither the call that failed nor the agent's own tool is replayed.
    assert list(replay_calls(task.history, {"raise_alarm"})) == [
        ("transfer", {"source": "A-1", "target": "A-2", "amount": 5})]


@pytest.mark.parametrize(("reference", "words"), [
    ("money", "must read '<group>:<start>:<end>'"), ("cash:0:", "names group 'cash'"),
    ("money:9:", "starts at 9"), ("money:1:never", "message_id 'never'"), ("money:the_end:start", "not after"),
    ("#draft:0:", "names group '#draft'")])
def test_history_that_does_not_exist(dataset, reference, words):
    path = dataset / "test_case" / "ledger_talk.py"
    change(path, "money:1:the_end", reference)
    with pytest.raises(StudyError, match=words) as error:
        load_dataset(dataset)
    assert f"{path}:7: test_history" in str(error.value)


@pytest.mark.parametrize(("old", "new", "words"), [
    ("query: When are you open?", "query: 12", r"ledger_talk.py:\d+: test_hours: field 'query' must be text, it is 12"),
    ("query: When are you open?", "qeury: x", "unknown field 'qeury'; fields: scenario, query"),
    ("query: When are you open?", "user_context: x", "field 'query' is missing"),
    ("query: When are you open?", "query: [", r"ledger_talk.py:\d+: not valid YAML"),
    ("query: When are you open?", "query: x\n    init: {ledger: 3}", "field 'init.ledger' must be a mapping"),
    ("query: When are you open?", "query: x\n    max_user_sim_turns: true", "'max_user_sim_turns' must be a whole"),
    ("query: When are you open?", "query: x\n    max_agent_sim_turns: -1", "must not be negative"),
    ("query: When are you open?", "query: x\n    tags: [1]", "field 'tags' must be a list of text, it holds 1"),
    ("query: When are you open?", "just text", "must be a YAML mapping, it is a str"),
    ("def test_hours(", "def test_ticket(", "test_ticket is already defined on line"),
    ("def test_hours(x, judge):", "def test_hours(x, judge:", r"ledger_talk.py:\d+: not valid Python"),
    ("scenario: ledger", "scenario: leger", r"field 'scenario' names 'leger', but .*leger.yaml does not exist")])
def test_a_mistake_in_a_test_case_is_named(dataset, old, new, words):
    change(dataset / "test_case" / "ledger_talk.py", old, new)
    with pytest.raises(StudyError, match=words):
        load_dataset(dataset)


def test_the_line_of_a_yaml_mistake_is_the_files(dataset):
    path = dataset / "test_case" / "ledger_talk.py"
    change(path, 'user_context: "Ticket {init[ledger][ticket]}"', "user_context: {")
    with pytest.raises(StudyError) as error:
        load_dataset(dataset)
    line = int(str(error.value).split("ledger_talk.py:")[1].split(":")[0])
    lines = path.read_text().splitlines()
    assert "user_context: {" in "\n".join(lines[line - 3:line])


@pytest.mark.parametrize(("file", "old", "new", "words"), [
    ("scenario/ledger.yaml", "tools:", "tools: 3\nx:", r"ledger.yaml: field 'tools' must be a list or empty"),
    ("scenario/ledger.yaml", "- name: get_account", "- nam: get_account", r"tools\[0\]: field 'name' is missing"),
    ("scenario/ledger.yaml", "type: thinkingbox", "typ: thinkingbox", "fixtures.rubric_judge: field 'type' is missing"),
    ("scenario/ledger.yaml", "  ledger:\n", "  ledger: 5\n  x:\n", "'world_state.ledger' must be a mapping"),
    ("agent/clerk.yaml", "system_instructions", "instructions", "clerk.yaml: field 'system_instructions' is missing"),
    ("test_case/conftest.yaml", "type: no.such.fixture", "type: fixture", "must be a dotted path"),
    ("test_case/conftest.yaml", "fixtures:", "fixtures: [1]\nx:", "conftest.yaml: field 'fixtures' must be a mapping")])
def test_a_mistake_elsewhere_is_named(dataset, file, old, new, words):
    change(dataset / file, old, new)
    with pytest.raises(StudyError, match=words):
        load_dataset(dataset)


def test_which_agent(dataset):
    (dataset / "agent" / "other.yaml").write_text("system_instructions: Hi.\nbuiltin_tools: []\n")
    with pytest.raises(StudyError, match="which agent to use must be said; agents: clerk, other"):
        load_dataset(dataset)
    assert load_dataset(dataset, agent="other").tasks["ledger_talk.py:test_hours"].system[0] == "Hi."
    with pytest.raises(StudyError, match="no agent 'nobody'"):
        load_dataset(dataset, agent="nobody")
    with pytest.raises(StudyError, match="is not a folder"):
        load_dataset(dataset / "nowhere")


def test_a_uid_twice(dataset):
    shutil.copy(dataset / "test_case" / "ledger_talk.py", dataset / "test_case" / "ledger_group" / "ledger_talk.py")
    shutil.copy(dataset / "test_case" / "ledger_talk.meta.yaml",
                dataset / "test_case" / "ledger_group" / "ledger_talk.meta.yaml")
    with pytest.raises(StudyError, match="two test cases have the uid ledger_talk.py:test_history"):
        load_dataset(dataset)


def test_defaults_hold_for_the_functions_below_them(tmp_path):
    path = tmp_path / "cases.py"
    path.write_text('"""!\nscenario: one\n"""\ndef a(x):\n    """!\n    query: q\n    """\n'
                    '"""!\nscenario: two\n"""\ndef b(x):\n    """!\n    query: q\n    """\n'
                    'def helper():\n    "!not a docstring in the sense"\n')
    assert [(f.name, f.config["scenario"]) for f in read_functions(path, {"a", "b"})] == [("a", "one"), ("b", "two")]


def test_the_code_of_a_check_is_the_file_without_other_cases():
    path = LEDGER / "test_case" / "ledger_group" / "ledger_group_basic.py"
    module = check_module(path, "test_transfer")
    names = [getattr(n, "name", None) for n in module.body]
    assert "same_state" in names and "test_transfer" in names and "test_blind" not in names
    function = module.body[names.index("test_transfer")]
    assert path.read_text().splitlines()[function.lineno - 1].startswith("def test_transfer")
    with pytest.raises(StudyError, match="has no test case test_none"):
        check_module(path, "test_none")


def test_files_are_never_imported(dataset):
    path = dataset / "test_case" / "ledger_talk.py"
    path.write_text(path.read_text() + "\nraise SystemExit('imported')\n")
    assert "ledger_talk.py:test_hours" in load_dataset(dataset).tasks


YAML_CASES = """
test_cases:
- uid: paid
  scenario: ledger
  query: Is it paid?
  history: {key: money, start: 1, end: the_end}
  test_code: |
    def check(x, judge):
        assert x.response == "Yes."
    __tb_test_fn = check
- {uid: unpaid, scenario: ledger, query: q, test_code: "__tb_test_fn = None"}
"""


def test_cases_written_as_yaml(dataset):
    path = dataset / "test_case" / "bills.yaml"
    path.write_text(YAML_CASES)
    shutil.copy(dataset / "test_case" / "ledger_talk.meta.yaml", dataset / "test_case" / "bills.meta.yaml")
    task = load_dataset(dataset).tasks["bills.yaml:paid"]
    assert list(load_dataset(dataset, ["bills.yaml:unpaid"]).tasks) == ["bills.yaml:unpaid"]
    assert len(task.history) == 4
    with CheckRunner() as runner:
        said = [{"role": "assistant", "content": "Yes."}]
        assert runner.verdict(task, {}, said).passed
        failed = runner.verdict(task, {}, [])
        assert not failed.passed and not failed.system_error and failed.line == 2
    for old, new, words in (("uid: unpaid", "uid: paid", "uid paid is already taken"),
                            ("uid: unpaid, ", "", "test_cases\\[1\\]: field 'uid' must be text"),
                            ("test_cases:", "cases:", "a list 'test_cases'")):
        path.write_text(YAML_CASES.replace(old, new))
        with pytest.raises(StudyError, match=words):
            load_dataset(dataset)


PUBLIC = os.environ.get("TBSTUDY_THINKINGBOX_DATA")


@pytest.mark.skipif(not PUBLIC, reason="TBSTUDY_THINKINGBOX_DATA is not set")
def test_the_public_datasets_hydrate():
    root = Path(PUBLIC)
    bench = load_dataset(root / "dataset", root / "releases/thinkingbox_bench_v1/testlist_thinkingbox_bench_v1.yaml")
    assert bench.by_domain() == {"external_booking_v1": 104, "sandbox_auto_insurance": 100, "sandbox_consulting": 101,
                                 "sandbox_external_retail": 98, "sandbox_neobank_support_v1": 104}
    everything = load_dataset(root / "dataset")
    development = {d: n for d, n in everything.by_domain().items() if d not in bench.by_domain()}
    assert development == {"airline_tau_bench_full": 21, "retail_banking": 11, "retail_banking_email": 1,
                           "email_system_org": 3, "mcs_defaults": 3}
    airline = load_dataset(root / "dataset",
                           root / "releases/dataset_2604_airline_tau_bench/testlist_2604_airline_tau_bench.yaml")
    assert len(airline.tasks) == 21
