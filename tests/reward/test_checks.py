"""Checks in their child process: verdicts, faults, limits, the test API."""

import asyncio
import contextlib
import multiprocessing
import os
import pickle
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from tbstudy.errors import StudyError, SystemFault
from tbstudy.policies.client import ContextOverflow
from tbstudy.reward.checks import CheckRunner, answered_calls, last_response, tag_direct_responses
from tbstudy.reward.judge import EndpointJudge, ScriptedJudge
from tbstudy.reward.purity import is_pure
from tbstudy.tasks.loader import load_dataset
from tbstudy.tasks.model import Task
from tbstudy.tasks.source import check_module

LEDGER = Path(__file__).parents[1] / "data" / "ledger"
MESSAGES = [
    {"role": "system", "content": "You help."}, {"role": "user", "content": "Hi there."},
    {"role": "assistant", "content": None, "reasoning_content": "Look first.", "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "get", "arguments": '{"a": 1}'}},
        {"id": "c2", "type": "function", "function": {"name": "bad", "arguments": '{"a": '}}]},
    {"role": "tool", "tool_call_id": "c1", "name": "get", "content": "one"},
    {"role": "tool", "tool_call_id": "c2", "name": "bad", "content": "no JSON"},
    {"role": "assistant", "content": "It is one. <DONE>"}]


@pytest.fixture(scope="module")
def runner():
    with CheckRunner(timeout=20) as found:
        yield found


def task(tmp_path, body, head="", signature="x, judge", fixtures=None):
    """A task whose check has this body."""
    path = tmp_path / "cases.py"
    path.write_text(f'{head}\n\ndef test_it({signature}):\n    """!\n    query: q\n    """\n'
                    + textwrap.indent(textwrap.dedent(body), "    "))
    return Task("cases.py:test_it", path, "test_it", "s", ("a",), "q", None, {}, fixtures=fixtures or {})


def test_passed_failed_and_returned(runner, tmp_path):
    v = runner.verdict(task(tmp_path, "assert x.effects['s']['n'] == 1"), {"s": {"n": 1}}, [])
    assert (v.passed, v.reward, v.system_error, v.reason, v.diff) == (True, 1.0, False, "", [])
    v = runner.verdict(task(tmp_path, "assert x.effects['s']['n'] == 1"), {"s": {"n": 2}}, [])
    assert (v.passed, v.reward, v.system_error) == (False, 0.0, False)
    assert v.reason == "assert x.effects['s']['n'] == 1 (cases.py:7)" and v.line == 7
    v = runner.verdict(task(tmp_path, "assert False, 'why'"), {}, [])
    assert v.reason == "why (cases.py:7)" and "line 7, in test_it" in v.traceback
    v = runner.verdict(task(tmp_path, "return 0.25"), {}, [])
    assert (v.passed, v.reward, v.system_error) == (True, 0.25, False)
    v = runner.verdict(task(tmp_path, "return 2"), {}, [])
    assert v.system_error and "a reward is a number from 0 to 1" in v.reason
    for value in ("0", "0.0", "False"):
        v = runner.verdict(task(tmp_path, f"return {value}"), {}, [])
        assert (v.passed, v.reward, v.system_error, v.reason) == (False, 0.0, False, f"the check returned {value}")
    v = runner.verdict(task(tmp_path, "return True"), {}, [])
    assert (v.passed, v.reward) == (True, 1.0)


@pytest.mark.parametrize(("body", "words"), [
    ("1 / 0", "ZeroDivisionError: division by zero (cases.py:7)"),
    ("raise KeyError('k')", "KeyError: 'k' (cases.py:7)"),
    ("x.effects['nothing']", "KeyError: 'nothing'"),
    ("import os; os._exit(0)", "the check gave no verdict: exit status 0"),
    ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "signal SIGSEGV"),
    ("raise SystemExit(0)", "SystemExit: 0"),
    ("a = 'x' * (8 << 30)", "MemoryError"),
    ("import socket; socket.create_connection(('127.0.0.1', 9))", "a check has no network"),
    ("import urllib.request as u; u.urlopen('http://localhost:9')", "a check has no network"),
    ("open('/tmp/tbstudy-check-file', 'w').write('x' * (1 << 26))", "OSError"),
    ("def f(): f()\nf()", "RecursionError"),
    ("import nowhere", "ModuleNotFoundError"),
    ("judge.text_yesno('a', 'b')", "none is configured")])
def test_other_exceptions_and_limits_are_system_errors(runner, tmp_path, body, words):
    v = runner.verdict(task(tmp_path, body), {}, [])
    assert v.system_error and not v.passed and v.reward == 0 and words in v.reason
    assert v.cause == ("judge" if "judge" in body else "check")
    Path("/tmp/tbstudy-check-file").unlink(missing_ok=True)
    assert runner.verdict(task(tmp_path, "assert x.response == ''"), {}, []).passed  # the runner goes on


@pytest.mark.parametrize("body", ["while True: pass", "import time\ntime.sleep(60)",
                                  "import os\nos.fork() or os.setsid()\nwhile True: pass"])
def test_a_check_that_hangs(tmp_path, body):
    with CheckRunner(timeout=0.5) as runner:
        v = runner.verdict(task(tmp_path, body), {}, [])
        assert v.system_error and v.reason == "the check gave no verdict: it did not end within 0.5 s"
        assert runner.verdict(task(tmp_path, "pass"), {}, []).passed


def test_checks_cannot_disturb_each_other(runner, tmp_path):
    body = "import json\njson.dumps = None\nimport os\nos.environ['A_MARK'] = '1'\nx.metadata['done'] = True"
    assert runner.verdict(task(tmp_path, body), {}, []).metadata == {"done": True}
    body = "import json, os\nassert json.dumps({}) == '{}' and 'A_MARK' not in os.environ"
    assert runner.verdict(task(tmp_path, body), {}, []).passed
    assert runner.verdict(task(tmp_path, "NAMES.append(1)\nassert len(NAMES) == 1", "NAMES = []"), {}, []).passed
    assert runner.verdict(task(tmp_path, "NAMES.append(1)\nassert len(NAMES) == 1", "NAMES = []"), {}, []).passed


def test_what_the_check_sees(runner, tmp_path):
    body = """
        assert x.response == "It is one. <DONE>" and x.query() == "Hi there."
        assert [type(m).__name__ for m in x.messages] == [
            "Text", "Text", "Text", "ParallelToolCall", "ToolResponse", "ToolResponse", "Text"]
        thought = x.messages[2]
        assert (thought.tag, thought.is_visible, thought.content) == ("think", False, "Look first.")
        good, bad = x.messages[3].tool_calls
        assert good.arguments == {"a": 1} and bad.arguments == {} and "error" in bad.metadata
        assert x.messages[4].name == "get" and x.messages[4].id == "c1"
        assert [(c.tool_call.name, c.tool_response.content) for c in x.tool_calls] == [
            ("get", "one"), ("bad", "no JSON")]
        assert x.transcript() == "User: Hi there.\\n\\nAssistant: It is one. <DONE>"
        assert x.transcript(1) == "Assistant: It is one. <DONE>"
        assert x.init_result == {"s": {"k": 1}} and x.effects == {"s": {}} and x.tool_direct_responses == []
        print("seen", end="")
    """
    v = runner.verdict(task(tmp_path, body), {"s": {}}, MESSAGES, init_result={"s": {"k": 1}})
    assert v.passed, v.reason
    assert v.prints == "seen"
    given = runner.verdict(task(tmp_path, "assert x.response == 'r' and x.tool_calls[0].tool_response.content == 'z'"),
                           {}, MESSAGES, "r", [{"id": "1", "name": "n", "arguments": {}, "response": "z"}])
    assert given.passed, given.reason


def test_the_framework_is_answered_for(runner, tmp_path):
    head = ("from thinkingbox.common import Judge, TestContext\nfrom thinkingbox.common.chat_types import Text\n"
            "from thinkingbox.common.graders import average_reward, match_score\nimport thinkingbox.fixtures\n"
            "from thinkingbox.common.rubrics_judge import RubricConfig\nimport thinkingbox.common.judge as j\n")
    body = ("assert isinstance(x, TestContext) and isinstance(judge, Judge)\n"
            "assert Text(role='user', content='a', metadata={}).role == 'user'\n"
            "assert j.safe_tag_encode('<') == '&lt;'\n"
            "return average_reward({'a': match_score({'k': 1, 'l': 2}, {'k': 1, 'l': 3}, partial=True), 'b': 1.0})")
    v = runner.verdict(task(tmp_path, body, head, "x: TestContext, judge: Judge"), {}, [])
    assert v.passed and v.reward == 0.75, v.reason


def test_the_judge(tmp_path):
    body = """
        assert judge.text_yesno(x.response, "Is it one?")
        assert not judge.text_yesno("<b>", "Is it two?")
        assert judge.no_repeat("a", ["b"]) and judge.yesno("Is it?")
        text = judge._get_text_completion([])
    """
    asked = ScriptedJudge({"two?": "No.", "</second>": "no"})
    with CheckRunner(judge=asked) as runner:
        v = runner.verdict(task(tmp_path, body.replace("text = judge._get_text_completion([])", "pass")), {}, MESSAGES)
    assert v.passed, v.reason
    assert [(d["question"], d["answer"]) for d in v.metadata["judge"]][:2] == [("Is it one?", True),
                                                                             ("Is it two?", False)]
    assert "&lt;b&gt;" in asked.asked[1]


def test_an_endpoint_judge_may_be_slow_and_may_fail(tmp_path):
    async def complete(messages, model):
        assert [m["role"] for m in messages] == ["system", "user"]
        await asyncio.sleep(1.2)  # longer than the check may take; the judge's time does not count
        return f"Yes, says {model}." if "fine" in messages[1]["content"] else 1 / 0

    async def both(runner):
        good, bad = (task(tmp_path / n, f"assert judge.text_yesno('{n}', 'Is it?')") for n in ("fine", "poor"))
        return await asyncio.gather(*(runner.judge(t, {}, []) for t in (good, good, bad)))

    for name in ("fine", "poor"):
        (tmp_path / name).mkdir()
    with CheckRunner(timeout=1, judge=EndpointJudge(complete, model="m"), children=2) as runner:
        verdicts = asyncio.run(both(runner))
    assert [v.passed for v in verdicts] == [True, True, False]
    assert verdicts[2].system_error and verdicts[2].cause == "judge" and "ZeroDivisionError" in verdicts[2].reason


def test_fixtures_are_injected(runner, tmp_path):
    module = tmp_path / "fixture_module_for_tests.py"
    module.write_text(textwrap.dedent("""
        from contextlib import contextmanager

        class Base:
            def __init__(self, x, judge, size=3):
                self.x, self.judge, self.size = x, judge, size

        @contextmanager
        def opened(base):
            base.x.metadata["log"] = ["in"]
            yield base.size
            base.x.metadata["log"].append("out")

        def circle(circle): pass
        def needs(nothing): pass
        def fails(): raise ValueError("no")
    """))
    name = "fixture_module_for_tests"
    configs = {"base": {"type": f"{name}.Base", "size": 5}, "opened": {"type": f"{name}.opened"},
               "circle": {"type": f"{name}.circle"}, "needs": {"type": f"{name}.needs"},
               "fails": {"type": f"{name}.fails"}, "lost": {"type": "no.such.thing"}}
    sys.path.insert(0, str(tmp_path))
    try:
        with CheckRunner() as own:
            v = own.verdict(task(tmp_path, "assert opened == 5 and x.metadata['log'] == ['in']", "", "x, opened",
                                 configs), {}, [])
            assert v.passed, v.reason
            assert v.metadata["log"] == ["in", "out"]
            for parameter, words in (("circle", "depend on each other: circle -> circle"),
                                     ("needs", "there is no fixture 'nothing' (needed by 'needs')"),
                                     ("fails", "fixture 'fails' failed: ValueError: no"),
                                     ("lost", "cannot be loaded from 'no.such.thing'"),
                                     ("unknown", "there is no fixture 'unknown'")):
                v = own.verdict(task(tmp_path, "pass", "", f"x, {parameter}", configs), {}, [])
                assert v.system_error and words in v.reason
    finally:
        sys.path.remove(str(tmp_path))


def test_the_datasets_own_fixtures():
    tasks = load_dataset(LEDGER).tasks
    messages = [{"role": "user", "content": "Where are the fees?"}, {"role": "assistant", "content": "On page 3."}]
    with CheckRunner(judge=ScriptedJudge({"<criterion>rude": "NO"})) as runner:
        v = runner.verdict(tasks["ledger_group_basic.py:test_rubric"], {}, messages)
        assert v.passed and v.reward == 1.0 and v.metadata["rubric_reward"] == 1.0, v.reason
        v = runner.verdict(tasks["ledger_group_basic.py:test_fixtures"], {}, messages)
        assert v.passed and len(v.metadata["rubric_scores"]) == 4, v.reason
    with CheckRunner(judge=ScriptedJudge({"<criterion>polite": "NO"})) as runner:
        v = runner.verdict(tasks["ledger_group_basic.py:test_rubric"], {}, messages)
        assert not v.passed and v.reward == 0.0 and not v.system_error
    with CheckRunner(judge=ScriptedJudge({"<candidate>": "No"})) as runner:
        v = runner.verdict(tasks["ledger_group_basic.py:test_fixtures"], {}, messages)
        assert not v.passed and not v.system_error and "does not match the reference" in v.reason


def test_direct_responses():
    tasks = load_dataset(LEDGER).tasks
    hours = tasks["ledger_talk.py:test_hours"]
    call = {"role": "assistant", "content": None, "tool_calls": [
        {"id": "c", "type": "function", "function": {"name": "opening_hours", "arguments": "{}"}}]}
    answer = {"role": "tool", "tool_call_id": "c", "name": "opening_hours",
              "content": '{"day": "monday", "hours": "9 to 5"}'}
    said = {"role": "assistant", "content": "On monday we are open 9 to 5."}
    messages = [{"role": "user", "content": "When?"}, call, answer, said,
                {"role": "assistant", "content": "Bye <DONE>"}]
    assert [m.get("tag") for m in tag_direct_responses(hours, messages)] == [None, None, None, "direct", None]
    with CheckRunner(judge=ScriptedJudge(default="No")) as runner:
        assert runner.verdict(hours, {}, messages).passed
    assert last_response(tag_direct_responses(hours, messages)) == "Bye <DONE>"
    # The same words from the policy itself, later on, are its own.
    again = [*messages[:3], said, {"role": "user", "content": "Again?"}, said]
    assert [m.get("tag") for m in tag_direct_responses(hours, again)][-1] is None


def test_calls_and_response_are_read_from_the_messages():
    calls = answered_calls(MESSAGES)
    assert calls[0] == {"id": "c1", "name": "get", "arguments": {"a": 1}, "response": "one"}
    assert calls[1]["arguments"] == {} and calls[1]["error"]
    assert last_response(MESSAGES) == "It is one. <DONE>" and last_response(MESSAGES[:2]) == ""


def test_a_failure_is_explained(runner, tmp_path):
    diff = [{"kind": "wrong", "server": "s", "table": "t", "row": "r", "field": "f", "expected": 1, "actual": 2}]
    v = runner.verdict(task(tmp_path, "assert False"), {"s": {"diff": diff}}, [])
    assert v.diff == diff
    assert runner.verdict(task(tmp_path, "pass"), {"s": {"diff": diff}}, []).diff == []


def test_many_at_once(tmp_path):
    ok = task(tmp_path, "assert x.effects['n'] % 2 == 0")

    async def run(runner):
        return await asyncio.gather(*(runner.judge(ok, {"n": n}, []) for n in range(60)))

    with CheckRunner(children=3) as runner:
        assert [v.passed for v in asyncio.run(run(runner))] == [n % 2 == 0 for n in range(60)]
        assert len(runner._idle) <= 3


def test_a_verdict_inside_a_running_loop(tmp_path):
    async def notebook(runner):
        return [runner.verdict(task(tmp_path, body), {}, []).passed for body in ("pass", "pass", "import os", "pass")]

    with CheckRunner() as runner:
        assert asyncio.run(notebook(runner)) == [True] * 4
        assert len(runner._idle) == 1  # the thread that started the child is gone, the child is not


@pytest.mark.parametrize("body", ["while True: pass", "import time\ntime.sleep(600)"])
def test_our_sudden_death_ends_a_check(tmp_path, body):
    item = task(tmp_path, body)
    script = (f"import os, threading, time\nfrom pathlib import Path\nfrom tbstudy.reward.checks import CheckRunner\n"
              f"from tbstudy.tasks.model import Task\nrunner = CheckRunner(timeout=2)\n"
              f"item = Task('u', Path({str(item.file)!r}), 'test_it', 's', ('a',), 'q', None, {{}})\n"
              "threading.Thread(target=runner.verdict, args=(item, {}, [])).start()\n"
              "time.sleep(1.2)\nos.kill(os.getpid(), 9)\n")
    pid = subprocess.Popen([sys.executable, "-c", script]).pid
    children = set()
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{pid}/task"):
                children |= {int(p) for p in Path(f"/proc/{pid}/task/{thread}/children").read_text().split()}
        time.sleep(0.05)
    os.waitpid(pid, 0)
    assert children
    for child in children:
        assert_gone(child, 20)


def test_a_cancelled_verdict_leaves_the_runner_usable(tmp_path):
    async def run(runner):
        job = asyncio.create_task(runner.judge(task(tmp_path, "import time\ntime.sleep(30)"), {}, []))
        await asyncio.sleep(0.3)
        job.cancel()
        with pytest.raises(asyncio.CancelledError):
            await job
        return await runner.judge(task(tmp_path, "pass"), {}, [])

    with CheckRunner(children=1) as runner:
        assert asyncio.run(run(runner)).passed


def _child_verdict(runner, item, out):
    out.put(runner.verdict(item, {}, []).passed)


def test_each_process_has_its_own_children(runner, tmp_path):
    item = task(tmp_path, "pass")
    assert runner.verdict(item, {}, []).passed
    context = multiprocessing.get_context("fork")
    out = context.Queue()
    workers = [context.Process(target=_child_verdict, args=(runner, item, out)) for _ in range(2)]
    for worker in workers:
        worker.start()
    assert [out.get(timeout=30) for _ in workers] == [True, True]
    for worker in workers:
        worker.join(30)
    assert runner.verdict(item, {}, []).passed


def test_nothing_is_left(tmp_path):
    before = set(os.listdir("/proc/self/fd"))
    runner = CheckRunner(timeout=0.5)
    runner.verdict(task(tmp_path, "pass"), {}, [])
    runner.verdict(task(tmp_path, "while True: pass"), {}, [])
    runner.verdict(task(tmp_path, "import os\nos._exit(1)"), {}, [])
    # Neither a check that ends nor one that hangs leaves a process behind, even in a session of its own.
    mark = tmp_path / "mark"
    escape = ("import os, time\nif os.fork() == 0:\n    os.setsid()\n"
              "    open('/proc/self/comm', 'w').write('escaped-check')\n"
              f"    open({str(mark)!r}, 'w')\n    time.sleep(600)\n"
              f"while not os.path.exists({str(mark)!r}): time.sleep(0.01)\n")
    assert runner.verdict(task(tmp_path, escape), {}, []).passed
    assert_none_called("escaped-check")
    mark.unlink()
    assert runner.verdict(task(tmp_path, escape + "while True: pass"), {}, []).system_error
    assert mark.exists()
    assert_none_called("escaped-check")
    runner.verdict(task(tmp_path, "pass"), {}, [])
    warm = [c.process.pid for c in runner._idle]
    runner.close()
    assert set(os.listdir("/proc/self/fd")) == before
    assert warm
    for pid in warm:
        assert_gone(pid)


def assert_none_called(name, seconds=4):
    for _ in range(50 * seconds):
        found = []
        for entry in os.listdir("/proc"):
            with contextlib.suppress(OSError):
                if entry.isdigit() and Path(f"/proc/{entry}/comm").read_text().strip() == name and Path(
                        f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
                    found.append(entry)
        if not found:
            return
        time.sleep(0.02)
    raise AssertionError(f"processes {found} still run")


def assert_gone(pid, seconds=4):
    for _ in range(50 * seconds):
        try:
            if Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":
                return  # waits for whoever adopts orphans on this machine
        except FileNotFoundError:
            return
        time.sleep(0.02)
    raise AssertionError(f"process {pid} still runs")


@pytest.mark.parametrize(("body", "pure"), [
    ("assert x.effects['s'] == 1", True), ("import json\nassert json.loads('1')", True),
    ("assert judge.text_yesno(x.response, 'q')", True), ("x.metadata['k'] = [i for i in range(3)]", True),
    ("import os", False), ("import json\njson.dumps = None", False), ("open('f')", False), ("x.__class__", False),
    ("from os import path", False), ("global y\ny = 1", False), ("try:\n  pass\nexcept: pass", False),
    ("from datetime import datetime\nassert datetime.strptime(x.response, '%Y')", True),
    ("import datetime as d, re\nassert d.date.today() and re.sub('a', 'b', x.response)", True),
    ("from decimal import Decimal\nassert Decimal('1.5').quantize(Decimal('1'))", True),
    ("import json\njson.codecs.builtins.open('f')", False), ("import json\nj = json", False),
    ("import json\nmap(repr, [json])", False), ("from json import codecs", False), ("from json import *", False),
    ("import decimal\ndecimal.setcontext(decimal.Context(prec=3))", False), ("from decimal import getcontext", False),
    ("import datetime\ndatetime.sys.modules.clear()", False), ("import typing\ntyping.sys.exit()", False),
    ("import thinkingbox.common\nthinkingbox.common.judge", False), ("judge.llm.connection.close()", False),
    ("(i for i in []).gi_frame.f_builtins.clear()", False), ("x.model_fields.clear()", False),
    ("from thinkingbox.common import TestContext\nTestContext.anything.clear()", False),
    ("with x: pass", False), ("class A: pass", False), ("exec('1')", False), ("del x", False), ("yield 1", False),
    ("match x:\n    case {'a': [1, y]} | str(): pass", False), ("match x:\n    case {'a': [1, y]}: pass", True)])
def test_what_may_share_a_process(tmp_path, body, pure):
    item = task(tmp_path, body)
    assert is_pure(check_module(item.file, "test_it"), "test_it") is pure
    with_fixture = task(tmp_path, "pass", signature="x, other")
    assert not is_pure(check_module(with_fixture.file, "test_it"), "test_it")


SPOIL = {
    "builtins": ('import json\nmain = json.codecs.sys.modules["__main__"]\n'
                 'def ok(request, runner): return dict(kind="verdict", passed=True, reward=1.0, '
                 'system_error=False, cause="", reason="", prints="", metadata={}, mark=request["mark"])\n'
                 'json.codecs.builtins.setattr(main, "run", ok)'),
    "decimal": "import decimal\ndecimal.setcontext(decimal.Context(prec=3))",
    "a verdict of another": (
        "import json, os, struct\n"
        "body = json.dumps({'kind': 'verdict', 'mark': MARK, 'passed': True, 'reward': 1.0, 'system_error': False, "
        "'cause': '', 'reason': '', 'prints': '', 'metadata': {}}).encode()\n"
        "for fd in range(3, 64):\n"
        "    try: os.write(fd, struct.pack('<I', len(body)) + body)\n"
        "    except OSError: pass"),
}
# Who looks for it finds the mark of his own request, which is no use to anybody else.
SPOIL["a verdict of its own"] = "import sys\nmark = sys._getframe(1).f_locals['request']['mark']\n" + SPOIL[
    "a verdict of another"].replace("MARK", "mark")
SPOIL["a verdict of another"] = SPOIL["a verdict of another"].replace("MARK", "''")


@pytest.mark.parametrize("what", SPOIL)
@pytest.mark.parametrize(("body", "passes"), [
    ("from decimal import Decimal\nassert Decimal('1234.56') + 1 == Decimal('1235.56')", True),
    ("import os\nassert os.sep == '/'", True), ("assert False, 'differs'", False),
    ("import os\nassert False, 'differs'", False)])
def test_no_check_decides_the_next_one(tmp_path, what, body, passes):
    with CheckRunner(children=1) as runner:
        (tmp_path / "first").mkdir(), (tmp_path / "second").mkdir()
        for _ in range(2):
            runner.verdict(task(tmp_path / "first", SPOIL[what]), {}, [])
            found = runner.verdict(task(tmp_path / "second", body), {}, [])
            assert (found.passed, found.system_error) == (passes, False), found.reason


def test_a_judge_that_no_key_opens_stops_everything(tmp_path):
    async def refuses(messages):
        raise StudyError("judge endpoint http://host/v1: HTTP 401; check the key in KEY")

    with CheckRunner(judge=refuses) as runner:
        with pytest.raises(StudyError, match="check the key in KEY"):
            runner.verdict(task(tmp_path, "assert judge.yesno('Is it?')"), {}, [])
        assert runner.verdict(task(tmp_path, "assert x.effects == {}"), {}, []).passed


@pytest.mark.parametrize("fault", [SystemFault("judge", "no answer"), ContextOverflow("policy", "too long")])
def test_faults_travel_between_processes(fault):
    there = pickle.loads(pickle.dumps(fault))
    assert (type(there), there.cause, str(there)) == (type(fault), fault.cause, str(fault))
