"""Policies that need no model: turns written beforehand, and the golden calls of a task.

Their turns are raw generations read by the interpreter, so that tests and first runs of a new domain exercise
everything but sampling.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tbstudy.errors import StudyError
from tbstudy.interpreter import interpret
from tbstudy.policies.base import Turn, Usage
from tbstudy.tasks.model import Task

Script = Callable[[Task, int], Sequence[str]]


class ScriptedPolicy:
    """Says its script's turns in order, then goes on repeating `ending`.

    `script` maps a uid to raw generations, or is a function of task and repetition.
    """

    def __init__(self, script: Mapping[str, Sequence[str]] | Script, *, name: str = "scripted",
                 ending: str = "</think>That is all. <DONE>"):
        self.name, self.ending = name, ending
        self._script = script

    def open(self, task: Task, repetition: int, messages: list[dict[str, Any]],
             tools: list[dict[str, Any]]) -> ScriptedConversation:
        if callable(self._script):
            turns = self._script(task, repetition)
        elif task.uid in self._script:
            turns = self._script[task.uid]
        else:
            raise StudyError(f"the script of policy {self.name!r} has no turns for {task.uid}")
        return ScriptedConversation(list(turns), self.ending, tools)

    async def close(self) -> None:
        """Nothing to release."""


class ScriptedConversation:
    """One episode of a script."""

    def __init__(self, turns: list[str], ending: str, tools: list[dict[str, Any]]):
        self._turns, self._ending, self._tools = turns, ending, tools

    async def reply(self, new_messages: list[dict[str, Any]]) -> Turn:
        text = self._turns.pop(0) if self._turns else self._ending
        return Turn(interpret(text, self._tools), Usage("policy"))


def golden_policy(name: str = "golden") -> ScriptedPolicy:
    """Plays the golden calls that a task's world state holds, server by server, and says that it is done."""
    return ScriptedPolicy(golden_turns, name=name)


def golden_turns(task: Task, repetition: int = 0) -> list[str]:
    """One raw generation a golden call.

    Raises:
        StudyError: no server of the task has golden calls.
    """
    held = [world["golden_test_case"] for world in task.world_state.values() if world.get("golden_test_case")]
    if not held:
        raise StudyError(f"{task.uid}: init.<server>.golden_test_case is missing; there is nothing to replay")
    return [call_text(call["tool"], call.get("parameters") or {})
            for case in held for call in case.get("tool_interactions") or ()]


def call_text(tool: str, arguments: Mapping[str, Any], thought: str = "") -> str:
    """A raw generation that calls `tool`: reasoning, then the call in Qwen's XML."""
    parameters = "".join(f"<parameter={key}>\n{value if isinstance(value, str) else json.dumps(value)}\n</parameter>\n"
                         for key, value in arguments.items())
    return f"{thought}</think>\n\n<tool_call>\n<function={tool}>\n{parameters}</function>\n</tool_call>"


def say_text(text: str, thought: str = "") -> str:
    """A raw generation that speaks to the user."""
    return f"{thought}</think>\n\n{text}"
