"""Messages and the test context, as check code sees them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any


class Message:
    """Anything in a conversation; `metadata` is free."""

    def __init__(self, metadata: dict[str, Any] | None = None, **_: Any):
        self.metadata = metadata if metadata is not None else {}

    @property
    def T(self) -> str:
        return type(self).__name__

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in vars(self).items())})"


class Text(Message):
    """What system, user or assistant say. An assistant's `tag` is text, think (invisible) or direct (injected)."""

    def __init__(self, role: str, content: str, metadata: dict[str, Any] | None = None, **_: Any):
        super().__init__(metadata)
        self.role, self.content = role, content

    @property
    def tag(self) -> str:
        return self.metadata.get("tag", "text")

    @property
    def is_visible(self) -> bool:
        return self.tag != "think"


class ToolCall(Message):
    """One call; arguments that could not be parsed leave the reason under metadata `error`."""

    def __init__(self, name: str, arguments: dict[str, Any], id: str | None = None,
                 metadata: dict[str, Any] | None = None, **_: Any):
        super().__init__(metadata)
        self.name, self.arguments, self.id = name, arguments, id or f"call_{uuid.uuid4().hex}"


class ParallelToolCall(Message):
    """The calls of one assistant message."""

    def __init__(self, tool_calls: list[ToolCall], metadata: dict[str, Any] | None = None, **_: Any):
        super().__init__(metadata)
        self.tool_calls = tool_calls


class ToolResponse(Message):
    """A tool's answer as text."""

    def __init__(self, name: str, content: str, id: str | None = None,
                 metadata: dict[str, Any] | None = None, **_: Any):
        super().__init__(metadata)
        self.name, self.content, self.id = name, content, id or f"call_{uuid.uuid4().hex}"


class ToolCallResponse:
    """A call with its answer."""

    def __init__(self, tool_call: ToolCall, tool_response: ToolResponse):
        self.tool_call, self.tool_response = tool_call, tool_response

    def __repr__(self) -> str:
        return f"ToolCallResponse({self.tool_call!r}, {self.tool_response!r})"


MessageT = Text | ToolCall | ParallelToolCall | ToolResponse


def get_conversation_transcript(messages: Sequence[Message], limit: int = 0,
                                content_transform_fn: Callable[[str], str] | None = None) -> str:
    """What user and assistant visibly said; with a `limit`, from the last so many assistant messages on."""
    if limit < 0:
        raise ValueError("limit must be >= 0")
    shown: list[str] = []
    spoken = 0
    for m in reversed(messages):
        if not isinstance(m, Text) or m.role == "system" or not m.is_visible or m.metadata.get("is_dummy"):
            continue
        content = content_transform_fn(m.content) if content_transform_fn else m.content
        shown.append(f"{'Assistant' if m.role == 'assistant' else 'User'}: {content}")
        spoken += m.role == "assistant"
        if limit and spoken >= limit:
            break
    return "\n\n".join(reversed(shown))


class TestContext:
    """What a check may look at.

    `effects` and `init_result` by server, `response` (the last thing the assistant said), `messages`, `tool_calls`
    with their answers, `tool_direct_responses`, and free `metadata` that goes into the verdict.
    """

    __test__ = False

    def __init__(self, response: str = "", tool_direct_responses: list[str] | None = None,
                 effects: dict[str, Any] | None = None, tool_calls: list[ToolCallResponse] | None = None,
                 messages: list[Message] | None = None, init_result: dict[str, Any] | None = None,
                 session_id: str = "00000000-0000-0000-0000-000000000000",
                 metadata: dict[str, Any] | None = None, **_: Any):
        self.response = response
        self.tool_direct_responses = tool_direct_responses or []
        self.effects = effects or {}
        self.tool_calls = tool_calls or []
        self.messages = messages or []
        self.init_result = init_result or {}
        self.session_id = session_id
        self.metadata = metadata if metadata is not None else {}

    def transcript(self, limit: int = 0) -> str:
        return get_conversation_transcript(self.messages, limit)

    def query(self) -> str:
        """The first thing the user said."""
        for m in self.messages:
            if isinstance(m, Text) and m.role == "user" and m.is_visible and not m.metadata.get("is_dummy"):
                return m.content
        raise ValueError("the conversation has no user message")
