"""A task as the study runs it, whatever dataset it came from."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class ToolOverride:
    """What a scenario or agent says about a tool: shown under `description` or `parameters` if given.

    `direct_response` is a template over the JSON result that is spoken to the user; `is_end_turn` ends the episode;
    `builtin` tools are declared by the agent and have no server.
    """

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    direct_response: str | None = None
    is_end_turn: bool = False
    builtin: bool = False


@dataclass(frozen=True, slots=True)
class Task:
    """One hydrated test case.

    `uid` is `<file>.py:<function>`. `system` holds the system messages in order (agent instructions, then scenario
    and task instructions). `world_state` maps server name to its init config, the task's `init` merged in. `tools`
    lists the tools that the scenario offers, or None when it offers all of them. `user_context` is private to the
    simulated user.
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

    @property
    def domain(self) -> str:
        """The scenario's name: what results are grouped by."""
        return self.scenario
