"""The episode loop on a real server: what is replayed, executed, recorded, and handed to the check."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import shop_server

from tbstudy.policies.scripted import ScriptedPolicy, call_text, say_text
from tbstudy.sandbox.episode import run_episode
from tbstudy.sandbox.inprocess import InProcessSandbox
from tbstudy.tasks.history import as_record
from tbstudy.tasks.model import Task, ToolOverride

TASK = Task("shop.py:a", Path("shop.py"), "a", "shop", ("s",), "q", None,
            {"shop": {"data": {"items": [{"id": "pen", "left_over": 5}]}}},
            builtin_tools=(ToolOverride("stop", "Stop.", {"type": "object", "properties": {}}, is_end_turn=True,
                                        builtin=True),))


class Listening(ScriptedPolicy):
    """A scripted policy that keeps what it was sent at the start."""

    def open(self, task, repetition, messages, tools):
        self.sent = messages
        return super().open(task, repetition, messages, tools)


def play(task, *turns):
    """The episode of a policy that says `turns`, the policy, and how many pens are left."""
    policy = Listening({task.uid: turns})
    episode = asyncio.run(run_episode(task, 0, policy=policy, sandbox=InProcessSandbox({"shop": shop_server.server}),
                                      user=None))
    assert episode.fault is None
    taken = [d for d in episode.effects["shop"]["diff"] if d["field"] == "left_over"]
    return episode, policy, taken[0]["actual"] if taken else 5


def calls(*several):
    """One generation that makes several calls."""
    first, *more = (call_text(name, arguments) for name, arguments in several)
    return first + "".join(text.removeprefix("</think>") for text in more)


def test_history_is_replayed_without_what_failed_and_what_has_no_server():
    def call(number, name, arguments, **metadata):
        return {"name": name, "id": str(number), "arguments": arguments, "metadata": metadata}

    history = tuple(as_record([
        {"T": "ParallelToolCall", "tool_calls": [call(1, "take", {"item": "pen"}),
                                                 call(2, "take", {"item": "pen", "count": 2}, error="bad gateway"),
                                                 call(3, "stop", {})]},
        *({"T": "ToolResponse", "name": name, "id": str(n), "content": ""}
          for n, name in ((1, "take"), (2, "take"), (3, "stop")))], "history"))
    episode, policy, left = play(replace(TASK, history=history), say_text("Bye. <DONE>"))
    assert left == 4
    assert [sorted(c) for c in policy.sent[1]["tool_calls"]] == [["function", "id", "type"]] * 3
    assert episode.messages[1]["tool_calls"][1]["error"] == "bad gateway"
    assert json.loads(policy.sent[1]["tool_calls"][1]["function"]["arguments"]) == {"item": "pen", "count": 2}


def test_of_a_turn_that_ends_the_episode_only_the_ending_calls_are_recorded():
    episode, _, left = play(TASK, call_text("take", {"item": "pen"}),
                            calls(("take", {"item": "pen"}), ("stop", {}), ("take", {"item": "pen"})))
    assert episode.finish_reason == "end_turn_tool" and left == 4
    assert [(c["name"], c["response"]) for c in episode.tool_calls] == [("take", '{"left": 4}'), ("stop", "")]


def test_the_response_is_what_the_policy_said_last():
    said = say_text("Your pen is on its way.") + call_text("stop", {}).removeprefix("</think>")
    episode, _, _ = play(TASK, said)
    assert (episode.finish_reason, episode.response) == ("end_turn_tool", "Your pen is on its way.")
    # A direct response is the tool's word, not the policy's.
    direct = replace(TASK, tools=(ToolOverride("take", direct_response="{left} left"),))
    episode, _, _ = play(replace(direct, max_agent_sim_turns=1), call_text("take", {"item": "pen"}))
    assert episode.messages[-1]["content"] == "4 left"
    assert (episode.finish_reason, episode.response) == ("agent_limit", "")
    episode, _, _ = play(direct, call_text("take", {"item": "pen"}), say_text(" Enjoy. <DONE> "))
    assert (episode.finish_reason, episode.response) == ("done", "Enjoy. <DONE>")


def test_the_turn_limit_counts_texts_and_calls_one_by_one():
    def turns(task, limit, *script):
        episode, _, left = play(replace(task, max_agent_sim_turns=limit), *script)
        said = sum("raw_text" in m for m in episode.messages)
        return episode.finish_reason, said, 5 - left, len(episode.tool_calls)

    take = call_text("take", {"item": "pen"})
    spoken = say_text("I look.") + take.removeprefix("</think>")
    assert turns(TASK, 2, *[take] * 9) == ("agent_limit", 2, 2, 2)
    assert turns(TASK, 4, *[spoken] * 9) == ("agent_limit", 2, 2, 2)
    # The text is the last turn: the calls beside it are not made.
    assert turns(TASK, 3, *[spoken] * 9) == ("agent_limit", 2, 1, 1)
    stop = say_text("Bye.") + call_text("stop", {}).removeprefix("</think>")
    assert turns(TASK, 1, stop) == ("end_turn_tool", 1, 0, 1)
    direct = replace(TASK, tools=(ToolOverride("take", direct_response="{left} left"),))
    assert turns(direct, 4, *[take] * 9) == ("agent_limit", 2, 2, 2)
    assert turns(TASK, 2, take, say_text("Done. <DONE>")) == ("done", 2, 1, 1)
    assert turns(TASK, 2, take, say_text("What else?")) == ("agent_limit", 2, 1, 1)
    assert turns(TASK, 3, take, say_text("What else?")) == ("no_user_llm", 2, 1, 1)
