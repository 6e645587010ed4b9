"""The Model Context Protocol, as far as a sandbox needs it, over a server's stdin and stdout.

JSON-RPC 2.0, one message a line. A client of its own because every fault must become an error that names its cause,
within a time limit, and because the server's side may be any version of any SDK.
"""

from __future__ import annotations

import asyncio
import copy
import json
import os
from collections.abc import Coroutine, Mapping
from typing import Any, Protocol

from tbstudy.errors import SystemFault
from tbstudy.sandbox.processes import Process
from tbstudy.sandbox.tools import RESERVED, tool_dict

PROTOCOL_VERSION = "2025-06-18"
CLIENT = {"name": "tbstudy", "version": "1"}
#: A single message larger than this, or this much output that answers nothing, ends the session.
MAX_MESSAGE, MAX_NOISE = 64 << 20, 4 << 20
#: A server lists its tools on at most so many pages.
MAX_PAGES = 100


class RpcError(Exception):
    """The server answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str):
        super().__init__(message)
        self.code = code


class Broken(Exception):
    """The connection is of no more use: the server ended, floods, or answers what is no answer."""


class Wire(Protocol):
    """A connection that carries requests. One request at a time is enough, more are allowed."""

    async def request(self, method: str, params: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """The result of a request.

        Raises:
            RpcError: the server refused it.
            TimeoutError: no answer within `seconds`; the request may have run.
            Broken: the connection is lost; the request may have run.
        """

    async def notify(self, method: str, seconds: float) -> None:
        """Send a notification."""

    async def close(self, kind: bool) -> None:
        """Release the connection; `kind` when the session ended well and the server may be told."""

    def log(self) -> str:
        """The end of what the server wrote besides answers."""


class StdioWire:
    """Requests to a server process."""

    def __init__(self, process: Process):
        self.process = process
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._buffer = bytearray()
        self._scanned = 0
        self._noise = 0
        self._count = 0
        self._broken: str | None = None
        self._writing = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop.add_reader(process.stdout, self._readable)

    async def request(self, method: str, params: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        if self._broken:
            raise Broken(self._broken)
        self._count += 1
        number = self._count
        future: asyncio.Future[dict[str, Any]] = self._loop.create_future()
        self._waiting[number] = future
        try:
            async with asyncio.timeout(seconds):
                await self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
                return await future
        finally:
            del self._waiting[number]
            if not future.cancelled() and future.done():
                future.exception()  # sending may have failed first: nobody else asks for it then

    async def notify(self, method: str, seconds: float) -> None:
        async with asyncio.timeout(seconds):
            await self._send({"jsonrpc": "2.0", "method": method})

    async def _send(self, message: Mapping[str, Any]) -> None:
        async with self._writing:
            # As ASCII: some readers take U+2028 and its like for the end of a line.
            view = memoryview(json.dumps(message, separators=(",", ":")).encode() + b"\n")
            while view:
                try:
                    view = view[os.write(self.process.stdin, view):]
                except BlockingIOError:
                    ready = self._loop.create_future()
                    self._loop.add_writer(self.process.stdin, lambda r=ready: r.done() or r.set_result(None))
                    try:
                        await ready
                    finally:
                        self._loop.remove_writer(self.process.stdin)
                except OSError as error:
                    await self._ended_how()
                    raise Broken(self._broken or f"its input is closed ({error})") from error

    def _readable(self) -> None:
        try:
            data = os.read(self.process.stdout, 1 << 20)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._loop.remove_reader(self.process.stdout)
            self._start(self._ended_how())
            return
        self._buffer += data
        while (end := self._buffer.find(b"\n", self._scanned)) >= 0:
            line = bytes(self._buffer[:end])
            del self._buffer[:end + 1]
            self._scanned = 0
            self._message(line)
        self._scanned = len(self._buffer)
        if self._scanned > MAX_MESSAGE:
            self._break(f"it wrote a message of more than {MAX_MESSAGE >> 20} MB")

    def _message(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except RecursionError:
            self._break("it wrote a message nested too deep to be read")
            return
        except ValueError:
            message = None
        if not isinstance(message, dict):
            # Some servers print to stdout. That is noise until there is too much of it.
            if line.strip():
                self.process.note(line + b"\n")
                self._noisy(len(line))
        elif "method" in message:
            self._noisy(len(line))
            if "id" in message:
                self._start(self._reply(message))
        else:
            number = message.get("id")
            future = self._waiting.get(number) if isinstance(number, int) else None
            if future is None or future.done():
                self._noisy(len(line))
                return
            self._noise = 0
            try:
                future.set_result(outcome(message))
            except (RpcError, Broken) as error:
                future.set_exception(error)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        # The loop alone would not keep the task from being collected.
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _noisy(self, size: int) -> None:
        self._noise += size
        if self._noise > MAX_NOISE:
            self._break(f"it floods its output: {MAX_NOISE >> 20} MB that answer nothing")

    async def _reply(self, message: dict[str, Any]) -> None:
        """What a server may ask of us: a ping. We offer it nothing else."""
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        if message["method"] == "ping":
            answer["result"] = {}
        else:
            answer["error"] = {"code": -32601, "message": "not offered"}
        try:
            await self._send(answer)
        except Broken:
            pass  # whoever waits for an answer learns it there

    async def _ended_how(self) -> None:
        # The reason arrives by another way than the end of the output, a moment later.
        await self.process.wait(1)
        self._break(f"it ended ({self.process.how})" if self.process.how else "it closed its output")

    def _break(self, why: str) -> None:
        if self._broken is None:
            self._broken = why
            if self.process.stdout >= 0:
                self._loop.remove_reader(self.process.stdout)
            self.process.kill()
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(Broken(self._broken))

    async def close(self, kind: bool) -> None:
        for task in self._tasks:
            task.cancel()
        if kind:
            await self.process.keeper.learn_from(self.process)
        if self.process.stdout >= 0:
            self._loop.remove_reader(self.process.stdout)
        self.process.kill()
        self.process.close()
        await self.process.wait(10)

    def log(self) -> str:
        return self.process.tail()


def outcome(message: Mapping[str, Any]) -> dict[str, Any]:
    """The result in a server's answer.

    Raises:
        RpcError: the answer is a JSON-RPC error.
        Broken: it is neither result nor error.
    """
    error, result = message.get("error"), message.get("result")
    if isinstance(error, dict):
        code = error.get("code", 0)
        raise RpcError(code if isinstance(code, int) else 0, str(error.get("message", error))[:10_000])
    if not isinstance(result, dict):
        raise Broken(f"it answered {json.dumps(message)[:200]}")
    return result


#: A server's visible tools, OpenAI-style, and the parameter names of its reserved ones.
Offer = tuple[list[dict[str, Any]], dict[str, set[str]]]


class Server:
    """An initialised MCP connection to one tool server of one session."""

    def __init__(self, name: str, wire: Wire):
        self.name, self.wire = name, wire
        self.tools: list[dict[str, Any]] = []
        self.reserved: dict[str, set[str]] = {}

    async def open(self, seconds: float, known: Offer | None = None) -> Offer:
        """Handshake and list of tools, which is `known` from an earlier session if given."""
        await self._ask("initialize", {"protocolVersion": PROTOCOL_VERSION, "capabilities": {}, "clientInfo": CLIENT},
                        seconds, "its handshake")
        try:
            await self.wire.notify("notifications/initialized", seconds)
        except (Broken, TimeoutError) as error:
            raise self.fault("its handshake", error, seconds) from error
        if known is not None:
            self.tools, self.reserved = known
            return known
        cursor: dict[str, Any] = {}
        for _ in range(MAX_PAGES):
            page = await self._ask("tools/list", cursor, seconds, "listing its tools")
            try:
                for tool in page.get("tools", ()):
                    schema = tool.get("inputSchema") or {}
                    if tool["name"].startswith(RESERVED):
                        self.reserved[tool["name"]] = set(schema.get("properties") or ())
                    else:
                        self.tools.append(tool_dict(tool["name"], tool.get("description"), plain_schema(schema)))
            except (TypeError, KeyError, AttributeError, RecursionError) as error:
                raise self._garbage("listing its tools", page, error) from error
            if not page.get("nextCursor"):
                return self.tools, self.reserved
            cursor = {"cursor": page["nextCursor"]}
        raise SystemFault("backend", self._words(f"listing its tools: more than {MAX_PAGES} pages"))

    async def call(self, name: str, arguments: Mapping[str, Any], seconds: float) -> str:
        """A tool's answer as text; refusals and bad arguments are answers.

        Raises:
            SystemFault: the server died, hung, floods or is out of order. The call is never sent twice.
        """
        try:
            result = await self._ask("tools/call", {"name": name, "arguments": arguments}, seconds, f"tool {name}")
        except RpcError as error:
            return f"Error: {error}"
        return self._text(result, f"tool {name}")

    async def init(self, config: Mapping[str, Any], session_id: str, seconds: float) -> dict[str, Any]:
        """What the server's init returns, without its status; {} where it has none."""
        return await self._reserved("init", {"config": config}, session_id, seconds)

    async def effects(self, session_id: str, seconds: float) -> dict[str, Any]:
        """The server's effects; {} where it has none."""
        return await self._reserved("geteffects", {}, session_id, seconds)

    async def teardown(self, session_id: str, seconds: float) -> None:
        """Let the server clean up outside its process."""
        await self._reserved("teardown", {}, session_id, seconds)

    async def _reserved(self, what: str, arguments: Mapping[str, Any], session_id: str,
                        seconds: float) -> dict[str, Any]:
        name = RESERVED + what
        parameters = self.reserved.get(name)
        if parameters is None:
            return {}
        if "session_id" in parameters:
            arguments = {**arguments, "session_id": session_id}
        try:
            result = await self._ask("tools/call", {"name": name, "arguments": arguments}, seconds, name)
        except RpcError as error:
            raise self.fault(name, error, seconds) from error
        text = self._text(result, name)
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = None
        if result.get("isError") or not isinstance(value, dict):
            raise SystemFault("backend", self._words(f"{name} answered {text[:500]!r}"))
        status = value.get("status")
        # An init says ok; without a word it is understood to. Effects may have a status of their own.
        if status == "error" or (what == "init" and value and status != "ok"):
            raise SystemFault("backend", self._words(f"{name} failed: {value.get('message', text[:500])}"))
        if what == "init":
            value.pop("status", None)
        return value

    def _text(self, result: Mapping[str, Any], what: str) -> str:
        try:
            return result_text(result)
        except (TypeError, AttributeError) as error:
            raise self._garbage(what, result, error) from error

    def _garbage(self, what: str, answer: Any, error: Exception) -> SystemFault:
        return SystemFault("backend", self._words(
            f"{what}: it answered {str(answer)[:200]!r} ({type(error).__name__}: {error})"))

    async def _ask(self, method: str, params: Mapping[str, Any], seconds: float, what: str) -> dict[str, Any]:
        try:
            return await self.wire.request(method, params, seconds)
        except RpcError as error:
            # Wrong names or arguments are the caller's; an internal error is the server's.
            if method == "tools/call" and error.code in (-32602, -32601, -32002, 0):
                raise
            raise self.fault(what, error, seconds) from error
        except (Broken, TimeoutError) as error:
            raise self.fault(what, error, seconds) from error

    def fault(self, what: str, error: Exception, seconds: float) -> SystemFault:
        """A system fault that names the server, what it was at, and quotes its log."""
        how = f"no answer within {seconds:.3g} s" if isinstance(error, TimeoutError) else str(error)
        return SystemFault("backend", self._words(f"{what}: {how}"))

    def _words(self, what: str) -> str:
        log = self.wire.log()
        return f"server {self.name}, {what}" + (f"\nits log ends:\n{log}" if log else "")


def result_text(result: Mapping[str, Any]) -> str:
    """A tool result as the policy reads it: its text parts, or else its structured content as JSON."""
    parts = [p.get("text", "") for p in result.get("content") or () if isinstance(p, dict) and p.get("type") == "text"]
    if parts:
        return "\n".join(parts)
    structured = result.get("structuredContent")
    return json.dumps(structured, ensure_ascii=False) if structured is not None else ""


def plain_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A parameter schema without references, and without the titles of the whole and of its properties."""
    out = _inlined(schema, schema, ())
    if "$ref" not in json.dumps(out):
        out.pop("$defs", None)
    out.pop("title", None)
    for value in (out.get("properties") or {}).values():
        if isinstance(value, dict):
            value.pop("title", None)
    return out


def _inlined(node: Any, root: Mapping[str, Any], within: tuple[str, ...]) -> Any:
    if isinstance(node, list):
        return [_inlined(v, root, within) for v in node]
    if not isinstance(node, Mapping):
        return copy.deepcopy(node)
    reference = node.get("$ref")
    if isinstance(reference, str) and reference not in within:
        target: Any = root
        for part in reference.removeprefix("#/").split("/"):
            target = target.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(target, Mapping) else None
        if target is not None:
            return _inlined(target, root, (*within, reference))
    return {k: _inlined(v, root, within) for k, v in node.items()}
