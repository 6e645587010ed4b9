"""Simulated users: they know the task's private context and see only what a user would see."""

from __future__ import annotations

import re
from typing import Any, Protocol

from tbstudy.policies.base import Usage
from tbstudy.tasks.model import Task

DONE = "<DONE>"
_FACT = re.compile(r"^([a-z][a-z0-9 ]*): *(.+)$")


class User(Protocol):
    """Answers the policy. `usage` is filled by users that cost tokens."""

    async def answer(self, task: Task, transcript: list[dict[str, Any]]) -> tuple[str, Usage | None]:
        """The next user text, given the visible messages so far (roles user and assistant, last one assistant).

        Raises:
            SystemFault: the user model failed.
        """


class ScriptedUser:
    """Releases a private fact when a question names it, and nothing else.

    Facts are the lines `key: value` of the task's `user_context`. A question that names no fact gets
    "I don't know."; so does a statement that waits for an answer.
    """

    async def answer(self, task: Task, transcript: list[dict[str, Any]]) -> tuple[str, Usage | None]:
        asked = str(transcript[-1]["content"]).lower()
        known = [f"My {key} is {value}." for key, value in facts(task.user_context or "").items()
                 if "?" in asked and re.search(rf"\b{re.escape(key)}\b", asked)]
        return " ".join(known) or "I don't know.", None


def facts(user_context: str) -> dict[str, str]:
    """The `key: value` lines of a private context."""
    found = {}
    for line in user_context.splitlines():
        if match := _FACT.match(line.strip()):
            found[match[1]] = match[2].strip()
    return found


def clean_answer(text: str) -> str:
    """A user model's text without role label and surrounding quotes; empty becomes "I don't know."."""
    text = text.strip()
    for label in ("user:", "assistant:", "system:"):
        if text.lower().startswith(label):
            text = text[len(label):].lstrip()
            break
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        text = text[1:-1].strip()
    return text or "I don't know."
