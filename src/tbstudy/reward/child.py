"""The process in which checks run: warm, limited, without network.

    python -m tbstudy.reward.child <socket fd> <CPU seconds> <memory MB>

A check that can leave nothing behind (see `reward.purity`) runs in this process, in a namespace of its own. Any other
runs in a fork, whose end is reported, so that whatever it does to its process ends with it.
"""

from __future__ import annotations

import collections
import contextlib
import copy
import ctypes
import datetime
import decimal
import gc
import inspect
import io
import itertools
import json
import marshal
import math
import os
import re
import resource
import signal
import socket
import string
import sys
import threading
import typing
from typing import Any

from tbstudy.reward.fixtures import make_fixtures
from tbstudy.reward.frames import Reader, pack, receive
from tbstudy.reward.standin import install

#: Imported here so that checks find them warm.
WARM = (collections, copy, datetime, decimal, itertools, json, math, re, string, typing)
#: Bound early: a check may change the module.
_dumps, _loads = json.dumps, json.loads
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_LINUX = sys.platform == "linux"
_libc = ctypes.CDLL(None, use_errno=True) if _LINUX else None


def serve(connection: socket.socket, cpu_seconds: int, memory: int) -> None:
    """Answer requests until the connection ends."""
    if _LINUX:
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)
    _leave_network()
    framework = install()
    for limit, value in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_FSIZE, 1 << 24), (resource.RLIMIT_CORE, 0)):
        try:
            resource.setrlimit(limit, (value, value))
        except (ValueError, OSError):
            pass  # systems other than Linux do not know every limit
    connection.sendall(pack({"kind": "ready", "framework": framework}))
    reader = Reader()
    gc.collect()
    gc.freeze()
    while (request := receive(connection, reader)) is not None:
        runner = _Runner(connection, reader, 2.0 * cpu_seconds)
        if request["pure"]:
            connection.sendall(pack(run(request, runner)))
            continue
        pid = os.fork()
        if pid == 0:
            try:
                _die_with_parent()
                resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 1))
                connection.sendall(pack(run(request, runner)))
            finally:
                # Not sys.exit: nothing that the check left behind (threads, exit handlers) may run or hold us up.
                os._exit(0)
        _, status = os.waitpid(pid, 0)
        _end_orphans()
        ended = (f"exit status {os.WEXITSTATUS(status)}" if os.WIFEXITED(status)
                 else f"signal {signal.Signals(os.WTERMSIG(status)).name}")
        connection.sendall(pack({"kind": "ended", "how": ended}))


class _Runner:
    """The runner, as seen from a check: it answers for the judge's model.

    While the check itself runs, an alarm of `seconds` ends the process. The runner is faster, unless it is gone.
    """

    def __init__(self, connection: socket.socket, reader: Reader, seconds: float):
        self.connection, self.reader, self.seconds = connection, reader, seconds
        self.lock = threading.Lock()
        self.failed = False

    def watch(self, on: bool) -> None:
        signal.setitimer(signal.ITIMER_REAL, self.seconds if on else 0)

    def get_completion_sync(self, conversation: Any, update_conversation: bool = False) -> list[Any]:
        from thinkingbox.common.chat_types import Text

        messages = [{"role": m.role, "content": m.content} for m in conversation]
        with self.lock:
            self.watch(False)
            self.connection.sendall(pack({"kind": "ask", "messages": messages}))
            answer = receive(self.connection, self.reader)
            self.watch(True)
        if answer is None or "error" in answer:
            self.failed = True
            raise RuntimeError("the runner is gone" if answer is None else answer["error"])
        return [Text(role="assistant", content=answer["text"])]


def run(request: dict[str, Any], model: _Runner) -> dict[str, Any]:
    """Run the check of a request; never raises."""
    from thinkingbox.common import Judge

    printed = io.StringIO()
    judge = Judge(model)
    out: dict[str, Any] = {"kind": "verdict", "forked": not request["pure"], "passed": False, "reward": 0.0,
                           "system_error": True, "cause": "check"}
    context: Any = None
    model.watch(True)
    try:
        with contextlib.redirect_stdout(printed), contextlib.ExitStack() as stack:
            context = make_context(request)
            names: dict[str, Any] = {"__name__": "tbstudy_check", "__builtins__": __builtins__}
            exec(marshal.loads(request["code"]), names)
            check = names[request["function"]]
            given = {"x": context, "judge": judge}
            wanted = [p.name for p in inspect.signature(check).parameters.values() if p.default is p.empty
                      or p.name in given or p.name in request["fixtures"]]
            value = check(**make_fixtures(wanted, request["fixtures"], given, stack))
        out.update(_reward(value))
    except AssertionError as error:
        out.update(system_error=False, cause="", reason=str(error), assertion=True)
        _place(out, error, request["file"])
    except BaseException as error:
        out["reason"] = f"{type(error).__name__}: {error}"
        if model.failed:
            out["cause"] = "judge"
        _place(out, error, request["file"])
    model.watch(False)
    out["prints"] = printed.getvalue()[:100_000]
    metadata = dict(context.metadata) if context is not None else {}
    if decisions := judge.drain_decisions():
        metadata["judge"] = decisions
    out["metadata"] = _loads(_dumps(metadata, default=str))
    return out


def _reward(value: Any) -> dict[str, Any]:
    if value is None:
        return {"passed": True, "reward": 1.0, "system_error": False, "cause": "", "reason": ""}
    if not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise ValueError(f"the check returned {value!r}, a reward is a number from 0 to 1")
    return {"passed": True, "reward": float(value), "system_error": False, "cause": "", "reason": ""}


def make_context(request: dict[str, Any]) -> Any:
    """The test context of a request; messages are in the shape of a record's."""
    from thinkingbox.common import TestContext
    from thinkingbox.common.chat_types import ToolCallResponse, ToolResponse

    calls = [ToolCallResponse(tool_call=_tool_call(c["id"], c["name"], c["arguments"], c.get("error")),
                              tool_response=ToolResponse(name=c["name"], content=c["response"], id=c["id"]))
             for c in request["tool_calls"]]
    return TestContext(response=request["response"], tool_direct_responses=request["direct"],
                       effects=request["effects"], tool_calls=calls, messages=make_messages(request["messages"]),
                       init_result=request["init_result"])


def make_messages(messages: list[dict[str, Any]]) -> list[Any]:
    """A record's messages as ThinkingBox's: thought, text and calls of one assistant message are three."""
    from thinkingbox.common.chat_types import ParallelToolCall, Text, ToolResponse

    out: list[Any] = []
    names: dict[str, str] = {}
    for m in messages:
        if m["role"] == "tool":
            call = m.get("tool_call_id", "")
            out.append(ToolResponse(name=m.get("name") or names.get(call, ""), content=m.get("content") or "", id=call))
            continue
        if m.get("reasoning_content"):
            out.append(Text(role="assistant", content=m["reasoning_content"], metadata={"tag": "think"}))
        if m.get("content"):
            out.append(Text(role=m["role"], content=m["content"], metadata={"tag": m["tag"]} if m.get("tag") else {}))
        if m.get("tool_calls"):
            calls = []
            for c in m["tool_calls"]:
                names[c["id"]] = c["function"]["name"]
                arguments, error = parse_arguments(c["function"]["arguments"])
                calls.append(_tool_call(c["id"], c["function"]["name"], arguments, error))
            out.append(ParallelToolCall(tool_calls=calls))
    return out


def parse_arguments(text: Any) -> tuple[dict[str, Any], str | None]:
    """The arguments of a call, or {} and what is wrong with them."""
    if isinstance(text, dict):
        return text, None
    try:
        value = json.loads(text)
    except (ValueError, TypeError) as error:
        return {}, str(error)
    return (value, None) if isinstance(value, dict) else ({}, "the arguments are not a JSON object")


def _tool_call(id: str, name: str, arguments: dict[str, Any], error: str | None) -> Any:
    from thinkingbox.common.chat_types import ToolCall

    return ToolCall(name=name, arguments=arguments, id=id, metadata={"error": error} if error else {})


def _place(out: dict[str, Any], error: BaseException, file: str) -> None:
    """Where in the test-case file the check stopped. Sources are not read: failing is the common case, and fast."""
    lines, step = [], error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        if code.co_filename == file:
            out["line"] = step.tb_lineno
        # How the check was called is of no interest.
        if lines or code.co_filename == file:
            lines.append(f'  File "{os.path.basename(code.co_filename)}", line {step.tb_lineno}, in {code.co_name}')
        step = step.tb_next
    out["traceback"] = "\n".join(["Traceback (most recent call last):", *lines, f"{type(error).__name__}: {error}"])


def _die_with_parent() -> None:
    if _LINUX:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _end_orphans() -> None:
    """Kill and reap what a check started and left; it has become this process's child."""
    while True:
        try:
            with open(f"/proc/self/task/{os.getpid()}/children") as file:
                orphans = [int(pid) for pid in file.read().split()]
        except OSError:
            return  # a kernel without this list
        if not orphans:
            return
        for pid in orphans:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _leave_network() -> None:
    """A namespace without interfaces where the kernel allows it, and in any case no connections from Python."""
    for flags in (_CLONE_NEWNET, _CLONE_NEWUSER | _CLONE_NEWNET):
        if _LINUX and _libc.unshare(flags) == 0:
            break
    sys.addaudithook(_no_network)


def _no_network(event: str, _: Any) -> None:
    if event in ("socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo"):
        raise PermissionError("a check has no network")


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3]) << 20)
