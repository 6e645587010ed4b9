"""Sessions over server processes: the same answers whatever the transport, and isolation."""

import asyncio
import json
import logging
import shutil
import sys
from dataclasses import replace

import pytest
from ledgers import GOLDEN, LEDGER, TASKS, TRANSFER, in_sandbox, open_ledger, with_state

from tbstudy.errors import StudyError, SystemFault
from tbstudy.reward.checks import CheckRunner
from tbstudy.reward.judge import ScriptedJudge
from tbstudy.sandbox.protocol import plain_schema
from tbstudy.sandbox.replay import Replay
from tbstudy.sandbox.servers import ServerSpec, read_servers

KINDS = ("forked", "process")


async def golden(sandbox, task=TRANSFER):
    async with sandbox.session(task) as session:
        answers = [await session.call(c["tool"], c["parameters"]) for c in GOLDEN]
        return session.init_result, await session.tools(), answers, await session.effects()


@pytest.mark.parametrize("kind", KINDS)
def test_a_session(kind):
    init, tools, answers, effects = in_sandbox(golden, kind)
    assert init == {"ledger": {"ticket": "T-7"}}
    names = [t["function"]["name"] for t in tools]
    assert names == ["raise_alarm", "get_account", "transfer", "add_note", "set_flag", "opening_hours", "today",
                     "misbehave"]
    transfer = tools[2]["function"]
    assert transfer["description"] == "Move money between accounts."
    assert transfer["parameters"]["properties"]["amount"] == {"type": "number", "description": "In euros."}
    assert "title" not in transfer["parameters"]
    flag = tools[4]["function"]["parameters"]
    assert flag["properties"]["flag"]["anyOf"][0]["enum"] == ["ok", "late", "closed"] and "$defs" not in flag
    assert [json.loads(a) for a in answers] == [{"id": "A-1", "owner": "Ada", "balance": 100, "flag": None},
                                                {"balance": 75}, {"noted": True}]
    assert effects["ledger"]["result_db_hash"] == effects["ledger"]["golden_db_hash"]


@pytest.mark.parametrize("kind", KINDS)
def test_refusals_are_text_and_reserved_tools_do_not_exist(kind):
    async def work(sandbox):
        async with sandbox.session(TRANSFER) as session:
            return [await session.call(name, arguments) for name, arguments in (
                ("get_account", {"account": "A-9"}), ("get_account", {}), ("nothing", {}), ("raise_alarm", {}),
                ("__reserved__init", {"config": {}}), ("__reserved__geteffects", {}),
                ("misbehave", {"how": "params"}), ("misbehave", {"how": "empty"}), ("misbehave", {"how": "parts"}),
                ("misbehave", {"how": "structured"}))]

    assert in_sandbox(work, kind) == [
        "ValueError: no account A-9", "KeyError: 'account'", "Error: function 'nothing' does not exist",
        "Error: function 'raise_alarm' does not exist", "Error: function '__reserved__init' does not exist",
        "Error: function '__reserved__geteffects' does not exist", "Error: bad arguments", "", "one\ntwo", '{"a": 1}']


@pytest.mark.parametrize("kind", KINDS)
def test_sessions_share_nothing(kind):
    async def one(sandbox, number):
        async with sandbox.session(TRANSFER) as session:
            for _ in range(2):
                await session.call("transfer", {"source": "A-1", "target": "A-2", "amount": number})
                await session.call("add_note", {"account": "A-1", "text": str(number)})
                await asyncio.sleep(0)
            state = (await session.effects())["ledger"]["result_db_state"]
            return state["accounts"][0]["balance"] == 100 - 2 * number and state["notes"] == [
                {"account": "A-1", "text": str(number)}] * 2

    async def work(sandbox):
        return await asyncio.gather(*(one(sandbox, n) for n in range(12)))

    assert all(in_sandbox(work, kind))


@pytest.mark.parametrize("kind", KINDS)
def test_large_messages_both_ways(kind):
    text = "é" * 2_000_000

    async def work(sandbox):
        async with sandbox.session(TRANSFER) as session:
            await session.call("add_note", {"account": "A-1", "text": text})
            big = await session.call("misbehave", {"how": "big"})
            return len(json.loads(big)["big"]), (await session.effects())["ledger"]["result_db_state"]["notes"]

    assert in_sandbox(work, kind) == (5_000_000, [{"account": "A-1", "text": text}])


def test_several_servers_in_one_session():
    task = replace(TRANSFER, world_state={"ledger": TRANSFER.world_state["ledger"],
                                          "script": {"accounts": [{"id": "A-1", "balance": 1, "flag": None}]}})

    async def work(sandbox):
        async with sandbox.session(task) as session:
            # The later server serves what both have.
            return await session.call("get_account", {"account": "A-1"}), await session.effects()

    answer, effects = in_sandbox(work)
    assert json.loads(answer)["balance"] == 1
    assert [len(effects[n]["result_db_state"]["accounts"]) for n in ("ledger", "script")] == [3, 1]


@pytest.mark.parametrize(("server", "why"), [
    ("threaded", "importing threaded_server starts threads"),
    ("unguarded", "unguarded_server has no code under if __name__ == '__main__'"),
    ("script", "is not 'python -m <module>'")])
def test_servers_that_cannot_be_forked_are_spawned_with_a_warning(server, why, caplog):
    async def work(sandbox):
        for _ in range(2):
            async with sandbox.session(with_state(server=server)) as session:
                assert json.loads(await session.call("get_account", {"account": "A-1"}))["balance"] == 100
        return sandbox.notes

    with caplog.at_level(logging.WARNING):
        notes = in_sandbox(work)
    assert len(notes) == 1 and why in notes[0] and "started afresh" in notes[0]
    assert [r.getMessage() for r in caplog.records if "started afresh" in r.getMessage()] == notes


def test_a_server_that_does_not_exist():
    async def work(sandbox):
        async with sandbox.session(with_state(server="absent")):
            pass

    with pytest.raises(SystemFault, match="no_such_server") as fault:
        in_sandbox(work, "process")
    assert fault.value.cause == "backend" and "its log ends" in str(fault.value)
    with pytest.raises(SystemFault, match="no_such_server"):
        in_sandbox(work)
    with pytest.raises(StudyError, match="names server 'other'; known: ledger"):
        in_sandbox(lambda sandbox: golden(sandbox, with_state(server="other")))


def test_a_tool_that_no_server_has():
    task = replace(TRANSFER, tools=(*TRANSFER.tools, replace(TRANSFER.tools[0], name="fly")))
    with pytest.raises(StudyError, match="scenario ledger offers fly, which none of its servers has"):
        in_sandbox(lambda sandbox: golden(sandbox, task))


def test_forks_have_the_environment_of_their_server(tmp_path):
    path = tmp_path / "servers.yaml"
    path.write_text("servers:\n  ledger:\n    command: ['{python}', '-m', 'env_server']\n    cwd: .\n"
                    "    env: {GREETING: hello}\n")
    (tmp_path / "env_server.py").write_text(
        "import os, random\nimport ledger_server\nSEEN = os.environ['GREETING']\n"
        "ledger_server.account = lambda s, n: {'greeting': SEEN, 'random': random.random(), 'argv': __import__('sys')"
        ".argv[0][-13:]}\nif __name__ == '__main__':\n    ledger_server.main()\n")
    shutil.copy(LEDGER / "servers" / "ledger_server.py", tmp_path)

    async def work(sandbox):
        found = []
        for _ in range(2):
            async with sandbox.session(with_state(golden_test_case=None)) as session:
                found.append(json.loads(await session.call("get_account", {"account": "A-1"})))
        return found

    for kind in KINDS:
        first, second = in_sandbox(work, kind, servers=read_servers(path))
        assert first["greeting"] == "hello" and first["argv"] == "env_server.py"
        assert first["random"] != second["random"]  # forks do not share a random sequence


CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBdTCCARugAwIBAgIUNtaOuXYpIj1C0WrtOjVDg9b1g8QwCgYIKoZIzj0EAwIw
DzENMAsGA1UEAwwEdGVzdDAgFw0yNjExMjkyMjU0MTVaGA8yMTI2MTEwNTIyNTQx
NVowDzENMAsGA1UEAwwEdGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABF2a
j4DOPYRV4BPfgCU7W8RDu2d3iQUVZjBBLXpD4Vfq2vVDXQzeuB1w5/N3anel9y9N
hXD2yTfghT1uWCg8MWSjUzBRMB0GA1UdDgQWBBSwd9lRMMajrtE7FPR4oUsmHJtA
BjAfBgNVHSMEGDAWgBSwd9lRMMajrtE7FPR4oUsmHJtABjAPBgNVHRMBAf8EBTAD
AQH/MAoGCCqGSM49BAMCA0gAMEUCIH7gli1gE/MtUY15g3AqqCoNF8kQFQOFDTts
LiJJGafwAiEA5Wm/SWbVTpgLORo17RDYINl/gOjcITpFcCgeo8l9EjQ=
-----END CERTIFICATE-----
"""


def test_later_forks_find_what_earlier_ones_had_to_make(tmp_path):
    """Modules that are imported late, and TLS contexts, are there already from the third session on."""
    pem, late = tmp_path / "ca.pem", tmp_path / "late_module.py"
    pem.write_text(CERTIFICATE)
    late.write_text("import os\nMADE_BY = os.getpid()\n")
    shutil.copy(LEDGER / "servers" / "ledger_server.py", tmp_path)
    (tmp_path / "late_server.py").write_text(
        "import os\nimport ledger_server\ndef run(state, name, arguments):\n    import ssl, late_module\n"
        f"    contexts = [ssl.create_default_context(cafile={str(pem)!r}) for _ in arguments['account']]\n"
        "    return {'own': late_module.MADE_BY == os.getpid(), 'cas': [len(c.get_ca_certs()) for c in contexts],\n"
        "            'different': len(set(map(id, contexts))),\n"
        "            'strict': contexts[0].verify_mode == ssl.CERT_REQUIRED}\n"
        "ledger_server.run = run\nif __name__ == '__main__':\n    ledger_server.main()\n")
    spec = ServerSpec("ledger", command=(sys.executable, "-m", "late_server"), cwd=str(tmp_path))

    async def ask(sandbox, account):
        async with sandbox.session(with_state(golden_test_case=None)) as session:
            return json.loads(await session.call("get_account", {"account": account}))

    async def work(sandbox):
        found = [await ask(sandbox, "1") for _ in range(2)]
        pem.unlink()
        found.append(await ask(sandbox, "1"))
        pem.write_text(CERTIFICATE)
        return [*found, await ask(sandbox, "333")]

    first, second, third, more = in_sandbox(work, servers={"ledger": spec})
    assert first == {"own": True, "cas": [1], "different": 1, "strict": True}
    assert second == third == {**first, "own": False}
    assert more == {"own": False, "cas": [1, 1, 1], "different": 3, "strict": True}  # each is handed out once


def test_a_frozen_clock():
    async def work(sandbox):
        async with sandbox.session(TRANSFER) as session:
            return json.loads(await session.call("today", {}))

    assert in_sandbox(work, clock="2025-10-01T13:00:00Z") == {
        "today": "2025-10-01", "now": "2025-10-01T13:00:00+00:00", "is": True, "made": "2020-01-02T00:00:00"}
    assert in_sandbox(work)["today"] != "2025-10-01"
    with pytest.raises(StudyError, match="needs the transport 'forked'"):
        open_ledger("process", clock="2025-10-01")
    with pytest.raises(StudyError, match="cannot be forked, so its clock cannot be frozen"):
        in_sandbox(lambda s: golden(s, with_state(server="threaded")), clock="2025-10-01")


def test_one_sandbox_in_several_loops():
    sandbox = open_ledger()
    for _ in range(2):
        assert asyncio.run(golden(sandbox))[2][1] == '{"balance": 75}'
    asyncio.run(sandbox.close())


def test_teardown_is_told_the_session(tmp_path):
    path = tmp_path / "ended"
    task = with_state(teardown_file=str(path))

    async def work(sandbox):
        for _ in range(2):
            async with sandbox.session(task):
                pass

    in_sandbox(work)
    ids = path.read_text().split()
    assert len(ids) == 2 and len(set(ids)) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_all_tasks_of_the_dataset(kind):
    """History, format_query, fixtures, direct responses and the judge, from loader to verdict."""
    async def work(sandbox):
        with CheckRunner(judge=ScriptedJudge({"</second>": "No", "<criterion>rude": "NO"})) as runner:
            tasks = [t for u, t in TASKS.items() if not u.endswith("test_hours")]
            return await Replay(sandbox, runner).run(tasks, ("golden", "noop"))

    report = in_sandbox(work, kind)
    golden_ones = {t.uid for t in report.trials if t.variant == "golden"}
    right = [t for t in report.trials if t.variant == "golden" or t.uid not in golden_ones]
    assert [(t.uid, t.reason) for t in right if not t.passed] == []
    assert report.sound and len(right) == 7 and len(golden_ones) == 4


@pytest.mark.parametrize(("text", "words"), [
    ("servers: 3", "mapping 'servers'"), ("servers: {a: 3}", "servers.a: must be a mapping"),
    ("servers: {a: {type: x}}", "field 'type' must be mcp-process or mcp-remote, it is 'x'"),
    ("servers: {a: {command: x}}", "field 'command' must be a list of text"),
    ("servers: {a: {command: [x], urll: y}}", "unknown field 'urll'"),
    ("servers: {a: {command: ['{pyton}']}}", "placeholder"),
    ("servers: {a: {command: [x], env: {A: 1}}}", "field 'env' must map names to text"),
    ("servers: {a: {type: mcp-remote}}", "field 'endpoint' must be a URL"),
    ("servers: {a: {type: mcp-remote, endpoint: u, transport: sse}}", "must be streamable-http, it is 'sse'")])
def test_mistakes_in_servers_yaml(tmp_path, text, words):
    path = tmp_path / "servers.yaml"
    path.write_text(text)
    with pytest.raises(StudyError, match=words):
        read_servers(path)


def test_which_transport():
    with pytest.raises(StudyError, match="must be one of inprocess, forked"):
        open_ledger("carrier pigeon")
    with pytest.raises(StudyError, match="'http' needs servers of type mcp-remote; not so: ledger"):
        open_ledger("http")
    with pytest.raises(StudyError, match="needs the proxy's URL"):
        open_ledger("proxy")
    with pytest.raises(StudyError, match="script cannot run in process"):
        open_ledger("inprocess")


def test_schemas_that_refer_to_themselves_keep_their_definitions():
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {
        "n": {"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}}}}}
    plain = plain_schema(schema)
    assert plain["properties"]["a"]["properties"]["next"] == {"$ref": "#/$defs/n"} and "$defs" in plain
    assert plain_schema({"properties": {"a": {"$ref": "#/$defs/gone"}}})["properties"]["a"] == {"$ref": "#/$defs/gone"}
