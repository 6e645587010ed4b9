"""`interpret`: the meaning a server gives to a generated text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tbstudy.interpreter.markup import CallScan, Lexicon, Slot, body_parameters, lexicon, scan_calls, split_reasoning
from tbstudy.interpreter.profile import DEFAULT, get_profile
from tbstudy.interpreter.schema import coerce, coerce_members, find_properties
from tbstudy.interpreter.types import Generation, ToolCall


def interpret(
    text: str,
    tools: Sequence[dict[str, Any]] | None,
    *,
    enable_thinking: bool | None = None,
    parallel_tool_calls: bool = True,
    tool_choice: str | dict[str, Any] | None = "auto",
    reasoning_effort: str | None = None,
    finish_reason: str = "stop",
    special_tokens: Sequence[str] = DEFAULT,
    profile: str = "vllm-0.27.1",
    strict_warnings: bool = True,
) -> Generation:
    """What the server answers for the raw generation `text`; linear in its length, and never raises on any text.

    `tools` are OpenAI tool objects ({"type": "function", "function": {...}}); the other arguments mirror the request
    (`enable_thinking` None = not sent) and the engine's own `finish_reason`. `special_tokens` is the tokenizer's
    `all_special_tokens`. A request without tools cannot call any, whatever `tool_choice` says. `strict_warnings`
    fills `Generation.warnings`, which never changes the rest. Raises StudyError for an unknown `profile`.
    """
    lex = lexicon(get_profile(profile), tuple(special_tokens))
    thinking = bool(enable_thinking) if enable_thinking is not None else reasoning_effort != "none"
    if thinking:
        split, rest, ended, implicit = split_reasoning(text, lex)
        reasoning, content = split or None, rest or None
    else:
        reasoning, content, ended, implicit = None, text, 0, False
    if not tools:
        tool_choice = "none"
    scan = scan_calls(content or "", lex)
    calls: list[ToolCall] = []
    read: list[ReadCall] = []
    if tool_choice == "none" and tools:
        # The calls are read and thrown away, and the text around them is joined.
        content = (scan.before + scan.after) or None
    else:
        read = [call for call in map(lambda slot: read_call(slot, tools, lex), scan.slots) if call is not None]
        calls = [call.call for call in read if call.call is not None]
        content = _content(content, scan, read, calls, tool_choice)
    required = tool_choice == "required"
    if required or isinstance(tool_choice, dict):
        content = content or ""
    if tool_choice is None or tool_choice == "none":
        calls = []
    if (tool_choice == "auto" and calls) or (required and finish_reason == "stop"):
        served_finish = "tool_calls"
    else:
        served_finish = finish_reason or "stop"
    if not parallel_tool_calls:
        calls = calls[:1]
    return Generation(text, reasoning, content, tuple(calls), served_finish)


@dataclass(slots=True)
class ReadCall:
    """A slot after its name and arguments were read; `call` is None when it is no call."""

    slot: Slot
    call: ToolCall | None
    name_announced: bool
    surprises: list[str] = field(default_factory=list)


def read_call(slot: Slot, tools: Sequence[dict[str, Any]] | None, lex: Lexicon) -> ReadCall | None:
    """The call in a slot; None for a slot with neither name nor body."""
    name, body = slot.name, slot.body
    if not name and not body:
        return None
    if not name:
        found = lex.json_name.search(body)
        name = found[1] if found else ""
    announced = bool(name)
    name = name.strip()
    if name:
        values, cut = body_parameters(body, lex)
        properties = find_properties(tools, name)
        arguments: dict[str, Any] = dict(values)
        if properties:
            for key, value in values.items():
                schema = properties.get(key)
                if isinstance(schema, dict):
                    arguments[key] = coerce(value, schema, lex.profile)
        call = ToolCall(name, json.dumps(arguments, ensure_ascii=False), arguments)
        return ReadCall(slot, call, announced, ["value_dropped"] if cut else [])
    return ReadCall(slot, _json_call(body, tools, lex), announced)


def _json_call(body: str, tools: Sequence[dict[str, Any]] | None, lex: Lexicon) -> ToolCall | None:
    """A nameless body that is a JSON object with its own name, or None."""
    try:
        parsed = json.loads(body.strip())
        if not isinstance(parsed, dict) or not parsed.get("name") or not isinstance(parsed["name"], str):
            return None
        name = parsed["name"]
        for key in ("arguments", "parameters"):
            if key in parsed:
                given = parsed[key]
                wire = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
                break
        else:
            rest = {key: value for key, value in parsed.items() if key != "name"}
            wire = json.dumps(rest, ensure_ascii=False)
    except (ValueError, RecursionError):
        return None
    try:
        decoded = json.loads(wire)
        properties = find_properties(tools, name)
        if isinstance(decoded, dict) and properties and coerce_members(decoded, properties, lex.profile):
            wire = json.dumps(decoded, ensure_ascii=False)
    except (ValueError, RecursionError):
        decoded = None
    return ToolCall(name, wire, decoded if isinstance(decoded, dict) else {})


def _content(
    answer: str | None, scan: CallScan, read: list[ReadCall], calls: list[ToolCall], tool_choice: Any
) -> str | None:
    """Served content when calls are not suppressed: `answer` as it is without a call, else the text before it."""
    if not calls and tool_choice != "none":
        forced = tool_choice == "required" or isinstance(tool_choice, dict)
        return None if forced and not (answer or "").strip() else answer
    before = scan.before
    if not any(call.name_announced for call in read):
        before = scan.after + before
    if calls:
        return before.strip() or None
    if scan.slots and not before.strip():
        return None
    return before or None
