"""Two readings of recorded generations: our records, `tb infer` output, and what is said when they cannot be read."""

import argparse
import asyncio
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from tbstudy import cli_parity
from tbstudy.errors import StudyError
from tbstudy.interpreter import interpret, parity
from tbstudy.tasks.loader import load_dataset

DEMO = Path(__file__).parents[2] / "data" / "demo"

TOOLS = [{"type": "function", "function": {"name": "book", "parameters": {"type": "object", "properties": {
    "day": {"type": "string"}, "seats": {"type": "integer"}}}}}]
TB_TOOLS = [{"name": "book", "description": "Book.", "input_schema": TOOLS[0]["function"]["parameters"]}]
CALL = ("I book it.\n</think>\n\nOne moment.\n<tool_call>\n<function=book>\n<parameter=day>\nMon\n</parameter>\n"
        "<parameter=seats>\n2\n</parameter>\n</function>\n</tool_call>")
TEXTS = {"call": CALL, "answer": "Done.\n</think>\n\nIt is booked. <DONE>", "thought": "still thinking"}


def message(text, **changes):
    read = interpret(text, TOOLS)
    said = {"role": "assistant", "content": read.content, "raw_text": text}
    if read.reasoning is not None:
        said["reasoning_content"] = read.reasoning
    if read.tool_calls:
        said["tool_calls"] = [{"id": "call_0", "type": "function", "function": {
            "name": call.name, "arguments": call.arguments}} for call in read.tool_calls]
    return {**said, **changes}


def ours(*messages, **fields):
    return {"uid": "a.py:test_1", "metadata": {"repetition": 3, "domain": "hotel"},
            "messages": [{"role": "user", "content": "hi"}, *messages], "tools": TOOLS, **fields}


def called(**function):
    return message(CALL, tool_calls=[{"id": "c", "type": "function", "function": {
        "name": "book", "arguments": '{"day": "Mon", "seats": 2}', **function}}])


def write(path, *records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def against_record(path, tools=None, **options):
    return parity.compare(parity.load_generations(path, tools), parity.ours(), parity.recorded, **options)


def test_agreement_by_kind(tmp_path):
    records = [ours(message(TEXTS["call"]), message(TEXTS["answer"])),
               ours(message(TEXTS["thought"]), uid="b.py:test_2")]
    report = against_record(write(tmp_path / "r.jsonl", *records))
    assert (report.records, report.compared, report.differing) == (2, 3, 0)
    assert dict(report.kinds) == {"one call": 1, "answer": 1, "thought only": 1} == dict(report.agreed)
    assert "all" in report.text() and "100.0%" in report.text()


@pytest.mark.parametrize(("changed", "aspect", "a", "b"), [
    (message(CALL, reasoning_content="I book it."), "reasoning", "I book it.\n", "I book it."),
    (message(CALL, content=None), "content", "One moment.", None),
    (message(CALL, tool_calls=None), "number of calls", [("book", {"day": "Mon", "seats": 2})], []),
    (called(name="Book"), "tool name", "book", "Book"),
    (called(arguments='{"day": "Mon"}'), "argument names", ["day", "seats"], ["day"]),
    (called(arguments='{"day": "Mon", "seats": 2.0}'), "argument type", {"seats": 2}, {"seats": 2.0}),
    (called(arguments='{"day": "Mon", "seats": true}'), "argument type", {"seats": 2}, {"seats": True}),
    (called(arguments='{"day": "Tue", "seats": 2}'), "argument value", {"day": "Mon"}, {"day": "Tue"}),
    (called(arguments='{"seats": 2, "day": "Mon"}'), "argument order", ["day", "seats"], ["seats", "day"]),
    (called(arguments="{broken"), "argument value", {"day": "Mon", "seats": 2}, "{broken"),
])
def test_the_first_difference_is_named_and_shown(tmp_path, changed, aspect, a, b):
    report = against_record(write(tmp_path / "r.jsonl", ours(message(TEXTS["answer"]), changed)))
    assert dict(report.aspects) == {aspect: 1} and report.differing == 1
    (example,) = report.examples
    assert (example.a, example.b) == (a, b)
    assert example.generation.index == 2 and example.generation.raw_text == CALL
    assert f"a.py:test_1 repetition 3 message 2: {aspect} (one call)" in report.text()


def test_only_as_many_examples_as_asked_for(tmp_path):
    path = write(tmp_path / "r.jsonl", *[ours(called(name="x"))] * 4)
    assert len(against_record(path, examples=2).examples) == 2
    assert against_record(path, examples=2).differing == 4


def test_the_same_attempt_of_several_policies_is_several_records(tmp_path):
    records = [ours(called(name=name), metadata={"repetition": 3, "domain": "hotel", "policy": name})
               for name in ("base", "trained")]
    report = against_record(write(tmp_path / "r.jsonl", *records))
    assert (report.records, report.compared) == (2, 2)
    assert "a.py:test_1 repetition 3 by trained message 1: tool name (one call)" in report.text()
    assert [example["policy"] for example in report.to_dict()["examples"]] == ["base", "trained"]


def thinkingbox(*messages, **fields):
    return {"uid": "t.py:test_1", "metadata": {"repetition": 0}, "tools": TB_TOOLS,
            "messages": [{"T": "Text", "role": "user", "content": "hi", "metadata": {}}, *messages], **fields}


def parts(text, arguments=None, raw=True):
    """ThinkingBox's messages of one generation: thought, text and calls in a row."""
    read = interpret(text, TOOLS)
    kept = {"raw_text": text} if raw else {}
    out = []
    if read.reasoning:
        out.append({"T": "Text", "role": "assistant", "content": read.reasoning, "metadata": {"tag": "think", **kept}})
    if read.content:
        out.append({"T": "Text", "role": "assistant", "content": read.content, "metadata": {"tag": "text", **kept}})
    if read.tool_calls:
        out.append({"T": "ParallelToolCall", "metadata": kept, "tool_calls": [
            {"T": "ToolCall", "name": call.name, "arguments": arguments or call.arguments_obj, "id": "c"}
            for call in read.tool_calls]})
        out.append({"T": "ToolResponse", "name": "book", "content": "ok", "id": "c", "metadata": {}})
    return out


def test_thinkingbox_messages_are_grouped_by_generation(tmp_path):
    record = thinkingbox(*parts(TEXTS["call"]), *parts(TEXTS["call"]), *parts(TEXTS["answer"]))
    report = against_record(write(tmp_path / "r.jsonl", record))
    assert (report.compared, report.differing) == (3, 0) and report.kinds["one call"] == 2
    wrong = thinkingbox(*parts(TEXTS["call"], arguments={"day": "Mon", "seats": "2"}))
    report = against_record(write(tmp_path / "w.jsonl", wrong))
    assert dict(report.aspects) == {"argument type": 1}


def test_thinkingbox_raw_messages_are_preferred(tmp_path):
    record = thinkingbox(*parts(TEXTS["answer"], raw=False),
                         raw_messages=[{"role": "user", "content": "hi"}, message(TEXTS["answer"])])
    report = against_record(write(tmp_path / "r.jsonl", record))
    assert (report.compared, report.differing, report.without_text) == (1, 0, 0)


def test_a_server_without_parsers_has_no_reading_to_compare_with(tmp_path):
    record = thinkingbox({"T": "Text", "role": "assistant", "content": CALL, "metadata": {}})
    path = write(tmp_path / "r.jsonl", record)
    with pytest.raises(StudyError, match="no reading of its own; compare against vllm"):
        against_record(path)
    report = parity.compare(parity.load_generations(path), parity.ours(), parity.ours())
    assert report.kinds["one call"] == 1


def test_records_without_raw_text_say_so(tmp_path):
    path = write(tmp_path / "r.jsonl", ours(message(TEXTS["answer"], raw_text=None)),
                 thinkingbox(*parts(TEXTS["call"], raw=False)))
    with pytest.raises(StudyError, match="none of 2 recorded generations holds its raw text.*raw_text.*--dump raw"):
        against_record(path)
    mixed = write(tmp_path / "m.jsonl", ours(message(TEXTS["answer"], raw_text=None), message(CALL)))
    report = against_record(mixed)
    assert (report.compared, report.without_text) == (1, 1) and "1 generations hold no raw text" in report.text()


def test_tools_come_from_the_record_or_are_asked_for(tmp_path):
    path = write(tmp_path / "r.jsonl", ours(message(CALL), tools=None))
    with pytest.raises(StudyError, match=r"r.jsonl:1: no tool schemas.*--dataset or --tools"):
        against_record(path)
    assert against_record(path, tools=TOOLS).differing == 0
    assert against_record(path, tools={"hotel": TOOLS}).differing == 0
    assert against_record(path, tools={"a.py:test_1": TOOLS}).differing == 0
    with pytest.raises(StudyError, match="no tool schemas"):
        against_record(path, tools={"airline": TOOLS})


def test_a_bad_line_is_named(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_text('\n{"uid": "x", "messages"', encoding="utf-8")
    with pytest.raises(StudyError, match=r"r.jsonl:2: not a JSON record"):
        against_record(path)
    path.write_text("[]\n", encoding="utf-8")
    with pytest.raises(StudyError, match=r"r.jsonl:1: a record is an object"):
        against_record(path)


def test_a_parser_class_is_a_reading():
    asked = []

    class Parser:
        def __init__(self, tokenizer, tools, chat_template_kwargs):
            ids = sorted(tokenizer.get_vocab().values())
            asked.append((tokenizer.all_special_tokens, ids, tools, chat_template_kwargs))

        def parse(self, text, request, enable_auto_tools):
            assert enable_auto_tools
            return "r", text + request, [SimpleNamespace(name="book", arguments='{"seats": 2}')]

    read = parity.parser_reading(Parser, dict, lambda tools: f" {len(tools)}", ("<|im_end|>",), False)
    reply = read(parity.Recorded("u", 0, 0, "text", TOOLS, None))
    assert reply == parity.Reply("r", "text 1", (("book", {"seats": 2}),))
    assert asked == [(["<|im_end|>"], [0, 1, 2, 3, 4], TOOLS, {"enable_thinking": False})]


def run(*arguments):
    parser = argparse.ArgumentParser()
    cli_parity.add_parser(parser.add_subparsers())
    args = parser.parse_args(["parity", *map(str, arguments)])
    return args.run(args)


def test_the_command(tmp_path, capsys):
    path = write(tmp_path / "r.jsonl", ours(message(CALL), called(name="x"), tools=None))
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps(TOOLS))
    out = tmp_path / "report.json"
    assert run(path, "--against", "recorded", "--tools", tools, "--json", out) == 1
    assert "tool name" in capsys.readouterr().out
    report = json.loads(out.read_text())
    assert report["kinds"] == {"one call": {"generations": 2, "agree": 1}} and report["examples"][0]["b"] == "x"
    assert run(write(path, ours(message(CALL))), "--against", "recorded") == 0
    with pytest.raises(StudyError, match="no such file"):
        run(tmp_path / "none.jsonl")


def test_tools_are_asked_from_the_dataset(tmp_path, capsys):
    task = next(iter(load_dataset(DEMO).tasks.values()))
    tools = asyncio.run(cli_parity.dataset_tools(DEMO, [task.uid], "inprocess"))[task.uid]
    tool = next(t["function"] for t in tools if t["function"]["parameters"].get("properties"))
    key = next(iter(tool["parameters"]["properties"]))
    text = (f"x</think><tool_call>\n<function={tool['name']}>\n<parameter={key}>\n7\n</parameter>\n</function>\n"
            "</tool_call>")
    (call,) = interpret(text, tools).tool_calls
    said = {"role": "assistant", "content": None, "raw_text": text, "tool_calls": [
        {"id": "c", "type": "function", "function": {"name": call.name, "arguments": call.arguments}}]}
    path = write(tmp_path / "r.jsonl", {"uid": task.uid, "metadata": {"repetition": 0}, "messages": [said]})
    assert run(path, "--against", "recorded", "--dataset", DEMO) == 0
    assert "one call" in capsys.readouterr().out


@pytest.mark.skipif(parity.vllm_installed(), reason="vllm is installed here")
def test_a_missing_vllm_is_named(tmp_path):
    with pytest.raises(StudyError, match="vllm is not installed"):
        run(write(tmp_path / "r.jsonl", ours(message(CALL))), "--against", "vllm")
