"""Records for the tests of viewer, frames and explorer, written by hand: two policies, a failure, a system error."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

UID = "lend.py:test_a"


def assistant(content=None, reasoning=None, **calls) -> dict:
    message = {"role": "assistant", "content": content, "raw_text": "raw"}
    if reasoning:
        message["reasoning_content"] = reasoning
    if calls:
        message["tool_calls"] = [{"id": f"call_{i}", "type": "function", "function": {
            "name": name, "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments)}}
            for i, (name, arguments) in enumerate(calls.items())]
    return message


def answer(name: str, content: str, number: int = 0) -> dict:
    return {"role": "tool", "tool_call_id": f"call_{number}", "name": name, "content": content}


OPENING = [{"role": "system", "content": "You serve <b>customers</b>."},
           {"role": "user", "content": "Lend me the drill."}]
DIFF = [{"kind": "missing", "server": "lib", "table": "loans", "row": None, "field": None, "expected": {"item": "I-1"},
         "actual": None},
        {"kind": "wrong", "server": "lib", "table": "items", "row": "I-1", "field": "due", "expected": None,
         "actual": 3}]
RIGHT = [*OPENING, assistant(None, "I look.", get_item={"item": "I-1", "deep": True, "days": 3}),
         answer("get_item", '{"free": true}'), assistant("Done. <DONE>")]
WRONG = [*OPENING, assistant(None, "Hm.\nWell.", get_item={"item": "I-1", "deep": True, "days": 3}),
         answer("get_item", '{"free": true}'), assistant(None, None, lend_item='{"item": "I-'),
         answer("lend_item", "Error: no such item"), assistant("It is <script>alert(1)</script> lent.\x1b[31m <DONE>")]


def record(policy: str, repetition: int, passed: bool | None, messages: list[dict], uid: str = UID) -> dict:
    meta = {"repetition": repetition, "policy": policy, "scenario": "lib", "domain": "lib", "seconds": 0.25,
            "config_hash": "0" * 16, "interpretation_warnings": 0}
    verdict = None
    if passed is None:
        meta["error"] = {"type": "user", "message": "HTTP 500 from the user's endpoint"}
    else:
        verdict = {"result": passed, "reward": float(passed), "is_system_error": False, "tb": "", "metadata": {
            "reason": "" if passed else "states differ", "diff": [] if passed else DIFF}}
    if not passed:
        meta |= {"interpretation_warnings": 2, "warnings": ["unclosed_call"]}
    return {"uid": uid, "metadata": meta, "is_system_error": passed is None, "finish_reason": "done",
            "test_result": verdict, "messages": messages,
            "usage": [{"role": "policy", "input_tokens": 1200, "output_tokens": 30}] * 2}


RECORDS = [record("base", 0, False, WRONG), record("base", 1, None, OPENING), record("base", 1, True, RIGHT),
           record("trained", 0, True, RIGHT), record("trained", 1, True, RIGHT),
           record("trained", 0, False, WRONG, "lend.py:test_b")]


def write(path: Path, records: list[dict] = RECORDS) -> Path:
    text = "".join(json.dumps(r) + "\n" for r in records).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


THINKINGBOX = {
    "uid": UID, "is_system_error": False, "finish_reason": "done", "usage": [],
    "metadata": {"repetition": 0, "scenario": "lib", "execution_time": 2.5},
    "test_result": {"result": False, "reward": 0.0, "is_system_error": False, "tb": "AssertionError: hashes differ"},
    "messages": [
        {"T": "Text", "role": "system", "content": "Serve.", "metadata": {}},
        {"T": "Text", "role": "user", "content": "Lend me two.", "metadata": {}},
        {"T": "Text", "role": "assistant", "content": "I look.", "metadata": {"tag": "think"}},
        {"T": "ParallelToolCall", "metadata": {}, "tool_calls": [
            {"T": "ToolCall", "id": "a", "name": "get_item", "arguments": {"item": 1}},
            {"T": "ToolCall", "id": "b", "name": "lend_item", "arguments": {"item": 2}}]},
        {"T": "ToolResponse", "id": "a", "name": "get_item", "content": "{}"},
        {"T": "ToolResponse", "id": "b", "name": "lend_item", "content": '{"ok": true}'},
        {"T": "Text", "role": "assistant", "content": "Lent.", "metadata": {"tag": "text"}}]}
