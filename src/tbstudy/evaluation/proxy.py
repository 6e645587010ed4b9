"""A small ASGI proxy between the evaluation and a model server: it makes chat requests fit Qwen's template.

Leading system messages become one, since the template takes no more; sampling parameters that a client leaves out are
filled in. Everything else passes as it is, streamed replies piece by piece. `/healthz` says that the proxy runs,
`/readyz` that the server behind it does and serves the model.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import httpx2 as httpx

from tbstudy.errors import StudyError
from tbstudy.interpreter import coalesce_system

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

#: Headers that belong to one connection, or that describe a body which is written anew.
_PER_HOP = {"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer", "upgrade",
            "transfer-encoding", "content-length", "host", "accept-encoding", "content-encoding"}
_CHAT = "/v1/chat/completions"


@dataclass(frozen=True, slots=True)
class ProxySettings:
    """`upstream` is the model server without `/v1`. `sampling` holds request fields that are filled in when a chat
    request has none of that name. The server's key is read from the environment variable `api_key_env`; without it the
    client's own Authorization header passes. Bodies may have `max_body` bytes; the server may take `timeout_seconds`
    for its first byte and between two pieces."""

    upstream: str
    model: str | None = None
    sampling: Mapping[str, Any] = field(default_factory=dict)
    api_key_env: str | None = None
    timeout_seconds: float = 3600.0
    ready_seconds: float = 5.0
    max_body: int = 64 << 20


class _Refused(Exception):
    """A request that is answered here, with this status."""

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = status


class ChatProxy:
    """The ASGI application. `transport` stands in for the network in tests."""

    def __init__(self, settings: ProxySettings, transport: httpx.AsyncBaseTransport | None = None):
        self.settings, self._transport = settings, transport
        self._client: tuple[asyncio.AbstractEventLoop, httpx.AsyncClient] | None = None
        if settings.api_key_env is not None and not os.environ.get(settings.api_key_env):
            raise StudyError(f"the environment variable {settings.api_key_env} (the server's key) is not set")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            try:
                await self._http(scope, receive, send)
            except _Refused as refusal:
                await _answer(send, refusal.status, {"error": {"message": str(refusal), "code": refusal.status,
                                                               "type": "proxy_error"}})
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1003})

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def close(self) -> None:
        """Drop the connections to the server."""
        if self._client is not None:
            await self._client[1].aclose()
            self._client = None

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, method = scope["path"], scope["method"]
        if path == "/healthz":
            return await _answer(send, 200, {"status": "ok"})
        if path == "/readyz":
            problem = await self.problem()
            return await _answer(send, 503 if problem else 200, {"status": problem or "ready"})
        if not path.startswith("/v1/"):
            raise _Refused(404, f"no such path {path}; this proxy serves /v1/, /healthz and /readyz")
        body = await self._body(receive)
        if path == _CHAT and method == "POST":
            body = rewrite(body, self.settings.sampling)
        query = scope.get("query_string", b"").decode("latin-1")
        url = self.settings.upstream.rstrip("/") + path + (f"?{query}" if query else "")
        await self._pass(method, url, self._headers(scope), body, receive, send)

    async def _body(self, receive: Receive) -> bytes:
        parts, size = [], 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _Refused(499, "the client went away")
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self.settings.max_body:
                raise _Refused(413, f"the body is longer than {self.settings.max_body} bytes")
            if not message.get("more_body"):
                return b"".join(parts)

    def _headers(self, scope: Scope) -> list[tuple[bytes, bytes]]:
        kept = [(name, value) for name, value in scope["headers"] if name.decode("latin-1").lower() not in _PER_HOP]
        if self.settings.api_key_env is not None:
            key = os.environ[self.settings.api_key_env]
            kept = [pair for pair in kept if pair[0].lower() != b"authorization"]
            kept.append((b"authorization", f"Bearer {key}".encode()))
        return kept

    async def _pass(self, method: str, url: str, headers: list[tuple[bytes, bytes]], body: bytes, receive: Receive,
                    send: Send) -> None:
        client = self._connection()
        request = client.build_request(method, url, headers=headers, content=body)
        started = False

        async def forward() -> None:
            nonlocal started
            response = await client.send(request, stream=True)
            try:
                kept = [(name.lower(), value) for name, value in response.headers.raw
                        if name.decode("latin-1").lower() not in _PER_HOP]
                started = True
                await send({"type": "http.response.start", "status": response.status_code, "headers": kept})
                async for piece in _pieces(response):
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
                await send({"type": "http.response.body", "body": b"", "more_body": False})
            finally:
                await response.aclose()

        async def left() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass

        # A client that goes away must not leave the server generating for nobody.
        work, gone = asyncio.ensure_future(forward()), asyncio.ensure_future(left())
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                work.cancel()
                with suppress(asyncio.CancelledError):
                    await work
                return
            await work
        except httpx.TimeoutException as error:
            self._give_up(started, 504, f"the model server took longer than {self.settings.timeout_seconds:g} s", error)
        except httpx.HTTPError as error:
            self._give_up(started, 502, f"the model server at {self.settings.upstream} does not answer: "
                                        f"{type(error).__name__}", error)
        finally:
            for future in (work, gone):
                future.cancel()
            await asyncio.gather(work, gone, return_exceptions=True)

    @staticmethod
    def _give_up(started: bool, status: int, message: str, error: Exception) -> None:
        if started:
            # The status is out already: breaking off is the only way to say that the rest is missing.
            raise ConnectionAbortedError(message) from error
        raise _Refused(status, message) from error

    async def problem(self) -> str:
        """Why the server behind the proxy is not ready, or an empty text."""
        headers = self._headers({"headers": []})
        url = self.settings.upstream.rstrip("/") + "/v1/models"
        try:
            answer = await self._connection().get(url, headers=headers, timeout=self.settings.ready_seconds)
            served = [model["id"] for model in answer.json()["data"]] if answer.status_code == 200 else []
        except httpx.HTTPError as error:
            return f"the model server does not answer: {type(error).__name__}"
        except (ValueError, KeyError, TypeError):
            return "the model server does not list its models"
        if answer.status_code != 200:
            return f"the model server answers HTTP {answer.status_code}"
        if self.settings.model is not None and self.settings.model not in served:
            return f"the model server serves {', '.join(served) or 'nothing'}, not {self.settings.model}"
        return ""

    def _connection(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        if self._client is None or self._client[0] is not loop:
            self._client = (loop, httpx.AsyncClient(
                transport=self._transport, timeout=self.settings.timeout_seconds,
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=64)))
        return self._client[1]


def rewrite(body: bytes, sampling: Mapping[str, Any]) -> bytes:
    """A chat request with one leading system message and every sampling parameter that it lacks.

    A length limit under either of its two names counts as given. What is no chat request at all is left to the server
    to refuse; only a body that is not JSON is refused here.
    """
    try:
        request = json.loads(body)
    except ValueError as error:
        raise _Refused(400, f"the body is not JSON: {error}") from None
    if not isinstance(request, dict):
        raise _Refused(400, "the body is not a JSON object")
    messages = request.get("messages")
    if isinstance(messages, list) and all(isinstance(message, dict) for message in messages):
        request["messages"] = coalesce_system(messages)
    given = set(request)
    if given & {"max_tokens", "max_completion_tokens"}:
        given |= {"max_tokens", "max_completion_tokens"}
    request |= {name: value for name, value in sampling.items() if name not in given}
    return json.dumps(request, ensure_ascii=False).encode()


async def _pieces(response: httpx.Response) -> AsyncIterator[bytes]:
    async for piece in response.aiter_raw():
        if piece:
            yield piece


async def _answer(send: Send, status: int, content: dict[str, Any]) -> None:
    body = json.dumps(content).encode()
    await send({"type": "http.response.start", "status": status, "headers": [
        (b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]})
    await send({"type": "http.response.body", "body": body, "more_body": False})
