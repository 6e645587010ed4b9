"""Runs a task's own check on the terminal state, in a warm child process with limits."""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import linecache
import marshal
import os
import secrets
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tbstudy.errors import StudyError
from tbstudy.reward import confine
from tbstudy.reward.child import parse_arguments
from tbstudy.reward.diff import explain
from tbstudy.reward.frames import Reader, pack
from tbstudy.reward.judge import JudgeModel
from tbstudy.reward.purity import is_pure
from tbstudy.reward.verdict import Verdict
from tbstudy.secrets import without_secrets
from tbstudy.tasks.model import Task
from tbstudy.tasks.source import check_module

#: A verdict that comes this fast is awaited without giving up control; slower ones let other episodes run.
_PROMPT_SECONDS = 0.003
#: A check that asks its judge more often than this never ends.
MAX_QUESTIONS = 1000


class CheckRunner:
    """Verdicts from task checks. One for each process that needs one; it starts its children when first used.

    A check may take `timeout` seconds (not counting the judge's answers) and `memory_mb` of address space, and has no
    network. `judge` answers its yes/no questions; without one a question is a system error. At most `children`
    checks run at once.
    """

    def __init__(self, timeout: float = 10.0, memory_mb: int = 1024, judge: JudgeModel | None = None,
                 children: int = 4):
        self.timeout, self.memory_mb, self.model, self.children = timeout, memory_mb, judge, children
        self._idle: list[_Child] = []
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._free = threading.BoundedSemaphore(children)
        self._code: OrderedDict[str, tuple[Task, bytes, bool]] = OrderedDict()

    async def judge(self, task: Task, effects: Mapping[str, Any], messages: Sequence[dict[str, Any]],
                    response: str | None = None, tool_calls: Sequence[dict[str, Any]] | None = None,
                    init_result: Mapping[str, Any] | None = None) -> Verdict:
        """The verdict of `task`'s check. Never raises for what a check does.

        `messages` is the conversation in a record's shape. `response`, the last thing the assistant said, and
        `tool_calls`, dicts with id, name, arguments and response, are read from the messages when left out.
        """
        mark = secrets.token_hex(16)
        request = self._request(mark, task, effects, messages, response, tool_calls, init_result)
        if isinstance(request, Verdict):
            return request
        while not self._free.acquire(blocking=False):
            await asyncio.sleep(0.001)
        child = None
        try:
            child = self._take() or await self._start()
            out = await self._converse(child, request, mark)
            if child.used and out.get("lost"):
                # The check before this one may have left a dying process or words of its own behind: that is not this
                # one's fault.
                child = await self._start()
                out = await self._converse(child, request, mark)
        except BaseException:
            if child is not None:
                child.kill()
            raise
        finally:
            self._free.release()
        self._put(child)
        return self._verdict(task, effects, out)

    def verdict(self, task: Task, effects: Mapping[str, Any], messages: Sequence[dict[str, Any]],
                response: str | None = None, tool_calls: Sequence[dict[str, Any]] | None = None,
                init_result: Mapping[str, Any] | None = None) -> Verdict:
        """As `judge`, for code that does not await. (In a running loop, as in a notebook, it blocks that loop.)"""
        def run() -> Verdict:
            return asyncio.run(self.judge(task, effects, messages, response, tool_calls, init_result))

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return run()
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(run).result()

    def close(self) -> None:
        """End the children."""
        with self._lock:
            children, self._idle = self._idle, []
        for child in children:
            if self._pid == os.getpid():
                child.kill()

    def __enter__(self) -> CheckRunner:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_idle", None) and sys is not None:
            self.close()

    # requests ----------------------------------------------------------------------------------------------------

    def _request(self, mark: str, task: Task, effects: Mapping[str, Any], messages: Sequence[dict[str, Any]],
                 response: str | None, tool_calls: Sequence[dict[str, Any]] | None,
                 init_result: Mapping[str, Any] | None) -> bytes | Verdict:
        try:
            code, pure = self._compiled(task)
        except (StudyError, SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
            told = error if isinstance(error, StudyError) else f"{type(error).__name__}: {error}"
            return Verdict(False, 0.0, True, f"the check cannot be compiled: {told}", cause="check")
        messages = tag_direct_responses(task, messages)
        try:
            return pack({
                "mark": mark, "code": code, "function": task.function, "pure": pure, "file": task.file.name,
                "fixtures": task.fixtures,
                "effects": dict(effects), "messages": messages,
                "response": last_response(messages) if response is None else response,
                "tool_calls": answered_calls(messages) if tool_calls is None else list(tool_calls),
                "direct": [m["content"] for m in messages if m.get("tag") == "direct"],
                "init_result": dict(init_result or {})})
        except (ValueError, TypeError, RecursionError) as error:
            return Verdict(False, 0.0, True, f"the check cannot be handed what the servers answered: "
                                             f"{type(error).__name__}: {error}", cause="check")

    def _compiled(self, task: Task) -> tuple[bytes, bool]:
        """The check's code as the child loads it, and whether it may share the child's process."""
        found = self._code.get(task.uid)
        if found is not None and found[0] is task:
            self._code.move_to_end(task.uid)
            return found[1], found[2]
        source = check_module(task.file, task.function) if task.check_code is None else ast.parse(task.check_code)
        code = marshal.dumps(compile(source, task.file.name, "exec", dont_inherit=True))
        pure = is_pure(source, task.function)
        self._code[task.uid] = (task, code, pure)
        if len(self._code) > 4096:
            self._code.popitem(last=False)
        return code, pure

    # children ----------------------------------------------------------------------------------------------------

    def _take(self) -> _Child | None:
        with self._lock:
            if self._pid != os.getpid():
                # Forked: the children belong to the parent, and their sockets must not be used from two processes.
                self._idle, self._pid = [], os.getpid()
            return self._idle.pop() if self._idle else None

    async def _start(self) -> _Child:
        # In a thread: it takes half a second, which would count against the checks that are running.
        starting = asyncio.get_running_loop().run_in_executor(None, _Child, self.timeout, self.memory_mb)
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            starting.add_done_callback(lambda done: done.exception() or done.result().kill())
            raise

    def _put(self, child: _Child) -> None:
        if child.alive:
            child.used = True
            with self._lock:
                self._idle.append(child)

    async def _converse(self, child: _Child, request: bytes, mark: str) -> dict[str, Any]:
        """The child's answer to the request marked so; whatever goes wrong is told in an answer of kind ended."""
        left = self.timeout
        try:
            began = time.monotonic()
            await child.send(request, began + left)
            for _ in range(MAX_QUESTIONS + 1):
                message = await child.receive(mark, began + left)
                if message["kind"] != "ask":
                    return _whole(message)
                left -= time.monotonic() - began
                answer = await self._answer(message["messages"])
                began = time.monotonic()
                await child.send(pack(answer), began + left)
            child.kill()
            return {"kind": "ended", "how": f"it asked the judge more than {MAX_QUESTIONS} questions"}
        except TimeoutError:
            child.kill()
            return {"kind": "ended", "how": f"it did not end within {self.timeout:g} s"}
        except (OSError, ValueError, EOFError, KeyError, TypeError) as error:
            child.kill()
            return {"kind": "ended", "lost": True, "how": f"its process was lost ({error or type(error).__name__})"}

    async def _answer(self, messages: list[dict[str, str]]) -> dict[str, str]:
        if self.model is None:
            return {"error": "the check asks a judge and none is configured"}
        try:
            text = self.model(messages)
            if inspect.isawaitable(text):
                text = await text
            return {"text": str(text)}
        except StudyError:
            raise  # a wrong key, a spent budget: no question will be answered
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"}

    def _verdict(self, task: Task, effects: Mapping[str, Any], out: dict[str, Any]) -> Verdict:
        if out["kind"] == "ended":
            return Verdict(False, 0.0, True, f"the check gave no verdict: {out['how']}", cause="check")
        line = out.get("line")
        reason = out["reason"]
        if line is not None:
            source = "" if task.check_code is not None else linecache.getline(str(task.file), line).strip()
            at = f"{task.file.name}:{line}"
            reason = f"{reason} ({at})" if reason else f"{source or 'assertion'} ({at})"
        try:
            diff = [] if out["passed"] or out["system_error"] else explain(effects)
        except Exception as error:  # servers of any make report them; garbage is no reason to fail anybody
            return Verdict(False, 0.0, True, "the servers' report of differences cannot be read: "
                                             f"{type(error).__name__}: {error}", cause="check")
        return Verdict(out["passed"], out["reward"], out["system_error"], reason, diff, out["cause"],
                       out.get("traceback", ""), line, out["prints"], out["metadata"])


def _whole(message: dict[str, Any]) -> dict[str, Any]:
    """The message if it is what `child.run` writes. A check can write to the same socket.

    Raises:
        ValueError: it is something else.
    """
    kinds = {"ended": {"how": str}, "verdict": {
        "passed": bool, "system_error": bool, "reward": float, "reason": str, "cause": str, "prints": str,
        "metadata": dict}}[message["kind"]]
    if wrong := [name for name, kind in kinds.items() if not isinstance(message.get(name), kind)]:
        raise ValueError(f"it wrote a {message['kind']} without {', '.join(wrong)}")
    if message["kind"] == "verdict" and (not 0 <= message["reward"] <= 1 or not isinstance(
            message.get("line"), (int, type(None))) or not isinstance(message.get("traceback", ""), str)):
        raise ValueError("it wrote something that is no verdict")
    return message


class _Child:
    """The warm process of `tbstudy.reward.child` with its socket."""

    def __init__(self, timeout: float, memory_mb: int):
        self.connection, theirs = socket.socketpair()
        self.alive, self.used = True, False
        self._reader = Reader(trusted=False)
        self._before: str | None = None
        self._log = tempfile.TemporaryFile()
        environment = {**without_secrets(), "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        try:
            with theirs:
                self.process = subprocess.Popen(
                    [sys.executable, "-m", "tbstudy.reward.child", str(theirs.fileno()), str(int(timeout) + 2),
                     str(memory_mb)],
                    pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                    stderr=self._log, env=environment, start_new_session=True)
        except BaseException:
            self.connection.close()
            self._log.close()
            raise
        self.connection.setblocking(False)
        self._hello(time.monotonic() + 60)

    def _hello(self, deadline: float) -> None:
        try:
            while (message := self._reader.next()) is None:
                self._wait(select.POLLIN, deadline)
                self._read()
        except (TimeoutError, EOFError, OSError, ValueError) as error:
            self._log.seek(0)
            log = self._log.read(4000).decode(errors="replace").strip()
            self.kill()
            raise StudyError(f"the process that runs checks did not start: {log or error}") from error
        self.framework: str = message["framework"]
        #: What the process has to itself: network, processes, proc (it sees its own processes only), user.
        self.own: dict[str, bool] = message["own"]

    async def send(self, data: bytes, deadline: float) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[self.connection.send(view):]
            except BlockingIOError:
                await asyncio.sleep(0.0005)
                if time.monotonic() > deadline:
                    raise TimeoutError from None

    async def receive(self, mark: str, deadline: float) -> dict[str, Any]:
        """The next message about the request marked so. A check can write to the socket; it cannot know the mark of the
        next one's request, so that what it left there is nobody's verdict.

        Raises:
            TimeoutError: it does not come before `deadline` (monotonic seconds).
            EOFError, OSError, ValueError: the process is gone or writes garbage, or what bears another mark.
        """
        prompt = min(time.monotonic() + _PROMPT_SECONDS, deadline)
        while True:
            message = self._reader.next()
            if message is None:
                await self._more(prompt, deadline)
            elif message["kind"] == "ended" and message["mark"] == self._before:
                self._before = None  # how the check before this one ended; it had answered
            elif message["mark"] != mark:
                raise ValueError("what it says is about another check")
            else:
                self._before = mark if message["kind"] == "verdict" else None
                return message

    async def _more(self, prompt: float, deadline: float) -> None:
        try:
            self._wait(select.POLLIN, prompt)
        except TimeoutError:
            loop = asyncio.get_running_loop()
            ready = loop.create_future()
            loop.add_reader(self.connection, lambda: ready.done() or ready.set_result(None))
            try:
                async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                    await ready
            except TimeoutError:
                self._wait(select.POLLIN, 0)  # it may have answered while others held up this loop
            finally:
                loop.remove_reader(self.connection)
        self._read()

    def _wait(self, event: int, until: float) -> None:
        poll = select.poll()
        poll.register(self.connection, event)
        if not poll.poll(max(0.0, until - time.monotonic()) * 1000):
            raise TimeoutError

    def _read(self) -> None:
        data = self.connection.recv(1 << 18)
        if not data:
            raise EOFError("it closed its connection")
        self._reader.feed(data)

    def kill(self) -> None:
        """End the process, whatever it forked with it, and free what it held."""
        if not self.alive:
            return
        self.alive = False
        self.connection.close()
        # Those below it first, also what left its process group: they lose their way to it with its end.
        confine.end_tree(str(self.process.pid))
        self.process.kill()
        self.process.wait()
        self._log.close()


def last_response(messages: Sequence[dict[str, Any]]) -> str:
    """The last thing the assistant itself said, or an empty text."""
    for m in reversed(messages):
        if m["role"] == "assistant" and m.get("content") and not m.get("tag"):
            return m["content"]
    return ""


def tag_direct_responses(task: Task, messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages, with `"tag": "direct"` on those that the loop made from a tool's answer by its direct response."""
    templates = {t.name: t.direct_response for t in task.tools or () if t.direct_response is not None}
    if not templates:
        return list(messages)
    out: list[dict[str, Any]] = []
    due: list[str] = []
    for m in messages:
        if m["role"] == "tool":
            due += _filled(templates.get(m.get("name", "")), m.get("content"))
        elif m["role"] == "assistant" and m.get("content") in due:
            due.remove(m["content"])
            m = {**m, "tag": "direct"}
        else:
            due = []
        out.append(m)
    return out


def _filled(template: str | None, answer: Any) -> list[str]:
    if template is None:
        return []
    try:
        return [template.format(**json.loads(answer))]
    except (TypeError, ValueError, LookupError, AttributeError, RecursionError):
        return []


def answered_calls(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every tool call with its answer: id, name, arguments, response. A call without an answer (an end-turn tool) has
    an empty one; arguments that are not a JSON object are empty and the reason is under error."""
    answers = {m.get("tool_call_id"): m.get("content") or "" for m in messages if m["role"] == "tool"}
    out = []
    for m in messages:
        for call in m.get("tool_calls") or ():
            arguments, error = parse_arguments(call["function"]["arguments"])
            out.append({"id": call["id"], "name": call["function"]["name"], "arguments": arguments,
                        "response": answers.get(call["id"], ""), **({"error": error} if error else {})})
    return out
