"""What a generation means once it has been read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call as served: `arguments` is the wire string (JSON), `arguments_obj` the same decoded, key order kept."""

    name: str
    arguments: str
    arguments_obj: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Generation:
    """A generation split into reasoning, content and tool calls (None, None, () when absent).

    `warnings` lists places where serving does something a person would not expect; they never change the reading.
    """

    text: str
    reasoning: str | None
    content: str | None
    tool_calls: tuple[ToolCall, ...]
    finish_reason: str
    warnings: tuple[str, ...] = field(default=())
