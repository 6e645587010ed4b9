"""Sessions of an existing ThinkingBox session proxy."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Mapping
from typing import Any

import httpx2 as httpx

from tbstudy import bounded
from tbstudy.errors import StudyError, SystemFault
from tbstudy.sandbox.protocol import MAX_MESSAGE
from tbstudy.sandbox.remote import ATTEMPTS, NOT_SENT
from tbstudy.sandbox.tools import RESERVED, route, tool_dict, unknown_tool
from tbstudy.tasks.model import Task


class ProxySandbox:
    """Sessions at the proxy of `url`. A request is sent again only when it cannot have arrived.

    `start_seconds` bounds the creation of a session, `call_seconds` a call, `session_seconds` all calls of a session.
    """

    def __init__(self, url: str, start_seconds: float = 120.0, call_seconds: float = 60.0,
                 session_seconds: float = 1800.0, headers: Mapping[str, str] | None = None):
        self.url = url.rstrip("/")
        self.start_seconds, self.call_seconds, self.session_seconds = start_seconds, call_seconds, session_seconds
        self.headers = dict(headers or {})
        self._client: tuple[asyncio.AbstractEventLoop, httpx.AsyncClient] | None = None
        self._ending: set[asyncio.Task[None]] = set()

    def session(self, task: Task) -> ProxySession:
        """A session of the proxy.

        Raises:
            StudyError: the scenario leaves out which tools it offers; the proxy would offer none.
            SystemFault: on entering, when the session cannot be created.
        """
        if task.tools is None and task.world_state:
            raise StudyError(f"scenario {task.scenario} has no list of tools, and a session proxy offers only what is "
                             f"listed: name them under 'tools', or use another transport ({task.uid})")
        return ProxySession(self, task)

    async def close(self) -> None:
        """Wait for sessions that are being ended, then drop the connections."""
        if self._ending:
            await asyncio.gather(*self._ending, return_exceptions=True)
        if self._client is not None:
            await self._client[1].aclose()
            self._client = None

    @property
    def client(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        if self._client is None or self._client[0] is not loop:
            # The proxy drops connections that idle for 5 s; to send on one in that moment would leave us in doubt.
            self._client = (loop, httpx.AsyncClient(
                headers=self.headers, timeout=None,
                limits=httpx.Limits(max_connections=None, keepalive_expiry=3)))
        return self._client[1]

    async def post(self, path: str, body: Mapping[str, Any], seconds: float, what: str) -> Any:
        """The content of the proxy's answer.

        Raises:
            SystemFault: no answer in time, an error status, or an answer that is none.
        """
        try:
            async with asyncio.timeout(seconds):
                response = await self._post(path, body)
        except TimeoutError as error:
            raise SystemFault("backend", f"proxy {self.url}, {what}: no answer within {seconds:.3g} s") from error
        except (httpx.HTTPError, httpx.StreamError, bounded.TooLarge) as error:
            raise SystemFault("backend", f"proxy {self.url}, {what}: {error or type(error).__name__}") from error
        status, data = response
        try:
            content, whole = json.loads(data)["content"]["value"], True
        except (ValueError, KeyError, TypeError, RecursionError):
            content, whole = data[:1000].decode(errors="replace"), False
        if status >= 400:
            raise SystemFault("backend", f"proxy {self.url}, {what}: HTTP {status}: {content!s:.500}")
        if not whole:
            raise SystemFault("backend", f"proxy {self.url}, {what}: it answered {content!r:.200}")
        return content

    async def _post(self, path: str, body: Mapping[str, Any]) -> tuple[int, bytes]:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                async with self.client.stream("POST", f"{self.url}/{path}", json=body) as response:
                    return response.status_code, await bounded.read(response, MAX_MESSAGE)
            except NOT_SENT:
                if attempt == ATTEMPTS:
                    raise
                await asyncio.sleep(0.2 * attempt)
        raise AssertionError("unreachable")

    async def end(self, session_id: str) -> None:
        """Destroy a session, at once or, if we are being cancelled, in the background."""
        async def destroy() -> None:
            try:
                await self.post("session_destroy", {"session_id": session_id}, self.start_seconds, "session_destroy")
            except SystemFault:
                pass  # a session that the proxy does not know or cannot end is not ours any more

        task = asyncio.get_running_loop().create_task(destroy())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        await asyncio.shield(task)


class ProxySession:
    """One attempt's session at the proxy."""

    def __init__(self, sandbox: ProxySandbox, task: Task):
        self._sandbox, self._task = sandbox, task
        self.id = str(uuid.uuid4())
        self.init_result: dict[str, Any] = {}
        self._broken: str | None = None

    async def __aenter__(self) -> ProxySession:
        box, task = self._sandbox, self._task
        self._deadline = time.monotonic() + box.session_seconds
        offered = [t.name for t in task.tools or ()]
        try:
            result = await box.post("session_create", {
                "session_id": self.id, "server_config": task.world_state, "available_tools": offered,
                "timeout": box.call_seconds}, box.start_seconds, "session_create")
            listed = await box.post("list_tools", {"session_id": self.id}, box.start_seconds, "list_tools")
            try:
                schemas = [tool_dict(name, t.get("description"), t.get("inputSchema"))
                           for name, t in listed["tools"].items() if not name.startswith(RESERVED)]
            except (TypeError, KeyError, AttributeError) as error:
                raise SystemFault("backend", f"proxy {box.url}, list_tools: it answered {listed!s:.200}") from error
            self.init_result = result if isinstance(result, dict) else {}
            self._tools, self._owner = route(task, {"proxy": schemas})
        except BaseException:
            # A creation that we stopped waiting for may succeed yet.
            await box.end(self.id)
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._sandbox.end(self.id)

    async def tools(self) -> list[dict[str, Any]]:
        return self._tools

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        if name not in self._owner:
            return unknown_tool(name)
        text = await self._post("call_tool", {"tool_name": name, "arguments": arguments}, f"tool {name}")
        return text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)

    async def effects(self) -> dict[str, Any]:
        effects = await self._post("get_effects", {}, "get_effects")
        if not isinstance(effects, dict):
            raise SystemFault("backend", f"proxy {self._sandbox.url}, get_effects: it answered {effects!s:.200}")
        for server, effect in effects.items():
            if isinstance(effect, dict) and effect.get("status") == "error":
                raise SystemFault("backend", f"server {server}, effects failed: {effect.get('message', '')}")
        return effects

    async def _post(self, path: str, body: Mapping[str, Any], what: str) -> Any:
        if self._broken:
            raise SystemFault("backend", self._broken)
        left = self._deadline - time.monotonic()
        try:
            return await self._sandbox.post(path, {"session_id": self.id, **body},
                                            max(0.0, min(self._sandbox.call_seconds + 5, left)), what)
        except SystemFault as fault:
            self._broken = str(fault)
            raise
