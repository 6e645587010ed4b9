"""Where serving does something a person would not expect, as short stable codes.

A code never changes a reading. It marks a generation whose served meaning differs from what its author would mean by
the text (or hides it), so that a study can count the attempts whose reward such a reading may have moved. Mistakes
that are the model's own (an unknown tool, a word where a number belongs) are not surprises.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from tbstudy.interpreter.markup import CallScan, Lexicon, Slot, Span, trim_newlines
from tbstudy.interpreter.profile import Profile
from tbstudy.interpreter.schema import MISS, coerce_decoded, find_properties, finite_json, type_order

CODES = {
    "answer_in_reasoning": "the thought never ends although generation stopped by itself: the answer is reasoning",
    "argument_text_lost": "text in a call's body lies outside every parameter and is dropped",
    "call_dropped": "a call was written but the request allowed none: the call and its text are dropped",
    "call_in_thought": "a <tool_call> tag ends a thought that goes on behind it: the draft is served",
    "call_swallowed": "a call without its end took in the opening tags of the next one",
    "enum_retyped": "a text parameter is served as another type because of its enum values",
    "integer_as_float": "a whole number for an integer is served as a float",
    "json_call_as_text": "a call written as JSON is served as text",
    "length_stop_hidden": "the generation was cut for length but is reported as finished with tool calls",
    "name_near_miss": "a tool or parameter name is a declared one but for quotes or blanks: its schema is not used",
    "nested_untyped": "items or fields of a value are not typed by the schema that declares them",
    "none_as_text": "Python's None is served as text for a parameter that may be null",
    "number_rounded": "a whole number went through a float and is served as another one",
    "phantom_call": "a tag named in running text is served as a call",
    "reference_ignored": "a value typed by $ref is served as text although it is JSON",
    "server_error": "the server fails on this text; it is read here without the part that breaks it",
    "special_token_deleted": "a special token in the middle of the text is deleted",
    "text_lost": "text after the first call is dropped",
    "think_tag_deleted": "a </think> inside a call is deleted",
    "thought_not_split": "thinking was disabled but the text thinks: the thought is served as content",
    "truncated_call": "a call cut before its end is served, to be executed",
    "value_cut": "a value holds markup that ended it early",
    "value_dropped": "a parameter without its end is dropped",
    "whitespace_kept": "indentation or carriage returns of the layout become part of a value",
}


_LINE = 200  # how far back the line a call stands on is looked at; a bound keeps the work linear


def splitting(text: str, thinking: bool, ended: int, implicit: bool, finish: str, lex: Lexicon) -> Iterator[str]:
    """Codes of the first pass; `ended` is where in `text` reasoning ended (-1: never)."""
    profile = lex.profile
    if not thinking:
        if profile.think_end in text:
            yield "thought_not_split"
    elif ended < 0:
        if finish == "stop" and text.strip():
            yield "answer_in_reasoning"
    elif implicit and profile.think_end in text[ended:]:
        yield "call_in_thought"
    if lex.special:
        first = lex.specials.search(text)
        if first and lex.specials.sub("", text[first.end() :]).strip():
            yield "special_token_deleted"


def around_calls(
    text: str, ended: int, implicit: bool, answer: str, scan: CallScan, served: Sequence[Slot], lex: Lexicon
) -> Iterator[str]:
    """Codes of where calls stand in the `answer`, for the slots that are `served` as calls."""
    profile = lex.profile
    if not served:
        if any(_is_json_call(slot.preamble) for slot in scan.slots):
            yield "json_call_as_text"
        return
    if "".join(scan.after).strip() or not _only_closing("".join(scan.between)):
        yield "text_lost"
    if not implicit and ended >= 0:
        opened = min((at for at in (text.find(tag, ended) for tag in (profile.call_start, profile.function_start))
                      if at >= 0), default=-1)
        if opened >= 0 and profile.think_end in text[opened:]:
            yield "think_tag_deleted"
    for slot in served:
        bare = answer.startswith(profile.function_start, slot.start)
        line = answer[max(0, slot.start - _LINE) : slot.start].rpartition("\n")[2]
        if slot.preamble.strip() or (bare and not _only_closing(line)):
            yield "phantom_call"
        if slot.ended == "text" and profile.call_end not in slot.body:
            yield "truncated_call"


def in_call(
    name: str, slot: Slot, spans: Sequence[Span], dropped: int, arguments: dict[str, Any],
    tools: Sequence[dict[str, Any]] | None, lex: Lexicon,
) -> Iterator[str]:
    """Codes of one served call: its name, its body and the typing of its arguments."""
    profile = lex.profile
    body = slot.body
    openers = (profile.call_start, profile.function_start)
    declared = find_properties(tools, name)
    near = name.strip("\"'` \t")
    if any(opener in slot.name for opener in openers):
        yield "call_swallowed"
    elif near != name and not declared and find_properties(tools, near):
        yield "name_near_miss"
    if dropped >= 0:
        yield "value_dropped"
    last = {span.name: span for span in spans}
    at = 0
    for span in spans:
        yield from _between_parameters(body[at : span.start], openers, parameter=True, profile=profile)
        at = span.next
        value = body[span.start : span.end]
        if not span.closed:
            if any(opener in value for opener in openers):
                yield "call_swallowed"
            elif "\n" not in value[-1:] and value.strip():
                yield "value_cut"
        last_line = value[value.rfind("\n") + 1 :]
        if value.startswith("\r\n") or ("\n" in value.rstrip(" \t") and last_line and not last_line.strip(" \t")):
            yield "whitespace_kept"
        schema = declared.get(span.name)
        if isinstance(schema, dict) and last[span.name] is span:
            yield from _typing(trim_newlines(value), schema, arguments[span.name], profile)
        elif span.name not in declared and span.name.strip("\"'` \t\n") in declared:
            yield "name_near_miss"
    if dropped < 0:
        yield from _between_parameters(body[at:], openers, parameter=False, profile=profile)


def _between_parameters(text: str, openers: tuple[str, ...], parameter: bool, profile: Profile) -> Iterator[str]:
    """Codes of the text between two parameters; `parameter`: it ends with the opening tag of the next one."""
    if parameter:
        text = text[: text.rfind("<")]
    if not text or text.isspace():
        return
    if any(opener in text for opener in openers):
        yield "call_swallowed"
    elif not _only_closing(text):
        yield "argument_text_lost"


def _only_closing(text: str) -> bool:
    """True when `text` is nothing but blanks and closing tags."""
    return not text.strip() or all(word.startswith("</") for word in text.replace("<", " <").split())


def _is_json_call(text: str) -> bool:
    text = text.strip()
    if not text.startswith("{"):
        return False
    parsed = finite_json(text)
    return isinstance(parsed, dict) and "name" in parsed


def _refers(schema: dict[str, Any]) -> bool:
    choices = [choice for key in ("anyOf", "oneOf", "allOf") for choice in schema.get(key) or ()
               if isinstance(schema.get(key), list)]
    return "$ref" in schema or any(isinstance(choice, dict) and "$ref" in choice for choice in choices)


def _typing(raw: str, schema: dict[str, Any], served: Any, profile: Profile) -> Iterator[str]:
    """Codes of one typed value: `raw` was served as `served` under `schema`."""
    if isinstance(served, str):
        if raw.strip().lower() == "none" and "null" in type_order(schema, profile):
            yield "none_as_text"
        elif raw.lstrip()[:1] in ("{", "[") and _refers(schema) and finite_json(raw) is not MISS:
            yield "reference_ignored"
        return
    if schema.get("type") == "string" and served is not None:
        yield "enum_retyped"
    if isinstance(served, float):
        types = type_order(schema, profile)
        if served.is_integer() and "integer" in types and "number" not in types:
            yield "integer_as_float"
    elif isinstance(served, int) and not isinstance(served, bool):
        digits = raw.strip().lstrip("+-")
        if digits.isdecimal() and len(digits) < 4300 and int(raw) != served:
            yield "number_rounded"
    elif isinstance(served, (dict, list)) and ("items" in schema or "properties" in schema):
        try:
            changed = coerce_decoded(json.loads(raw), schema, profile)[1]
        except RecursionError:
            changed = False
        if changed:
            yield "nested_untyped"
