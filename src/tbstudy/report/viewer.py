"""One attempt to read: the conversation beside the differences that decided it, in notebooks, HTML and on a terminal.

`show_episode(source, uid, repetition)` and `compare_episodes(source, uid, repetition)` return views with `html()`,
`text()` and reprs. Their HTML has inline styles only, no script and no id, so that it survives a notebook that is not
trusted and is the same text every time.
"""

from __future__ import annotations

import html
import json
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from tbstudy.errors import StudyError
from tbstudy.evaluation.attempts import failed_answers
from tbstudy.report.frames import Records, chat_messages, decoded, find_record, find_records
from tbstudy.report.style import BLUE, GREEN, GREY, ORANGE, PURPLE, VERMILION
from tbstudy.sandbox.arguments import clean

_ANSI = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "magenta": "35"}
_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
# What a terminal would act on: what controls it except newline and tab, and what turns the direction of text.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
#: A longer text is cut on a terminal.
_LONGEST = 20_000
_ROLE = {"system": GREY, "user": GREEN, "assistant": BLUE, "tool": PURPLE}
_MONO = "font-family:monospace;white-space:pre-wrap;overflow-wrap:anywhere"
_DIFF = ("kind", "table", "row", "field", "expected", "actual")


def show_episode(source: Records, uid: str, repetition: int = 0, policy: str | None = None) -> EpisodeView:
    """One attempt of a study, from record files or a folder of them, or from records.

    Raises:
        StudyError: there is no such attempt, or several policies made it and `policy` does not say which.
    """
    return EpisodeView(find_record(source, uid, repetition, policy))


def compare_episodes(source: Records, uid: str, repetition: int | Sequence[int] = 0,
                     policies: Sequence[str] = ("base", "selected")) -> EpisodeComparison:
    """The same task by two policies side by side, from the first file that has both attempts; two repetitions may be
    given, one for each.

    Raises:
        StudyError: an attempt does not exist, or there are not two policies.
    """
    if len(policies) != 2:
        raise StudyError(f"policies: two are compared, these are {', '.join(policies) or 'none'}")
    which = (repetition, repetition) if isinstance(repetition, int) else tuple(repetition)
    found = [find_records(source, uid, r) for r in which]
    for file, _ in found[0]:
        sides = [of.get((file, policy)) for of, policy in zip(found, policies, strict=True)]
        if all(sides):
            return EpisodeComparison(*(EpisodeView(side) for side in sides))  # type: ignore[arg-type]
    return EpisodeComparison(*(show_episode(source, uid, r, p) for p, r in zip(policies, which, strict=True)))


@dataclass(frozen=True, slots=True, repr=False)
class EpisodeView:
    """One attempt's record, ready to be shown."""

    record: Mapping[str, Any]

    @property
    def outcome(self) -> str:
        """passed, failed or system error."""
        verdict = self.record.get("test_result")
        if self.record.get("is_system_error") or verdict is None or verdict.get("is_system_error"):
            return "system error"
        return "passed" if verdict["result"] else "failed"

    @property
    def title(self) -> str:
        meta = self.record["metadata"]
        return f"{self.record['uid']} #{meta['repetition']} by {meta.get('policy', '?')}"

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation as chat messages."""
        return chat_messages(self.record)

    @property
    def failed(self) -> list[bool]:
        """For each message, whether it is a tool's answer that failed."""
        return [bool(wrong) for wrong in failed_answers(self.messages, self.record.get("finish_reason") or "")]

    @property
    def diff(self) -> list[dict[str, Any]]:
        """Differences between the right and the reached state, as dicts."""
        return ((self.record.get("test_result") or {}).get("metadata") or {}).get("diff") or []

    @property
    def why(self) -> str:
        """What the verdict or the system error says, empty when it passed."""
        meta, verdict = self.record["metadata"], self.record.get("test_result") or {}
        error = meta.get("error")
        if error:
            return f"{error.get('type')}: {error.get('message')}"
        if self.outcome == "passed":
            return ""
        return ((verdict.get("metadata") or {}).get("reason") or verdict.get("tb") or "").strip()

    def facts(self) -> dict[str, str]:
        """What the head of a view states, by name."""
        meta, record = self.record["metadata"], self.record
        facts = {"finish": record.get("finish_reason") or "?"}
        verdict = record.get("test_result")
        if verdict is not None and self.outcome != "system error":
            facts["reward"] = f"{verdict.get('reward', 0):g}"
        facts["messages"] = str(len(self.messages))
        for role in ("policy", "user", "judge"):
            used = [u for u in record.get("usage") or () if u.get("role", "policy") == role]
            if used:
                into, out = (sum(u.get(f"{k}_tokens", 0) for u in used) for k in ("input", "output"))
                facts[f"{role} tokens"] = f"{into:,} in, {out:,} out"
        seconds = meta.get("seconds", meta.get("execution_time"))
        if seconds is not None:
            facts["seconds"] = f"{seconds:.2f}"
        warnings = meta.get("interpretation_warnings") or 0
        if warnings:
            names = meta.get("warnings") or []
            facts["warnings"] = f"{warnings}" + (f" ({', '.join(names)})" if names else "")
        return facts

    # terminal ----------------------------------------------------------------------------------------------------

    def text(self, width: int = 100, *, color: bool = False, system: bool = False, reasoning: bool = True) -> str:
        """The view as plain text; `color` adds ANSI codes, `system` the system messages in full."""
        pen = _Pen(color)
        mark = {"passed": "green", "failed": "red", "system error": "magenta"}[self.outcome]
        facts = "  ".join(f"{name}: {value}" for name, value in self.facts().items())
        lines = [pen(self.title, "bold"), *_wrapped(facts, width, ""), pen(self.outcome.upper(), mark, "bold")]
        if self.why and not self.diff:
            lines += _wrapped(self.why, width, "  ")
        for entry in self.diff:
            lines += [pen(line, "red") for line in _wrapped(_diff_line(entry), width, "  ")]
        lines.append(pen("-" * min(width, 100), "dim"))
        for block in self.blocks(width, pen, system, reasoning):
            lines += block
        return "\n".join(lines)

    def blocks(self, width: int, pen: _Pen, system: bool, reasoning: bool) -> list[list[str]]:
        """The lines of each message."""
        shown = zip(self.messages, self.failed, strict=True)
        return [_message_lines(m, wrong, width, pen, system, reasoning) for m, wrong in shown]

    # HTML --------------------------------------------------------------------------------------------------------

    def html(self) -> str:
        """The view as an HTML fragment: head, then the conversation beside the verdict."""
        return (f'<div class="tbstudy-episode">{self._head()}'
                '<div style="display:flex;flex-wrap:wrap;gap:1.5em;align-items:flex-start">'
                f'<div style="flex:3 1 26em;min-width:0">{self._talk()}</div>'
                f'<div style="flex:2 1 20em;min-width:0;overflow-x:auto">{self._verdict()}</div></div></div>')

    def _head(self) -> str:
        facts = " &middot; ".join(f"{html.escape(k)} {html.escape(v)}" for k, v in self.facts().items())
        return (f'<p style="margin:.2em 0"><b>{html.escape(self.title)}</b> {_badge(self.outcome)}<br>'
                f'<span style="opacity:.75">{facts}</span></p>')

    def _talk(self, since: int | None = None) -> str:
        parts = []
        for index, (message, wrong) in enumerate(zip(self.messages, self.failed, strict=True)):
            if index == since:
                parts.append(f'<p style="color:{ORANGE};margin:.3em 0"><b>from here on the two differ</b></p>')
            parts.append(_message_html(message, wrong))
        return "".join(parts)

    def _verdict(self) -> str:
        if self.outcome == "passed":
            return "<p><b>The final state is as it should be.</b></p>"
        if not self.diff:
            return f'<p><b>Why</b></p><div style="{_MONO}">{html.escape(self.why or "no reason recorded")}</div>'
        cells = [dict(zip(_DIFF, _diff_cells(d), strict=True)) for d in self.diff]
        # Rows without a key have neither row nor field: the width is better spent on the values.
        names = [name for name in _DIFF if any(c[name] for c in cells)]
        head = "".join(f'<th style="text-align:left;padding:.15em .6em">{name}</th>' for name in names)
        cell = '<td style="text-align:left;vertical-align:top;padding:.15em .6em;{}">{}</td>'
        rows = "".join("<tr>" + "".join(
            cell.format(f"{_MONO};min-width:7em" if name in ("expected", "actual") else "white-space:nowrap",
                        html.escape(c[name])) for name in names) + "</tr>" for c in cells)
        return (f"<p><b>What decided it</b>: {len(self.diff)} "
                f"{'difference' if len(self.diff) == 1 else 'differences'} in the final state</p>"
                f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>")

    def _repr_html_(self) -> str:
        return self.html()

    def __repr__(self) -> str:
        return self.text(100, reasoning=False)


@dataclass(frozen=True, slots=True, repr=False)
class EpisodeComparison:
    """Two attempts at one task side by side."""

    left: EpisodeView
    right: EpisodeView

    @property
    def divergence(self) -> int | None:
        """Index of the first message that differs in role, text or calls; None when the conversations are the same."""
        pairs = zip_longest(self.left.messages, self.right.messages)
        return next((i for i, (a, b) in enumerate(pairs) if _acted(a) != _acted(b)), None)

    def text(self, width: int = 160, *, color: bool = False, system: bool = False, reasoning: bool = True) -> str:
        """Two columns where `width` allows it (120 and more), else one after the other."""
        if width < 120:
            one, two = (v.text(width, color=color, system=system, reasoning=reasoning) for v in (self.left, self.right))
            return f"{one}\n\n{two}"
        half, pen, since = (width - 3) // 2, _Pen(color), self.divergence
        sides = []
        for view in (self.left, self.right):
            head = view.text(half, color=color, system=system, reasoning=reasoning).split("\n")
            blocks = view.blocks(half, pen, system, reasoning)
            sides.append((head[:len(head) - sum(map(len, blocks))], blocks))
        lines = _columns(sides[0][0], sides[1][0], half)
        for index, (a, b) in enumerate(zip_longest(sides[0][1], sides[1][1], fillvalue=[])):
            if index == since:
                lines.append(pen("from here on the two differ".center(width, "~"), "yellow"))
            lines += _columns(a, b, half)
        return "\n".join(line.rstrip() for line in lines)

    def html(self) -> str:
        """Both conversations beside each other, each under its verdict."""
        sides = "".join(
            f'<div style="flex:1 1 24em;min-width:0;overflow-x:auto">{v._head()}{v._verdict()}'
            f"{v._talk(self.divergence)}</div>" for v in (self.left, self.right))
        return (f'<div class="tbstudy-episode" style="display:flex;flex-wrap:wrap;gap:1.5em;align-items:flex-start">'
                f"{sides}</div>")

    def _repr_html_(self) -> str:
        return self.html()

    def __repr__(self) -> str:
        return self.text(160, reasoning=False)


def write_page(view: EpisodeView | EpisodeComparison, path: Path) -> Path:
    """The view as an HTML file of its own."""
    title = view.title if isinstance(view, EpisodeView) else f"{view.left.title} and {view.right.title}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<style>body{font-family:system-ui,sans-serif;max-width:90em;margin:1.5em auto;padding:0 1em}"
        f"</style></head><body>\n{view.html()}\n</body></html>\n", encoding="utf-8")
    return path


# messages ------------------------------------------------------------------------------------------------------------


def call_line(name: str, arguments: Mapping[str, Any]) -> str:
    """A call as one reads it: name and typed arguments (texts quoted, numbers and booleans bare)."""
    return f"{name}({', '.join(f'{k}={json.dumps(v, ensure_ascii=False)}' for k, v in arguments.items())})"


def _acted(message: Mapping[str, Any] | None) -> Any:
    if message is None:
        return None
    calls = [(c["function"]["name"], json.dumps(decoded(c["function"]["arguments"]), sort_keys=True))
             for c in message.get("tool_calls") or ()]
    return message["role"], (message.get("content") or "").strip(), calls


def _badge(outcome: str) -> str:
    colour = {"passed": BLUE, "failed": VERMILION, "system error": PURPLE}[outcome]
    return (f'<span style="background-color:{colour};color:white;padding:.05em .5em;border-radius:.6em">'
            f"{outcome}</span>")


def _message_html(message: Mapping[str, Any], failed: bool) -> str:
    role, content = message["role"], message.get("content") or ""
    colour, parts = _ROLE.get(role, GREY), []
    reasoning = message.get("reasoning_content")
    if reasoning and reasoning.strip():
        words = len(reasoning.split())
        parts.append(f'<details><summary style="opacity:.7">reasoning, {words} '
                     f'{"word" if words == 1 else "words"}</summary>'
                     f'<div style="{_MONO};opacity:.8">{html.escape(reasoning.strip())}</div></details>')
    label = role
    if role == "tool":
        label = f"answer of {html.escape(message.get('name') or 'tool')}"
        if failed:
            colour = VERMILION
        shade = f";color:{colour}" if colour == VERMILION else ""
        parts.append(f'<div style="{_MONO}{shade}">{html.escape(content) or "(empty)"}</div>')
    elif role == "system":
        parts.append(f'<details><summary style="opacity:.7">{len(content.split())} words</summary>'
                     f'<div style="{_MONO};opacity:.8">{html.escape(content)}</div></details>')
    elif content.strip():
        parts.append(f'<div style="white-space:pre-wrap;overflow-wrap:anywhere">{html.escape(content.strip())}</div>')
    for call in message.get("tool_calls") or ():
        arguments = "".join(f'<br>&nbsp;&nbsp;{html.escape(clean(k))} = <span style="color:{_type_colour(v)}" '
                            f'title="{_type_name(v)}">{html.escape(clean(json.dumps(v, ensure_ascii=False)))}</span>'
                            for k, v in decoded(call["function"]["arguments"]).items())
        parts.append(f'<div style="{_MONO}">&#8594; <b>{html.escape(call["function"]["name"])}</b>{arguments}</div>')
    if not parts:
        parts.append('<div style="opacity:.7">(nothing)</div>')
    return (f'<div style="border-left:3px solid {colour};padding:.1em .7em;margin:.35em 0">'
            f'<span style="color:{colour};font-size:.85em"><b>{label}</b></span>{"".join(parts)}</div>')


def _message_lines(message: Mapping[str, Any], failed: bool, width: int, pen: _Pen, system: bool,
                   reasoning: bool) -> list[str]:
    role, content = message["role"], (message.get("content") or "").strip()
    shades = {"system": ("dim",), "user": ("green", "bold"), "assistant": ("blue", "bold"), "tool": ("magenta",)}
    label = f"answer of {_CONTROL.sub('�', (message.get('name') or 'tool')[:200])}" if role == "tool" else role
    lines = [pen(label, *shades.get(role, ()))]
    thought = (message.get("reasoning_content") or "").strip()
    if thought and reasoning:
        lines += [pen(line, "dim") for line in _wrapped(thought, width, "  | ")]
    elif thought:
        lines.append(pen(f"  | reasoning, {len(thought.split())} words", "dim"))
    if role == "system" and not system:
        lines.append(pen(f"  {len(content.split())} words", "dim"))
    elif role == "tool":
        shade = ("red",) if failed else ()
        lines += [pen(line, *shade) for line in _wrapped(content or "(empty)", width, "  <- ")]
    elif content:
        lines += _wrapped(content, width, "  ")
    for call in message.get("tool_calls") or ():
        shown = call_line(call["function"]["name"], decoded(call["function"]["arguments"]))
        lines += [pen(line, "yellow") for line in _wrapped(shown, width, "  -> ")]
    if len(lines) == 1:
        lines.append("  (nothing)")
    return lines


def _diff_cells(entry: Mapping[str, Any]) -> tuple[str, ...]:
    def shown(value: Any) -> str:
        return "" if value is None else json.dumps(value, ensure_ascii=False)

    table = entry.get("table") or entry.get("server") or ""
    row, field = entry.get("row"), entry.get("field")
    # A field that is null on one side is a value; a row that is missing on one side is none.
    missing = "null" if field is not None else ""
    expected, actual = (shown(entry.get(k)) or missing for k in ("expected", "actual"))
    return (str(entry["kind"]), str(table), "" if row is None else str(row), "" if field is None else str(field),
            expected, actual)


def _diff_line(entry: Mapping[str, Any]) -> str:
    kind, table, row, field, expected, actual = _diff_cells(entry)
    if not field:
        return f"{kind} row in {table}{row and f' ({row})'}: {actual if kind == 'extra' else expected}"
    return f"{kind} {table}{row and f' {row}'}, {field}: expected {expected}, found {actual}"


def _type_name(value: Any) -> str:
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "null")


def _type_colour(value: Any) -> str:
    return {"string": GREEN, "integer": BLUE, "number": BLUE, "boolean": VERMILION}.get(_type_name(value), PURPLE)


# terminal helpers ----------------------------------------------------------------------------------------------------


class _Pen:
    """Wraps text in ANSI codes, or leaves it."""

    def __init__(self, color: bool):
        self.color = color

    def __call__(self, text: str, *shades: str) -> str:
        if not self.color or not shades:
            return text
        return f"\x1b[{';'.join(_ANSI[s] for s in shades)}m{text}\x1b[0m"


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    lines: list[str] = []
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]} ... and {len(text) - _LONGEST} characters more"
    # What a model wrote must not steer the terminal.
    for line in _CONTROL.sub("�", clean(text).expandtabs(4)).split("\n"):
        lines += textwrap.wrap(line, max(20, width - len(indent)), replace_whitespace=False,
                               drop_whitespace=True) or [""]
    return [f"{indent if i == 0 else ' ' * len(indent)}{line}" for i, line in enumerate(lines)]


def _columns(left: Sequence[str], right: Sequence[str], half: int) -> list[str]:
    return [f"{a}{' ' * max(0, half - len(_ESCAPES.sub('', a)))} | {b}" for a, b in zip_longest(
        left, right, fillvalue="")]
