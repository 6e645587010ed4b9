"""`interpret`: the meaning a server gives to a generated text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tbstudy.interpreter import surprises
from tbstudy.interpreter.markup import (
    CallScan,
    Lexicon,
    Slot,
    Span,
    lexicon,
    parameter_spans,
    scan_calls,
    split_reasoning,
    trim_newlines,
)
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
    fills `Generation.warnings` (codes: `surprises.CODES`), which never changes the rest. Raises StudyError for an
    unknown `profile`.
    """
    lex = lexicon(get_profile(profile), tuple(special_tokens))
    thinking = bool(enable_thinking) if enable_thinking is not None else reasoning_effort != "none"
    if thinking:
        split, rest, ended, implicit = split_reasoning(text, lex)
        reasoning, answer = split or None, rest or None
    else:
        reasoning, answer, ended, implicit = None, text, 0, False
    scan = scan_calls(answer or "", lex)
    read = [_read_slot(slot, tools, lex) for slot in scan.slots]
    calls = [call.call for call in read if call.call is not None]
    offered = bool(tools) and tool_choice != "none"
    forced = offered and (tool_choice == "required" or isinstance(tool_choice, dict))

    if tools and tool_choice == "none":
        # The server reads the calls, throws them away and joins the text around them.
        content = "".join(scan.before + scan.after) or None
    elif calls or not offered:
        content = _text_beside(scan, read, bool(calls))
    else:
        content = answer
    if forced and not (content or "").strip():
        content = ""

    served = calls if offered and tool_choice is not None else []
    if (tool_choice == "auto" and served) or (offered and tool_choice == "required" and finish_reason == "stop"):
        served_finish = "tool_calls"
    else:
        served_finish = finish_reason or "stop"
    warnings: tuple[str, ...] = ()
    if strict_warnings:
        found = dict.fromkeys(surprises.splitting(text, thinking, ended, implicit, finish_reason, lex))
        if scan.slots:
            slots = [call.slot for call in read if call.call is not None]
            found |= dict.fromkeys(surprises.around_calls(text, ended, implicit, answer or "", scan, slots, lex))
            for call in read:
                found |= dict.fromkeys(call.surprises(tools, lex))
            if calls and not served:
                found["call_dropped"] = None
        if served_finish == "tool_calls" and finish_reason == "length":
            found["length_stop_hidden"] = None
        warnings = tuple(found)
    if not parallel_tool_calls:
        served = served[:1]
    return Generation(text, reasoning, content, tuple(served), served_finish, warnings)


@dataclass(slots=True)
class _Read:
    """A slot after its name and arguments were read; `call` is None when it is no call.

    `announced`: the server took the slot for a call before it read the body, which decides where later text goes.
    `fails`: the server raises on this body.
    """

    slot: Slot
    call: ToolCall | None = None
    announced: bool = False
    spans: Sequence[Span] = ()
    dropped: int = -1
    fails: bool = False

    def surprises(self, tools: Sequence[dict[str, Any]] | None, lex: Lexicon) -> list[str]:
        found = ["server_error"] if self.fails else []
        if self.call is not None:
            found += surprises.in_call(
                self.call.name, self.slot, self.spans, self.dropped, self.call.arguments_obj, tools, lex
            )
        return found


def _read_slot(slot: Slot, tools: Sequence[dict[str, Any]] | None, lex: Lexicon) -> _Read:
    """The call in a slot: its name trimmed, its parameters typed by the schema of the tool of that name."""
    name = slot.name
    if not name and slot.body:
        found = lex.json_name.search(slot.body)
        name = found[1] if found else ""
    announced = bool(name)
    name = name.strip()
    if not name:
        call, fails = _json_call(slot.body, tools, lex)
        return _Read(slot, call, announced, fails=fails)
    spans, dropped = parameter_spans(slot.body, lex)
    arguments: dict[str, Any] = {}
    for span in spans:
        arguments[span.name] = trim_newlines(slot.body[span.start : span.end])
    properties = find_properties(tools, name)
    if properties:
        for key, value in arguments.items():
            schema = properties.get(key)
            if isinstance(schema, dict):
                arguments[key] = coerce(value, schema, lex.profile)
    try:
        wire = json.dumps(arguments, ensure_ascii=False)
    except RecursionError:  # nested just too deep to be written: kept as the texts they came as
        arguments = {span.name: trim_newlines(slot.body[span.start : span.end]) for span in spans}
        wire = json.dumps(arguments, ensure_ascii=False)
        return _Read(slot, ToolCall(name, wire, arguments), announced, spans, dropped, fails=True)
    return _Read(slot, ToolCall(name, wire, arguments), announced, spans, dropped)


def _json_call(body: str, tools: Sequence[dict[str, Any]] | None, lex: Lexicon) -> tuple[ToolCall | None, bool]:
    """(call, server fails) for a nameless body: a call if it is a JSON object with its own name."""
    body = body.strip()
    if not body:
        return None, False
    try:
        parsed = json.loads(body)
    except json.JSONDecodeError:
        return None, False
    except (ValueError, RecursionError):
        return None, True
    name = parsed.get("name") if isinstance(parsed, dict) else None
    if not name or not isinstance(name, str):
        return None, bool(name)
    given = next((parsed[key] for key in ("arguments", "parameters") if key in parsed), None)
    if "arguments" not in parsed and "parameters" not in parsed:
        given = {key: value for key, value in parsed.items() if key != "name"}
    try:
        wire = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    except RecursionError:
        return None, True
    try:
        decoded = json.loads(wire)
        if isinstance(decoded, dict) and coerce_members(decoded, find_properties(tools, name), lex.profile):
            wire = json.dumps(decoded, ensure_ascii=False)
    except (ValueError, RecursionError):
        decoded = None
    return ToolCall(name, wire, decoded if isinstance(decoded, dict) else {}), False


def _text_beside(scan: CallScan, read: Sequence[_Read], called: bool) -> str | None:
    """Content beside calls: the text before the first, stripped; None when blank."""
    announced = any(call.announced for call in read)
    text = "".join(scan.before if announced else scan.after + scan.before)
    if called:
        text = text.strip()
    elif scan.slots and not text.strip():
        text = ""
    return text or None
