"""What every transport of tool servers offers to the episode loop."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from tbstudy.tasks.model import Task


class Session(Protocol):
    """One attempt's isolated tool servers, initialised with the task's world state."""

    init_result: dict[str, Any]

    async def tools(self) -> list[dict[str, Any]]:
        """OpenAI-style tool dicts offered to the policy: the task's overrides applied, reserved tools hidden."""

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        """The tool's answer as text. A refusal or bad arguments are text too.

        Raises:
            SystemFault: the server died, hung past the call's time limit, or answered garbage.
        """

    async def effects(self) -> dict[str, Any]:
        """Terminal state by server name, as the task's check expects it.

        Raises:
            SystemFault: as for `call`.
        """


class Sandbox(Protocol):
    """A way to start sessions."""

    def session(self, task: Task) -> AbstractAsyncContextManager[Session]:
        """A fresh session; leaving the context ends it and reaps what it started, whatever happened."""

    async def close(self) -> None:
        """Release everything that outlives a session."""
