"""Tool servers inside this process: a private SQLite database per session, no I/O on the way.

What a task's session starts from (database bytes) and is compared with (the state after its golden calls) is computed
once and kept; opening a session copies the bytes.
"""

from __future__ import annotations

import importlib
import signal
import sqlite3
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tbstudy.errors import StudyError, SystemFault
from tbstudy.sandbox.sqlite import SqliteServer, open_database
from tbstudy.sandbox.tools import route, unknown_tool
from tbstudy.tasks.model import Task


class _Overrun(BaseException):
    """Raised by the alarm inside a tool; not an Exception, so that the tool's own handlers let it pass."""


@dataclass(frozen=True, slots=True)
class _Prepared:
    config: dict[str, Any]
    snapshot: bytes
    golden: dict[str, list[dict[str, Any]]]


class InProcessSandbox:
    """Sessions over `SqliteServer`s of this process.

    `servers` maps the names that world states use to a server or to `<module>:<attribute>` of one. `call_seconds`
    bounds a tool call: SQL is interrupted anywhere, Python code where the call runs in the main thread. At most
    `cached` prepared worlds are kept.
    """

    def __init__(self, servers: Mapping[str, SqliteServer | str], call_seconds: float = 5.0, cached: int = 1024):
        self.call_seconds, self.cached = call_seconds, cached
        self._servers: dict[str, SqliteServer | str] = dict(servers)
        self._schemas: dict[str, list[dict[str, Any]]] = {}
        self._prepared: OrderedDict[tuple[str, str], _Prepared] = OrderedDict()
        self._routes: dict[tuple[Any, ...], tuple[list[dict[str, Any]], dict[str, str]]] = {}

    def session(self, task: Task) -> InProcessSession:
        """A session on a fresh copy of the task's world.

        Raises:
            StudyError: a server is unknown, the rows do not fit its schema, or a golden call fails.
        """
        return InProcessSession(self, task)

    async def close(self) -> None:
        """Drop the prepared worlds."""
        self._prepared.clear()
        self._routes.clear()

    def server(self, name: str, task: Task) -> SqliteServer:
        """The server that a world state names."""
        found = self._servers.get(name)
        if isinstance(found, SqliteServer):
            return found
        if found is None:
            raise StudyError(f"{task.uid}: world_state names server {name!r}; known: "
                             f"{', '.join(self._servers) or 'none'}")
        module, _, attribute = found.partition(":")
        try:
            loaded = getattr(importlib.import_module(module), attribute or "server")
        except (ImportError, AttributeError) as error:
            raise StudyError(f"server {name!r} cannot be loaded from {found!r}: {error}") from error
        if not isinstance(loaded, SqliteServer):
            raise StudyError(f"server {name!r}: {found!r} is a {type(loaded).__name__}, not a SqliteServer; "
                             f"use the transport 'forked' or 'process' for it")
        self._servers[name] = loaded
        return loaded

    def prepared(self, name: str, task: Task) -> _Prepared:
        """Database bytes and golden state of one server in `task`."""
        key = (task.uid, name)
        found = self._prepared.get(key)
        # The uid alone would confuse two datasets that share one.
        if found is not None and found.config is task.world_state[name]:
            self._prepared.move_to_end(key)
            return found
        server, config = self.server(name, task), task.world_state[name]
        try:
            found = _Prepared(config, server.prepare(config), server.golden_state(config))
        except ValueError as error:
            raise StudyError(f"{task.uid}: {error}") from error
        self._prepared[key] = found
        if len(self._prepared) > self.cached:
            self._prepared.popitem(last=False)
        return found

    def route(self, task: Task) -> tuple[list[dict[str, Any]], dict[str, str]]:
        """Tools on offer and their servers; the same objects for every task of a scenario."""
        key = (tuple(task.world_state), id(task.tools), id(task.builtin_tools))
        found = self._routes.get(key)
        if found is None or found[2] is not task.tools or found[3] is not task.builtin_tools:
            for name in task.world_state:
                if name not in self._schemas:
                    self._schemas[name] = self.server(name, task).tool_schemas()
            tools, owner = route(task, {name: self._schemas[name] for name in task.world_state})
            # The last two keep the objects alive whose identity is in the key.
            self._routes[key] = found = (tools, owner, task.tools, task.builtin_tools)
        return found[0], found[1]


class InProcessSession:
    """One attempt's private databases. An async context manager that never waits."""

    def __init__(self, sandbox: InProcessSandbox, task: Task):
        self._sandbox, self._task = sandbox, task
        self._databases: dict[str, sqlite3.Connection] = {}
        self._deadline, self._interrupted = float("inf"), False
        self._broken: str | None = None
        self.init_result: dict[str, Any] = {}

    async def __aenter__(self) -> InProcessSession:
        try:
            for name in self._task.world_state:
                database = open_database(self._sandbox.prepared(name, self._task).snapshot)
                database.set_progress_handler(self._late, 20_000)
                self._databases[name] = database
                self.init_result[name] = {}
            self._tools, self._owner = self._sandbox.route(self._task)
        except BaseException:
            self._end()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        for database in self._databases.values():
            database.close()
        self._databases.clear()

    async def tools(self) -> list[dict[str, Any]]:
        return self._tools

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        self._check_alive()
        server = self._owner.get(name)
        if server is None:
            return unknown_tool(name)
        database = self._databases[server]
        try:
            return self._limited(lambda: self._sandbox.server(server, self._task).invoke(database, name, arguments))
        except _Overrun:
            self._broken = f"tool {name} of server {server} ran longer than {self._sandbox.call_seconds:g} s"
            raise SystemFault("backend", self._broken) from None

    async def effects(self) -> dict[str, Any]:
        self._check_alive()
        return {name: self._sandbox.server(name, self._task).effects(
            database, self._sandbox.prepared(name, self._task).golden) for name, database in self._databases.items()}

    def _check_alive(self) -> None:
        if self._broken or not self._databases and self._task.world_state:
            raise SystemFault("backend", self._broken or "the session has ended")

    def _late(self) -> int:
        self._interrupted |= time.monotonic() > self._deadline
        return self._interrupted

    def _ring(self, _signal: int, _frame: object) -> None:
        # Raised inside the progress handler it goes no further than SQLite, which is interrupted by it.
        self._interrupted = True
        raise _Overrun

    def _limited(self, call: Callable[[], str]) -> str:
        seconds = self._sandbox.call_seconds
        self._deadline = time.monotonic() + seconds
        alarmed = threading.current_thread() is threading.main_thread()
        if alarmed:
            started = time.monotonic()
            handler = signal.signal(signal.SIGALRM, self._ring)
            before, _ = signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            answer = call()
            if self._interrupted:  # whatever the tool made of its being cut off
                raise _Overrun
            return answer
        finally:
            if alarmed:
                signal.setitimer(signal.ITIMER_REAL, 0)
                # A timer that someone else had running goes on with what is left of it.
                left = max(before - (time.monotonic() - started), 1e-6) if before else 0
                signal.signal(signal.SIGALRM, handler)
                signal.setitimer(signal.ITIMER_REAL, left)
            self._deadline = float("inf")
