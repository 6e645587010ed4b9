"""What a policy offers to the episode loop: one conversation per episode."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from tbstudy.interpreter.types import Generation
from tbstudy.tasks.model import Task


@dataclass(slots=True)
class Usage:
    """Tokens of one model call by role (policy, user, judge); `cached_tokens` are those of the input that the server
    had in its cache."""

    role: str
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0

    def record(self) -> dict[str, Any]:
        """The stored form, with the names of OpenAI's usage."""
        details = {"input_tokens_details": {"cached_tokens": self.cached_tokens}} if self.cached_tokens else {}
        return {"role": self.role, "input_tokens": self.input_tokens, "output_tokens": self.output_tokens, **details}


@dataclass(slots=True)
class Turn:
    """One reply of the policy. `cut` is True when the token budget ended it, not the policy."""

    generation: Generation
    usage: Usage
    cut: bool = False
    extra: dict[str, Any] = field(default_factory=dict)


class Conversation(Protocol):
    """The policy's side of one episode."""

    async def reply(self, new_messages: list[dict[str, Any]]) -> Turn:
        """Generate after appending `new_messages` (user or tool messages) to the conversation.

        Raises:
            SystemFault: the model endpoint failed.
        """


class Policy(Protocol):
    """A policy by name; `open` starts the conversation of one episode."""

    name: str

    def open(self, task: Task, repetition: int, messages: list[dict[str, Any]],
             tools: list[dict[str, Any]]) -> Conversation:
        """Start from the leading `messages` (system, history) and the tools on offer."""

    async def close(self) -> None:
        """Release the model or connection."""
