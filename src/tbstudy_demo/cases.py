"""A drawn case of a template: the task as data, the right behaviour as a script, and ways to get it wrong."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tbstudy_demo.words import Draw


@dataclass(frozen=True, slots=True)
class Ask:
    """A question to the user; `thought` is the reasoning before it."""

    thought: str
    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call; `thought` is the reasoning before it."""

    thought: str
    tool: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Say:
    """The closing message; it ends the episode."""

    thought: str
    text: str


Step = Ask | Call | Say


@dataclass(frozen=True, slots=True)
class Case:
    """One task of a template.

    `twin` names the branch: the templates' twins read alike to the policy until it looks a fact up.
    `facts` are private to the simulated user and released only when a question names the key.
    `rows` patch the domain's initial tables. The calls of `script` are the golden calls. Each script of `mistakes`
    ends in a state that the check must fail.
    """

    query: str
    rows: dict[str, list[dict[str, Any]]]
    script: tuple[Step, ...]
    mistakes: dict[str, tuple[Step, ...]]
    facts: dict[str, str] = field(default_factory=dict)

    @property
    def golden(self) -> list[dict[str, Any]]:
        return [{"tool": s.tool, "parameters": s.arguments} for s in self.script if isinstance(s, Call)]


@dataclass(frozen=True, slots=True)
class Template:
    """A kind of request in a domain. `make(draw, twin)` draws a case for one of the `twins`."""

    name: str
    twins: tuple[str, ...]
    make: Callable[[Draw, str], Case]

    def draw(self, twin: str, seed: str) -> Case:
        """The case of `twin` for `seed`; the same seed always gives the same case."""
        return self.make(Draw(random.Random(seed)), twin)


@dataclass(frozen=True, slots=True)
class Domain:
    """A domain: its tool server, written policy, base rows and templates."""

    name: str
    server: Any
    policy: str
    data: dict[str, list[dict[str, Any]]]
    templates: tuple[Template, ...]
