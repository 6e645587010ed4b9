"""One attempt: fresh backend, isolated tool session, simulated user, policy, terminal state.

The loop follows ThinkingBox: the query is the first user turn; the policy acts until it speaks; the user answers from
its private context; the episode stops when the policy ends its text with `<DONE>`, calls an end-turn tool, or a limit
is reached. Whatever fails outside the policy makes the attempt a system error and keeps the conversation so far.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import Any

from tbstudy.disk import no_room
from tbstudy.errors import StudyError, SystemFault
from tbstudy.interpreter.types import Generation
from tbstudy.policies.base import Conversation, Policy, Usage
from tbstudy.reward.checks import CheckRunner, last_response, tag_direct_responses
from tbstudy.reward.verdict import Verdict
from tbstudy.sandbox.arguments import clean, clean_json, refusal
from tbstudy.sandbox.base import Sandbox, Session
from tbstudy.sandbox.tools import unknown_tool
from tbstudy.sandbox.users import DONE, User, clean_answer
from tbstudy.tasks.history import replay_calls
from tbstudy.tasks.model import Task, ToolOverride


@dataclass(slots=True)
class Episode:
    """What happened in one attempt, before it is judged.

    `finish_reason` is one of done, end_turn_tool, agent_error, agent_limit, user_limit, user_done, no_user_llm.
    `fault` is set when the attempt is a system error. `effects` is the terminal state by server.
    """

    task: Task
    repetition: int
    messages: list[dict[str, Any]] = field(default_factory=list)
    finish_reason: str = ""
    effects: dict[str, Any] = field(default_factory=dict)
    init_result: dict[str, Any] = field(default_factory=dict)
    response: str = ""
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    usage: list[Usage] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    cut: bool = False
    fault: SystemFault | None = None
    conversation: Conversation | None = None
    seconds: float = 0.0


async def run_episode(task: Task, repetition: int, *, policy: Policy, sandbox: Sandbox, user: User | None,
                      user_may_end: bool = False) -> Episode:
    """Play one attempt. Never raises for a failure inside the attempt: the episode's `fault` holds it."""
    episode = Episode(task, repetition)
    started = time.perf_counter()
    try:
        async with sandbox.session(task) as session:
            episode.init_result = session.init_result
            await _play(episode, session, policy, user, user_may_end)
            # As when a record is judged again: what the policy said last, whatever came of it.
            episode.response = last_response(tag_direct_responses(task, episode.messages)).strip()
            episode.effects = await session.effects()
    except SystemFault as fault:
        episode.fault = fault
    except StudyError:
        raise  # bad input is the study's to fix, no attempt can succeed
    except Exception as error:
        episode.fault = SystemFault("backend", f"{type(error).__name__}: {error}")
    finally:
        close = getattr(episode.conversation, "close", None)
        if close is not None:
            close()
    episode.seconds = time.perf_counter() - started
    return episode


async def judge_episode(episode: Episode, checks: CheckRunner) -> Verdict | None:
    """The verdict on an episode's terminal state; None, and the episode's fault, where the check cannot be run.

    Raises:
        StudyError: nobody's attempt can be judged.
        OSError: the disk is full.
    """
    try:
        return await checks.judge(episode.task, episode.effects, episode.messages, episode.response,
                                  episode.tool_calls, episode.init_result)
    except StudyError:
        raise
    except Exception as error:  # what one attempt holds must not end the others
        if no_room(error):
            raise
        episode.fault = SystemFault("check", f"the check could not be run: {type(error).__name__}: {error}")
        return None


async def _play(episode: Episode, session: Session, policy: Policy, user: User | None, user_may_end: bool) -> None:
    messages = episode.messages
    task = episode.task.with_init(session.init_result)
    tools = await session.tools()
    overrides = {t.name: t for t in (*(task.tools or ()), *task.builtin_tools)}
    messages += [{"role": "system", "content": text} for text in task.system if text]
    messages += [dict(m) for m in task.history]
    for name, arguments in replay_calls(task.history, {t.name for t in task.builtin_tools}):
        await session.call(name, arguments)
    talk = episode.conversation = policy.open(task, episode.repetition, [_sent(m) for m in messages], tools)
    names = {t["function"]["name"] for t in tools}
    acted, asked, said = 0, 0, task.query
    user_limit = task.max_user_sim_turns + int(user_may_end)
    while True:
        new = [{"role": "user", "content": said}]
        messages += new
        # The policy acts until it speaks.
        while True:
            if acted >= task.max_agent_sim_turns:
                episode.finish_reason = "agent_limit"
                return
            try:
                turn = await talk.reply(new)
            except (SystemFault, StudyError):
                raise
            except Exception as error:
                raise SystemFault("policy", f"{type(error).__name__}: {error}") from error
            episode.usage.append(turn.usage)
            episode.warnings += turn.generation.warnings
            message = assistant_message(turn.generation, len(messages))
            messages.append(message)
            acted += 1
            if turn.cut:
                episode.cut = True
                episode.finish_reason = "agent_limit"
                return
            if not turn.generation.tool_calls:
                break
            ended = any(overrides.get(c.name, ToolOverride(c.name)).is_end_turn for c in turn.generation.tool_calls)
            # What is said beside calls is a turn by itself, and so is a direct response: the framework counts messages.
            if turn.generation.content:
                if acted >= task.max_agent_sim_turns and not ended:
                    episode.finish_reason = "agent_limit"
                    return
                acted += 1
            new = await _answer_calls(episode, session, message, turn.generation, names, overrides, ended)
            messages += new
            acted += sum(m["role"] == "assistant" for m in new)
            if ended:
                episode.finish_reason = "end_turn_tool"
                return
        text = (turn.generation.content or "").strip()
        if not text:
            episode.finish_reason = "agent_error"
            return
        if text.endswith(DONE):
            episode.finish_reason = "done"
            return
        if acted >= task.max_agent_sim_turns:
            episode.finish_reason = "agent_limit"
            return
        if user is None or not task.user_context:
            episode.finish_reason = "no_user_llm"
            return
        if asked >= user_limit:
            episode.finish_reason = "user_limit"
            return
        said = await _ask_user(episode, task, user)
        asked += 1
        if user_may_end and said.rstrip().endswith(DONE):
            messages.append({"role": "user", "content": said})
            episode.finish_reason = "user_done"
            return


def assistant_message(generation: Generation, index: int) -> dict[str, Any]:
    """The chat message of a generation in valid Unicode; call ids are unique within the episode."""
    content, reasoning, raw = (t and clean(t) for t in (generation.content, generation.reasoning, generation.text))
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if reasoning is not None:
        message["reasoning_content"] = reasoning
    if generation.tool_calls:
        message["tool_calls"] = [
            {"id": f"call_{index}_{i}", "type": "function",
             "function": {"name": clean(c.name), "arguments": clean_json(c.arguments)}}
            for i, c in enumerate(generation.tool_calls)]
    message["raw_text"] = raw
    return message


async def _answer_calls(episode: Episode, session: Session, message: dict[str, Any], generation: Generation,
                        names: set[str], overrides: dict[str, ToolOverride], ended: bool) -> list[dict[str, Any]]:
    new: list[dict[str, Any]] = []
    spoken: list[dict[str, Any]] = []
    for wire, call in zip(message["tool_calls"], generation.tool_calls, strict=True):
        override = overrides.get(call.name, ToolOverride(call.name))
        name, unusable = wire["function"]["name"], refusal(call.arguments)
        if ended:
            answer = ""
        elif call.name not in names:
            answer = unknown_tool(name)
        elif unusable:
            answer = f"Error: the arguments are not a JSON object: {unusable}"
        else:
            answer = clean(await session.call(call.name, call.arguments_obj))
            if override.direct_response is not None:
                try:
                    said = override.direct_response.format(**json.loads(answer))
                    spoken.append({"role": "assistant", "content": clean(said)})
                except (TypeError, ValueError, LookupError, AttributeError, RecursionError):
                    answer = "Error in function execution"
        # The check reads what a server could have: nothing of arguments that no server was handed, and of the calls
        # beside one that ends the turn, none of which is executed, nothing at all.
        if not ended or override.is_end_turn:
            episode.tool_calls.append({
                "name": name, "arguments": {} if unusable else call.arguments_obj, "response": answer,
                "id": wire["id"], **({"error": unusable} if unusable else {})})
        new.append({"role": "tool", "tool_call_id": wire["id"], "name": name, "content": answer})
    return new + spoken


async def _ask_user(episode: Episode, task: Task, user: User) -> str:
    # Reasoning, tool traffic and raw text never reach the user.
    visible = [{"role": m["role"], "content": (m["content"] or "").strip()} for m in episode.messages
               if m["role"] in ("user", "assistant") and (m["content"] or "").strip()]
    try:
        text, usage = await user.answer(task, visible)
    except (SystemFault, StudyError):
        raise
    except Exception as error:
        raise SystemFault("user", f"{type(error).__name__}: {error}") from error
    if usage is not None:
        episode.usage.append(usage)
    return clean(clean_answer(text))


def _sent(message: dict[str, Any]) -> dict[str, Any]:
    """The message as a policy reads it: that a call of the history failed is for the replay to know."""
    if not any("error" in call for call in message.get("tool_calls") or ()):
        return message
    return {**message, "tool_calls": [{k: v for k, v in call.items() if k != "error"}
                                      for call in message["tool_calls"]]}
