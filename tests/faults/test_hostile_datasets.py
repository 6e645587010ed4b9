"""Broken and hostile datasets: check code is contained and the campaign goes on; lists and YAML are refused by name."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
import yaml

from tbstudy import campaign
from tbstudy.config import load_study
from tbstudy.errors import StudyError
from tbstudy.policies.scripted import golden_policy
from tbstudy.reward.checks import CheckRunner
from tbstudy.sandbox.servers import read_servers
from tbstudy.sandbox.transports import open_sandbox
from tbstudy.scaffold.dataset import write_domain
from tbstudy.store import RecordStore, is_system_error, read_lines
from tbstudy.tasks.loader import load_dataset, load_list
from tbstudy.tasks.model import Task
from tbstudy.tasks.source import MAX_NODES, parse_yaml

linux = pytest.mark.skipif(sys.platform != "linux", reason="namespaces and /proc are Linux's")


def task(folder, body, signature="x, judge", head=""):
    path = folder / "cases.py"
    path.write_text(f'{head}\n\ndef test_it({signature}):\n    """!\n    query: q\n    """\n'
                    + textwrap.indent(textwrap.dedent(body), "    "))
    return Task("cases.py:test_it", path, "test_it", "s", ("a",), "q", None, {})


@pytest.fixture(scope="module")
def runners():
    """For checks that never end, and for others."""
    with CheckRunner(timeout=1.5, memory_mb=512) as brief, CheckRunner(timeout=30, memory_mb=512) as patient:
        yield brief, patient


#: A bomb is held by what is under test. Were it not, it ends by itself before the machine does.
FORK = ("import os, time\nend = time.time() + 20\n"
        "def fork():\n    if time.time() > end or int(open('/proc/loadavg').read().split()[3].split('/')[1]) > 2500:\n"
        "        os._exit(0)\n    try: return os.fork()\n    except OSError: return 1\n")
#: Body of a check, and what its system error says ("" for a check that is harmless in the end and passes).
CHECKS = {
    "endless": ("while True: pass", "did not end within"),
    "endless_in_c": ("x = 10 ** (10 ** 9)", "did not end within|MemoryError|exit status|signal"),
    "endless_pattern": ("import re\nre.match('(a+)+$', 'a' * 64 + 'b')", "did not end within"),
    "endless_output": ("while True: print('x' * 1000)", "did not end within|MemoryError"),
    "endless_questions": ("while True:\n    try: judge.yesno('?')\n    except Exception: pass",
                          "did not end within|more than 1000 questions|MemoryError"),
    "sleeps": ("import time\ntime.sleep(3600)", "did not end within"),
    "deaf": ("import signal\nfor n in range(1, 32):\n    try: signal.signal(n, signal.SIG_IGN)\n    except OSError: "
             "pass\nwhile True: pass", "did not end within|SIGKILL"),
    "memory": ("a = []\nwhile True: a.append('x' * 1_000_000)", "MemoryError"),
    "memory_impure": ("import os\na = []\nwhile True: a.append(bytearray(10_000_000))", "MemoryError"),
    "memory_of_many": ("import os, time\nfor _ in range(20):\n    if os.fork() == 0:\n        a = b'x' * 200_000_000\n"
                       "        time.sleep(60)\ntime.sleep(60)", "took more than 512 MB"),
    "exits": ("import os\nos._exit(0)", "exit status 0"),
    "exits_oddly": ("import sys\nsys.exit(['a'])", "SystemExit"),
    "dies": ("import ctypes\nctypes.string_at(0)", "SIGSEGV"),
    "megabyte": ("print('x' * 1_000_000)", ""),
    "megabytes_past_us": ("import os\nfor fd in (1, 2):\n    try: os.write(fd, b'x' * 50_000_000)\n    except OSError: "
                          "pass", ""),
    "long_reason": ("assert False, 'x' * 50_000_000", "failed"),
    "broken_exception": ("class E(AssertionError):\n    def __str__(self): 1 / 0\nraise E", "failed"),
    "huge_notes": ("x.metadata['a'] = 'x' * 100_000_000", ""),
    "deep_notes": ("import os\na = []\nfor _ in range(100_000): a = [a]\nx.metadata['a'] = a", ""),
    "odd_notes": ("x.metadata[(1, 2)] = 3", ""),
    "odd_reward": ("return float('nan')", "a reward is a number"),
    "forks": ("import os, time\nfor _ in range(5):\n    if os.fork() == 0:\n        os.setsid()\n"
              "        time.sleep(3600)", ""),
    "bomb": (FORK + "while True: fork()", "more than 64 processes|took more"),
    "bomb_that_hides": (FORK + "for _ in range(3):\n    if os.fork() == 0:\n        os.setsid()\n"
                        "        while True: fork() and os._exit(0)", ""),
    "bomb_of_commands": ("import subprocess\nwhile True: subprocess.Popen(['sleep', '60'])",
                         "more than 64 processes|BlockingIOError"),
    "threads": ("import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(60,), daemon=True)"
                ".start()",
                "RuntimeError|MemoryError"),
    "file": ("with open('/tmp/tbstudy-hostile-file', 'wb') as f:\n    for _ in range(1000): f.write(b'x' * 1_000_000)",
             "OSError"),
    "floods_us": ("import os\nfor fd in range(3, 30):\n    try:\n        while True: os.write(fd, b'\\xff' * 65536)\n"
                  "    except OSError: pass", "process was lost"),
    "forges": ("import json, os, struct\nbody = json.dumps({'kind': 'verdict', 'passed': 'yes'}).encode()\n"
               "for fd in range(3, 30):\n    try: os.write(fd, struct.pack('<I', len(body)) + body)\n"
               "    except OSError: pass", "process was lost"),
    "deep_code": ("return " + "-" * 5000 + "1", "cannot be compiled"),
    "long_code": ("return " + "+".join(["1"] * 50_000), "cannot be compiled|reward is a number"),
}


@linux
@pytest.mark.parametrize("name", CHECKS)
def test_a_hostile_check_is_contained(runners, tmp_path, name):
    body, words = CHECKS[name]
    runner = runners[not words.startswith("did not end")]
    try:
        verdict = runner.verdict(task(tmp_path, body), {}, [])
    finally:
        Path("/tmp/tbstudy-hostile-file").unlink(missing_ok=True)
    if words == "failed":
        assert not verdict.passed and not verdict.system_error and len(verdict.reason) < 11_000
    elif words:
        assert verdict.system_error and any(w in verdict.reason for w in words.split("|")), verdict.reason[:300]
    else:
        assert verdict.passed, verdict.reason[:300]
        assert len(verdict.prints) <= 100_000 and len(str(verdict.metadata)) < 1_100_000
    assert runner.verdict(task(tmp_path, "assert x.response == ''"), {}, []).passed, "the next check runs"


@linux
def test_nothing_of_a_bomb_is_left(tmp_path):
    with CheckRunner(timeout=6, memory_mb=509) as runner:
        for name in ("bomb", "bomb_that_hides", "forks"):
            runner.verdict(task(tmp_path, CHECKS[name][0]), {}, [])
        assert processes("509"), "they can be found"
        assert runner.verdict(task(tmp_path, "pass"), {}, []).passed
    for _ in range(200):
        if not processes("509"):
            return
        time.sleep(0.02)
    raise AssertionError(f"{len(processes('509'))} processes are left")


def processes(memory):
    """Processes of checks with this limit of memory, and what they forked."""
    found = set()
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if not entry.isdigit():
                continue
            command = Path(f"/proc/{entry}/cmdline").read_bytes()
            state = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[0]
            if command.endswith(b"\0%s\0" % memory.encode()) and state != "Z":
                found.add(entry)
    return found


@linux
def test_a_check_cannot_harm_who_runs_it(tmp_path):
    """Signals to its parents, or to everybody: ours is another world, or at least the runner goes on."""
    with CheckRunner(timeout=6) as runner:
        own = own_of(runner, tmp_path)
        if not own["processes"]:
            pytest.skip("no process namespace here")
        for body in ("import os\nos.kill(-1, 9)", "import os\nos.kill(os.getppid(), 9)\nimport time\ntime.sleep(30)",
                     f"import os\nos.kill({os.getpid()}, 9)", "import os\nos.kill(1, 9)\nos.kill(1, 15)"):
            verdict = runner.verdict(task(tmp_path, body), {}, [])
            assert verdict.passed or verdict.system_error
            assert runner.verdict(task(tmp_path, "import os"), {}, []).passed, "nor who comes after it"


def own_of(runner, tmp_path):
    assert runner.verdict(task(tmp_path, "pass"), {}, []).passed
    return runner._idle[0].own


@linux
def test_a_check_has_no_network(tmp_path):
    """From Python never; with the namespace of its own, by no other way either."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        reached = []
        threading.Thread(target=lambda: reached.append(server.accept()), daemon=True).start()
        from_python = [
            f"import socket\nsocket.create_connection(('127.0.0.1', {port}))",
            f"import socket\nsocket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {port}))",
            f"import socket\nsocket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendmsg("
            f"[b'x'], [], 0, ('127.0.0.1', {port}))",
            "import socket\nsocket.getaddrinfo('localhost', 80)", "import socket\nsocket.gethostbyname('localhost')",
            "import socket\nsocket.socket(socket.AF_UNIX).connect('/var/run/docker.sock')",
            f"import urllib.request\nurllib.request.urlopen('http://127.0.0.1:{port}')"]
        by_itself = (
            "import ctypes, socket, struct\nlibc = ctypes.CDLL(None, use_errno=True)\n"
            f"address = struct.pack('<H', 2) + struct.pack('>H', {port}) + bytes([127, 0, 0, 1]) + bytes(8)\n"
            "assert libc.connect(libc.socket(2, 1, 0), address, 16) == -1")
        with CheckRunner(timeout=20) as runner:
            own = own_of(runner, tmp_path)
            for body in from_python:
                verdict = runner.verdict(task(tmp_path, body), {}, [])
                assert verdict.system_error and "a check has no network" in verdict.reason
            if own["network"]:
                assert runner.verdict(task(tmp_path, by_itself), {}, []).passed
        assert not reached


@linux
def test_a_check_sees_neither_our_environment_nor_our_processes(tmp_path, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "sk-not-for-checks-0123456789")
    monkeypatch.setenv("ORDINARY", "word")
    body = ("import os\nassert 'SOME_API_KEY' not in os.environ and os.environ['ORDINARY'] == 'word'\n"
            "found = b''\nfor entry in os.listdir('/proc'):\n    try: found += "
            "open(f'/proc/{entry}/environ', 'rb').read()\n    except OSError: pass\n"
            "x.metadata['seen'] = b'not-for-checks' in found")
    with CheckRunner(timeout=30) as runner:
        verdict = runner.verdict(task(tmp_path, body), {}, [])
        assert verdict.passed, verdict.reason
        assert verdict.metadata["seen"] is not runner._idle[0].own["proc"]


def test_the_limits_without_namespaces(tmp_path, monkeypatch):
    """Where the kernel gives none, the processes of a check are still stopped and killed."""
    if sys.platform != "linux":
        pytest.skip("Linux")
    script = (FORK + "from tbstudy.reward import confine\nown = dict(network=False, processes=False, proc=False, "
              "user=False)\nconfine._libc.prctl(36, 1)\nothers = confine.threads_of_user()\npid = os.fork()\n"
              "if pid == 0:\n    confine.limit_processes(others)\n    while True: fork()\n"
              "print(confine.watch(pid, 1 << 30, own), len(list(confine.descendants(10))))\n")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.stdout == "it had more than 64 processes 0\n", done.stderr


@linux
def test_the_number_of_processes_is_bounded_by_the_kernel(tmp_path):
    """Also for root, and also where nobody counts: sleeping children, made one by one."""
    script = ("import os, time\nfrom tbstudy.reward import confine\nothers = confine.threads_of_user()\nmade = 0\n"
              "confine.limit_processes(others)\ntry:\n    for _ in range(others + 200):\n        if os.fork() == 0:\n"
              "            time.sleep(5)\n            os._exit(0)\n        made += 1\nexcept OSError:\n    pass\n"
              "print(made < others + 200, open(confine.__file__).read(3), flush=True)\n")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith("True"), done.stdout + done.stderr


# campaigns ---------------------------------------------------------------------------------------------------------


@linux
def test_a_campaign_goes_on_past_hostile_tasks(tmp_path):
    """Five tasks whose checks misbehave among three that do not: five system errors, three verdicts, no stop."""
    data = tmp_path / "library"
    write_domain("library", data)
    lists = data / "lists" / "candidates.yaml"
    uids = yaml.safe_load(lists.read_text())
    bodies = ["while True: pass", "import os; os._exit(0)", "a = []\n    while True: a.append('x' * 1_000_000)",
              "import socket; socket.create_connection(('127.0.0.1', 9))",
              "import subprocess\n    while True: subprocess.Popen(['sleep', '60'])"]
    for path in (data / "test_case").rglob("*.py"):
        text = path.read_text()
        for uid in [u for u in uids if u.startswith(path.name)][:5]:
            if bodies:
                name = uid.split(":")[1]
                start = text.index("validate(x)", text.index(f"def {name}("))
                text = text[:start] + bodies.pop() + text[start + len("validate(x)"):]
        path.write_text(text)
    assert not bodies
    study = load_study(tmp_path / "library.yaml", tmp_path / "run")
    tasks = campaign.load_tasks(study, "candidates")

    async def attempts():
        sandbox = open_sandbox("forked", read_servers(data / "servers.yaml"))
        with CheckRunner(timeout=4, memory_mb=512) as checks:
            try:
                return await asyncio.gather(*(campaign.play(t, 0, policy=golden_policy(), sandbox=sandbox, user=None,
                                                            checks=checks) for t in tasks))
            finally:
                await sandbox.close()

    store = RecordStore(tmp_path / "r.jsonl", "golden", "c")
    store.append([campaign.to_record(e, v, "golden", "c") for e, v in asyncio.run(attempts())])
    records = [r for _, r in read_lines(tmp_path / "r.jsonl")]
    errors = [r["metadata"]["error"] for r in records if is_system_error(r)]
    assert len(records) == 8 and len(errors) == 5 and {e["type"] for e in errors} == {"check"}
    assert all(r["test_result"]["result"] for r in records if not is_system_error(r))


def test_a_tag_cannot_take_the_place_of_whose_attempt_it_is(tmp_path):
    from tbstudy.sandbox.episode import Episode

    item = task(tmp_path, "pass")
    from dataclasses import replace

    tags = {"labels": ["policy:other", "repetition:9", "config_hash:x", "error:y", "template:t"], "skip": False}
    record = campaign.to_record(Episode(replace(item, tags=tags), 3), None, "mine", "h")
    assert (record["metadata"]["policy"], record["metadata"]["repetition"], record["metadata"]["config_hash"]) == (
        "mine", 3, "h")
    assert record["metadata"]["template"] == "t" and "error" not in record["metadata"]


# lists and YAML ----------------------------------------------------------------------------------------------------


@pytest.fixture
def dataset(tmp_path):
    write_domain("library", tmp_path / "library")
    (tmp_path / "outside.py").write_text('def test_a(x):\n    """!\n    scenario: library\n    query: q\n    """\n')
    (tmp_path / "outside.yaml").write_text("world_state: {}\n")
    return tmp_path / "library"


@pytest.mark.parametrize("file", ["../../etc/passwd", "/etc/passwd", "../../outside.py", "a/../../../outside.py",
                                  "library/library_lend.py", "..", "..\\outside.py", "library_lend.py\0"])
def test_a_list_names_files_not_paths(dataset, file):
    path = dataset / "lists" / "candidates.yaml"
    path.write_text(yaml.safe_dump([f"{file}:test_a"]))
    for act in (lambda: load_list(path), lambda: load_dataset(dataset, path), lambda: load_dataset(
            dataset, [f"{file}:test_a"])):
        with pytest.raises(StudyError, match="must be the name of a file, without a path"):
            act()


def test_a_scenario_is_named_not_located(dataset):
    path = next((dataset / "test_case").rglob("*.py"))
    path.write_text(path.read_text().replace("scenario: library", "scenario: ../../outside"))
    with pytest.raises(StudyError, match="'../../outside' must be the name of a file"):
        load_dataset(dataset)


LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12))
MERGES = "a0: &a0 {k: 1}\n" + "".join(
    f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 9)}]}}\n" for i in range(1, 12))


@pytest.mark.parametrize(("text", "words"), [
    (LAUGHS, "once its aliases are written out"), (MERGES, "once its aliases are written out"),
    ("a: &a [*a]", "alias to what holds it"), ("a: &a {b: {c: *a}}", "alias to what holds it"),
    ("[" * 100_000, "nested too deep|not valid YAML"), ("[" * 500 + "]" * 500, "nested too deep"),
    ("- " * 5000 + "x", "nested too deep|not valid YAML"),
    ("a: !!python/object/apply:os.system [id]", "not valid YAML"),
    ("? {a: b}\n: c", "not valid YAML"), ("a: *nowhere", "not valid YAML"), ("a: \x00", "not valid YAML"),
    ("- " + "1" * 5000, "not valid YAML"), ("day: 2026-05-45", "not valid YAML")])
def test_yaml_that_explodes_is_refused(text, words):
    with pytest.raises(StudyError) as error:
        parse_yaml(text, "file.yaml", 7)
    assert any(w in str(error.value) for w in words.split("|")) and str(error.value).startswith("file.yaml:")


def test_yaml_with_aliases_is_still_yaml():
    assert parse_yaml("a: &a {k: [1]}\nb: *a\nc: {<<: *a, l: 2}", "f") == {
        "a": {"k": [1]}, "b": {"k": [1]}, "c": {"k": [1], "l": 2}}
    assert parse_yaml("", "f") is None and parse_yaml("3", "f") == 3 and MAX_NODES >= 1_000_000


@pytest.mark.parametrize("where", ["agent/assistant.yaml", "scenario/library.yaml", "lists/candidates.yaml",
                                   "servers.yaml"])
def test_a_bomb_in_any_file_of_a_dataset_names_the_file(dataset, where):
    (dataset / where).write_text(LAUGHS)
    with pytest.raises(StudyError, match=f"{Path(where).name}:1: YAML of more than"):
        load_dataset(dataset)
        load_list(dataset / "lists" / "candidates.yaml")
        read_servers(dataset / "servers.yaml")


@pytest.mark.parametrize("text", ["x = " + "(" * 500, "x = " + "-" * 100_000 + "1", "x = " + "a" + ".b" * 100_000,
                                  "x = 1\0", "def f(:\n"])
def test_python_that_cannot_be_parsed_names_the_file(dataset, text):
    path = next((dataset / "test_case").rglob("*.py"))
    path.write_text(text + "\n")
    with pytest.raises(StudyError, match=path.name):
        load_dataset(dataset)
