"""The token sequence of an episode, exactly as the policy saw and sampled it.

Sampled ids are kept and never tokenised again. Everything the environment adds is rendered through the chat template
behind an *anchor*, a fixed short conversation: what the template writes after the anchor when the new messages are
added is the delta, whatever came before in the real conversation. That is only true of a template that renders each
message independently of its context, so the delta is compared, token by token, with what the template writes in the
real conversation, and a template that fails is refused.
"""

from __future__ import annotations

import json
import weakref
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Any, Literal

from tbstudy.errors import StudyError
from tbstudy.interpreter.messages import coalesce_system

_WINDOW = 12
_ANCHOR_USER = {"role": "user", "content": "anchor question"}
_ANCHOR_TEXT = "anchor answer"
_MARKS = ("<think>", "</think>", "<tool_response>", "<tool_call>")


class TemplateError(StudyError):
    """The chat template does not give one token sequence for an episode; the message shows both token windows."""


class _Recent:
    """A bounded mapping that forgets the least recently used entry."""

    def __init__(self, size: int):
        self._size = size
        self._items: OrderedDict[Hashable, Any] = OrderedDict()

    def get(self, key: Hashable) -> Any:
        value = self._items.get(key)
        if value is not None:
            self._items.move_to_end(key)
        return value

    def put(self, key: Hashable, value: Any) -> Any:
        self._items[key] = value
        if len(self._items) > self._size:
            self._items.popitem(last=False)
        return value


def _for_template(message: dict[str, Any]) -> dict[str, Any]:
    """`message` with tool-call arguments decoded, as servers hand them to a chat template; {} for what is no object."""
    calls = message.get("tool_calls")
    if not calls:
        return message
    decoded = []
    for call in calls:
        function = dict(call.get("function", call))
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments)
            except (ValueError, RecursionError):
                arguments = None
        function["arguments"] = arguments if isinstance(arguments, dict) else {}
        decoded.append({**call, "function": function})
    return {**message, "tool_calls": decoded}


def _shape(message: dict[str, Any]) -> tuple:
    """What of a message a chat template may reasonably look at besides printing it."""
    content = message.get("content")
    text = content if isinstance(content, str) else ""
    marks = tuple(mark in text for mark in _MARKS) if "<" in text else ()
    calls = message.get("tool_calls") or ()
    return (message.get("role"), content is None, bool(content), bool(text.strip()), marks,
            bool(message.get("reasoning_content")), len(calls))


class _Template:
    """Renders for one tokenizer, chat template and set of template arguments; holds the caches."""

    _known: weakref.WeakKeyDictionary[Any, dict[tuple, _Template]] = weakref.WeakKeyDictionary()

    def __init__(self, tokenizer: Any, kwargs: dict[str, Any]):
        self._tokenizer = weakref.ref(tokenizer)
        self.kwargs = kwargs
        self._prompts = _Recent(256)
        self._deltas = _Recent(8192)
        self._anchors = _Recent(512)
        self._verified: set[tuple] = set()
        source = getattr(tokenizer, "chat_template", None)
        self._ids_matter = not isinstance(source, str) or "tool_call_id" in source or ".id" in source
        base = self.render([_ANCHOR_USER, {"role": "assistant", "content": _ANCHOR_TEXT}], None, False)
        at = base.rfind(_ANCHOR_TEXT)
        tail = self.encode(base[at + len(_ANCHOR_TEXT):]) if at >= 0 else []
        if not tail:
            raise TemplateError(f"the chat template does not end an assistant turn: it renders {base!r}")
        self.end_of_turn, self.after_turn = tail[0], tail[1:]

    @classmethod
    def of(cls, tokenizer: Any, kwargs: dict[str, Any]) -> _Template:
        known = cls._known.setdefault(tokenizer, {})
        key = (str(getattr(tokenizer, "chat_template", None)), json.dumps(kwargs, sort_keys=True, default=repr))
        if key not in known:
            known[key] = cls(tokenizer, kwargs)
        return known[key]

    def render(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None, prompt: bool) -> str:
        """The template's text; TemplateError when the template itself refuses the messages."""
        try:
            return self._apply(messages, tools, prompt)
        except Exception as error:  # whatever a template raises reaches us as an exception of its engine
            roles = " ".join(str(message.get("role")) for message in messages)
            told = f"the chat template refuses the messages [{roles}]: {error}"
            lead = next((i for i, message in enumerate(messages) if message.get("role") != "system"), len(messages))
            try:
                ids = self.encode(self._apply([*messages[:lead], _ANCHOR_USER, *messages[lead:]], tools, prompt))
            except Exception:  # a query is not what it lacks
                raise TemplateError(told) from error
            raise TemplateError(
                f"{told}\n  with a user query before them: {self.window(ids, len(ids))}\n"
                f"  as they are: {self.window([], 0)}\nThe conversation must hold a user message."
            ) from error

    def _apply(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None, prompt: bool) -> str:
        return self._tokenizer().apply_chat_template(
            messages, tools=tools or None, add_generation_prompt=prompt, tokenize=False, **self.kwargs)

    def encode(self, text: str) -> list[int]:
        return list(self._tokenizer().encode(text, add_special_tokens=False))

    def window(self, ids: Sequence[int], at: int) -> str:
        """Tokens of `ids` around position `at`, each as id:text."""
        decode = self._tokenizer().decode
        shown = ids[max(0, at - _WINDOW) : at + _WINDOW]
        return " ".join(f"{token}:{decode([token])!r}" for token in shown) or "(nothing)"

    def prompt(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None) -> tuple[int, ...]:
        key = json.dumps([messages, tools], default=repr)
        return self._prompts.get(key) or self._prompts.put(key, tuple(self.encode(self.render(messages, tools, True))))

    def delta(self, assistant: dict[str, Any], new: list[dict[str, Any]]) -> tuple[int, ...]:
        """Ids the template writes after an assistant turn's end-of-turn token when `new` follows."""
        answers = [message for message in new if message.get("role") == "tool"]
        reasoned = bool(assistant.get("reasoning_content"))
        key = (reasoned, tuple(
            (message.get("role"), json.dumps(message.get("content")) if not isinstance(message.get("content"), str)
             else message["content"], message.get("name"), message.get("tool_call_id") if self._ids_matter else None)
            for message in new
        ))
        known = self._deltas.get(key)
        if known is not None:
            return known
        anchor: dict[str, Any] = {"role": "assistant", "content": _ANCHOR_TEXT}
        if reasoned:
            anchor["reasoning_content"] = "anchor thought"
        if answers:
            anchor["tool_calls"] = [
                {"id": message.get("tool_call_id", f"call_{index}"), "type": "function",
                 "function": {"name": message.get("name") or "anchor", "arguments": {}}}
                for index, message in enumerate(answers)
            ]
        head = [_ANCHOR_USER, anchor]
        anchor_key = (reasoned, *((call["id"] if self._ids_matter else None, call["function"]["name"])
                                  for call in anchor.get("tool_calls", ())))
        without = self._anchors.get(anchor_key) or self._anchors.put(
            anchor_key, self.encode(self.render(head, None, False)))
        whole = self.encode(self.render([*head, *new], None, True))
        self._same(without, whole[: len(without)], "the template rewrites an earlier turn once a message follows",
                   "the anchor alone", "the anchor when the new messages follow")
        tail = [self.end_of_turn, *self.after_turn]
        self._same(tail, without[-len(tail):], "the template ends assistant turns in more than one way",
                   "end of a turn of text", "end of the anchor")
        return self._deltas.put(key, (*self.after_turn, *whole[len(without):]))

    def _same(self, left: Sequence[int], right: Sequence[int], what: str, left_name: str, right_name: str) -> None:
        if list(left) == list(right):
            return
        at = next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
        raise TemplateError(
            f"{what} (first difference at token {at})\n  {left_name}: {self.window(left, at)}\n"
            f"  {right_name}: {self.window(right, at)}\n"
            "Use a template that renders every message alike wherever it stands and keeps every <think>."
        )

    def verify(
        self,
        history: list[dict[str, Any]],
        assistant: dict[str, Any],
        new: list[dict[str, Any]],
        tools: list[dict[str, Any]] | None,
        delta: Sequence[int],
        always: bool,
    ) -> None:
        """Compare `delta` with what the template writes for `new` in the real conversation."""
        key = (bool(tools), *map(_shape, history), "|", _shape(assistant), "|", *map(_shape, new))
        if not always and key in self._verified:
            return
        said = [*history, assistant]
        prompt, before = self.render(history, tools, True), self.render(said, tools, False)
        if not before.startswith(prompt):
            self._same(self.encode(prompt), self.encode(before)[: len(self.encode(prompt))],
                       "the template renders an assistant turn otherwise than it was prompted",
                       "the prompt that was sampled from", "the same place with the turn in it")
            raise TemplateError("the template renders an assistant turn otherwise than it was prompted: "
                                f"{prompt[-80:]!r} is not how {before[:len(prompt)][-80:]!r} begins")
        before_ids, after_ids = self.encode(before), self.encode(self.render([*said, *new], tools, True))
        self._same(before_ids, after_ids[: len(before_ids)],
                   "the template rewrites an earlier turn once a message follows",
                   "the conversation so far", "the same when the new messages follow")
        self._same(delta, [*self.after_turn, *after_ids[len(before_ids):]],
                   "the template renders the new messages by their context",
                   "behind the anchor", "in the conversation")
        self._verified.add(key)


class Trajectory:
    """Prompt, sampled turns and observations of one episode as one aligned token sequence.

    `messages` (leading system messages are coalesced) and `tools` are rendered with the tokenizer's chat template
    (`chat_template_kwargs` go to it) to give `prompt_ids`. `max_turn_tokens` caps one generation, `max_tokens` the
    whole sequence, prompt included (None = no limit). `verify="shape"` compares a delta with the real conversation
    once for every shape of conversation (roles, reasoning, calls, tags in texts); "each" does so every time.

    Raises TemplateError when the chat template cannot give one sequence for the episode.
    """

    def __init__(
        self,
        tokenizer: Any,
        tools: list[dict[str, Any]] | None,
        messages: Sequence[dict[str, Any]],
        *,
        max_turn_tokens: int = 8192,
        max_tokens: int | None = None,
        chat_template_kwargs: dict[str, Any] | None = None,
        verify: Literal["shape", "each"] = "shape",
    ):
        self._template = _Template.of(tokenizer, chat_template_kwargs or {})
        self._tokenizer = tokenizer  # the shared template holds it weakly
        self._tools = tools
        self._messages = [_for_template(message) for message in coalesce_system(messages)]
        self._always = verify == "each"
        self.max_turn_tokens = max_turn_tokens
        self.max_tokens = max_tokens
        self.prompt_ids = list(self._template.prompt(self._messages, tools))
        self.response_ids: list[int] = []
        self.response_mask: list[int] = []
        self.logprobs: list[float] = []
        self.turns: list[tuple[int, int]] = []
        self.truncated = False
        self._awaits_observation = False

    @property
    def ids(self) -> list[int]:
        """Prompt and response, one list."""
        return self.prompt_ids + self.response_ids

    @property
    def positions(self) -> list[int]:
        """Position of every token of `ids`."""
        return list(range(len(self)))

    def __len__(self) -> int:
        return len(self.prompt_ids) + len(self.response_ids)

    def remaining(self) -> int:
        """Tokens the next generation may have: the turn's cap or what the sequence has left, never negative."""
        if self.max_tokens is None:
            return self.max_turn_tokens
        return max(0, min(self.max_turn_tokens, self.max_tokens - len(self)))

    def append_generation(self, ids: Sequence[int], logprobs: Sequence[float], finished: bool) -> None:
        """Append sampled `ids` as they are (mask 1) with one log-probability each.

        `finished` is False when the budget, not the policy, ended the turn; the trajectory is then `truncated`.
        StudyError when the lengths differ, the ids exceed `remaining()`, or a generation already waits for its
        observation.
        """
        if len(ids) != len(logprobs):
            raise StudyError(f"{len(ids)} sampled ids with {len(logprobs)} log-probabilities")
        if self._awaits_observation:
            raise StudyError("two generations in a row: append the observation of the first one before the second")
        if len(ids) > self.remaining():
            raise StudyError(f"{len(ids)} sampled ids exceed the {self.remaining()} that remaining() allows")
        start = len(self.response_ids)
        self.response_ids.extend(ids)
        self.response_mask.extend([1] * len(ids))
        self.logprobs.extend(logprobs)
        self.turns.append((start, len(self.response_ids)))
        self.truncated = self.truncated or not finished
        self._awaits_observation = True

    def append_observation(self, messages: Sequence[dict[str, Any]], assistant_message: dict[str, Any]) -> bool:
        """Append the tool or user `messages` that follow the last generation, and the next generation prompt (mask 0).

        `assistant_message` is how the last generation was read (content, reasoning_content, tool_calls); it is only
        used to verify. A turn without its end-of-turn token, cut or stripped by a server, is closed first. Returns
        False, and marks the trajectory truncated, when the messages do not fit in `max_tokens`.
        Raises TemplateError (see the class).
        """
        if not self._awaits_observation:
            raise StudyError("an observation follows a generation: append_generation comes first")
        new = [_for_template(message) for message in messages]
        assistant = _for_template(assistant_message)
        delta = self._template.delta(assistant, new)
        self._template.verify(self._messages, assistant, new, self._tools, delta, self._always)
        start, end = self.turns[-1]
        closed = end > start and self.response_ids[-1] == self._template.end_of_turn
        added = delta if closed else (self._template.end_of_turn, *delta)
        if self.max_tokens is not None and len(self) + len(added) > self.max_tokens:
            self.truncated = True
            return False
        self.response_ids.extend(added)
        self.response_mask.extend([0] * len(added))
        self.logprobs.extend([0.0] * len(added))
        self._messages += [assistant, *new]
        self._awaits_observation = False
        return True
