"""A language model that answers narrow yes/no questions for a check."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from tbstudy.reward.standin.chat import Message, Text

_ONE_WORD = "Reply with one word, Yes or No."
_TEXT = f"You judge a text. It stands between <message> and </message>; a question about it follows. {_ONE_WORD}"
_PAIR = ("You judge two texts. They stand between <first> and </first> and between <second> and </second>; a "
         f"question about them follows. {_ONE_WORD}")
_MOTIVATED = ("You judge a text. It stands between <message> and </message>; a question about it follows. Where it is "
              "a conversation, only what the assistant says counts. Reply with a JSON object of two texts: "
              '"motivation", one or two sentences that explain the answer, and "answer", Yes or No.')
_REPEATS = "Does the first text say again what the second text says?"


class JudgeException(Exception):
    """The judge's model gave no answer, or one that is neither yes nor no."""


def safe_tag_encode(text: str) -> str:
    """Text that cannot close the tags around it."""
    return text.replace("<", "&lt;").replace(">", "&gt;")


class Judge:
    """Questions to `llm`, an object with `get_completion_sync(conversation=..., update_conversation=False)`."""

    def __init__(self, llm: Any, judge_type: str = "legacy"):
        if judge_type not in ("legacy", "motivation"):
            raise ValueError(f"judge_type must be legacy or motivation, it is {judge_type!r}")
        self.llm, self.judge_type = llm, judge_type
        self._decisions: list[dict[str, Any]] = []
        #: What the last reply was that answered nothing; a check may catch the exception, nobody may count its verdict.
        self.unanswered = ""

    def _get_text_completion(self, messages: Sequence[Message]) -> Text:
        try:
            out = self.llm.get_completion_sync(conversation=messages, update_conversation=False)
        except Exception as error:
            raise JudgeException(f"no answer from the judge: {error}") from error
        return out[-1] if out and isinstance(out[-1], Text) else Text(role="assistant", content="")

    def _complete(self, system: str, user: str) -> str:
        return self._get_text_completion([Text("system", system), Text("user", user)]).content

    def _yes(self, reply: str) -> bool:
        if not re.search(r"\b(yes|no)\b", reply, re.IGNORECASE):
            raise self._no_answer(reply)
        return is_yes(reply)

    def _no_answer(self, reply: str) -> JudgeException:
        self.unanswered = f"the judge's reply is no answer: {reply[:200]!r}"
        return JudgeException(self.unanswered)

    def evaluate_bool(self, system: str, user: str) -> bool:
        """The yes or no that the model gives to prompts of one's own."""
        answer = self._yes(self._complete(system, user))
        self._decisions.append({"question": user, "answer": answer, "motivation": ""})
        return answer

    def text_yesno(self, text: str, question: str) -> bool:
        """Whether the answer to a question about `text` is yes."""
        if self.judge_type == "motivation":
            return self.text_yesno_with_motivation(text, question)["answer"]
        return self.text_yesno_legacy(text, question)

    def text_yesno_legacy(self, text: str, question: str) -> bool:
        answer = self._yes(self._complete(_TEXT, f"<message>\n{safe_tag_encode(text)}\n</message>\n{question}"))
        self._decisions.append({"question": question, "answer": answer, "motivation": ""})
        return answer

    def text_yesno_with_motivation(self, text: str, question: str) -> dict[str, Any]:
        """The answer (bool) and its motivation."""
        reply = self._complete(_MOTIVATED, f"<message>\n{safe_tag_encode(text)}\n</message>\n{question}")
        quoted = re.sub(r"""([{,]\s*)['"]?(answer|motivation)['"]?\s*:""", r'\1"\2":', reply)
        try:
            found = json.loads(quoted)
            out = {**found, "answer": self._yes(str(found["answer"]))}
        except (ValueError, KeyError, TypeError, RecursionError):
            raise self._no_answer(reply) from None
        self._decisions.append({"question": question, "answer": out["answer"],
                                "motivation": out.get("motivation", "")})
        return out

    def compare_yesno(self, first: str, second: str, question: str) -> bool:
        """Whether the answer to a question about two texts is yes."""
        answer = self._yes(self._complete(_PAIR, f"<first>\n{safe_tag_encode(first)}\n</first>\n<second>\n"
                                              f"{safe_tag_encode(second)}\n</second>\n{question}"))
        self._decisions.append({"question": question, "answer": answer, "motivation": ""})
        return answer

    def yesno(self, question: str) -> bool:
        """Whether the answer to a question on its own is yes."""
        answer = self._yes(self._complete(f"You judge. {_ONE_WORD}", question))
        self._decisions.append({"question": question, "answer": answer, "motivation": ""})
        return answer

    def no_repeat(self, first: str, second_list: Sequence[str]) -> bool:
        """Whether `first` repeats none of the other texts."""
        return not any(self.compare_yesno(first, second, _REPEATS) for second in second_list)

    def drain_decisions(self) -> list[dict[str, Any]]:
        """The questions answered since the last call."""
        decisions, self._decisions = self._decisions, []
        return decisions


def is_yes(reply: str) -> bool:
    """Whether a reply says yes: by its first word where that is yes or no, else by its last."""
    words = re.findall(r"[^\W_]+", reply.lower())
    return bool(words) and (words[0] if words[0] in ("yes", "no") else words[-1]) == "yes"
