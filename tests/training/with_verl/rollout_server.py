"""A stand-in for verl's client of its rollout servers: it says what a seeded script says, and remembers every call."""

from __future__ import annotations

import json
import random
from types import SimpleNamespace
from typing import Any

CALL = "<tool_call>\n<function={name}>\n{parameters}</function>\n</tool_call>"


def call_text(name: str, arguments: dict[str, Any]) -> str:
    """A tool call as the policy writes it."""
    parameters = "".join(
        f"<parameter={key}>\n{value if isinstance(value, str) else json.dumps(value)}\n</parameter>\n"
        for key, value in arguments.items())
    return CALL.format(name=name, parameters=parameters)


class ScriptedServer:
    """Generates one of: a golden call, a call with bad arguments, an unknown tool, two calls, a question, an end.

    `trouble` is the chance that a generation fails, is aborted, or comes without log-probabilities; `cut` that it stops
    without an end. `output` makes the reply object (verl's TokenOutput in its tests).
    """

    def __init__(self, tokenizer: Any, golden: list[dict[str, Any]], seed: int, trouble: float = 0.0, cut: float = 0.0,
                 output: Any = SimpleNamespace):
        self.tokenizer, self.golden, self.rng = tokenizer, list(golden), random.Random(seed)
        self.trouble, self.cut, self.output = trouble, cut, output
        self.calls: list[dict[str, Any]] = []

    def say(self) -> str:
        kind = self.rng.choices(["golden", "bad", "unknown", "two", "ask", "end"], [4, 2, 1, 1, 2, 1])[0]
        if kind in ("golden", "two") and self.golden:
            calls = [self.golden.pop(0) for _ in range(1 if kind == "golden" else min(2, len(self.golden)))]
            said = "\n".join(call_text(c["tool"], c["parameters"]) for c in calls)
            return f"I act.\n</think>\n\n{said}"
        if kind == "bad":
            return "</think>" + call_text("get_line", {"line": [1, {"x": "ä€"}]})
        if kind == "unknown":
            return "hm\n</think>\n\n" + call_text("no_such_tool", {"a": "1"})
        if kind == "end" or not self.golden:
            return "</think>Done, goodbye. <DONE>"
        return "I ask.\n</think>\n\nWhat is your line number?"

    async def generate(self, request_id: str, *, prompt_ids: list[int], sampling_params: dict[str, Any],
                       **_: Any) -> Any:
        if self.rng.random() < self.trouble:
            kind = self.rng.choice(["raise", "abort", "bare", "empty"])
            if kind == "raise":
                raise ConnectionError("the server went away")
            ids = [] if kind == "empty" else [5, 6]
            return self.output(token_ids=ids, log_probs=None if kind == "bare" else [-1.0] * len(ids),
                               stop_reason="aborted" if kind == "abort" else "completed", extra_fields={})
        ids = self.tokenizer.encode(self.say(), add_special_tokens=False) + [self.tokenizer.eos_token_id]
        if self.rng.random() < self.cut:
            ids = ids[: max(1, len(ids) // 2)]
        ids = ids[: sampling_params["max_tokens"]]
        logprobs = [-self.rng.random() - 1e-3 for _ in ids]
        self.calls.append({"request_id": request_id, "prompt": list(prompt_ids), "ids": ids, "logprobs": logprobs,
                           "sampling": dict(sampling_params)})
        step = 3 + len(self.calls) // 4
        return self.output(token_ids=ids, log_probs=logprobs, stop_reason="completed",
                           extra_fields={"global_steps": step, "min_global_steps": step, "max_global_steps": step})


def check_alignment(server: ScriptedServer, prompt: list[int], response: list[int], mask: list[int],
                    logprobs: list[float]) -> None:
    """The trajectory is exactly what the server was shown and said: ids, places and log-probabilities."""
    assert len(response) == len(mask) == len(logprobs)
    whole, expected_mask, expected_logprobs = prompt + response, [0] * len(response), [0.0] * len(response)
    assert server.calls[0]["prompt"] == prompt
    for call in server.calls:
        at = len(call["prompt"])
        assert whole[:at] == call["prompt"]  # nothing before was changed or tokenised again
        assert whole[at: at + len(call["ids"])] == call["ids"]
        for i, logprob in enumerate(call["logprobs"], at - len(prompt)):
            expected_mask[i], expected_logprobs[i] = 1, logprob
    assert mask == expected_mask
    assert logprobs == expected_logprobs
