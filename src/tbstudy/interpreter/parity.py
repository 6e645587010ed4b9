"""Do two readings of the same recorded generations agree?

`load_generations` finds raw texts in our records and in ThinkingBox `tb infer` output; `compare` reads each of them
twice, as two `Reading`s see it, and counts agreement by kind of generation and by what differs.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from tbstudy.errors import StudyError
from tbstudy.interpreter.profile import DEFAULT
from tbstudy.interpreter.reading import interpret

#: What can differ, in the order in which it is looked at.
ASPECTS = ("reasoning", "content", "number of calls", "tool name", "argument names", "argument type", "argument value",
           "argument order")


@dataclass(frozen=True, slots=True)
class Reply:
    """One reading of a generation: `calls` are (name, arguments) with the arguments decoded when they are JSON.

    `lossy`: the record does not tell an absent text from an empty one; `unknown` aspects were not recorded at all.
    """

    reasoning: str | None
    content: str | None
    calls: tuple[tuple[str, Any], ...]
    lossy: bool = False
    unknown: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Recorded:
    """One recorded generation: where it stands, its raw text, the tools on offer, and the reply recorded with it.

    `raw_text` is None when the record holds none; `recorded` is None when the server did no parsing. `policy` is empty
    where the record does not name one, as those of `tb infer`.
    """

    uid: str
    repetition: int
    index: int
    raw_text: str | None
    tools: Sequence[dict[str, Any]] | None
    recorded: Reply | None
    policy: str = ""

    @property
    def where(self) -> str:
        """The generation's place, for people."""
        by = f" by {self.policy}" if self.policy else ""
        return f"{self.uid} repetition {self.repetition}{by} message {self.index}"


Reading = Callable[[Recorded], Reply]


@dataclass(frozen=True, slots=True)
class Difference:
    """The first aspect in which two readings of a generation differ, with both sides of it."""

    generation: Recorded
    kind: str
    aspect: str
    a: Any
    b: Any


@dataclass(slots=True)
class ParityReport:
    """Counts of `compare`. `kinds` and `agreed` count generations by kind, `aspects` the first difference of each that
    differs, `examples` are the first ones; `without_text` generations hold no raw text and were left out."""

    name_a: str
    name_b: str
    records: int = 0
    without_text: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    agreed: Counter[str] = field(default_factory=Counter)
    aspects: Counter[str] = field(default_factory=Counter)
    examples: list[Difference] = field(default_factory=list)

    @property
    def compared(self) -> int:
        return self.kinds.total()

    @property
    def differing(self) -> int:
        return self.compared - self.agreed.total()

    def text(self) -> str:
        """The report for a terminal: agreement by kind, what differs, the first differing examples."""
        lines = [f"{self.compared} generations of {self.records} records, "
                 f"read by {self.name_a} (a) and {self.name_b} (b)"]
        if self.without_text:
            lines.append(f"{self.without_text} generations hold no raw text and were left out")
        lines += ["", f"{'kind':<16}{'generations':>12}{'agree':>8}{'share':>9}"]
        for kind in [*sorted(self.kinds), "all"]:
            total = self.compared if kind == "all" else self.kinds[kind]
            agreed = self.agreed.total() if kind == "all" else self.agreed[kind]
            lines.append(f"{kind:<16}{total:>12}{agreed:>8}{agreed / max(total, 1):>9.1%}")
        if self.differing:
            lines += ["", "first difference"] + [
                f"  {aspect:<18}{self.aspects[aspect]:>8}" for aspect in ASPECTS if self.aspects[aspect]]
        for example in self.examples:
            at = example.generation
            lines += ["", f"{at.where}: {example.aspect} ({example.kind})",
                      f"  a: {_clip(example.a)}", f"  b: {_clip(example.b)}", f"  text: {_clip(at.raw_text)}"]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON values."""
        return {
            "a": self.name_a, "b": self.name_b, "records": self.records, "without_text": self.without_text,
            "compared": self.compared, "agree": self.agreed.total(),
            "kinds": {kind: {"generations": total, "agree": self.agreed[kind]}
                      for kind, total in sorted(self.kinds.items())},
            "aspects": {aspect: self.aspects[aspect] for aspect in ASPECTS if self.aspects[aspect]},
            "examples": [{"policy": e.generation.policy, "uid": e.generation.uid, "repetition": e.generation.repetition,
                          "message": e.generation.index, "kind": e.kind, "aspect": e.aspect, "a": e.a, "b": e.b,
                          "text": e.generation.raw_text} for e in self.examples],
        }


def _clip(value: Any, limit: int = 240) -> str:
    shown = json.dumps(value, ensure_ascii=False, default=repr)
    return shown if len(shown) <= limit else f"{shown[: limit // 2]} ... {shown[-limit // 2 :]}"


def compare(
    records: Iterable[Recorded], reading_a: Reading, reading_b: Reading, *,
    names: tuple[str, str] = ("a", "b"), examples: int = 5,
) -> ParityReport:
    """Read every generation that holds its raw text twice and report where the readings agree.

    StudyError when no generation holds a raw text.
    """
    report = ParityReport(*names)
    seen: set[tuple[str, str, int]] = set()
    for generation in records:
        seen.add((generation.policy, generation.uid, generation.repetition))
        if generation.raw_text is None:
            report.without_text += 1
            continue
        a, b = reading_a(generation), reading_b(generation)
        kind = _kind(a)
        report.kinds[kind] += 1
        found = _difference(a, b)
        if found is None:
            report.agreed[kind] += 1
            continue
        report.aspects[found[0]] += 1
        if len(report.examples) < examples:
            report.examples.append(Difference(generation, kind, *found))
    report.records = len(seen)
    if not report.compared:
        raise StudyError(
            f"none of {report.without_text} recorded generations holds its raw text: there is nothing to read twice. "
            "Our own records keep it as message.raw_text; for `tb infer` record through the evaluation proxy (which "
            "adds raw_text to a reply) with --dump raw --dump tools."
        )
    return report


def _kind(reply: Reply) -> str:
    if len(reply.calls) > 1:
        return "several calls"
    if reply.calls:
        return "one call"
    return "answer" if (reply.content or "").strip() else "thought only"


def _difference(a: Reply, b: Reply) -> tuple[str, Any, Any] | None:
    unknown = a.unknown | b.unknown
    for aspect, left, right in (("reasoning", a.reasoning, b.reasoning), ("content", a.content, b.content)):
        if aspect not in unknown and left != right and not ((a.lossy or b.lossy) and not left and not right):
            return aspect, left, right
    if len(a.calls) != len(b.calls):
        return "number of calls", list(a.calls), list(b.calls)
    for (name_a, left), (name_b, right) in zip(a.calls, b.calls, strict=True):
        if name_a != name_b:
            return "tool name", name_a, name_b
        if not isinstance(left, dict) or not isinstance(right, dict):
            if _typed(left) != _typed(right):
                return "argument value", left, right
            continue
        if set(left) != set(right):
            return "argument names", list(left), list(right)
        for key in left:
            if _typed(left[key]) != _typed(right[key]):
                same_type = type(left[key]) is type(right[key])
                return "argument value" if same_type else "argument type", {key: left[key]}, {key: right[key]}
        if list(left) != list(right):
            return "argument order", list(left), list(right)
    return None


def _typed(value: Any) -> Any:
    """A form in which 1, 1.0 and true differ, and so does the order of keys."""
    if isinstance(value, dict):
        return "object", tuple((key, _typed(item)) for key, item in value.items())
    if isinstance(value, list):
        return "array", tuple(map(_typed, value))
    return type(value).__name__, repr(value)


def _decoded(arguments: Any) -> Any:
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments) if arguments else {}
    except (ValueError, RecursionError):
        return arguments


# Readings


def ours(**options: Any) -> Reading:
    """The reading of `interpret` with these request options."""

    def read(generation: Recorded) -> Reply:
        found = interpret(generation.raw_text or "", generation.tools, strict_warnings=False, **options)
        return Reply(found.reasoning, found.content,
                     tuple((call.name, _decoded(call.arguments)) for call in found.tool_calls))

    return read


def recorded(generation: Recorded) -> Reply:
    """The reading that the server recorded with the generation."""
    if generation.recorded is None:
        raise StudyError(f"{generation.where}: the server recorded raw text only, no reading of its own; compare "
                         "against vllm instead")
    return generation.recorded


class _Vocabulary:
    """As much of a tokenizer as the parsers ask for: the four tags' ids and the special tokens."""

    def __init__(self, special_tokens: Sequence[str]):
        self.all_special_tokens = list(special_tokens)
        tags = ("<think>", "</think>", "<tool_call>", "</tool_call>")
        self._ids = {token: index for index, token in enumerate(dict.fromkeys([*tags, *special_tokens]))}
        self.all_special_ids = [self._ids[token] for token in special_tokens]

    def get_vocab(self) -> dict[str, int]:
        return self._ids


def vllm_installed() -> bool:
    """True when `import vllm` would find a package."""
    return importlib.util.find_spec("vllm") is not None


def vllm(*, special_tokens: Sequence[str] = DEFAULT, enable_thinking: bool | None = None) -> Reading:
    """The reading of the installed vLLM's own qwen3 parsers; StudyError when vllm is not installed."""
    if not vllm_installed():
        raise StudyError("vllm is not installed: install vllm==0.27.1, or compare against the recorded reading")
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest, ChatCompletionToolsParam
    from vllm.parser.parser_manager import ParserManager

    parser = ParserManager.get_parser("qwen3_xml", "qwen3", enable_auto_tools=True)

    def request(tools: list[Any]) -> Any:
        return ChatCompletionRequest(model="recorded", messages=[], tools=tools or None)

    return parser_reading(parser, ChatCompletionToolsParam, request, special_tokens, enable_thinking)


def parser_reading(
    parser_class: Any, tool_class: Any, request: Callable[[list[Any]], Any], special_tokens: Sequence[str],
    enable_thinking: bool | None,
) -> Reading:
    """A reading by a vLLM parser class: `tool_class` validates a tool, `request` makes a request from the tools."""
    vocabulary = _Vocabulary(special_tokens)
    template = {} if enable_thinking is None else {"enable_thinking": enable_thinking}

    def read(generation: Recorded) -> Reply:
        tools = [tool_class(**tool) for tool in generation.tools or ()]
        parser = parser_class(vocabulary, tools or None, chat_template_kwargs=template)
        reasoning, content, calls = parser.parse(generation.raw_text, request(tools), enable_auto_tools=True)
        return Reply(reasoning, content, tuple((call.name, _decoded(call.arguments)) for call in calls or ()))

    return read


# Records


def load_generations(path: Path, tools: Any = None) -> Iterator[Recorded]:
    """Every assistant generation of a JSONL of our records or of `tb infer` output, in file order.

    `tools` answers for records that hold no tool schemas: a list of OpenAI tools, or a mapping from a record's uid,
    scenario or domain to such a list. StudyError names the line of a record that cannot be read.
    """
    with _open(path) as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            where = f"{path}:{number}"
            try:
                record = json.loads(line)
            except ValueError as error:
                raise StudyError(f"{where}: not a JSON record ({error})") from None
            if not isinstance(record, dict) or not isinstance(record.get("messages"), list):
                raise StudyError(f"{where}: a record is an object with a list of messages")
            yield from _generations(record, tools, where)


def _open(path: Path) -> TextIO:
    return gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else open(path, encoding="utf-8")


def record_uids(path: Path) -> list[str]:
    """The uids of the records of a JSONL, each once; lines that are no record are left for `load_generations`."""
    uids: dict[str, None] = {}
    with _open(path) as lines:
        for line in lines:
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict) and isinstance(record.get("uid"), str):
                uids[record["uid"]] = None
    return list(uids)


def _generations(record: dict[str, Any], tools: Any, where: str) -> Iterator[Recorded]:
    metadata = record.get("metadata") or {}
    uid, repetition = str(record.get("uid", "?")), int(metadata.get("repetition") or 0)
    policy = str(metadata.get("policy") or "")
    found = list(_thinkingbox_replies(record) if _is_thinkingbox(record) else _chat_replies(record["messages"]))
    if not any(raw is not None for _, raw, _ in found):
        offered = None
    else:
        offered = _tools_of(record, metadata, tools, where)
    for index, raw, reply in found:
        yield Recorded(uid, repetition, index, raw, offered, reply, policy)


def _is_thinkingbox(record: dict[str, Any]) -> bool:
    return any(isinstance(message, dict) and "T" in message for message in record["messages"])


def _tools_of(record: dict[str, Any], metadata: dict[str, Any], tools: Any, where: str) -> list[dict[str, Any]]:
    listed = record.get("tools")
    if listed is None and isinstance(tools, dict):
        keys = (record.get("uid"), metadata.get("scenario"), metadata.get("domain"))
        listed = next((tools[key] for key in keys if key in tools), None)
    elif listed is None:
        listed = tools
    if listed is None:
        raise StudyError(f"{where}: no tool schemas, and without them arguments cannot be typed: give --dataset "
                         "or --tools (or, for `tb infer`, record with --dump tools)")
    return [tool if "function" in tool else _as_function(tool) for tool in listed]


def _as_function(tool: dict[str, Any]) -> dict[str, Any]:
    """A ThinkingBox tool definition as an OpenAI tool."""
    function = {"name": tool["name"], "description": tool.get("description"), "parameters": tool.get("input_schema")}
    return {"type": "function", "function": function}


def _chat_replies(messages: Sequence[Any]) -> Iterator[tuple[int, str | None, Reply | None]]:
    """(index, raw text, recorded reading) of the assistant messages of an OpenAI-style conversation."""
    for index, message in enumerate(messages):
        if not isinstance(message, dict) or message.get("role") != "assistant":
            continue
        raw, content = message.get("raw_text"), message.get("content")
        calls = tuple((call["function"]["name"], _decoded(call["function"]["arguments"]))
                      for call in message.get("tool_calls") or ())
        reasoning = message.get("reasoning_content", message.get("reasoning"))
        if raw is None and not calls and reasoning is None and isinstance(content, str) and _unparsed(content):
            yield index, content, None
            continue
        # A missing key may mean that there was none or that the server did not send it.
        unknown = frozenset({"reasoning"}) if reasoning is None else frozenset()
        yield index, raw, Reply(reasoning, content, calls, lossy=True, unknown=unknown)


def _unparsed(content: str) -> bool:
    """A server without parsers returns the generation as it is."""
    return "</think>" in content or ("<tool_call>" in content and "<function=" in content)


def _thinkingbox_replies(record: dict[str, Any]) -> Iterator[tuple[int, str | None, Reply | None]]:
    """The same for ThinkingBox's messages, where one generation is a thought, a text and calls in a row."""
    raw_messages = record.get("raw_messages")
    if isinstance(raw_messages, list) and raw_messages:
        yield from _chat_replies(raw_messages)
        return
    messages = record["messages"]
    index = 0
    while index < len(messages):
        start, raw, reasoning, content = index, None, None, None
        calls: tuple[tuple[str, Any], ...] = ()
        while index < len(messages):
            message = messages[index]
            kind, metadata = message.get("T"), message.get("metadata") or {}
            if kind == "Text" and message.get("role") == "assistant" and metadata.get("tag", "text") != "direct":
                thought = metadata.get("tag") == "think"
                if calls or content is not None or (thought and reasoning is not None):
                    break
                if thought:
                    reasoning = message.get("content")
                else:
                    content = message.get("content")
            elif kind in ("ToolCall", "ParallelToolCall") and not calls:
                listed = [message] if kind == "ToolCall" else message.get("tool_calls") or []
                calls = tuple((call["name"], call["arguments"]) for call in listed)
            else:
                break
            raw = metadata.get("raw_text", raw)
            index += 1
        if index == start:
            index += 1
            continue
        if raw is None and reasoning is None and not calls and isinstance(content, str) and _unparsed(content):
            yield start, content, None
        else:
            unknown = frozenset() if reasoning is not None else frozenset({"reasoning"})
            yield start, raw, Reply(reasoning, content, calls, lossy=True, unknown=unknown)
