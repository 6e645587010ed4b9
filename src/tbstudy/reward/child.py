"""The process in which checks run: warm, limited, without network.

    python -m tbstudy.reward.child <socket fd> <CPU seconds> <memory MB>

A check that can leave nothing behind (see `reward.purity`) runs in this process, with names of its own. Any other
runs in a fork, whose end is reported, so that whatever it does to its process ends with it. What both are kept in is
`reward.confine`'s; answers go out as JSON, which is safe to read whatever a check did to this process.
"""

from __future__ import annotations

import collections
import contextlib
import copy
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

from tbstudy.reward import confine
from tbstudy.reward.fixtures import make_fixtures
from tbstudy.reward.frames import Reader, pack_json, receive
from tbstudy.reward.standin import install

#: Imported here so that checks find them warm.
WARM = (collections, copy, datetime, decimal, itertools, json, math, re, string, typing)
#: Bound early: a check may change the module.
_dumps, _loads = json.dumps, json.loads
#: How much of what a check says is kept, in characters: its prints, its reason, its notes as JSON.
_PRINTS, _REASON, _NOTES = 100_000, 10_000, 1_000_000


def serve(connection: socket.socket, cpu_seconds: int, memory: int) -> None:
    """Answer requests until the connection ends."""
    others = confine.threads_of_user()
    own = confine.leave(connection.fileno())
    framework = install()
    confine.limit(memory)
    connection.sendall(pack_json({"kind": "ready", "framework": framework, "own": own}))
    reader = Reader()
    gc.collect()
    gc.freeze()
    while (request := receive(connection, reader)) is not None:
        runner = _Runner(connection, reader, 2.0 * cpu_seconds, request["mark"])
        if request["pure"]:
            connection.sendall(pack_json(run(request, runner)))
            continue
        pid = os.fork()
        if pid == 0:
            try:
                confine.limit_processes(others)
                confine.die_with_parent()  # after the change of user, which would undo it
                resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 1))
                connection.sendall(pack_json(run(request, runner)))
            finally:
                # Not sys.exit: nothing that the check left behind (threads, exit handlers) may run or hold us up.
                os._exit(0)
        how = confine.watch(pid, memory, own)
        connection.sendall(pack_json({"kind": "ended", "mark": request["mark"], "how": how}))


class _Prints(io.TextIOBase):
    """Keeps the beginning of what is printed."""

    def __init__(self) -> None:
        self.text = ""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if len(self.text) < _PRINTS:
            self.text += text[:_PRINTS - len(self.text)]
        return len(text)


class _Runner:
    """The runner, as seen from a check: it answers for the judge's model.

    While the check itself runs, an alarm of `seconds` ends the process. The runner is faster, unless it is gone.
    """

    def __init__(self, connection: socket.socket, reader: Reader, seconds: float, mark: str):
        self.connection, self.reader, self.seconds, self.mark = connection, reader, seconds, mark
        self.lock = threading.Lock()
        self.failed = ""

    def watch(self, on: bool) -> None:
        signal.setitimer(signal.ITIMER_REAL, self.seconds if on else 0)

    def get_completion_sync(self, conversation: Any, update_conversation: bool = False) -> list[Any]:
        from thinkingbox.common.chat_types import Text

        messages = [{"role": m.role, "content": m.content} for m in conversation]
        with self.lock:
            self.watch(False)
            self.connection.sendall(pack_json({"kind": "ask", "mark": self.mark, "messages": messages}))
            answer = receive(self.connection, self.reader)
            self.watch(True)
        if answer is None or "error" in answer:
            self.failed = "the runner is gone" if answer is None else answer["error"]
            raise RuntimeError(self.failed)
        return [Text(role="assistant", content=answer["text"])]


def run(request: dict[str, Any], model: _Runner) -> dict[str, Any]:
    """Run the check of a request; never raises."""
    from thinkingbox.common import Judge

    printed = _Prints()
    judge = Judge(model)
    out: dict[str, Any] = {"kind": "verdict", "mark": request["mark"], "passed": False, "reward": 0.0,
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
        out.update(system_error=False, cause="", reason=_shortened(_said(error)), assertion=True)
        _place(out, error, request["file"])
    except BaseException as error:
        out["reason"] = _shortened(f"{type(error).__name__}: {_said(error)}")
        _place(out, error, request["file"])
    model.watch(False)
    if failed := model.failed or getattr(judge, "unanswered", ""):
        # Also where the check caught it: what it made of a question without an answer is no verdict.
        if not out["system_error"]:
            out["reason"] = _shortened(f"the judge gave no answer: {failed}")
        out.update(passed=False, reward=0.0, system_error=True, cause="judge")
    out["prints"], out["metadata"] = printed.text, _notes(context, judge)
    return out


def _notes(context: Any, judge: Any) -> dict[str, Any]:
    try:
        metadata = dict(context.metadata) if context is not None else {}
        if decisions := judge.drain_decisions():
            metadata["judge"] = decisions
        text = _dumps(metadata, default=str)
        return _loads(text) if len(text) <= _NOTES else {"dropped": f"{len(text)} characters of notes"}
    except Exception as error:
        return {"dropped": f"notes that JSON cannot hold: {type(error).__name__}"}


def _said(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # an exception of the check's own making may be broken, too
        return "(no words)"


def _shortened(text: str) -> str:
    return text if len(text) <= _REASON else f"{text[:_REASON]}... ({len(text)} characters)"


def _reward(value: Any) -> dict[str, Any]:
    if value is None:
        return {"passed": True, "reward": 1.0, "system_error": False, "cause": "", "reason": ""}
    if not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise ValueError(f"the check returned {value!r}, a reward is a number from 0 to 1")
    reason = "" if value > 0 else f"the check returned {value!r}"
    return {"passed": value > 0, "reward": float(value), "system_error": False, "cause": "", "reason": reason}


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
    except (ValueError, TypeError, RecursionError) as error:
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
    out["traceback"] = "\n".join(["Traceback (most recent call last):", *lines[:5], *lines[5:][-45:],
                                  _shortened(f"{type(error).__name__}: {_said(error)}")])


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3]) << 20)
