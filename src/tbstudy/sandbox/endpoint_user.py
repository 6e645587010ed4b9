"""A simulated user played by a model behind an OpenAI-compatible endpoint.

As in ThinkingBox the model is told the user's private context and the visible conversation in one message, and answers
as the user. It never sees reasoning, tool traffic or system messages, and what it reads cannot pass for the markers
around it.
"""

from __future__ import annotations

from typing import Any

from tbstudy.policies.base import Usage
from tbstudy.policies.client import Client, Endpoint, Meter
from tbstudy.sandbox.users import DONE
from tbstudy.tasks.model import Task

_RULES = """\
You play a customer who talks to a support assistant. Write the customer's next message and nothing else.

What you know is between <facts> and </facts>: everything that is true about you and your request. The conversation so
far is between <conversation> and </conversation>, the assistant's newest message again between <latest> and </latest>.

- State only what stands in the facts or was said by the customer before. The assistant's messages are questions and
  claims, not a source of facts. Copy names, ids, dates and numbers letter by letter.
- Answer what was asked now and keep back the rest. When several things are asked, give those you know and ask once
  about the others.
- When the assistant proposes something, agree only where it fits the facts; otherwise say what does not fit.
- When you can answer nothing of it, write: I don't know
- Do not do the assistant's work and do not mention the facts as a text or these rules.
- One line of plain prose: no role label, quotation marks, lists or emoji.
"""
_GOES_ON = "- When the request is settled and nothing is asked, write: Thanks, that solves it.\n"
_MAY_END = f"""\
- End your message with {DONE} when nothing is left to say: the request is fulfilled, or the assistant refused it or
  said that it is impossible, and no question is open. Never end while a question waits for your answer, while the
  assistant is still at it, or while part of the request is undone.
"""
_TASK = """\
<facts>
{facts}
</facts>

<conversation>
{conversation}
</conversation>

<latest>
{latest}
</latest>

Write the customer's next message.
"""


class EndpointUser:
    """Answers through a model. `may_end` lets the model end the conversation (run episodes with `user_may_end`)."""

    def __init__(self, endpoint: Endpoint, *, temperature: float = 0.3, may_end: bool = False,
                 max_tokens: int | None = None, meter: Meter | None = None):
        self.client = Client(endpoint, "user", meter)
        self.temperature, self.may_end, self.max_tokens = temperature, may_end, max_tokens

    @classmethod
    def from_config(cls, config: Any, meter: Meter | None = None) -> EndpointUser:
        """From a user section with `endpoint` and `temperature`.

        Raises:
            StudyError: a field is wrong or the key's environment variable is not set.
        """
        return cls(Endpoint.of(config.endpoint), temperature=config.temperature, meter=meter)

    async def answer(self, task: Task, transcript: list[dict[str, Any]]) -> tuple[str, Usage | None]:
        reply = await self.client.chat(user_prompt(task.user_context, transcript, self.may_end),
                                       temperature=self.temperature, max_completion_tokens=self.max_tokens)
        said = reply.message.content if reply.message is not None else None
        return said or "", reply.usage

    async def close(self) -> None:
        """Close the connections."""
        await self.client.close()


def user_prompt(context: str | None, transcript: list[dict[str, Any]], may_end: bool = False) -> list[dict[str, str]]:
    """The two messages that the user's model reads; `transcript` holds visible messages only."""
    last = transcript[-1] if transcript else None
    latest = _shown(last["content"]) if last is not None and last["role"] == "assistant" else "(none)"
    names = {"user": "customer", "assistant": "assistant"}
    conversation = "\n".join(f"[{names[m['role']]}] {_shown(m['content'])}" for m in transcript)
    return [{"role": "system", "content": _RULES + (_MAY_END if may_end else _GOES_ON)},
            {"role": "user", "content": _TASK.format(facts=_shown(context or "(none)"), conversation=conversation,
                                                     latest=latest)}]


def _shown(text: str) -> str:
    """Text that cannot close the tags around it and cannot end the conversation by being quoted."""
    for tag in ("facts", "conversation", "latest"):
        text = text.replace(f"<{tag}>", f"({tag})").replace(f"</{tag}>", f"(/{tag})")
    return text.replace(DONE, "(DONE)")
