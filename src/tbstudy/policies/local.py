"""The small policy as a `Policy`: conversations of one wave share the engine and stay token-exact."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from tbstudy.errors import StudyError, SystemFault
from tbstudy.interpreter import Trajectory, interpret
from tbstudy.policies.base import Turn, Usage
from tbstudy.policies.sampler import Engine, Row, Sampling
from tbstudy.policies.small_model import SmallLM
from tbstudy.policies.small_tokenizer import load_tokenizer
from tbstudy.sandbox.episode import assistant_message
from tbstudy.tasks.model import Task


class LocalPolicy:
    """A `SmallLM` and its tokenizer behind the policy interface.

    Announce every wave with `start_wave(n)`, then run exactly n episodes concurrently: the engine steps only when all
    conversations of the wave that are still open wait for it, which makes the samples of a wave reproducible.
    `seed` and the episode's key (uid, repetition, `stream`) fix an episode's random numbers.
    """

    def __init__(self, model: SmallLM, tokenizer: Any, *, name: str, sampling: Sampling, seed: int,
                 max_turn_tokens: int = 96, max_tokens: int = 1536):
        self.name, self.model, self.tokenizer = name, model, tokenizer
        self.seed, self.stream = seed, ""
        self.max_turn_tokens, self.max_tokens = max_turn_tokens, max_tokens
        self.engine = Engine(model, tokenizer.eos_token_id, sampling)
        self._special = tuple(tokenizer.all_special_tokens)
        self._end = tokenizer.eos_token
        self._waiting: dict[int, tuple[Row, asyncio.Future]] = {}
        self._open = 0
        self._started = False

    @classmethod
    def load(cls, folder: Path, **options: Any) -> LocalPolicy:
        """From a checkpoint folder."""
        return cls(SmallLM.load(folder), load_tokenizer(folder), **options)

    def start_wave(self, episodes: int) -> None:
        """Expect exactly `episodes` conversations.

        Raises:
            StudyError: the previous wave is still running.
        """
        if self._open:
            raise StudyError(f"{self._open} episodes of the previous wave are still open")
        self._open, self._started, self._waiting = episodes, False, {}

    def open(self, task: Task, repetition: int, messages: list[dict[str, Any]],
             tools: list[dict[str, Any]]) -> LocalConversation:
        key = f"{self.seed}|{self.stream}|{task.uid}|{repetition}"
        rng = np.random.Generator(np.random.Philox(int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big")))
        return LocalConversation(self, messages, tools, Row(key, rng.random(self.max_tokens)))

    def leave(self) -> None:
        """One episode of the wave is over, whether or not it ever opened a conversation."""
        self._open -= 1
        self._step_if_complete()

    async def generate(self, row: Row) -> None:
        """Sample the row's turn; returns when `row.ids` holds it."""
        future = asyncio.get_running_loop().create_future()
        self._waiting[id(row)] = (row, future)
        self._step_if_complete()
        await future

    def _step_if_complete(self) -> None:
        if not self._waiting or len(self._waiting) < self._open:
            return
        rows = [row for row, _ in self._waiting.values()]
        if not self._started:
            # Arrival order depends on the event loop; the slots must not.
            self.engine.admit(sorted(rows, key=lambda row: row.key))
            self._started = True
        gone = {r.slot for r in self.engine.rows if id(r) not in self._waiting}
        if gone:
            self.engine.release(gone)
        for row in self.engine.run():
            _, future = self._waiting.pop(id(row))
            if not future.done():
                future.set_result(None)

    async def close(self) -> None:
        self.engine.reset()


class LocalConversation:
    """One episode's tokens: prompt, sampled turns as sampled, observations behind the template's anchor.

    A first prompt that leaves no room for a token raises `SystemFault`; a later one that does ends the episode (`cut`).
    """

    def __init__(self, policy: LocalPolicy, messages: list[dict[str, Any]], tools: list[dict[str, Any]], row: Row):
        self.policy, self.tools, self.row = policy, tools, row
        self.trajectory: Trajectory | None = None
        self._leading = messages
        self._last: dict[str, Any] = {}
        self._closed = False

    async def reply(self, new_messages: list[dict[str, Any]]) -> Turn:
        policy, row = self.policy, self.row
        if self.trajectory is None:
            self.trajectory = Trajectory(policy.tokenizer, self.tools, self._leading + new_messages,
                                         max_turn_tokens=policy.max_turn_tokens, max_tokens=policy.max_tokens)
            row.pending = list(self.trajectory.prompt_ids)
            fits = True
        else:
            before = len(self.trajectory.response_ids)
            fits = self.trajectory.append_observation(new_messages, self._last)
            # The last sampled token has no key in the cache yet: it goes in with what follows it.
            row.pending = [row.ids[-1], *self.trajectory.response_ids[before:]]
        prompt_tokens = len(self.trajectory)
        row.ids, row.logprobs, row.ended, row.budget = [], [], False, self.trajectory.remaining()
        if not fits or row.budget == 0:
            row.pending = []
            if not self.trajectory.turns:
                # The policy has said nothing that could be judged. Closing the episode takes it out of its wave.
                raise SystemFault("policy", "context overflow: the first prompt does not fit: max_episode_tokens is "
                                            f"{policy.max_tokens}, the prompt alone has {prompt_tokens}")
            self.trajectory.truncated = True
            return Turn(interpret("", self.tools, finish_reason="length"), Usage("policy", prompt_tokens, 0), cut=True)
        await policy.generate(row)
        finished = row.ids[-1] == policy.tokenizer.eos_token_id
        self.trajectory.append_generation(row.ids, row.logprobs, finished)
        text = policy.tokenizer.decode(row.ids[:-1] if finished else row.ids, skip_special_tokens=False)
        generation = interpret(text, self.tools, finish_reason="stop" if finished else "length",
                               special_tokens=policy._special)
        self._last = assistant_message(generation, 0)
        # A turn that hit its own cap goes on as served; one that exhausted the episode's budget is the last.
        cut = not finished and self.trajectory.remaining() == 0
        return Turn(generation, Usage("policy", prompt_tokens, len(row.ids)), cut=cut)

    def close(self) -> None:
        """The episode needs no more turns; its row leaves the engine."""
        if not self._closed:
            self._closed = True
            self.policy.leave()
