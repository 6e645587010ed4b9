"""A model behind an OpenAI-compatible endpoint as a `Policy`.

In chat mode the server takes the generation apart (reasoning, calls), and what it says is served to the episode; where
it also hands out the raw text (a field `raw_text`, or `token_ids` together with a tokenizer) the text is recorded
beside it and read by our interpreter, and a difference is a warning. In completions mode the server only generates:
prompts are token ids built as in training, and the interpreter reads the text.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tbstudy.errors import StudyError, SystemFault
from tbstudy.interpreter import Generation, ToolCall, Trajectory, coalesce_system, interpret
from tbstudy.policies.base import Turn, Usage
from tbstudy.policies.client import Client, ContextOverflow, Endpoint, Meter, Reply, arguments_of
from tbstudy.sandbox.episode import assistant_message
from tbstudy.tasks.model import Task

#: Warning codes of this module, recorded beside the interpreter's.
OVERFLOW = "context_overflow"
DIFFERS = "server_reads_otherwise"
RETOKENISED = "retokenised"
NO_USAGE = "no_usage"
_REASONING = ("reasoning_content", "reasoning")


class EndpointPolicy:
    """A model endpoint as a policy; conversations are independent and the client bounds how many calls run at once.

    `sampling` holds request fields (temperature, top_p, ...). `max_turn_tokens` caps one reply, `max_tokens` prompt and
    replies of an episode; None leaves that to the server. With a `seed` each call carries a number made of it, the
    uid, the repetition and the turn.
    """

    def __init__(self, endpoint: Endpoint, *, name: str, sampling: Mapping[str, Any] | None = None,
                 max_turn_tokens: int | None = None, max_tokens: int | None = None, seed: int | None = None,
                 meter: Meter | None = None, tokenizer: Any = None):
        self.name, self.endpoint, self.sampling = name, endpoint, dict(sampling or {})
        self.max_turn_tokens, self.max_tokens, self.seed = max_turn_tokens, max_tokens, seed
        self.client = Client(endpoint, "policy", meter)
        self.meter = self.client.meter
        if tokenizer is None and endpoint.tokenizer is not None:
            tokenizer = _load_tokenizer(Path(endpoint.tokenizer))
        if tokenizer is None and endpoint.api == "completions":
            raise StudyError(f"endpoint {endpoint.base_url}: api 'completions' needs tokenizer, the folder of the "
                             "model's tokenizer and chat template")
        self.tokenizer = tokenizer

    @classmethod
    def from_config(cls, config: Any, *, name: str, meter: Meter | None = None, seed: int | None = None,
                    ) -> EndpointPolicy:
        """From a policy section: its `endpoint` (fields of `Endpoint`) and `sampling`.

        Raises:
            StudyError: a field is wrong or the key's environment variable is not set.
        """
        s = config.sampling
        sampling = {"temperature": s.temperature, "top_p": s.top_p, "top_k": s.top_k or None}
        return cls(Endpoint.of(config.endpoint), name=name, sampling=sampling, max_turn_tokens=s.max_turn_tokens,
                   max_tokens=s.max_episode_tokens, seed=seed, meter=meter)

    def open(self, task: Task, repetition: int, messages: list[dict[str, Any]],
             tools: list[dict[str, Any]]) -> ChatConversation | TextConversation:
        kind = ChatConversation if self.endpoint.api == "chat" else TextConversation
        return kind(self, f"{task.uid}|{repetition}", messages, tools)

    async def close(self) -> None:
        await self.client.close()

    def request(self, key: str, turn: int) -> dict[str, Any]:
        """The fields that a call carries besides its prompt and limit."""
        if self.seed is None:
            return self.sampling
        digest = hashlib.sha256(f"{self.seed}|{key}|{turn}".encode()).digest()
        return {**self.sampling, "seed": int.from_bytes(digest[:4], "big") >> 1}

    def too_long(self, turn: int, where: str) -> Turn:
        """The last turn of a conversation that no longer fits; a prompt that never fitted says nothing about the
        policy and is a system fault."""
        if turn == 0:
            raise SystemFault("policy", f"context overflow: the first prompt does not fit: {where}")
        return Turn(Generation("", None, None, (), "length", (OVERFLOW,)), Usage("policy"), cut=True)


class ChatConversation:
    """One episode over `/chat/completions`."""

    def __init__(self, policy: EndpointPolicy, key: str, messages: Sequence[dict[str, Any]],
                 tools: list[dict[str, Any]]):
        self.policy, self.key, self.tools = policy, key, tools
        self.messages = [_sendable(m) for m in coalesce_system(messages)]
        self._turn, self._used = 0, 0
        self._reasoning_field: str | None = None

    async def reply(self, new_messages: list[dict[str, Any]]) -> Turn:
        policy, turn = self.policy, self._turn
        policy.meter.check()
        self._name_calls(new_messages)
        self.messages += [_sendable(m) for m in new_messages]
        limit = policy.max_turn_tokens
        if policy.max_tokens is not None:
            left = policy.max_tokens - self._used
            if left <= 0:
                # What the first prompt takes is known after the first reply only.
                return policy.too_long(turn, f"max_episode_tokens is {policy.max_tokens}")
            limit = left if limit is None else min(limit, left)
        try:
            reply = await policy.client.chat(self.messages, tools=self.tools or None, max_completion_tokens=limit,
                                             **policy.request(self.key, turn))
        except ContextOverflow as overflow:
            return policy.too_long(turn, str(overflow))
        self._turn += 1
        self._used = reply.usage.input_tokens + reply.usage.output_tokens
        if turn == 0 and policy.max_tokens is not None and reply.usage.input_tokens >= policy.max_tokens:
            return policy.too_long(0, f"max_episode_tokens is {policy.max_tokens}, the prompt alone has "
                                      f"{reply.usage.input_tokens}")
        generation = self._read(reply)
        said = assistant_message(generation, 0)
        if self._reasoning_field is not None and generation.reasoning is not None:
            # Under the name that the server itself used; others would refuse an unknown field.
            said[self._reasoning_field] = generation.reasoning
        self.messages.append({k: v for k, v in said.items() if k in ("role", "content", "tool_calls")
                              or k == self._reasoning_field})
        cut = reply.finish_reason == "length" and (limit is None or reply.usage.output_tokens < limit or (
            policy.max_tokens is not None and self._used >= policy.max_tokens))
        return Turn(generation, reply.usage, cut=cut)

    def _name_calls(self, new: Sequence[dict[str, Any]]) -> None:
        """Give the calls of the last turn the ids under which the episode answers them."""
        calls = (self.messages[-1].get("tool_calls") or ()) if self.messages else ()
        answers = [m["tool_call_id"] for m in new if m["role"] == "tool"]
        for call, name in zip(calls, answers, strict=False):
            call["id"] = name

    def _read(self, reply: Reply) -> Generation:
        message, tokenizer = reply.message, self.policy.tokenizer
        assert message is not None
        found = next((name for name in _REASONING if getattr(message, name)), None)
        self._reasoning_field = found or self._reasoning_field
        reasoning = getattr(message, found) if found else None
        calls = tuple(ToolCall(c.function.name, arguments_of(c.function), _decoded(arguments_of(c.function)))
                      for c in message.tool_calls or ())
        warnings: tuple[str, ...] = () if reply.counted else (NO_USAGE,)
        raw = reply.raw_text
        if raw is None and reply.token_ids is not None and tokenizer is not None:
            raw = _without_end(tokenizer.decode(reply.token_ids, skip_special_tokens=False), tokenizer)
        if raw is not None:
            options = {} if tokenizer is None else {"special_tokens": tuple(tokenizer.all_special_tokens)}
            ours = interpret(raw, self.tools, finish_reason=reply.finish_reason, **options)
            warnings = (*ours.warnings, *warnings)
            if _meaning(ours.reasoning, ours.content, ours.tool_calls) != _meaning(reasoning, message.content, calls):
                warnings = (*warnings, DIFFERS)
        # A record without raw text holds null: an empty text would be a generation of nothing.
        return Generation(raw, reasoning, message.content, calls, reply.finish_reason, warnings)  # type: ignore[arg-type]


class TextConversation:
    """One episode over `/completions`: token ids in, text (and token ids, where the server gives them) out."""

    def __init__(self, policy: EndpointPolicy, key: str, messages: Sequence[dict[str, Any]],
                 tools: list[dict[str, Any]]):
        self.policy, self.key, self.tools = policy, key, tools
        self.trajectory: Trajectory | None = None
        self._leading = list(messages)
        self._last: dict[str, Any] = {}
        self._turn = 0

    async def reply(self, new_messages: list[dict[str, Any]]) -> Turn:
        policy, tokenizer = self.policy, self.policy.tokenizer
        policy.meter.check()
        fits = True
        if self.trajectory is None:
            options: dict[str, Any] = {} if policy.max_turn_tokens is None else {
                "max_turn_tokens": policy.max_turn_tokens}
            self.trajectory = Trajectory(tokenizer, self.tools, self._leading + new_messages,
                                         max_tokens=policy.max_tokens, **options)
        else:
            fits = self.trajectory.append_observation(new_messages, self._last)
        room = self.trajectory.remaining()
        if not fits or room == 0:
            self.trajectory.truncated = True
            return policy.too_long(self._turn, f"max_episode_tokens is {policy.max_tokens}, the prompt alone has "
                                               f"{len(self.trajectory)}")
        wanted = {"return_token_ids": True, "skip_special_tokens": False, "stop": [tokenizer.eos_token],
                  **policy.request(self.key, self._turn)}
        try:
            reply = await policy.client.complete(self.trajectory.ids, max_tokens=room, **wanted)
        except ContextOverflow as overflow:
            self.trajectory.truncated = True
            return policy.too_long(self._turn, str(overflow))
        self._turn += 1
        finished = reply.finish_reason != "length"
        text = _without_end(reply.text or "", tokenizer)
        ids, warnings = reply.token_ids, () if reply.counted else (NO_USAGE,)
        if ids is not None and (len(ids) > room or not all(0 <= i < len(tokenizer) for i in ids)):
            raise SystemFault("policy", f"policy endpoint {policy.endpoint.base_url}: token_ids that are none: "
                                        f"{len(ids)} of at most {room}, {str(ids)[:100]}")
        if ids is None:
            ids = tokenizer.encode(text, add_special_tokens=False)[:room]
            warnings = (*warnings, RETOKENISED)
        # The server does not say how likely its tokens were; a NaN cannot pass for an old log-probability.
        self.trajectory.append_generation(ids, [float("nan")] * len(ids), finished)
        read = interpret(text, self.tools, finish_reason=reply.finish_reason,
                         special_tokens=tuple(tokenizer.all_special_tokens))
        self._last = assistant_message(read, 0)
        usage = reply.usage if reply.counted else Usage("policy", len(self.trajectory) - len(ids), len(ids))
        generation = Generation(text, read.reasoning, read.content, read.tool_calls, read.finish_reason,
                                (*read.warnings, *warnings))
        return Turn(generation, usage, cut=not finished and (len(ids) < room or self.trajectory.remaining() == 0))


def _load_tokenizer(folder: Path) -> Any:
    from tbstudy.policies.small_tokenizer import load_tokenizer

    try:
        return load_tokenizer(folder)
    except (OSError, ValueError) as error:
        raise StudyError(f"tokenizer {folder}: not a folder with a tokenizer and its files: {error}") from None


def _sendable(message: dict[str, Any]) -> dict[str, Any]:
    """A message as any server takes it: nothing that only our records hold."""
    kept = ("role", "content", "tool_call_id") if message["role"] == "tool" else ("role", "content", "tool_calls")
    return {k: message[k] for k in kept if message.get(k) is not None or k == "content"}


def _without_end(text: str, tokenizer: Any) -> str:
    end = tokenizer.eos_token
    return text[:-len(end)] if end and text.endswith(end) else text


def _decoded(arguments: str) -> dict[str, Any]:
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _meaning(reasoning: str | None, content: str | None, calls: Sequence[ToolCall]) -> tuple[Any, ...]:
    # Servers tell nothing from the empty text in different ways; nobody acts on that.
    return reasoning or None, content or None, [(c.name, _written(c)) for c in calls]


def _written(call: ToolCall) -> str:
    try:
        return json.dumps(call.arguments_obj)
    except RecursionError:
        return call.arguments
