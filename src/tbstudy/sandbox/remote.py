"""MCP servers elsewhere, over streamable HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx2 as httpx

from tbstudy.sandbox.protocol import PROTOCOL_VERSION, Broken, RpcError

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
            answer = await self._post(message, number)
        if method == "initialize":
            self.headers["MCP-Protocol-Version"] = str(answer.get("result", {}).get("protocolVersion",
                                                                                    PROTOCOL_VERSION))
        error, result = answer.get("error"), answer.get("result")
        if isinstance(error, dict):
            raise RpcError(error.get("code", 0), str(error.get("message", error)))
        if not isinstance(result, dict):
            raise Broken(f"it answered {json.dumps(answer)[:200]}")
        return result

    async def notify(self, method: str, seconds: float) -> None:
        async with asyncio.timeout(seconds):
            await self._post({"jsonrpc": "2.0", "method": method}, None)

    async def _post(self, message: Mapping[str, Any], number: int | None) -> dict[str, Any]:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                async with self.client.stream("POST", self.url, json=message, headers=self.headers) as response:
                    return await self._answer(response, number)
            except NOT_SENT as error:
                if attempt == ATTEMPTS:
                    raise Broken(f"{self.url} cannot be reached ({error or type(error).__name__})") from error
                await asyncio.sleep(0.2 * attempt)
            except httpx.HTTPError as error:
                raise Broken(f"the connection to {self.url} failed ({error or type(error).__name__})") from error
        raise AssertionError("unreachable")

    async def _answer(self, response: httpx.Response, number: int | None) -> dict[str, Any]:
        if session := response.headers.get("mcp-session-id"):
            self.headers["Mcp-Session-Id"] = session
        if response.status_code >= 400:
            text = (await response.aread()).decode(errors="replace")
            raise Broken(f"HTTP {response.status_code}: {text[:300]}")
        if number is None:
            return {}
        if "text/event-stream" in response.headers.get("content-type", ""):
            async for event in _events(response):
                found = _parsed(event)
                if found.get("id") == number and "method" not in found:
                    return found
            raise Broken("its answer stream ended without the answer")
        return _parsed((await response.aread()).decode(errors="replace"))

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
    """The data of each server-sent event."""
    data: list[str] = []
    async for line in response.aiter_lines():
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line and data:
            yield "\n".join(data)
            data = []
    if data:
        yield "\n".join(data)


def _parsed(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise Broken(f"it answered {text[:200]!r}")
    return value
