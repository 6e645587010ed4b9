"""A rollout server as a policy: token ids in, token ids and log-probabilities out, nothing tokenised twice.

Needs no verl: a server is anything with verl's `generate(request_id, prompt_ids=, sampling_params=)`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from uuid import uuid4

from tbstudy.errors import StudyError, SystemFault
from tbstudy.interpreter import Trajectory, interpret
from tbstudy.policies.base import Turn, Usage
from tbstudy.sandbox.episode import assistant_message
from tbstudy.tasks.model import Task


class TokenServer(Protocol):
    """verl's client of its rollout servers, as far as an episode needs it."""

    async def generate(self, request_id: str, *, prompt_ids: list[int], sampling_params: dict[str, Any],
                       **kwargs: Any) -> Any:
        """An object with `token_ids`, `log_probs`, `stop_reason` and `extra_fields`."""


class ServerPolicy:
    """The policy behind a token server. `prompt`, `response` and `total` are limits in tokens, `turn` caps one turn."""

    name = "policy"

    def __init__(self, server: TokenServer, tokenizer: Any, sampling: Mapping[str, Any], *, prompt: int,
                 response: int, total: int, turn: int, chat_template_kwargs: dict[str, Any] | None = None):
        self.server, self.tokenizer, self.sampling = server, tokenizer, dict(sampling)
        self.prompt, self.response, self.total, self.turn = prompt, response, total, turn
        self.chat_template_kwargs = chat_template_kwargs
        self.special = tuple(tokenizer.all_special_tokens)

    def open(self, task: Task, repetition: int, messages: list[dict[str, Any]],
             tools: list[dict[str, Any]]) -> ServerConversation:
        return ServerConversation(self, task.uid, messages, tools)

    async def close(self) -> None:
        """The server is the trainer's to close."""


class ServerConversation:
    """One episode's tokens. `steps` holds the first and last weight version that generated them, where it is told."""

    def __init__(self, policy: ServerPolicy, uid: str, messages: Sequence[dict[str, Any]],
                 tools: list[dict[str, Any]]):
        self.policy, self.uid, self.tools = policy, uid, tools
        self.trajectory: Trajectory | None = None
        self.steps: list[int] = []
        self.preempted = 0
        self.seconds = 0.0
        # One id an episode keeps it on one server, whose prefix cache holds its past.
        self.request_id = uuid4().hex
        self._leading = list(messages)
        self._last: dict[str, Any] = {}

    async def reply(self, new_messages: list[dict[str, Any]]) -> Turn:
        fits = True
        if self.trajectory is None:
            self.trajectory = self._begin(new_messages)
        else:
            fits = self.trajectory.append_observation(new_messages, self._last)
        before, room = len(self.trajectory), self.trajectory.remaining()
        if not fits or room == 0:
            self.trajectory.truncated = True
            return Turn(interpret("", self.tools, finish_reason="length"), Usage("policy", before, 0), cut=True)
        ids, logprobs, finished = await self._generate(room)
        self.trajectory.append_generation(ids, logprobs, finished)
        tokenizer = self.policy.tokenizer
        text = tokenizer.decode(ids[:-1] if finished else ids, skip_special_tokens=False)
        generation = interpret(text, self.tools, finish_reason="stop" if finished else "length",
                               special_tokens=self.policy.special)
        self._last = assistant_message(generation, 0)
        # A turn that hit its own cap goes on as served; one that exhausted the episode's budget is the last.
        cut = not finished and self.trajectory.remaining() == 0
        return Turn(generation, Usage("policy", before, len(ids)), cut=cut)

    def _begin(self, messages: list[dict[str, Any]]) -> Trajectory:
        policy = self.policy
        trajectory = Trajectory(policy.tokenizer, self.tools, self._leading + messages,
                                max_turn_tokens=policy.turn, chat_template_kwargs=policy.chat_template_kwargs)
        length = len(trajectory.prompt_ids)
        if length > policy.prompt:
            # Cutting it would hide tools or instructions from the policy.
            raise StudyError(f"{self.uid}: the prompt has {length} tokens, lengths.prompt allows {policy.prompt}; "
                             "raise it or leave the task out of the pool")
        trajectory.max_tokens = min(policy.total, length + policy.response)
        return trajectory

    async def _generate(self, room: int) -> tuple[list[int], list[float], bool]:
        assert self.trajectory is not None
        started = time.perf_counter()
        try:
            out = await self.policy.server.generate(
                self.request_id, prompt_ids=self.trajectory.ids,
                sampling_params={**self.policy.sampling, "logprobs": True, "max_tokens": room})
        except Exception as error:
            raise SystemFault("policy", f"rollout server: {type(error).__name__}: {error}") from error
        finally:
            self.seconds += time.perf_counter() - started
        ids = [int(token) for token in out.token_ids]
        if not ids or out.stop_reason in ("aborted", "abort"):
            raise SystemFault("policy", f"rollout server: generation {out.stop_reason or 'empty'}")
        if out.log_probs is None or len(out.log_probs) != len(ids):
            raise SystemFault("policy", f"rollout server: {len(ids)} tokens with "
                                        f"{'no' if out.log_probs is None else len(out.log_probs)} log-probabilities")
        self.preempted += max(0, getattr(out, "num_preempted", None) or 0)
        told = out.extra_fields or {}
        self.steps += [step for key in ("min_global_steps", "max_global_steps")
                       if (step := told.get(key, told.get("global_steps"))) is not None]
        # More than was asked for cannot be kept aligned with the budget that follows.
        ids, logprobs = ids[:room], [float(value) for value in out.log_probs[:room]]
        return ids, logprobs, ids[-1] == self.policy.tokenizer.eos_token_id
