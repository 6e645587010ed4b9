"""Which tools an episode offers, and how they read."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from tbstudy.errors import StudyError
from tbstudy.tasks.model import Task, ToolOverride

#: Tools of this prefix belong to the sandbox; no policy ever sees or reaches one.
RESERVED = "__reserved__"


def tool_dict(name: str, description: str | None, parameters: Mapping[str, Any] | None) -> dict[str, Any]:
    """An OpenAI-style tool."""
    return {"type": "function", "function": {"name": name, "description": description or "",
                                             "parameters": parameters or {"type": "object", "properties": {}}}}


def unknown_tool(name: str) -> str:
    """What the policy reads after calling a tool that is not on offer."""
    return f"Error: function '{name}' does not exist"


def route(task: Task, servers: Mapping[str, Sequence[dict[str, Any]]]) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The tools that `task` offers and the server of each, given every server's OpenAI-style tools.

    Built-in tools of the agent come first and have no server. Where two servers have a tool of one name, the one
    later in the world state serves it.

    Raises:
        StudyError: the scenario offers a tool that no server has.
    """
    overrides = None if task.tools is None else {t.name: t for t in task.tools}
    offered: dict[str, dict[str, Any]] = {}
    owner: dict[str, str] = {}
    for server, tools in servers.items():
        for tool in tools:
            name = tool["function"]["name"]
            if name.startswith(RESERVED) or (overrides is not None and name not in overrides):
                continue
            offered[name] = tool if overrides is None else _overridden(tool, overrides[name])
            owner[name] = server
    if overrides is not None and (missing := [n for n in overrides if n not in offered]):
        raise StudyError(f"scenario {task.scenario} offers {', '.join(missing)}, which none of its servers has "
                         f"(servers: {', '.join(servers) or 'none'})")
    builtin = [tool_dict(t.name, t.description, t.parameters) for t in task.builtin_tools]
    if twice := [t.name for t in task.builtin_tools if t.name in offered]:
        raise StudyError(f"{', '.join(twice)}: a tool of the agent and of a server of scenario {task.scenario}")
    return builtin + list(offered.values()), owner


def _overridden(tool: dict[str, Any], override: ToolOverride) -> dict[str, Any]:
    if override.description is None and override.parameters is None and not override.argument_descriptions:
        return tool
    function = copy.deepcopy(tool["function"])
    if override.description is not None:
        function["description"] = override.description
    if override.parameters is not None:
        function["parameters"] = override.parameters
    properties = function["parameters"].get("properties", {})
    for name, text in override.argument_descriptions.items():
        if name in properties:
            properties[name]["description"] = text
    return {**tool, "function": function}
