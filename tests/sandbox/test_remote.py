"""Remote MCP servers and the session proxy, played by small HTTP servers around the ledger."""

import asyncio
import contextlib
import json
import sys
import threading
import time
import uuid
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from ledgers import GOLDEN, LEDGER, TASKS, TRANSFER, in_sandbox

from tbstudy.errors import StudyError, SystemFault
from tbstudy.sandbox.servers import read_servers
from tbstudy.sandbox.transports import open_sandbox

sys.path.insert(0, str(LEDGER / "servers"))
import ledger_server  # noqa: E402

sys.path.pop(0)


class Backend:
    """The ledger for several sessions, and a record of what was asked."""

    def __init__(self):
        self.sessions, self.requests, self.lock = {}, [], threading.Lock()
        self.delay, self.fail = {}, {}

    def answer(self, session, message):
        with self.lock:
            ledger_server.STATE = self.sessions[session]
            return ledger_server.answer(message)

    def call(self, session, name, arguments):
        return self.answer(session, {"method": "tools/call", "params": {"name": name, "arguments": arguments}})

    def wait(self, what):
        time.sleep(self.delay.get(what, 0))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    backend: Backend

    def reply(self, status, text, kind="application/json", **headers):
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def body(self):
        return json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"null")

    def log_message(self, *_):
        pass


class Mcp(Handler):
    """Streamable HTTP; paths /json and /events choose the form of answers."""

    def do_POST(self):
        message, backend = self.body(), self.backend
        session = self.headers.get("Mcp-Session-Id")
        name = (message.get("params") or {}).get("name") or message["method"]
        backend.requests.append((name, self.headers.get("X-Token"), self.headers.get("MCP-Protocol-Version")))
        if message["method"] == "initialize":
            session = uuid.uuid4().hex
            backend.sessions[session] = {}
        if "id" not in message:
            return self.reply(202, "")
        backend.wait(name)
        if name in backend.fail:
            return self.reply(*backend.fail[name])
        text = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": backend.answer(session, message)})
        if self.path == "/json":
            return self.reply(200, text, Mcp_Session_Id=session)
        note = json.dumps({"jsonrpc": "2.0", "method": "notifications/progress"})
        half = text.index(",") + 1  # a line break is allowed between tokens only
        self.reply(200, f": hello\nevent: message\ndata: {note}\n\ndata: {text[:half]}\ndata: {text[half:]}\n\n",
                   "text/event-stream", Mcp_Session_Id=session)

    def do_DELETE(self):
        self.backend.sessions.pop(self.headers["Mcp-Session-Id"])
        self.reply(200, "{}")


class Proxy(Handler):
    """ThinkingBox's session proxy."""

    def do_POST(self):
        path, body, backend = self.path.strip("/"), self.body(), self.backend
        backend.requests.append((path, body))
        backend.wait(path)
        if path in backend.fail:
            return self.reply(*backend.fail[path])
        session = body["session_id"]
        if path == "session_create":
            backend.sessions[session] = {}
            value = {}
            for server, config in body["server_config"].items():
                made = json.loads(backend.call(session, "__reserved__init", {"config": config})["content"][0]["text"])
                made.pop("status")
                value[server] = made
        elif path == "session_destroy":
            value = "Ok" if backend.sessions.pop(session, None) is not None else None
        elif path == "list_tools":
            offered = next(b["available_tools"] for p, b in backend.requests
                           if p == "session_create" and b["session_id"] == session)
            value = {"tools": {t["name"]: t for t in ledger_server.TOOLS if t["name"] in offered}}
        elif path == "get_effects":
            value = {"ledger": json.loads(backend.call(session, "__reserved__geteffects", {})["content"][0]["text"])}
        else:
            value = backend.call(session, body["tool_name"], body["arguments"])["content"][0]["text"]
        if value is None:
            return self.reply(400, json.dumps({"success": False, "content": {"value": "Session does not exist"}}))
        self.reply(200, json.dumps({"success": True, "content": {"value": value}}))


@contextlib.contextmanager
def running(handler):
    backend = Backend()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("H", (handler,), {"backend": backend}))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield backend, f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


async def golden(sandbox):
    async with sandbox.session(TRANSFER) as session:
        answers = [await session.call(c["tool"], c["parameters"]) for c in GOLDEN]
        refused = await session.call("get_account", {"account": "A-9"}), await session.call("nothing", {})
        return session.init_result, len(await session.tools()), answers[1], refused, await session.effects()


def same(found):
    init, tools, answer, refused, effects = found
    assert init == {"ledger": {"ticket": "T-7"}} and tools == 8 and answer == '{"balance": 75}'
    assert refused == ("ValueError: no account A-9", "Error: function 'nothing' does not exist")
    assert effects["ledger"]["result_db_hash"] == effects["ledger"]["golden_db_hash"]


def remote(tmp_path, url):
    path = tmp_path / "servers.yaml"
    path.write_text(f"servers:\n  ledger:\n    type: mcp-remote\n    endpoint: {url}\n"
                    "    headers: {X-Token: secret}\n")
    return {"transport": "http", "servers": read_servers(path)}


@pytest.mark.parametrize("form", ["json", "events"])
def test_a_remote_server(tmp_path, form):
    with running(Mcp) as (backend, url):
        async def work(sandbox):
            return await asyncio.gather(*(golden(sandbox) for _ in range(5)))

        for found in in_sandbox(work, **remote(tmp_path, f"{url}/{form}")):
            same(found)
        assert backend.sessions == {}  # every session was ended
        assert {token for _, token, _ in backend.requests} == {"secret"}
        assert backend.requests[-1][2] == "2025-06-18"


@pytest.mark.parametrize(("fail", "words"), [
    ((500, "on fire"), "tool transfer: HTTP 500: on fire"), ((200, "no JSON"), "it answered 'no JSON'"),
    ((200, "[]"), "it answered '\\[\\]'"), ((200, '{"result": 3}'), "it answered"),
    ((200, 'data: {"id": 99}\n\n', "text/event-stream"), "ended without the answer")])
def test_a_remote_server_that_fails(tmp_path, fail, words):
    with running(Mcp) as (backend, url):
        backend.fail["transfer"] = fail
        with pytest.raises(SystemFault, match=words):
            in_sandbox(golden, **remote(tmp_path, f"{url}/json"))
        assert sum(name == "transfer" for name, *_ in backend.requests) == 1  # never sent twice


def test_a_remote_server_that_hangs_or_is_not_there(tmp_path):
    with running(Mcp) as (backend, url):
        backend.delay["transfer"] = 1
        with pytest.raises(SystemFault, match="tool transfer: no answer within 0.3 s"):
            in_sandbox(golden, call_seconds=0.3, **remote(tmp_path, f"{url}/json"))
    with pytest.raises(SystemFault, match="its handshake: .* cannot be reached"):
        in_sandbox(golden, **remote(tmp_path, "http://127.0.0.1:9/mcp"))


def at_proxy(work, url, **options):
    async def run():
        sandbox = open_sandbox("proxy", {}, proxy_url=url, **{"start_seconds": 10, "call_seconds": 5, **options})
        try:
            return await work(sandbox)
        finally:
            await sandbox.close()

    return asyncio.run(run())


def test_a_proxy():
    with running(Proxy) as (backend, url):
        async def work(sandbox):
            return await asyncio.gather(*(golden(sandbox) for _ in range(5)))

        for found in at_proxy(work, url + "/"):
            same(found)
        assert backend.sessions == {}
        create = next(body for path, body in backend.requests if path == "session_create")
        assert create["available_tools"] == [t.name for t in TRANSFER.tools]
        assert create["server_config"] == TRANSFER.world_state


def test_a_proxy_must_be_told_the_tools():
    with running(Proxy) as (backend, url):
        async def work(sandbox):
            async with sandbox.session(replace(TRANSFER, tools=None)) as session:
                return await session.tools()

        with pytest.raises(StudyError, match=f"scenario {TRANSFER.scenario} has no list of tools.*{TRANSFER.uid}"):
            at_proxy(work, url)
        assert backend.requests == []


def test_a_creation_that_takes_too_long_is_undone():
    with running(Proxy) as (backend, url):
        backend.delay["session_create"] = 2.5
        with pytest.raises(SystemFault, match="session_create: no answer within 1 s"):
            at_proxy(golden, url, start_seconds=1)
        assert [path for path, _ in backend.requests] == ["session_create", "session_destroy"]
        assert backend.requests[0][1]["session_id"] == backend.requests[1][1]["session_id"]


def test_a_cancelled_client_of_a_proxy_leaves_no_session():
    with running(Proxy) as (backend, url):
        backend.delay["call_tool"] = 0.5

        async def work(sandbox):
            job = asyncio.create_task(golden(sandbox))
            await asyncio.sleep(0.3)
            job.cancel()
            with pytest.raises(asyncio.CancelledError):
                await job

        at_proxy(work, url)
        assert backend.sessions == {} and backend.requests[-1][0] == "session_destroy"


@pytest.mark.parametrize(("path", "fail", "words"), [
    ("session_create", (400, '{"success": false, "content": {"value": "Server ledger does not exist"}}'),
     "session_create: HTTP 400: Server ledger does not exist"),
    ("call_tool", (504, '{"content": {"value": "Tool call timed out"}}'), "tool get_account: HTTP 504: Tool call"),
    ("call_tool", (500, "Internal Server Error"), "tool get_account: HTTP 500: Internal Server Error"),
    ("get_effects", (200, '{"content": {"value": {"ledger": {"status": "error", "message": "no"}}}}'),
     "server ledger, effects failed: no")])
def test_a_proxy_that_fails(path, fail, words):
    with running(Proxy) as (backend, url):
        backend.fail[path] = fail
        with pytest.raises(SystemFault, match=words):
            at_proxy(golden, url)
        assert sum(p == path for p, _ in backend.requests) == 1
        assert backend.sessions == {}


def test_after_a_fault_a_proxy_session_is_of_no_more_use():
    with running(Proxy) as (backend, url):
        backend.delay["call_tool"] = 0.3

        async def work(sandbox):
            sandbox.call_seconds = -4.9
            async with sandbox.session(TASKS["ledger_group_basic.py:test_blind"]) as session:
                for _ in range(2):
                    with pytest.raises(SystemFault, match="tool get_account: no answer within 0.1 s"):
                        await session.call("get_account", {"account": "A-1"})

        at_proxy(work, url)
        assert sum(p == "call_tool" for p, _ in backend.requests) == 1


def test_a_proxy_that_is_not_there():
    with pytest.raises(SystemFault, match="session_create: "):
        at_proxy(golden, "http://127.0.0.1:9")
