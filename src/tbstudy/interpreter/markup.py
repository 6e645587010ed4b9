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
    """One call as written, from `start` in the scanned text; `preamble` lies between <tool_call> and <function=.

    `ended` says how: "function" (</function>), "block" (</tool_call> before any name) or "text" (the text ran out).
    """

    start: int
    name: str = ""
    body: str = ""
    ended: str = "text"
    preamble: str = ""


@dataclass(slots=True)
class CallScan:
    """The second pass: slots in order and the pieces of text `before` the first, `after` it outside the calls, and
    `between` the tags of a call block, where it belongs to nothing."""

    slots: list[Slot] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    between: list[str] = field(default_factory=list)


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
        self.specials = _alternation(set(self.special))
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
    profile, special = lex.profile, lex.special
    scan = CallScan()
    slot: Slot | None = None
    state, pattern = "content", lex.content
    kept: list[str] = []  # pieces of what the state collects, parted where a tag was deleted
    pos = mark = 0  # where to look on, and where the piece not yet kept begins

    while True:
        match = pattern.search(text, pos)
        start = match.start() if match else len(text)
        entered = ""
        if state == "name" and (close := text.find(">", pos, start)) >= 0:
            start, pos = close, close + 1
            entered = "body"
        elif match is None:
            kept.append(text[mark:])
            break
        else:
            tag, pos = match[0], match.end()
            if tag in special or (state == "content" and tag == profile.think_end):
                kept.append(text[mark:start])
                mark = pos
                continue
            if state == "content" or state == "between":
                if tag == profile.call_start:
                    entered = "preamble"
                elif tag == profile.function_start:
                    entered = "name"
                elif tag == profile.call_end and state == "between":
                    entered = "content"
            elif state == "preamble":
                entered = {profile.function_start: "name", profile.call_end: "content"}.get(tag, "")
            elif tag == profile.function_end:
                entered = "between"
        if not entered:  # a tag that means nothing here is text
            continue
        kept.append(text[mark:start])
        _collect(scan, slot, state, kept)
        kept = []
        mark = pos
        if state in ("content", "between") and entered != "content":
            slot = Slot(start)
            scan.slots.append(slot)
        elif entered == "between":
            slot.ended = "function"
        elif state == "preamble" and entered == "content":
            slot.ended = "block"
        state, pattern = entered, getattr(lex, entered)
    _collect(scan, slot, state, kept)
    return scan


def _collect(scan: CallScan, slot: Slot | None, state: str, pieces: list[str]) -> None:
    """Put the pieces of text that `state` collected where they belong."""
    if state == "name":
        slot.name = "".join(pieces)
    elif state == "body":
        slot.body = "".join(pieces)
    elif state == "preamble":
        slot.preamble = "".join(pieces)
    elif state == "between":
        scan.between += pieces
    elif slot is None:
        scan.before += pieces
    else:
        scan.after += pieces


@dataclass(slots=True, frozen=True)
class Span:
    """One parameter of a body: its name and where its untrimmed value lies; `closed` by its own closing tag, at `next`
    the text goes on (behind the closing tag, or at the opening tag that ended the value)."""

    name: str
    start: int
    end: int
    closed: bool
    next: int


def parameter_spans(body: str, lex: Lexicon) -> tuple[list[Span], int]:
    """Parameters of a call's body in order, and where one was opened but never ended (-1: none, it is dropped).

    A value runs to the nearest closing tag or to the next opening tag, whichever comes first.
    """
    spans: list[Span] = []
    name: str | None = None
    opened = value_start = 0
    for match in lex.parameter.finditer(body):
        at = match.start()
        if at < value_start:  # a tag inside a parameter's name
            continue
        closing = match["close"] is not None
        if name is not None:
            spans.append(Span(name, value_start, at, closing, match.end() if closing else at))
            name = None
        if not closing:
            end = body.find(">", match.end())
            if end < 0:
                return spans, at
            name, opened, value_start = body[match.end() : end], at, end + 1
    return spans, opened if name is not None else -1


def trim_newlines(value: str) -> str:
    """`value` without one newline at each end, which the template's layout puts there."""
    return value.removeprefix("\n").removesuffix("\n")
