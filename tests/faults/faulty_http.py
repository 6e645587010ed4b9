"""HTTP servers that go wrong to order, byte by byte: a model endpoint (policy, user, judge) and a remote MCP server.

A request names its fault itself: somewhere in its body stands `[fault <role> <kind>]`, and the role is the server's.
Requests without one are answered well.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

Writer = asyncio.StreamWriter


def head(status: int = 200, kind: str = "application/json", **headers: Any) -> bytes:
    lines = [f"HTTP/1.1 {status} S", f"Content-Type: {kind}",
             *(f"{k.replace('_', '-')}: {v}" for k, v in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def whole(data: bytes, status: int = 200, kind: str = "application/json", **headers: Any) -> bytes:
    return head(status, kind, Content_Length=len(data), **headers) + data


def chat(content: Any = "hello", finish: str = "stop", usage: Any = None, **message: Any) -> bytes:
    """A chat completion's body."""
    return json.dumps({"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [
        {"index": 0, "message": {"role": "assistant", "content": content, **message}, "finish_reason": finish}],
        "usage": usage or {"prompt_tokens": 50, "completion_tokens": 5, "total_tokens": 55}}).encode()


async def _forever(writer: Writer, data: bytes, pause: float = 0.0) -> None:
    while True:
        writer.write(data)
        await writer.drain()
        await asyncio.sleep(pause)


async def _send(writer: Writer, data: bytes, seconds: float = 0.0, then: bytes = b"") -> None:
    writer.write(data)
    await writer.drain()
    if seconds:
        await asyncio.sleep(seconds)
        writer.write(then)
        await writer.drain()


async def _reset(writer: Writer, data: bytes = b"") -> None:
    await _send(writer, data)
    await asyncio.sleep(0.02)
    writer.transport.abort()


LONG = 3600.0
GOOD = chat()
_BOMB = gzip.compress(b" " * (40 << 20), 9)
#: What a fault writes in place of the answer; afterwards the connection is closed.
TRANSPORT: dict[str, Callable[[Writer], Awaitable[None]]] = {
    "close": lambda w: _send(w, b""),
    "reset": _reset,
    "hang": lambda w: asyncio.sleep(LONG),
    "hang_after_head": lambda w: _send(w, head(Content_Length=500), LONG),
    "late": lambda w: _send(w, b"", 30, whole(GOOD)),
    "trickle": lambda w: _forever(w, b"H", 0.05),
    "trickle_body": lambda w: _trickle(w),
    "torn": lambda w: _send(w, head(Content_Length=5000) + GOOD[:60]),
    "torn_reset": lambda w: _reset(w, head(Content_Length=5000) + GOOD[:60]),
    "torn_chunk": lambda w: _send(w, head(Transfer_Encoding="chunked") + b"40\r\n" + GOOD[:30]),
    "odd_chunk": lambda w: _send(w, head(Transfer_Encoding="chunked") + b"zz\r\n" + GOOD),
    "cut_until_close": lambda w: _send(w, head(Connection="close") + GOOD[:60]),
    "flood": lambda w: _flood(w),
    "flood_head": lambda w: _forever(w, b"HTTP/1.1 200 S\r\n" + b"X: y\r\n" * 200),
    "flood_error": lambda w: _flood(w, 500),
    "no_http": lambda w: _send(w, bytes(range(256)) * 4),
    "http_500": lambda w: _send(w, whole(b'{"error": {"message": "no"}}', 500)),
    "http_503": lambda w: _send(w, whole(b"<html>busy</html>", 503, "text/html")),
    "http_400": lambda w: _send(w, whole(b'{"error": {"message": "odd request"}}', 400)),
    "redirects": lambda w: _send(w, whole(b"", 307, Location="/v1/chat/completions")),
    "html": lambda w: _send(w, whole(b"<html>Welcome to nginx</html>", 200, "text/html")),
    "empty": lambda w: _send(w, whole(b"")),
    "no_utf8": lambda w: _send(w, whole(b'{"choices": [{"message": {"content": "\xff\xfe"}}]}')),
    "nested": lambda w: _send(w, whole(b'{"a":' * 100_000)),
    "list": lambda w: _send(w, whole(b"[1, 2]")),
    "null": lambda w: _send(w, whole(b"null")),
    "bomb": lambda w: _send(w, whole(_BOMB, Content_Encoding="gzip")),
    "false_gzip": lambda w: _send(w, whole(GOOD, Content_Encoding="gzip")),
}


async def _trickle(writer: Writer) -> None:
    await _send(writer, head(Transfer_Encoding="chunked"))
    await _forever(writer, b"1\r\n \r\n", 0.05)


async def _flood(writer: Writer, status: int = 200) -> None:
    await _send(writer, head(status, Transfer_Encoding="chunked"))
    await _forever(writer, b"10000\r\n" + b"x" * 65536 + b"\r\n")


def _says(body: bytes) -> Callable[[Writer], Awaitable[None]]:
    return lambda w: _send(w, whole(body))


#: Answers that are whole HTTP and no completion.
REPLIES = {
    "no_choices": _says(b'{"choices": []}'),
    "odd_choices": _says(b'{"choices": [{"message": 3}]}'),
    "no_message": _says(b'{"choices": [{"text": "hello", "finish_reason": "stop"}]}'),
    "half_surrogate": _says(b'{"choices": [{"message": {"content": "\\ud800"}}]}'),
    "content_is_list": _says(chat([{"type": "text", "text": "hello"}])),
    "odd_calls": _says(chat(None, tool_calls=[{"function": "note"}])),
    "odd_usage": _says(chat(usage={"prompt_tokens": -5, "completion_tokens": 2})),
    "vast_usage": _says(chat(usage={"prompt_tokens": 10**15, "completion_tokens": 2})),
    "gave_up": _says(chat("", "error")),
    "aborted": _says(chat("Half an ans", "abort")),
    "an_error_in_200": _says(b'{"error": {"message": "overloaded", "code": 529}}'),
}
JUDGE = {
    "says_nothing": _says(chat("")),
    "says_null": _says(chat(None)),
    "says_neither": _says(chat("As a language model I find this text interesting.")),
}
ROLES = {"policy": {**TRANSPORT, **REPLIES}, "user": {**TRANSPORT, **REPLIES},
         "judge": {**TRANSPORT, **REPLIES, **JUDGE}}
for _role in ("user", "judge"):  # these two read no calls
    ROLES[_role].pop("odd_calls", None)


class FaultyHttp:
    """`url` while the context is open. `answer` gives the good answer to a request's body, as raw HTTP bytes; `where`
    says in what text of a request and its path the fault stands (default: anywhere in the body).

    `hits` counts the injected faults by kind, `heads` holds the heads of all requests.
    """

    def __init__(self, role: str, faults: dict[str, Callable[[Writer], Awaitable[None]]],
                 answer: Callable[[dict[str, Any]], bytes],
                 where: Callable[[dict[str, Any], str], str] | None = None):
        self.role, self.faults, self.answer = role, faults, answer
        self.where = where or (lambda request, path: json.dumps(request))
        self.hits: Counter[str] = Counter()
        self.heads: list[str] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> FaultyHttp:
        self._thread.start()
        server = asyncio.run_coroutine_threadsafe(
            asyncio.start_server(self._connection, "127.0.0.1", 0, limit=1 << 26), self._loop).result(30)
        self._server = server
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        return self

    def __exit__(self, *_: object) -> None:
        async def stop() -> None:
            self._server.close()
            others = [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(stop(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()

    async def _connection(self, reader: asyncio.StreamReader, writer: Writer) -> None:
        try:
            while True:
                lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                self.heads.append(lines)
                size = re.search(r"content-length: (\d+)", lines, re.IGNORECASE)
                body = await reader.readexactly(int(size[1]) if size else 0)
                request = json.loads(body) if body else {}
                found = re.search(rf"\[fault {self.role} (\w+)\]", self.where(request, lines.split()[1]))
                if found:
                    self.hits[found[1]] += 1
                    await self.faults[found[1]](writer)
                    break
                await _send(writer, self.answer(request))
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


def policy_turn(request: dict[str, Any]) -> bytes:
    """A policy that asks the user, calls `note` once, and ends."""
    said = sum(m["role"] == "assistant" for m in request["messages"])
    if said == 0:
        body = chat("What shall I note?")
    elif said == 1:
        body = chat("", "tool_calls", tool_calls=[{"id": "c", "type": "function", "function": {
            "name": "note", "arguments": '{"text": "done"}'}}])
    else:
        body = chat("It is noted. <DONE>")
    return whole(body)


def policy_fault(request: dict[str, Any], _path: str) -> str:
    """`[fault policy <kind> <turn>]` in the first user message counts in that turn only."""
    first = next(m["content"] for m in request["messages"] if m["role"] == "user")
    turn = re.search(r"\[fault policy (\w+) (\d)\]", first)
    said = sum(m["role"] == "assistant" for m in request["messages"])
    return f"[fault policy {turn[1]}]" if turn and int(turn[2]) == said else ""
