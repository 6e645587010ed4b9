"""Where the tags are: the two passes over a generation, and the parameters in a call's body.

Every pass looks for fixed literals from left to right, the longest at a place first, and never looks back, so the work
is linear in the text. The patterns are alternations of escaped literals, which cannot backtrack over text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from tbstudy.interpreter.profile import Profile


@dataclass(slots=True)
class Slot:
    """One call as written. `ended` is how it ended: "function", "block" (</tool_call> before any name) or "text"."""

    start: int
    name: str = ""
    body: str = ""
    ended: str = "text"
    named: bool = False


@dataclass(slots=True)
class CallScan:
    """The second pass: slots in order, text before the first of them, text after it (outside the slots)."""

    slots: list[Slot] = field(default_factory=list)
    before: str = ""
    after: str = ""
    skipped: str = ""


def _alternation(literals: set[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, sorted(literals, key=lambda item: (-len(item), item)))))


class Lexicon:
    """The literals of one profile and one set of special tokens, with a pattern for each state of the reader."""

    def __init__(self, profile: Profile, special_tokens: tuple[str, ...]):
        tags = profile.tags()
        self.profile = profile
        self.special = frozenset(token for token in special_tokens if token and token not in (*tags, ">"))
        every = {*tags, *self.special}
        # A state may look only for the literals it acts on, unless a special token can overlap one it does not act
        # on: then skipping that tag would shift what is matched after it.
        plain = all(
            token[0] == "<" and "<" not in token[1:] and not any(tag.startswith(token) for tag in tags)
            for token in self.special
        )

        def state(*literals: str) -> re.Pattern[str]:
            return _alternation({*literals, *self.special} if plain else every)

        self.reasoning = state(profile.think_start, profile.think_end, profile.call_start)
        self.answer = state(profile.think_end)
        self.content = state(profile.think_end, profile.call_start, profile.function_start)
        self.preamble = state(profile.call_end, profile.function_start)
        self.name = _alternation(every)
        self.body = state(profile.function_end)
        self.between = state(profile.call_end, profile.call_start, profile.function_start)
        blank = f"[{re.escape(profile.whitespace)}]*+"
        # Possessive blanks: nothing in either branch can be given back, so a run of blanks is read once.
        self.parameter = re.compile(
            f"<{blank}(?:/{blank}parameter{blank}(?P<close>>)|parameter{blank}={blank})"
        )
        self.json_name = re.compile(f'"name"{blank}:{blank}"([^"]*+)"')

    def delete(self, text: str, tag: str, pattern: re.Pattern[str]) -> str:
        """`text` without `tag` and special tokens; `pattern` is the state's pattern."""
        drop = {tag, *self.special}
        return pattern.sub(lambda match: "" if match[0] in drop else match[0], text)


@lru_cache(maxsize=64)
def lexicon(profile: Profile, special_tokens: tuple[str, ...]) -> Lexicon:
    """The (cached) lexicon of a profile with these special tokens."""
    return Lexicon(profile, special_tokens)


def split_reasoning(text: str, lex: Lexicon) -> tuple[str, str, int, bool]:
    """First pass: (reasoning, rest, position where reasoning ended, whether `<tool_call>` ended it).

    The position is -1 when reasoning never ended. `</think>` is consumed; a `<tool_call>` stays in the rest.
    """
    profile = lex.profile
    parts: list[str] = []
    done = 0
    for match in lex.reasoning.finditer(text):
        tag = match[0]
        if tag == profile.think_start or tag in lex.special:
            parts.append(text[done : match.start()])
            done = match.end()
        elif tag == profile.think_end or tag == profile.call_start:
            parts.append(text[done : match.start()])
            implicit = tag == profile.call_start
            rest = text[match.start() if implicit else match.end() :]
            return "".join(parts), lex.delete(rest, profile.think_end, lex.answer), match.start(), implicit
    parts.append(text[done:])
    return "".join(parts), "", -1, False


def scan_calls(text: str, lex: Lexicon) -> CallScan:
    """Second pass, over what reasoning left: where calls start, their names and bodies, and the text around them."""
    profile = lex.profile
    special = lex.special
    scan = CallScan()
    outside: list[str] = []
    inside: list[str] = []
    skipped: list[str] = []
    slot: Slot | None = None
    state = "content"
    pattern = lex.content
    pos = mark = 0
    while True:
        match = pattern.search(text, pos)
        start = match.start() if match else len(text)
        if state == "name":
            close = text.find(">", pos, start)
            if close >= 0:
                inside.append(text[mark:close])
                slot.name = "".join(inside)
                inside = []
                state, pattern, pos = "body", lex.body, close + 1
                mark = pos
                continue
        if match is None:
            break
        tag = match[0]
        pos = match.end()
        if tag in special:
            target = outside if state == "content" else inside if state in ("name", "body") else skipped
            target.append(text[mark:start])
            mark = pos
        elif state == "content":
            if tag == profile.think_end:
                outside.append(text[mark:start])
                mark = pos
            elif tag == profile.call_start or tag == profile.function_start:
                outside.append(text[mark:start])
                if slot is None:
                    scan.before = "".join(outside)
                    outside = []
                slot = Slot(start)
                scan.slots.append(slot)
                named = tag == profile.function_start
                state, pattern = ("name", lex.name) if named else ("preamble", lex.preamble)
                mark = pos
        elif state == "preamble":
            if tag == profile.call_end:
                skipped.append(text[mark:start])
                slot.ended = "block"
                state, pattern, mark = "content", lex.content, pos
            elif tag == profile.function_start:
                skipped.append(text[mark:start])
                state, pattern, mark = "name", lex.name, pos
        elif state == "name":
            if tag == profile.function_end:
                inside.append(text[mark:start])
                slot.name = "".join(inside)
                slot.ended = "function"
                inside = []
                state, pattern, mark = "between", lex.between, pos
        elif state == "body":
            if tag == profile.function_end:
                inside.append(text[mark:start])
                slot.body = "".join(inside)
                slot.ended = "function"
                inside = []
                state, pattern, mark = "between", lex.between, pos
        elif tag in (profile.call_end, profile.call_start, profile.function_start):
            skipped.append(text[mark:start])
            mark = pos
            if tag == profile.call_end:
                state, pattern = "content", lex.content
            else:
                slot = Slot(start)
                scan.slots.append(slot)
                named = tag == profile.function_start
                state, pattern = ("name", lex.name) if named else ("preamble", lex.preamble)
    tail = text[mark:]
    if state == "content":
        outside.append(tail)
    elif state == "name":
        slot.name = "".join(inside) + tail
    elif state == "body":
        slot.body = "".join(inside) + tail
    else:
        skipped.append(tail)
    if slot is None:
        scan.before = "".join(outside)
    else:
        scan.after = "".join(outside)
    scan.skipped = "".join(skipped)
    return scan


def _trim(value: str) -> str:
    value = value.removeprefix("\n")
    return value.removesuffix("\n")


def body_parameters(body: str, lex: Lexicon) -> tuple[dict[str, str], bool]:
    """Parameters of a call's body as raw texts, and whether an opened one was dropped for want of an end.

    A value runs to the nearest closing tag or to the next opening tag; a repeated name keeps its first place and
    takes the last value.
    """
    values: dict[str, str] = {}
    name: str | None = None
    value_start = 0
    for match in lex.parameter.finditer(body):
        if match.start() < value_start:
            continue
        if name is not None:
            values[name] = _trim(body[value_start : match.start()])
            name = None
        if match["close"] is None:
            end = body.find(">", match.end())
            if end < 0:
                return values, True
            name = body[match.end() : end]
            value_start = end + 1
    return values, name is not None
