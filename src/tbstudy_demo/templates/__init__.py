"""The bundled tasks' templates, one module a domain, and what all of them share.

Shared wording for the same decision lets a small policy carry a branch over from one domain to another.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from tbstudy_demo.cases import Ask, Call, Case, Say, Step

APPROVAL_FIRST = "approval comes first"
ALLOWED = "this is allowed"
DECLINE = "I decline"
ALREADY = "this is already done"

#: A script that helps nobody: it apologises before it tried anything.
GIVES_UP: tuple[Step, ...] = (Say("I see no way to help.", "Sorry, I cannot help with this. <DONE>"),)


def ask(key: str) -> Ask:
    """The question that releases the private fact `key`."""
    return Ask(f"I need the {key} first.", f"What is your {key}?")


class Because(str):
    """The thought after a look-up: the deciding field, its value as the tool result shows it, the decision."""

    fact: str
    decision: str

    @classmethod
    def of(cls, fact: str, decision: str) -> Because:
        thought = cls(f"{fact}, so {decision}.")
        thought.fact, thought.decision = fact, decision
        return thought


def because(field: str, value: Any, decision: str, owner: str = "") -> Because:
    """`value` is shown as JSON shows it, without quotes, so that it can be copied from the tool result.

    `owner` names the row that is meant where the tool result lists several.
    """
    shown = value if isinstance(value, str) else json.dumps(value)
    return Because.of(f"The {owner} {field} is {shown}" if owner else f"The {field} is {shown}", decision)


def done(text: str) -> Say:
    """The closing message after everything asked for was done."""
    return Say("Everything asked for is done.", f"{text} <DONE>")


def declined(text: str) -> Say:
    """The closing message after a refusal was recorded."""
    return Say("The request is declined.", f"{text} <DONE>")


@dataclass(frozen=True, slots=True)
class Branch:
    """What follows the look-up in one twin: writes, then the closing message."""

    calls: tuple[Step, ...]
    end: Say

    @property
    def opening(self) -> Because:
        """The thought that opens the branch: the fact and what follows from it."""
        thought = (*self.calls, self.end)[0].thought
        if not isinstance(thought, Because):
            raise TypeError(f"a branch opens with because(...), not {thought!r}")
        return thought


def _seen(branch: Branch, true: Because) -> tuple[Step, ...]:
    """The steps of a branch taken by mistake: the fact is read as it is, the conclusion is wrong.

    A thought that misstates the fact would teach a policy not to look; one that draws the wrong conclusion leaves
    something that a reward can put right.
    """
    first, *rest = (*branch.calls, branch.end)
    return replace(first, thought=Because.of(true.fact, branch.opening.decision)), *rest


def build(query: str, rows: dict[str, list[dict[str, Any]]], start: tuple[Step, ...], right: Branch, other: Branch, *,
          extra: Call, wrong: dict[str, Any] | None = None, approval: Call | None = None,
          facts: dict[str, str] | None = None, blind: bool = True) -> Case:
    """A case from the steps up to the look-up, the right branch and the one that the other twin wants.

    `wrong` are arguments that spoil the last call of the right branch, `extra` is a write too many, `approval` a
    request for approval that nothing calls for. Without `blind` nobody can act before the look-up, because it
    supplies an id. Where the right branch changes nothing, stopping early and giving up are not mistakes and are
    left out; where the other one does, stopping early is taking it.
    """
    mistakes: dict[str, tuple[Step, ...]] = {"wrong_branch": (*start, *_seen(other, right.opening))}
    if wrong is not None:
        *before, last = right.calls
        spoilt = replace(last, arguments=last.arguments | wrong)
        mistakes["wrong_field"] = (*start, *before, spoilt, right.end)
    if right.calls and other.calls:  # else stopping early is what the other branch does
        mistakes["stops_early"] = (*start, *right.calls[:-1], replace(right.end, thought="That should be enough."))
    mistakes["extra_write"] = (*start, *right.calls, extra, right.end)
    if approval is not None:
        mistakes["asks_approval"] = (*start, *right.calls, approval, right.end)
    if blind:
        asked = tuple(step for step in start if isinstance(step, Ask))
        hasty = tuple(replace(call, thought="I can do this at once.") for call in other.calls[:1])
        end = other.end if other.calls else replace(other.end, thought="I can answer this at once.")
        mistakes["skips_lookup"] = (*asked, *hasty, *other.calls[1:], end)
    if right.calls:
        mistakes["gives_up"] = GIVES_UP
    return Case(query, rows, (*start, *right.calls, right.end), mistakes, facts or {})
