"""Server processes as the sandbox sees them: file descriptors to talk through, a log, and a certain end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tbstudy.errors import SystemFault
from tbstudy.secrets import without_secrets

_SOURCE = Path(__file__).with_name("keeper.py")
_LOG_BYTES = 16_384


class UnfitModule(Exception):
    """A server module that cannot be forked, and why."""


class Process:
    """One server process. Talk through `stdin` and `stdout` (non-blocking); `log` holds the end of its stderr."""

    def __init__(self, keeper: Keeper, number: int, stdin: int, stdout: int, stderr: int):
        self.keeper, self.number = keeper, number
        self.stdin, self.stdout, self._stderr = stdin, stdout, stderr
        self.log = bytearray()
        self.pid: int | None = None
        self.how: str | None = None
        self._loop = asyncio.get_running_loop()
        self._ended = self._loop.create_future()
        self._loop.add_reader(stderr, self._read_log)

    def _read_log(self) -> None:
        try:
            data = os.read(self._stderr, 65_536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._close_log()
            return
        self.note(data)

    def note(self, data: bytes) -> None:
        """Add to the log, which keeps its last 16 kB."""
        self.log += data
        if len(self.log) > 2 * _LOG_BYTES:
            del self.log[:-_LOG_BYTES]

    def _close_log(self) -> None:
        if self._stderr >= 0:
            self._loop.remove_reader(self._stderr)
            os.close(self._stderr)
            self._stderr = -1

    def ended(self, how: str) -> None:
        """Called by the keeper when the process has been reaped."""
        self.how = how
        if not self._ended.done() and not self._loop.is_closed():
            self._ended.set_result(None)

    async def wait(self, seconds: float) -> bool:
        """Whether the process has ended and been reaped within `seconds`."""
        if self.how is None:
            await asyncio.wait([self._ended], timeout=seconds)
        return self.how is not None

    def kill(self) -> None:
        """End the process with everything that it started. Does not wait."""
        if self.how is None:
            self.keeper.send({"op": "kill", "id": self.number})

    def close(self) -> None:
        """Close the file descriptors."""
        for name in ("stdin", "stdout"):
            fd = getattr(self, name)
            if fd >= 0:
                os.close(fd)
                setattr(self, name, -1)
        if self._stderr >= 0:
            self._read_log()  # what it said last
        self._close_log()

    def tail(self, characters: int = 1500) -> str:
        """The end of the log, for an error message."""
        if self._stderr >= 0:
            self._read_log()
        return self.log.decode(errors="replace").strip()[-characters:]


class Keeper:
    """The process that starts servers, reaps them, and kills them all when this process goes away.

    With a `module`, servers are forks of a process of `python` that has imported it; otherwise each start runs a
    command. `env` and `cwd` hold for the keeper and what it starts, which gets our environment without keys;
    `clock` freezes the clock of a module's package.
    """

    def __init__(self, python: str = sys.executable, module: str | None = None, arguments: Sequence[str] = (),
                 env: Mapping[str, str] | None = None, cwd: str | None = None, clock: str | None = None):
        self.python, self.module, self.arguments, self.clock = python, module, tuple(arguments), clock
        self.env, self.cwd = dict(env or {}), cwd
        self.process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._running: dict[int, Process] = {}
        # Messages that the socket had no room for, and the start that waits for room.
        self._unsent: deque[bytes] = deque()
        self._room: asyncio.Future[None] | None = None
        self._count = 0
        self._unfit: str | None = None
        self._learning: asyncio.Future[None] | None = None
        #: How many more sessions the module's process learns from.
        self.lessons = 2 if module is not None else 0
        self._lock: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None

    async def launch(self, seconds: float, command: Sequence[str] | None = None, env: Mapping[str, str] | None = None,
                     cwd: str | None = None, memory: int | None = None) -> Process:
        """Start a server; the keeper itself first, if need be, which may take `seconds`.

        Raises:
            UnfitModule: the module cannot be forked.
            SystemFault: the keeper does not start or gets to nothing within `seconds`, the module cannot be imported,
                or the system has no more file descriptors.
        """
        loop = asyncio.get_running_loop()
        if self._lock is None or self._lock[0] is not loop:
            self._lock = (loop, asyncio.Lock())
        until = loop.time() + seconds
        async with self._lock[1]:
            await self._ready(seconds)
            return await self._start(until, {"memory": memory} if command is None else {
                "memory": memory, "command": list(command), "env": dict(env or {}), "cwd": cwd})

    async def _start(self, until: float, request: dict[str, Any]) -> Process:
        self._count += 1
        number = self._count
        data = json.dumps({"op": "start", "id": number, **request}).encode()
        ours: list[int] = []
        theirs: list[int] = []
        try:
            for out in (False, True, True):
                read, write = os.pipe2(os.O_CLOEXEC)
                ours.append(read if out else write)
                theirs.append(write if out else read)
            for fd in ours:
                os.set_blocking(fd, False)
            while not self._handed_over(data, theirs):
                await self._room_by(until)
        except BaseException as error:
            for fd in ours:
                os.close(fd)
            if isinstance(error, OSError):
                raise SystemFault("backend", f"a server cannot be started: {error}") from error
            raise
        finally:
            for fd in theirs:
                os.close(fd)
        process = Process(self, number, *ours)
        self._running[number] = process
        return process

    def _handed_over(self, data: bytes, fds: Sequence[int]) -> bool:
        """Whether the keeper's socket took a request; it does not while the keeper is behind with earlier ones."""
        if self._control is None:
            raise SystemFault("backend", "the process keeper is gone")
        if self._unsent:
            return False
        try:
            socket.send_fds(self._control, [data], fds)
        except BlockingIOError:
            return False
        except ConnectionError as error:
            self._lost()
            raise SystemFault("backend", f"the process keeper is gone: {error}") from error
        return True

    async def _room_by(self, until: float) -> None:
        self._room = asyncio.get_running_loop().create_future()
        self._call_when_writable()
        try:
            async with asyncio.timeout_at(until):
                await self._room
        except TimeoutError as error:
            raise SystemFault("backend", "the process keeper is too far behind to start a server in time") from error
        finally:
            self._room = None

    def _call_when_writable(self) -> None:
        if self._loop is not None and not self._loop.is_closed() and self._control is not None:
            self._loop.add_writer(self._control, self._flush)

    def _flush(self) -> None:
        """Send what had to wait, as far as there is room; then let the next start try."""
        while self._unsent and self._control is not None:
            try:
                self._control.send(self._unsent[0])
            except BlockingIOError:
                self._call_when_writable()
                return
            except ConnectionError:
                self._lost()
                return
            except OSError:  # the system is short of memory or the like
                if self._loop is not None and not self._loop.is_closed():
                    self._loop.remove_writer(self._control)  # it has room, and would be tried without a pause
                    self._loop.call_later(0.1, self._flush)
                return
            self._unsent.popleft()
        if self._control is not None and self._loop is not None and not self._loop.is_closed():
            self._loop.remove_writer(self._control)
        self._give_room()

    def _give_room(self) -> None:
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

    async def _ready(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        if self.process is not None and self.process.poll() is not None:
            self._lost()
        if self._unfit is not None:
            raise UnfitModule(self._unfit)
        if self.process is None:
            await self._spawn(seconds)
        if self._loop is not loop:
            assert self._control is not None
            loop.add_reader(self._control, self._hear)
            self._loop = loop
            self._flush()  # what an earlier loop ended too soon to send

    async def _spawn(self, seconds: float) -> None:
        control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        control.setblocking(False)
        # From its text, so that neither this package nor its folder is on the path of the servers' interpreter.
        command = [self.python, "-c", f"exec(compile(open({str(_SOURCE)!r}).read(), 'keeper.py', 'exec'))",
                   str(theirs.fileno()), self.clock or ""]
        if self.module is not None:
            command += [self.module, *self.arguments]
        # A file, not a pipe: nobody reads along what a module says while it is imported.
        log = tempfile.TemporaryFile()
        try:
            with theirs:
                self.process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log,
                    pass_fds=(theirs.fileno(),), env={**without_secrets(), **self.env}, cwd=self.cwd,
                    start_new_session=True)
        except OSError as error:
            control.close()
            log.close()
            raise SystemFault("backend", f"{self.python} cannot be started: {error}") from error
        self._control = control
        try:
            async with asyncio.timeout(seconds):
                data = await asyncio.get_running_loop().sock_recv(control, 1 << 16)
        except (TimeoutError, OSError):
            data = b""
        except BaseException:
            self._lost()
            raise
        finally:
            log.seek(max(0, log.seek(0, os.SEEK_END) - 1500))
            said = log.read().decode(errors="replace").strip()
            log.close()
        message = json.loads(data) if data else {
            "op": "unfit", "broken": True, "why": said or f"no sign of it within {seconds:g} s"}
        if message["op"] != "ready":
            self._lost()
            if message.get("broken"):
                raise SystemFault("backend", f"{self.module or 'the process keeper'} does not start: {message['why']}")
            self._unfit = message["why"]
            raise UnfitModule(self._unfit)

    def _hear(self) -> None:
        assert self._control is not None
        while True:
            try:
                data = self._control.recv(1 << 16)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._lost()
                return
            message = json.loads(data)
            if message["op"] == "learnt":
                self._taught()
                continue
            process = self._running.get(message["id"])
            if process is None:
                continue
            if message["op"] == "started":
                process.pid = message["pid"]
            else:
                del self._running[message["id"]]
                process.ended(message["how"])

    async def learn_from(self, process: Process) -> None:
        """Let later forks have what this one had to import. Before the process is killed; at most a few seconds."""
        if self.lessons <= 0 or process.how is not None or self._learning is not None:
            return
        self.lessons -= 1
        self._learning = asyncio.get_running_loop().create_future()
        self.send({"op": "learn", "id": process.number})
        try:
            await asyncio.wait([self._learning], timeout=5)
        finally:
            self._learning = None

    def _taught(self) -> None:
        if self._learning is not None and not self._learning.done():
            self._learning.set_result(None)

    def send(self, message: dict[str, Any]) -> None:
        """Ask the keeper, in turn; nothing happens when it is gone, since its servers are too."""
        if self._control is not None:
            self._unsent.append(json.dumps(message).encode())
            self._flush()

    def _lost(self) -> None:
        """Forget a keeper that is gone; its servers died with it."""
        if self._control is not None:
            if self._loop is not None and not self._loop.is_closed():
                self._loop.remove_reader(self._control)
                self._loop.remove_writer(self._control)
            self._control.close()
        self._control = self._loop = None
        self._unsent.clear()
        self._give_room()
        self._taught()
        if self.process is not None:
            try:
                self.process.wait(2)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
            self.process = None
        for process in self._running.values():
            process.ended("the keeper's end")
        self._running.clear()

    def close(self) -> None:
        """End the keeper with everything that it started."""
        if self._control is not None:
            self._lost()
