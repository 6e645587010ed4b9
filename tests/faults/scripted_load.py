"""A scripted policy for load and determinism: the golden calls of a task, with mistakes that its key decides."""

from __future__ import annotations

import random

from tbstudy.policies.scripted import ScriptedPolicy, call_text, golden_turns, say_text
from tbstudy.tasks.model import Task


def erring_policy(seed: int = 0, mistakes: float = 0.4) -> ScriptedPolicy:
    """Plays a task's golden calls, and errs in a share of the attempts: drops, repeats or garbles a call, calls a tool
    that there is not, writes a broken call, or asks the user first. Seed, task and repetition decide; timing does not.
    """
    return ScriptedPolicy(lambda task, repetition: erring_turns(task, repetition, seed, mistakes), name="erring")


def erring_turns(task: Task, repetition: int, seed: int = 0, mistakes: float = 0.4) -> list[str]:
    """What that policy says in one attempt, as raw generations."""
    rng = random.Random(f"{seed}|{task.uid}|{repetition}")
    turns = golden_turns(task, repetition)
    if rng.random() >= mistakes or not turns:
        return turns
    at = rng.randrange(len(turns))
    kind = rng.choice(("drop", "repeat", "garble", "unknown", "broken", "ask"))
    if kind == "drop":
        return turns[:at] + turns[at + 1:]
    if kind == "repeat":
        return turns[:at + 1] + turns[at:]
    if kind == "garble":
        return turns[:at] + [turns[at].replace("</parameter>", "x</parameter>")] + turns[at + 1:]
    if kind == "unknown":
        return turns[:at] + [call_text("no_such_tool", {"at": at})] + turns[at:]
    if kind == "broken":
        return turns[:at] + ["</think>\n<tool_call>\n<function="] + turns[at:]
    return [say_text("What is your name?"), *turns]
