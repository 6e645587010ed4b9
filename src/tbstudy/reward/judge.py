"""The model behind a check's yes/no questions.

A judge is a function from chat messages (system and user) to the model's reply as text, plain or async.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

JudgeModel = Callable[[list[dict[str, str]]], "str | Awaitable[str]"]


class ScriptedJudge:
    """Answers without a model: the reply of the first key of `answers` that the prompt contains, else `default`.

    With `default=None` an unexpected question is an error, which makes the attempt a system error.
    """

    def __init__(self, answers: Mapping[str, str] | None = None, default: str | None = "Yes"):
        self.answers, self.default = dict(answers or {}), default
        self.asked: list[str] = []

    def __call__(self, messages: list[dict[str, str]]) -> str:
        prompt = messages[-1]["content"]
        self.asked.append(prompt)
        for key, reply in self.answers.items():
            if key in prompt:
                return reply
        if self.default is None:
            raise LookupError(f"the scripted judge has no answer to {prompt!r:.200}")
        return self.default


class EndpointJudge:
    """An OpenAI-compatible chat endpoint, through `complete(messages, **options) -> str` (plain or async)."""

    def __init__(self, complete: Callable[..., str | Awaitable[str]], **options: Any):
        self.complete, self.options = complete, options

    def __call__(self, messages: list[dict[str, str]]) -> str | Awaitable[str]:
        return self.complete(messages, **self.options)
