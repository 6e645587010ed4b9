"""Earlier conversation of a task: a slice of messages in the companion `<stem>.meta.yaml`."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from tbstudy.errors import StudyError
from tbstudy.tasks.source import read_yaml


def load_history(test_file: Path, reference: Any, where: str) -> tuple[dict[str, Any], ...]:
    """The messages that `reference`, `<group>:<start>:<end>` or a mapping of key, start and end, selects, in the
    shape of a record's messages.

    `start` is an index or a message_id, `end` a message_id (exclusive) or empty for the rest of the group. `where`
    opens every error message.

    Raises:
        StudyError: the reference, the file, the group or a boundary does not exist, or a message is malformed.
    """
    if isinstance(reference, dict):
        reference = ":".join(str(reference.get(k, "")) for k in ("key", "start", "end"))
    if not isinstance(reference, str) or reference.count(":") < 2 or reference.startswith(":"):
        raise StudyError(f"{where}: field 'history' must read '<group>:<start>:<end>', it is {reference!r}")
    group, start, end = reference.rsplit(":", 2)
    path = test_file.with_suffix(".meta.yaml")
    if not path.is_file():
        raise StudyError(f"{where}: field 'history' needs {path}, which does not exist")
    groups = read_yaml(path, "history file")
    groups = groups.get("$history") if isinstance(groups, dict) else None
    if not isinstance(groups, dict):
        raise StudyError(f"{path}: '$history' must be a mapping of group to messages")
    messages = None if group.startswith("#") else groups.get(group)
    if not isinstance(messages, list):
        raise StudyError(f"{where}: field 'history' names group {group!r}; {path} has "
                         f"{', '.join(map(str, groups)) or 'none'}")
    first = _boundary(messages, start, where, path)
    last = len(messages) if end == "" else _boundary(messages, end, where, path, index=False)
    if end and last <= first:
        raise StudyError(f"{where}: field 'history' ends at {end!r}, which is not after {start!r}")
    return tuple(as_record(messages[first:last], f"{path}: $history.{group}"))


def _boundary(messages: list[Any], name: str, where: str, path: Path, index: bool = True) -> int:
    if index:
        try:
            position = int(name)
        except ValueError:
            pass
        else:
            if not 0 <= position <= len(messages):
                raise StudyError(f"{where}: field 'history' starts at {position}, {path} has {len(messages)} messages")
            return position
    known = [m.get("message_id") for m in messages if isinstance(m, dict)]
    if name not in known:
        raise StudyError(f"{where}: field 'history' names message_id {name!r}; {path} has "
                         f"{', '.join(str(k) for k in known if k is not None) or 'none'}")
    return known.index(name)


def as_record(messages: Iterable[Any], where: str) -> Iterator[dict[str, Any]]:
    """ThinkingBox messages (Text, ToolCall, ParallelToolCall, ToolResponse) as a record's messages.

    A thought joins the assistant message after it. A tool call that failed when it was recorded keeps its text under
    `error`, so that a replay leaves it out.

    Raises:
        StudyError: naming the position and what is missing.
    """
    thought: list[str] = []
    for position, message in enumerate(messages):
        here = f"{where}[{position}]"
        if not isinstance(message, dict):
            raise StudyError(f"{here} must be a mapping, it is {message!r}")
        kind = message.get("T") or ("Text" if "role" in message else "ParallelToolCall" if "tool_calls" in message
                                    else "ToolCall" if "arguments" in message else "ToolResponse")
        tag = (message.get("metadata") or {}).get("tag", "text")
        if kind == "Text":
            role, content = _field(message, "role", here), _field(message, "content", here)
            if role == "assistant" and tag == "think":
                thought.append(content)
                continue
            out: dict[str, Any] = {"role": role, "content": content}
            if tag == "direct":
                out["tag"] = "direct"
        elif kind in ("ToolCall", "ParallelToolCall"):
            calls = message.get("tool_calls") if kind == "ParallelToolCall" else [message]
            out = {"role": "assistant", "content": None,
                   "tool_calls": [_call(c, f"{here} call {i}") for i, c in enumerate(calls or [])]}
        elif kind == "ToolResponse":
            out = {"role": "tool", "tool_call_id": message.get("id", ""), "name": _field(message, "name", here),
                   "content": _field(message, "content", here)}
        else:
            raise StudyError(f"{here}: unknown kind of message {kind!r}")
        if thought and out["role"] == "assistant":
            out["reasoning_content"] = "\n".join(thought)
            thought = []
        yield out


def _call(call: Any, where: str) -> dict[str, Any]:
    if not isinstance(call, dict) or not isinstance(call.get("arguments"), dict):
        raise StudyError(f"{where}: a tool call needs a mapping of arguments, it is {call!r}")
    name = _field(call, "name", where)
    out = {"id": call.get("id") or f"history_{name}", "type": "function",
           "function": {"name": name, "arguments": json.dumps(call["arguments"], ensure_ascii=False)}}
    error = (call.get("metadata") or {}).get("error")
    return {**out, "error": error} if error else out


def _field(message: dict[str, Any], name: str, where: str) -> str:
    value = message.get(name)
    if not isinstance(value, str):
        raise StudyError(f"{where}: field {name!r} must be text, it is {value!r}")
    return value


def replay_calls(history: Iterable[dict[str, Any]], builtin: Collection[str] = ()) -> Iterator[
        tuple[str, dict[str, Any]]]:
    """The (tool, arguments) that bring the servers to where the history ends.

    Calls that failed when recorded and calls of `builtin` tools, which have no server, are left out.
    """
    for message in history:
        for call in message.get("tool_calls") or ():
            if not call.get("error") and call["function"]["name"] not in builtin:
                arguments = call["function"]["arguments"]
                yield call["function"]["name"], json.loads(arguments) if isinstance(arguments, str) else arguments
