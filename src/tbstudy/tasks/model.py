"""A task as the study runs it, whatever dataset it came from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tbstudy.errors import SystemFault


@dataclass(frozen=True, slots=True)
class ToolOverride:
    """What a scenario or agent says about a tool: shown under `description` or `parameters` if given.

    `argument_descriptions` replaces the description of single arguments. `direct_response` is a template over the
    JSON result that is spoken to the user; `is_end_turn` ends the episode; `builtin` tools are declared by the agent
    and have no server.
    """

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    direct_response: str | None = None
    is_end_turn: bool = False
    builtin: bool = False
    argument_descriptions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Task:
    """One hydrated test case. Everything reachable from it is shared between tasks and must not be changed.

    `uid` is `<file>.py:<function>`. `system` holds the system messages in order (agent instructions, then scenario
    and task instructions). `world_state` maps server name to its init config, the task's `init` merged in. `tools`
    lists the tools that the scenario offers, or None when it offers all of them. `user_context` is private to the
    simulated user. `history` holds earlier messages in the shape of a record's messages. `fixtures` maps the name of
    a check's parameter to `{"type": "package.module.attr", **arguments}`. `scenario_instructions` and
    `task_instructions` are the two parts of the second system message. `check_code` is the source of the check where
    it is not the function `function` of `file`.
    """

    uid: str
    file: Path
    function: str
    scenario: str
    system: tuple[str, ...]
    query: str
    user_context: str | None
    world_state: dict[str, dict[str, Any]]
    tools: tuple[ToolOverride, ...] | None = None
    builtin_tools: tuple[ToolOverride, ...] = ()
    max_user_sim_turns: int = 10
    max_agent_sim_turns: float = math.inf
    format_query: bool = False
    tags: dict[str, Any] = field(default_factory=dict)
    history: tuple[dict[str, Any], ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    fixtures: dict[str, dict[str, Any]] = field(default_factory=dict)
    scenario_instructions: str | None = None
    task_instructions: str | None = None
    check_code: str | None = None

    @property
    def domain(self) -> str:
        """The scenario's name: what results are grouped by."""
        return self.scenario

    def with_init(self, init_result: Mapping[str, Any]) -> Task:
        """The task as it reads in a session: with `format_query`, what the servers' init returned replaces
        `{init[...]}` in query, user context and the task's instructions (not in the scenario's).

        Raises:
            SystemFault: a placeholder names what the servers did not return.
        """
        if not self.format_query:
            return self
        filled: dict[str, str | None] = {}
        for name in ("query", "user_context", "task_instructions"):
            text = getattr(self, name)
            try:
                filled[name] = text.format(init=init_result) if text else text
            except (KeyError, IndexError, ValueError, AttributeError, TypeError) as error:
                raise SystemFault("backend", f"{self.uid}: {name} does not fit what init returned "
                                             f"({type(error).__name__}: {error})") from error
        system = system_messages(self.system[0], self.scenario_instructions, filled["task_instructions"])
        return replace(self, system=system, format_query=False, **filled)


def system_messages(agent: str, scenario: str | None, task: str | None) -> tuple[str, ...]:
    """The system messages of an episode: the agent's, then those of scenario and task in one, if there are any."""
    second = "\n".join(part for part in (scenario, task) if part is not None)
    return (agent, second) if second else (agent,)
