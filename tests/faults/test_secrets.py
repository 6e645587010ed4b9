"""Keys from the environment are in nothing that a study writes, says or starts."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import stamina
import yaml
from faulty_http import FaultyHttp, chat, whole

from tbstudy import campaign, secrets
from tbstudy.config import load_study
from tbstudy.errors import StudyError, SystemFault
from tbstudy.policies.client import Client, Endpoint
from tbstudy.sandbox.servers import read_servers
from tbstudy.sandbox.users import facts
from tbstudy.scaffold.dataset import write_domain
from tbstudy.store import RecordStore, read_lines

ROOT = Path(__file__).parents[2]
#: Keys as services give them out, one with characters that JSON escapes.
KEYS = {"POLICY_KEY": "sk-policy-4f1c9a77e2b04d55", "USER_KEY": 'user"key\\with/odd+chars==9',
        "JUDGE_KEY": "jdg_live_0123456789abcdef", "HF_TOKEN": "hf_AbCdEfGhIjKlMnOpQrSt",
        "SERVICE_PASSWORD": "correct-horse-battery-staple"}


@pytest.fixture
def keys(monkeypatch):
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(secrets, "_used", set())
    return KEYS


def leaks(text):
    """The names of keys that a text holds, also as JSON writes them."""
    data = text if isinstance(text, bytes) else text.encode(errors="surrogatepass")
    forms = {name: {value, json.dumps(value)[1:-1]} for name, value in KEYS.items()}
    return [name for name, found in forms.items() if any(form.encode() in data for form in found)]


def leaking_files(folder):
    return {str(path.relative_to(folder)): found for path in folder.rglob("*") if path.is_file()
            if (found := leaks(path.read_bytes()))}


def in_words(request):
    """A server that repeats all it was sent, key included, and refuses."""
    message = "Incorrect API key provided: " + " ".join(KEYS.values())
    return whole(json.dumps({"error": {"message": message}}).encode(), 500)


class Watch:
    """Command lines of all processes below this one, while the context is open."""

    def __enter__(self):
        self.seen, self._stop = set(), threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()

    def _look(self):
        while not self._stop.wait(0.02):
            for entry in os.listdir("/proc") if sys.platform == "linux" else ():
                try:
                    if entry.isdigit():
                        self.seen.add(Path(f"/proc/{entry}/cmdline").read_bytes())
                except OSError:
                    pass


def write_study(folder, urls, **more):
    """A scaffolded domain whose policy, user and judge are endpoints with keys, and whose check asks the judge."""
    write_domain("library", folder / "library")
    for path in (folder / "library" / "test_case").rglob("*.py"):
        text = path.read_text().replace("def validate(x: TestContext):", "def validate(x):")
        path.write_text(text.replace("(x: TestContext):", "(x: TestContext, judge):").replace(
            "\n    validate(x)", "\n    judge.yesno('Is it?')\n    validate(x)"))
    raw = yaml.safe_load((folder / "library.yaml").read_text())
    raw["policy"]["endpoint"] |= {"base_url": urls["policy"], "api_key_env": "POLICY_KEY", "tries": 2}
    raw["user"] = {"kind": "endpoint", "endpoint": {"base_url": urls["user"], "model": "m", "api_key_env": "USER_KEY",
                                                     "tries": 2}}
    raw["judge"] = {"endpoint": {"base_url": urls["judge"], "model": "m", "api_key_env": "JUDGE_KEY", "tries": 2}}
    raw |= {"probe": {"attempts": 1, "min_clean": 1}, "root": str(folder), **more}
    (folder / "library.yaml").write_text(yaml.safe_dump(raw))
    return folder / "library.yaml"


def test_a_campaign_whose_servers_repeat_the_keys(tmp_path, keys, caplog, capfd):
    """Everything that the campaign writes, logs, prints and starts; half of its attempts end in errors that quote the
    keys, in the other half the policy itself says them."""
    caplog.set_level(logging.DEBUG)
    turns = {"policy": lambda r: whole(chat("My keys are " + " ".join(KEYS.values()) + ". <DONE>"))
             if "Good day" in json.dumps(r) else in_words(r),
             "user": in_words, "judge": in_words}
    with FaultyHttp("policy", {}, turns["policy"]) as policy, FaultyHttp("user", {}, turns["user"]) as user, \
            FaultyHttp("judge", {}, turns["judge"]) as judge, stamina.set_testing(True, attempts=9, cap=True), \
            Watch() as watch:
        file = write_study(tmp_path, {"policy": policy.url, "user": user.url, "judge": judge.url})
        transport = "forked" if sys.platform == "linux" else "inprocess"
        study = load_study(file, tmp_path / "run", sandbox__transport=transport)
        tasks = campaign.load_tasks(study, "candidates")
        result = campaign.run_campaign(study, tasks, 1, tmp_path / "run" / "r.jsonl", name="base", stage="probe")
        assert any(KEYS["POLICY_KEY"] in head for head in policy.heads), "the key was really sent"
    records = [record for _, record in read_lines(tmp_path / "run" / "r.jsonl")]
    assert result.played == len(records) == 8
    text = (tmp_path / "run" / "r.jsonl").read_text()
    assert text.count("My keys are [key] [key] [key] [key] [key]. <DONE>") >= 4
    assert {r["metadata"]["error"]["type"] for r in records if "error" in r["metadata"]} == {"policy", "judge"}
    assert leaking_files(tmp_path) == {}
    printed = capfd.readouterr()
    assert leaks(printed.out + printed.err) == []
    assert leaks(caplog.text) == []
    assert leaks("".join(str(vars(r)) for r in caplog.records if r.name.startswith(("tbstudy", "stamina")))) == []
    assert not any(leaks(line) for line in watch.seen) and (watch.seen or sys.platform != "linux")


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500])
def test_no_error_quotes_a_key(keys, status):
    """Neither what is raised, nor what it was raised from, nor what a traceback prints."""
    import traceback

    def reply(request):
        body = {"error": {"message": "got " + " ".join(KEYS.values()), "code": "insufficient_quota"
                          if status == 429 else None}}
        return whole(json.dumps(body).encode(), status)

    with FaultyHttp("policy", {}, reply) as server:
        client = Client(Endpoint(base_url=server.url, model="m", api_key_env="POLICY_KEY", tries=1), "policy")
        with pytest.raises((SystemFault, StudyError)) as error:
            asyncio.run(client.chat([{"role": "user", "content": "hi"}]))
    assert "[key]" in str(error.value)
    assert leaks("".join(traceback.format_exception(error.value))) == []


@pytest.mark.parametrize("body", [b"KEYS", b'{"choices": [{"message": {"content": 3, "k": "KEYS"}}]}', b"[KEYS]"])
def test_no_garbage_quotes_a_key(keys, body):
    said = whole(body.replace(b"KEYS", KEYS["POLICY_KEY"].encode()))
    with FaultyHttp("policy", {}, lambda request: said) as server:
        client = Client(Endpoint(base_url=server.url, model="m", api_key_env="POLICY_KEY", tries=1), "policy")
        with pytest.raises(SystemFault) as error:
            asyncio.run(client.chat([{"role": "user", "content": "hi"}]))
    assert leaks(str(error.value)) == []


def test_a_pasted_key_is_refused_without_being_shown(keys):
    for wrong in ({"api_key_env": KEYS["POLICY_KEY"]}, {"api_key": KEYS["POLICY_KEY"]},
                  {"base_url": f"https://me:{KEYS['HF_TOKEN']}@host/v1"}):
        with pytest.raises(StudyError) as error:
            Endpoint.of({"base_url": "http://host/v1", "model": "m", **wrong})
        assert leaks(str(error.value)) == []
    client = Client(Endpoint(base_url="http://h/v1", model="m", api_key_env="USER_KEY"), "user")
    assert leaks(repr(client.endpoint)) == leaks(repr(client)) == []


def test_tool_servers_get_the_keys_that_are_meant_for_them(tmp_path, keys):
    """A server sees no key of ours; one that `servers.yaml` names reaches it by its environment, not its arguments."""
    if sys.platform != "linux":
        pytest.skip("servers are started on Linux only")
    from tbstudy.sandbox.transports import open_sandbox
    from tbstudy.tasks.model import Task

    faulty = Path(__file__).parent / "faulty_server.py"
    server = tmp_path / "telling_server.py"
    server.write_text(f"import sys, os\nsys.path.insert(0, {str(faulty.parent)!r})\nimport json, faulty_server as f\n"
                      "real = f.text\nf.text = lambda n, value: real(n, json.dumps(dict(os.environ)) "
                      "if 'noted' in value else value)\nif __name__ == '__main__':\n    f.main()\n")
    path = tmp_path / "servers.yaml"
    path.write_text(yaml.safe_dump({"servers": {"notes": {
        "command": ["{python}", "-m", "telling_server"], "cwd": ".", "env": {"MINE": "Bearer {env[HF_TOKEN]}"}}}}))
    task = Task("u", tmp_path, "f", "s", ("a",), "q", None, {"notes": {}})

    async def environment(transport):
        sandbox = open_sandbox(transport, read_servers(path))
        try:
            async with sandbox.session(task) as session:
                return json.loads(await session.call("note", {"text": "t"}))
        finally:
            await sandbox.close()

    for transport in ("forked", "process"):
        with Watch() as watch:
            found = asyncio.run(environment(transport))
        assert found["MINE"] == f"Bearer {KEYS['HF_TOKEN']}" and "PATH" in found
        assert not set(KEYS) & set(found) and leaks(json.dumps({k: v for k, v in found.items() if k != "MINE"})) == []
        assert not any(leaks(line) for line in watch.seen)
    path.write_text(yaml.safe_dump({"servers": {"n": {"command": ["x", "--token={env[HF_TOKEN]}"]}}}))
    with pytest.raises(StudyError, match="would show HF_TOKEN in the list of processes") as error:
        read_servers(path)
    assert leaks(str(error.value)) == []
    path.write_text(yaml.safe_dump({"servers": {"n": {"command": ["x"], "env": {"A": "{env[NOT_SET_AT_ALL]}"}}}}))
    with pytest.raises(StudyError, match="servers.n: env.A: the environment variable NOT_SET_AT_ALL is not set"):
        read_servers(path)


def test_a_notebook_and_what_the_run_leaves(tmp_path, keys):
    """The probe notebook over endpoints, by papermill in a kernel of its own: all files that it leaves."""
    with FaultyHttp("policy", {}, lambda r: whole(chat("Keys: " + " ".join(KEYS.values()) + " <DONE>"))) as policy, \
            FaultyHttp("judge", {}, lambda r: whole(chat("Yes"))) as judge, Watch() as watch:
        file = write_study(tmp_path, {"policy": policy.url, "user": judge.url, "judge": judge.url})
        (tmp_path / "notebooks").symlink_to(ROOT / "notebooks")
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path / "library"), *sys.path])}
        done = subprocess.run([sys.executable, "-m", "tbstudy.cli", "run", str(file), "--study", str(tmp_path / "run"),
                               "--stages", "probe"], capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert (tmp_path / "run" / "notebooks" / "01_probe.ipynb").exists() and (tmp_path / "run" / "config.yaml").exists()
    assert "[key]" in (tmp_path / "run" / "probe.jsonl").read_text()
    assert leaking_files(tmp_path / "run") == {} and leaks(done.stdout + done.stderr) == []
    assert not any(leaks(line) for line in watch.seen)


def test_what_is_taken_for_a_key(tmp_path, keys):
    for name in ("OPENAI_API_KEY", "HF_TOKEN", "aws_secret_access_key", "DB_PASSWORD", "KEY", "MY_AUTH",
                 "GCP_CREDENTIALS"):
        assert secrets.is_secret_name(name)
    for name in ("PATH", "TOKENIZERS_PARALLELISM", "KEYBOARD", "AUTHOR", "MONKEY", "SSH_AGENT_PID", "HOME"):
        assert not secrets.is_secret_name(name)
    left = secrets.without_secrets({"A_KEY": "x", "PATH": "/bin", "OTHER": secrets.use("a-key-in-use")})
    assert left == {"PATH": "/bin"}
    scrub = secrets.scrubber({"SHORT_KEY": "customer", "LONG_KEY": "0123456789abcdef", "WORD": "0123456789abcdeX"})
    assert scrub("customer 0123456789abcdef 0123456789abcdeX a-key-in-use") == "customer [key] 0123456789abcdeX [key]"
    assert secrets.use("none") == "none" and scrub("none") == "none"
    store = RecordStore(tmp_path / "r.jsonl", "base", "c")
    store.append([{"uid": "u", "metadata": {"policy": "base", "repetition": 0, "config_hash": "c"},
                   "messages": [{"content": KEYS["USER_KEY"]}], "is_system_error": True}])
    assert leaking_files(tmp_path) == {}
    (_, record), = read_lines(tmp_path / "r.jsonl")
    assert record["messages"][0]["content"] == "[key]"


def test_the_repository_holds_no_key():
    """Committed files, notebooks and recorded data too: nothing that looks like a service's key."""
    import re

    patterns = re.compile(rb"\b(sk-[A-Za-z0-9]{20,}|sk-(proj|ant)-[A-Za-z0-9_-]{20,}|hf_[A-Za-z0-9]{30,}"
                          rb"|ghp_[A-Za-z0-9]{30,}|AKIA[0-9A-Z]{16}|xox[bp]-[0-9A-Za-z-]{20,}"
                          rb"|eyJhbGciOi[A-Za-z0-9_-]{20,})"
                          rb"|-----BEGIN [A-Z ]*PRIVATE KEY-----")
    read = 0
    for path in ROOT.rglob("*"):
        parts = path.relative_to(ROOT).parts
        skipped = parts[0].startswith((".git", ".venv", "runs", "build"))
        if path.is_file() and not path.is_symlink() and not skipped and (
                path.stat().st_size < 20 << 20):
            data, read = path.read_bytes(), read + 1
            found = patterns.search(data)
            assert found is None, f"{path}: {found[0][:8]!r}..."
    assert read > 200


@pytest.mark.study
def test_a_whole_study_whose_user_repeats_the_keys(mini_config, tmp_path, keys):
    """All that `tbstudy run` writes, prints and starts: records, training state, checkpoints, tables, executed
    notebooks, report and manifests."""
    asked = itertools.count()

    def user(request):
        """Answers as the scripted user does; every seventh answer quotes keys, every tenth request fails and does."""
        known, latest = (re.search(rf"<{tag}>(.*?)</{tag}>", request["messages"][1]["content"], re.DOTALL)[1]
                         for tag in ("facts", "latest"))
        number = next(asked)
        if number % 10 == 0:
            return in_words(request)
        found = [f"My {key} is {value}." for key, value in facts(known).items() if key in latest.lower()]
        return whole(chat(" ".join([*(found or ["I don't know."]), *(KEYS.values() if number % 7 == 0 else ())])))

    raw = yaml.safe_load(mini_config.read_text())
    with FaultyHttp("user", {}, user) as server, Watch() as watch:
        raw["user"] = {"kind": "endpoint", "endpoint": {"base_url": server.url, "model": "m", "api_key_env": "USER_KEY",
                                                         "tries": 6, "max_pause_seconds": 0.1}}
        mini_config.write_text(yaml.safe_dump(raw))
        done = subprocess.run(
            [sys.executable, "-m", "tbstudy.cli", "run", str(mini_config), "--study", str(tmp_path / "run"),
             "--report-to", str(tmp_path / "reports")], cwd=ROOT, capture_output=True, timeout=1200)
        assert any(json.dumps(KEYS["USER_KEY"])[1:-1] in head or KEYS["USER_KEY"] in head for head in server.heads)
    assert done.returncode == 0, done.stderr.decode()
    assert (tmp_path / "reports" / "mini" / "v1" / "manifest.json").exists()
    assert b"[key]" in (tmp_path / "run" / "probe.jsonl").read_bytes(), "keys were said, and replaced"
    assert leaking_files(tmp_path) == {}
    assert leaks(done.stdout + done.stderr) == []
    assert not any(leaks(line) for line in watch.seen)
