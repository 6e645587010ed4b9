"""Our interpreter against vLLM's own parser files, on the same texts in the same run, and linear growth of ours.

    python benchmarks/interpreter.py --vllm UNPACKED_WHEEL

UNPACKED_WHEEL is a folder that holds vLLM's `vllm/` as its 0.27.1 wheel unpacks it (`pip download --no-deps
vllm==0.27.1` and unzip; nothing of it needs a GPU). Only the parser files and what they import are read from it; the
server around them is replaced by stand-ins. Without --vllm only the growth of our own time is measured.
"""

from __future__ import annotations

import argparse
import json
import logging
import statistics
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from tbstudy.interpreter import DEFAULT, interpret
from tbstudy.interpreter.parity import Recorded, ours, parser_reading

DATA = Path(__file__).parents[1] / "tests" / "data" / "interpreter"
CASES = ("interpreter_cases.jsonl", "interpreter_mutants.jsonl")
TOOL = [{"type": "function", "function": {"name": "write_file", "parameters": {
    "type": "object", "properties": {"content": {"type": "string"}}}}}]


class _StandIn(types.ModuleType):
    """A module whose every name is an empty class."""

    __path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = type(name, (), {"__init__": lambda self, *args, **kwargs: None})
        setattr(self, name, made)
        return made


class Function(BaseModel):
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None


class Tool(BaseModel):
    type: str = "function"
    function: Function


class FunctionCall(BaseModel):
    id: str | None = None
    name: str
    arguments: str


class ToolCall(BaseModel):
    id: str = ""
    function: FunctionCall


class DeltaFunctionCall(BaseModel):
    name: str | None = None
    arguments: str | None = None


class DeltaToolCall(BaseModel):
    id: str | None = None
    type: str | None = None
    index: int
    function: DeltaFunctionCall | None = None


class DeltaMessage(BaseModel):
    content: str | None = None
    reasoning: str | None = None
    tool_calls: list[DeltaToolCall] = Field(default_factory=list)


class ExtractedToolCallInformation(BaseModel):
    tools_called: bool
    tool_calls: list[ToolCall]
    content: str | None = None


class NamedChoice(BaseModel):
    function: Function


def load_parser(wheel: Path) -> type:
    """vLLM's qwen3 parser class from an unpacked wheel, with stand-ins for the server it normally runs in."""
    if not (wheel / "vllm" / "parser" / "qwen3.py").is_file():
        sys.exit(f"{wheel}: no vllm/parser/qwen3.py in it")

    def package(name: str) -> None:
        module = types.ModuleType(name)
        module.__path__ = [str(wheel.joinpath(*name.split(".")))]
        sys.modules[name] = module

    def stand_in(name: str, **known: Any) -> None:
        module = _StandIn(name)
        module.__dict__.update(known)
        sys.modules[name] = module

    entry = "vllm.entrypoints"
    for name in ("vllm", "vllm.parser", "vllm.parser.engine", "vllm.tool_parsers", "vllm.reasoning", entry,
                 f"{entry}.openai", f"{entry}.openai.engine", f"{entry}.openai.chat_completion"):
        package(name)
    for name in (f"{entry}.mcp", f"{entry}.mcp.tool_server", f"{entry}.openai.responses",
                 f"{entry}.openai.responses.protocol", "vllm.sampling_params", "vllm.tokenizers", "vllm.utils",
                 "vllm.utils.import_utils", "vllm.tool_parsers.streaming", "partial_json_parser",
                 "partial_json_parser.core", "partial_json_parser.core.options", "openai", "openai.types",
                 "openai.types.responses", "openai.types.responses.tool", "openai.types.responses.function_tool",
                 "prometheus_client"):
        stand_in(name)
    stand_in("vllm.utils.collection_utils", is_list_of=lambda value, kind: True)
    stand_in("vllm.parser.utils", count_history_tool_calls=lambda request: 0)
    stand_in("vllm.envs", VLLM_ENFORCE_STRICT_TOOL_CALLING=True)
    sys.modules["vllm"].envs = sys.modules["vllm.envs"]
    stand_in("vllm.logger", init_logger=logging.getLogger)
    stand_in(f"{entry}.chat_utils", get_tool_call_id_type=lambda config: "random", make_tool_call_id=lambda **_: "call")
    stand_in(f"{entry}.openai.engine.protocol", FunctionCall=FunctionCall, ToolCall=ToolCall, DeltaMessage=DeltaMessage,
             DeltaFunctionCall=DeltaFunctionCall, DeltaToolCall=DeltaToolCall, FunctionDefinition=Function,
             ExtractedToolCallInformation=ExtractedToolCallInformation)
    stand_in(f"{entry}.openai.chat_completion.protocol", ChatCompletionToolsParam=Tool,
             ChatCompletionNamedToolChoiceParam=NamedChoice)
    sys.path.insert(0, str(wheel))
    from vllm.parser.abstract_parser import DelegatingParser
    from vllm.parser.engine.adapters import make_adapters
    from vllm.parser.qwen3 import Qwen3Parser

    reasoning, calls = make_adapters(Qwen3Parser)

    class Calls(calls):
        structural_tag_model = "qwen_3_coder"  # as the server registers it

    return type("Parser", (DelegatingParser,), {"reasoning_parser_cls": reasoning, "tool_parser_cls": Calls})


def request(tools: list[Any]) -> types.SimpleNamespace:
    return types.SimpleNamespace(tools=tools or None, tool_choice="auto" if tools else "none", include_reasoning=True)


def best_of(work: Callable[[], Any], rounds: int) -> float:
    """Median seconds of `work` over `rounds`."""
    seconds = []
    for _ in range(rounds):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def cases() -> list[tuple[bool | None, Recorded]]:
    found = []
    for name in CASES:
        with open(DATA / name, encoding="utf-8") as lines:
            for case in map(json.loads, lines):
                found.append((case["enable_thinking"],
                              Recorded(case["id"], 0, 0, case["text"], case["tool_schemas"], None)))
    return found


def against_vllm(wheel: Path, rounds: int) -> None:
    parser = load_parser(wheel)
    bank = cases()
    modes = {mode for mode, _ in bank}
    mine = {mode: ours(enable_thinking=mode) for mode in modes}
    # The tools are validated once: a server does that when the request arrives, not when it parses the reply.
    tools = {id(case): [Tool(**tool) for tool in case.tools or ()] for _, case in bank}
    theirs = {mode: parser_reading(parser, lambda **tool: Tool(**tool), request, DEFAULT, mode) for mode in modes}
    differing = [case.uid for mode, case in bank if mine[mode](case) != theirs[mode](case)]
    print(f"{len(bank)} texts, {len(differing)} read differently {differing[:5] if differing else ''}")

    class Vocabulary:
        all_special_tokens = list(DEFAULT)
        all_special_ids = list(range(10, 10 + len(DEFAULT)))
        vocab = {"<think>": 1, "</think>": 2, "<tool_call>": 3, "</tool_call>": 4,
                 **dict(zip(DEFAULT, all_special_ids, strict=True))}

        def get_vocab(self) -> dict[str, int]:
            return self.vocab

    vocabulary = Vocabulary()
    kwargs = {mode: {} if mode is None else {"enable_thinking": mode} for mode in modes}

    def run_theirs() -> None:
        for mode, case in bank:
            offered = tools[id(case)]
            parser(vocabulary, offered or None, chat_template_kwargs=kwargs[mode]).parse(
                case.raw_text, request(offered), enable_auto_tools=True)

    # One parser object for all texts leaves out what building it costs.
    reused = {mode: parser(vocabulary, None, chat_template_kwargs=kwargs[mode]) for mode in modes}

    def run_reused() -> None:
        for mode, case in bank:
            reused[mode].parse(case.raw_text, request(tools[id(case)]), enable_auto_tools=True)

    def run_ours(strict: bool) -> None:
        for mode, case in bank:
            interpret(case.raw_text, case.tools, enable_thinking=mode, strict_warnings=strict)

    slow, again = best_of(run_theirs, rounds), best_of(run_reused, rounds)
    for strict in (False, True):
        fast = best_of(lambda strict=strict: run_ours(strict), rounds)
        print(f"strict_warnings={strict}: ours {fast * 1e6 / len(bank):.1f} us a text, vLLM's parsers "
              f"{slow * 1e6 / len(bank):.1f} us (a parser a request, as served), ratio {slow / fast:.1f}; "
              f"parser reused {again * 1e6 / len(bank):.1f} us, ratio {again / fast:.1f}")
    value = _call("<" * 20_000)
    theirs_long = best_of(lambda: parser(vocabulary, [Tool(**TOOL[0])]).parse(
        value, request([Tool(**TOOL[0])]), enable_auto_tools=True), 1)
    print(f"a 20 kB value of '<': ours {best_of(lambda: interpret(value, TOOL), 3):.4f} s, vLLM's {theirs_long:.3f} s")


def _call(value: str) -> str:
    return (f"x</think>\n<tool_call>\n<function=write_file>\n<parameter=content>\n{value}\n</parameter>\n</function>\n"
            "</tool_call>")


def growth() -> None:
    for size in (125_000, 250_000, 500_000, 1_000_000):
        value = "<" * size
        seconds = best_of(lambda value=value: interpret(_call(value), TOOL), 3)
        print(f"a value of {size / 1e6:.3f} MB of '<': {seconds:.4f} s")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--vllm", type=Path, metavar="UNPACKED_WHEEL")
    options.add_argument("--rounds", type=int, default=7)
    chosen = options.parse_args()
    if chosen.vllm is not None:
        against_vllm(chosen.vllm, chosen.rounds)
    growth()
