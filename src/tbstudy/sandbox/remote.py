"""MCP servers elsewhere, over streamable HTTP."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx2 as httpx

from tbstudy import bounded
from tbstudy.sandbox.protocol import MAX_MESSAGE, MAX_NOISE, PROTOCOL_VERSION, Broken, outcome

#: Failures that happen before a request is on its way: safe to try again.
NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
ATTEMPTS = 3


class HttpWire:
    """Requests to one MCP session of a remote server."""

    def __init__(self, client: httpx.AsyncClient, url: str, headers: Mapping[str, str]):
        self.client, self.url = client, url
        self.headers = {**headers, "Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        self._count = 0

    async def request(self, method: str, params: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        self._count += 1
        number = self._count
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        async with asyncio.timeout(seconds):
            result = outcome(await self._post(message, number))
        if method == "initialize":
            version = result.get("protocolVersion", PROTOCOL_VERSION)
            if not isinstance(version, str) or not re.fullmatch(r"[\w.-]{1,40}", version, re.ASCII):
                raise Broken(f"it speaks protocol version {version!r:.100}")
            self.headers["MCP-Protocol-Version"] = version
        return result

    async def notify(self, method: str, seconds: float) -> None:
        async with asyncio.timeout(seconds):
            await self._post({"jsonrpc": "2.0", "method": method}, None)

    async def _post(self, message: Mapping[str, Any], number: int | None) -> dict[str, Any]:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                async with self.client.stream("POST", self.url, json=message, headers=self.headers) as response:
                    if not response.has_redirect_location:
                        return await self._answer(response, number)
                    self._follow(response)
            except NOT_SENT as error:
                if attempt == ATTEMPTS:
                    raise Broken(f"{self.url} cannot be reached ({error or type(error).__name__})") from error
                await asyncio.sleep(0.2 * attempt)
            except bounded.TooLarge as error:
                raise Broken(f"it floods its answer: {error}") from error
            except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL) as error:
                raise Broken(f"the connection to {self.url} failed ({error or type(error).__name__})") from error
        raise Broken(f"{self.url} redirects again and again")

    def _follow(self, response: httpx.Response) -> None:
        # Our headers may hold a token, and whoever answers there would read it.
        target = response.url.join(response.headers["location"])
        if (target.scheme, target.host, target.port) != (response.url.scheme, response.url.host, response.url.port):
            raise Broken(f"it redirects to another server, {target.scheme}://{target.host}")
        self.url = str(target)

    async def _answer(self, response: httpx.Response, number: int | None) -> dict[str, Any]:
        if session := response.headers.get("mcp-session-id"):
            self.headers["Mcp-Session-Id"] = session
        if response.status_code >= 400:
            text = (await bounded.read(response, MAX_MESSAGE)).decode(errors="replace")
            raise Broken(f"HTTP {response.status_code}: {text[:300]}")
        if number is None:
            return {}
        if "text/event-stream" in response.headers.get("content-type", ""):
            async for event in _events(response):
                found = _parsed(event)
                if found.get("id") == number and "method" not in found:
                    return found
            raise Broken("its answer stream ended without the answer")
        return _parsed((await bounded.read(response, MAX_MESSAGE)).decode(errors="replace"))

    async def close(self, kind: bool) -> None:
        if "Mcp-Session-Id" in self.headers:
            try:
                async with asyncio.timeout(5):
                    await self.client.delete(self.url, headers=self.headers)
            except (httpx.HTTPError, TimeoutError):
                pass  # a server that is gone has no session to end

    def log(self) -> str:
        return ""


async def _events(response: httpx.Response) -> AsyncIterator[str]:
    """The data of each server-sent event; raises `TooLarge` for one without end, or for too many."""
    data: list[str] = []
    async for line in _lines(response):
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line and data:
            yield "\n".join(data)
            data = []
    if data:
        yield "\n".join(data)


async def _lines(response: httpx.Response) -> AsyncIterator[str]:
    rest, noise = bytearray(), 0
    async for part in response.aiter_bytes():
        rest += part
        *whole, last = rest.split(b"\n") if b"\n" in part else (rest,)
        for line in whole:
            noise += len(line) + 1
            if not line.startswith(b"data:") and noise > MAX_NOISE:
                raise bounded.TooLarge(f"{MAX_NOISE >> 20} MB that answer nothing")
            yield line.rstrip(b"\r").decode(errors="replace")
        rest = last
        if len(rest) > MAX_MESSAGE or noise > MAX_MESSAGE:
            raise bounded.TooLarge(f"an event of more than {MAX_MESSAGE >> 20} MB")
    if rest:
        yield rest.rstrip(b"\r").decode(errors="replace")


def _parsed(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise Broken(f"it answered {text[:200]!r}")
    return value
