"""Sessions over MCP servers of any kind, and the choice of a transport."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
import uuid
from collections.abc import Awaitable, Mapping
from typing import Any, TypeVar

from tbstudy.errors import StudyError, SystemFault
from tbstudy.sandbox.base import Sandbox
from tbstudy.sandbox.inprocess import InProcessSandbox
from tbstudy.sandbox.processes import Keeper, UnfitModule
from tbstudy.sandbox.protocol import Offer, Server, StdioWire
from tbstudy.sandbox.servers import ServerSpec
from tbstudy.sandbox.tools import route, unknown_tool
from tbstudy.tasks.model import Task

TRANSPORTS = ("inprocess", "forked", "process", "http", "proxy")
#: For servers, unless they or our environment say otherwise. Logs on a pipe come at once; FastMCP does not spend a
#: tenth of a session's time on the layout of its greeting (ThinkingBox sets the same).
_ENVIRONMENT = {name: os.environ.get(name, value) for name, value in (
    ("PYTHONUNBUFFERED", "1"), ("FASTMCP_LOG_LEVEL", "WARNING"))}
_logger = logging.getLogger(__name__)
_T = TypeVar("_T")


def open_sandbox(transport: str, servers: Mapping[str, ServerSpec], *, proxy_url: str | None = None,
                 start_seconds: float = 120.0, call_seconds: float = 30.0, session_seconds: float = 1800.0,
                 memory_mb: int | None = None, clock: str | None = None) -> Sandbox:
    """The sandbox of a transport over a dataset's servers.

    `clock` (ISO 8601) is what servers read as now, for servers that are forked. `memory_mb` bounds a server's address
    space.

    Raises:
        StudyError: an unknown transport, or servers that it cannot start.
    """
    if transport not in TRANSPORTS:
        raise StudyError(f"transport must be one of {', '.join(TRANSPORTS)}, it is {transport!r}")
    if clock is not None and transport != "forked":
        raise StudyError(f"a frozen clock needs the transport 'forked', not {transport!r}")
    if transport == "inprocess":
        missing = [s.name for s in servers.values() if not (s.in_process or s.module)]
        if missing:
            raise StudyError(f"servers {', '.join(missing)} cannot run in process; use 'forked' or 'process'")
        return InProcessSandbox({s.name: s.in_process or f"{s.module}:server" for s in servers.values()},
                                call_seconds=call_seconds)
    if transport == "proxy":
        if not proxy_url:
            raise StudyError("transport 'proxy' needs the proxy's URL")
        from tbstudy.sandbox.proxy import ProxySandbox

        return ProxySandbox(proxy_url, start_seconds, call_seconds, session_seconds)
    if transport == "http" and (local := [s.name for s in servers.values() if s.type != "mcp-remote"]):
        raise StudyError(f"transport 'http' needs servers of type mcp-remote; not so: {', '.join(local)}")
    return McpSandbox(servers, fork=transport == "forked", start_seconds=start_seconds, call_seconds=call_seconds,
                      session_seconds=session_seconds, memory_mb=memory_mb, clock=clock)


class McpSandbox:
    """Sessions over MCP servers: a process for each server and session, or a remote server's own session.

    With `fork`, a server that `python -m` starts is imported once and forked for each session; one that cannot be
    forked is started afresh each time, with a warning that says why (also in `notes`). A session may take
    `start_seconds` to start, each call `call_seconds`, all of it `session_seconds`.
    """

    def __init__(self, servers: Mapping[str, ServerSpec], fork: bool = True, start_seconds: float = 120.0,
                 call_seconds: float = 30.0, session_seconds: float = 1800.0, memory_mb: int | None = None,
                 clock: str | None = None):
        if sys.platform != "linux" and any(s.type == "mcp-process" for s in servers.values()):
            raise StudyError("starting tool servers ('forked' and 'process') needs Linux; 'inprocess', 'http' and "
                             "'proxy' work everywhere")
        self.servers, self.fork, self.clock = dict(servers), fork, clock
        self.start_seconds, self.call_seconds, self.session_seconds = start_seconds, call_seconds, session_seconds
        self.memory = memory_mb << 20 if memory_mb else None
        self.notes: list[str] = []
        self._keeper = Keeper()
        self._images: dict[str, Keeper | None] = {}
        self._known: dict[str, Offer] = {}
        self._routes: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._client: Any = None

    def session(self, task: Task) -> McpSession:
        """A session with the task's servers.

        Raises (on entering):
            StudyError: a server is unknown, or the scenario offers a tool that none has.
            SystemFault: a server does not start or its init fails.
        """
        return McpSession(self, task)

    async def close(self) -> None:
        """Wait for sessions that are being ended, then end what served them."""
        if self._ending:
            await asyncio.gather(*self._ending, return_exceptions=True)
        for keeper in (self._keeper, *self._images.values()):
            if keeper is not None:
                keeper.close()
        if self._client is not None:
            await self._client[1].aclose()
            self._client = None

    async def connect(self, name: str, task: Task) -> Server:
        """A connected server of the task, with its tools known."""
        spec = self.servers.get(name)
        if spec is None:
            raise StudyError(f"{task.uid}: world_state names server {name!r}; known: "
                             f"{', '.join(self.servers) or 'none'}")
        if spec.type == "mcp-remote":
            from tbstudy.sandbox.remote import HttpWire

            assert spec.url is not None
            server = Server(name, HttpWire(self._http(), spec.url, spec.headers))
        else:
            server = Server(name, StdioWire(await self._launch(spec)))
        try:
            # Before its init a server lists the same tools in every session.
            self._known[name] = await server.open(self.start_seconds, self._known.get(name))
        except BaseException:
            await self.ending(server.wire.close(False))
            raise
        return server

    async def _launch(self, spec: ServerSpec) -> Any:
        if self.fork and spec.name not in self._images:
            self._images[spec.name] = self._image(spec)
        image = self._images.get(spec.name)
        if image is not None:
            try:
                return await image.launch(self.start_seconds, memory=self.memory)
            except UnfitModule as error:
                self._unfit(spec, str(error))
        return await self._keeper.launch(self.start_seconds, spec.command, {**_ENVIRONMENT, **spec.env}, spec.cwd,
                                         self.memory)

    def _image(self, spec: ServerSpec) -> Keeper | None:
        if spec.module is None:
            self._unfit(spec, f"{' '.join(spec.command)} is not 'python -m <module>'")
            return None
        return Keeper(spec.command[0], spec.module, spec.command[3:], {**_ENVIRONMENT, **spec.env}, spec.cwd,
                      self.clock)

    def _unfit(self, spec: ServerSpec, why: str) -> None:
        if self.clock is not None:
            raise StudyError(f"server {spec.name} cannot be forked, so its clock cannot be frozen: {why}")
        note = f"server {spec.name} is started afresh for each session instead of forked: {why}"
        if note not in self.notes:
            self.notes.append(note)
            _logger.warning(note)
        self._images[spec.name] = None

    def _http(self) -> Any:
        import httpx2 as httpx

        loop = asyncio.get_running_loop()
        if self._client is None or self._client[0] is not loop:
            self._client = (loop, httpx.AsyncClient(timeout=None, limits=httpx.Limits(
                max_connections=None, keepalive_expiry=3)))
        return self._client[1]

    def route(self, task: Task, servers: Mapping[str, Server]) -> tuple[list[dict[str, Any]], dict[str, str]]:
        """Tools on offer and their servers; the same objects for every task of a scenario."""
        key = (tuple(servers), id(task.tools), id(task.builtin_tools))
        found = self._routes.get(key)
        if found is None or found[2] is not task.tools or found[3] is not task.builtin_tools:
            tools, owner = route(task, {name: s.tools for name, s in servers.items()})
            self._routes[key] = found = (tools, owner, task.tools, task.builtin_tools)
        return found[0], found[1]

    async def ending(self, work: Awaitable[None]) -> None:
        """Do `work` to its end, in the background if we are cancelled meanwhile."""
        async def do() -> None:
            await work

        task = asyncio.get_running_loop().create_task(do())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        await asyncio.shield(task)


class McpSession:
    """One attempt's servers."""

    def __init__(self, sandbox: McpSandbox, task: Task):
        self._sandbox, self._task = sandbox, task
        self.id = uuid.uuid4().hex
        self.init_result: dict[str, Any] = {}
        self._servers: dict[str, Server] = {}
        self._initialised: set[str] = set()
        self._broken: str | None = None

    async def __aenter__(self) -> McpSession:
        box = self._sandbox
        self._deadline = time.monotonic() + box.session_seconds
        try:
            try:
                await self._start()
            except SystemFault:
                # Nothing of the attempt has run yet, so a start may be tried again, with new processes.
                await box.ending(self._end())
                await self._start()
            self._tools, self._owner = box.route(self._task, self._servers)
        except BaseException:
            self._broken = self._broken or "the session did not start"
            await box.ending(self._end())
            raise
        return self

    async def _start(self) -> None:
        box, names = self._sandbox, list(self._task.world_state)
        connections = [asyncio.ensure_future(box.connect(name, self._task)) for name in names]
        results = await _all_of(connections)
        for name, result in zip(names, results, strict=True):
            if isinstance(result, Server):
                self._servers[name] = result
        for result in results:
            if isinstance(result, BaseException):
                raise result
        for name, server in self._servers.items():
            self._initialised.add(name)
            self.init_result[name] = await server.init(self._task.world_state[name], self.id, box.start_seconds)

    async def __aexit__(self, *_: object) -> None:
        await self._sandbox.ending(self._end())

    async def _end(self) -> None:
        servers, self._servers = self._servers, {}
        kind = self._broken is None

        async def end(server: Server) -> None:
            try:
                # Also after a fault elsewhere: what a server keeps outside its process must go.
                if server.name in self._initialised:
                    await server.teardown(self.id, min(10.0 if kind else 2.0, self._sandbox.call_seconds))
            except SystemFault as fault:
                _logger.debug("teardown: %s", fault)
            finally:
                await server.wire.close(kind)

        await asyncio.gather(*(end(s) for s in servers.values()))

    async def tools(self) -> list[dict[str, Any]]:
        return self._tools

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        owner = self._owner.get(name)
        if owner is None:
            return unknown_tool(name)
        return await self._guarded(self._server(owner).call(name, arguments, self._seconds()))

    async def effects(self) -> dict[str, Any]:
        return {name: await self._guarded(self._server(name).effects(self.id, self._seconds()))
                for name in self._task.world_state}

    def _server(self, name: str) -> Server:
        if self._broken or name not in self._servers:
            raise SystemFault("backend", self._broken or "the session has ended")
        return self._servers[name]

    def _seconds(self) -> float:
        return max(0.0, min(self._sandbox.call_seconds, self._deadline - time.monotonic()))

    async def _guarded(self, call: Awaitable[_T]) -> _T:
        # What a call that got no answer did is unknown, so the session is of no more use.
        try:
            return await call
        except SystemFault as fault:
            self._broken = str(fault)
            raise
        except asyncio.CancelledError:
            self._broken = "a call was cancelled"
            raise


async def _all_of(tasks: list[asyncio.Future[Server]]) -> list[Server | BaseException]:
    """All results or exceptions; when we are cancelled, the tasks are too, and what they opened is closed."""
    try:
        return await asyncio.gather(*tasks, return_exceptions=True)
    except asyncio.CancelledError:
        for task in tasks:
            if not task.cancelled() and task.done() and task.exception() is None:
                await task.result().wire.close(False)
        raise
