"""The served meaning: measured answers, property tests, linear work."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tbstudy.errors import StudyError
from tbstudy.interpreter import DEFAULT, coalesce_system, interpret
from tbstudy.interpreter.surprises import CODES

DATA = Path(__file__).parents[1] / "data" / "interpreter"


def lines(name):
    with open(DATA / name, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


CASES = lines("interpreter_cases.jsonl")
MUTANTS = lines("interpreter_mutants.jsonl")
OPTIONS = lines("request_options.jsonl")


def typed(value):
    """1, 1.0 and true differ, and so does the order of keys."""
    if isinstance(value, dict):
        return "object", [(key, typed(item)) for key, item in value.items()]
    if isinstance(value, list):
        return "array", [typed(item) for item in value]
    return type(value).__name__, repr(value)


@pytest.mark.parametrize("case", CASES + MUTANTS, ids=lambda case: case["id"])
def test_measured_answers_type_strict_and_in_key_order(case):
    read = interpret(case["text"], case["tool_schemas"], enable_thinking=case["enable_thinking"],
                     finish_reason=case.get("engine_finish_reason", "stop"))
    calls = [{"name": c.name, "arguments": c.arguments, "arguments_obj": c.arguments_obj} for c in read.tool_calls]
    answer = {"reasoning": read.reasoning, "content": read.content, "tool_calls": calls}
    assert typed(answer) == typed(case["expected"])
    assert read.finish_reason == case["served_finish_reason"]


@pytest.mark.parametrize("case", OPTIONS, ids=lambda case: case["id"])
def test_measured_answers_under_request_options(case):
    read = interpret(case["text"], case["tools"], **case["options"])
    assert {"reasoning": read.reasoning, "content": read.content, "finish_reason": read.finish_reason,
            "tool_calls": [[c.name, c.arguments] for c in read.tool_calls]} == case["expected"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_warnings_mark_exactly_the_answers_a_person_would_not_expect(case):
    read = interpret(case["text"], case["tool_schemas"], enable_thinking=case["enable_thinking"],
                     finish_reason=case["engine_finish_reason"])
    expected = case["sane"] is not None
    if case["id"] == "rsn-04":  # a blank thought is served as a string, which moves nothing
        expected = False
    if case["id"] == "mop-06":  # a parameter without a name never ends: dropped, as one with a name would be
        expected = True
    assert bool(read.warnings) == expected, read.warnings


def test_warnings_never_change_a_reading():
    for case in CASES + MUTANTS:
        strict, plain = (interpret(case["text"], case["tool_schemas"], enable_thinking=case["enable_thinking"],
                                   strict_warnings=flag) for flag in (True, False))
        assert plain.warnings == ()
        assert (strict.reasoning, strict.content, strict.tool_calls, strict.finish_reason) == (
            plain.reasoning, plain.content, plain.tool_calls, plain.finish_reason)


TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {
    "s": {"type": "string"}, "i": {"type": "integer"}, "x": {"type": "number"}, "b": {"type": "boolean"},
    "o": {"type": "object"}, "a": {"type": "array"}, "n": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}}}]


def call(body, name="f"):
    return f"hm\n</think>\n\n<tool_call>\n<function={name}>\n{body}</function>\n</tool_call>"


def parameter(key, value):
    return f"<parameter={key}>\n{value}\n</parameter>\n"


@pytest.mark.parametrize(("text", "codes"), [
    (call(parameter("s", "x")) + "\nand more", {"text_lost"}),
    ("<tool_call>\n<function=f>\n</function>\n</tool_call>\nno\n</think>\n\nhi", {"call_in_thought", "text_lost"}),
    (call(parameter("s", "x"))[:-30], {"truncated_call", "value_dropped"}),
    (call("<parameter=s>\nsee <parameter=i>1</parameter>\n"), {"value_cut"}),
    (call("<parameter=s>\nx\n"), {"value_dropped"}),
    (call(parameter("s", "a </think> b")), {"think_tag_deleted"}),
    ("never ended", {"answer_in_reasoning"}),
    ("x</think>write <function=f> like this", {"phantom_call", "truncated_call", "argument_text_lost"}),
    ("a <|im_end|> b</think>c", {"special_token_deleted"}),
    (call(parameter("n", "None")), {"none_as_text"}),
    (call(parameter("x", "9007199254740993")), {"number_rounded"}),
    (call(parameter("i", "5.0")), {"integer_as_float"}),
    (call(parameter("s ", "x")), {"name_near_miss"}),
    (call(parameter("s", "x"), name='"f"'), {"name_near_miss"}),
    (call("note: " + parameter("s", "x")), {"argument_text_lost"}),
    (call(parameter("s", "x") + "<tool_call>\n<function=g>\n"), {"call_swallowed"}),
    (call("<parameter=s>\n  x\n  </parameter>\n"), {"whitespace_kept"}),
    ('x</think><tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>', {"json_call_as_text"}),
    ('x</think><function=>{"n\\u0061me": 5}</function>', {"server_error"}),
    (call(parameter("s", "x") + parameter("i", "7") + parameter("a", "[1]")), set()),
    (call(parameter("s", "a <b> c") + parameter("i", "seven")), set()),
])
def test_warning_codes(text, codes):
    assert set(interpret(text, TOOLS).warnings) == codes


def test_warnings_of_the_request():
    text = call(parameter("s", "x"))
    assert interpret(text, TOOLS, finish_reason="length").warnings == ("length_stop_hidden",)
    assert interpret(text, TOOLS, tool_choice="none").warnings == ("call_dropped",)
    assert interpret(text, []).warnings == ("call_dropped",)
    assert interpret("a</think>b", TOOLS, enable_thinking=False).warnings == ("thought_not_split",)


@pytest.mark.parametrize("blank", ["\x1c", "\x1f", "\u200b"])
def test_blanks_that_only_python_calls_blank_do_not_make_a_tag(blank):
    read = interpret(call(f"<{blank}parameter=s>\nx\n</parameter>\n"), TOOLS)
    assert read.tool_calls[0].arguments == "{}"
    assert interpret(call("<\u2003parameter\x85=s>\nx\n</parameter>\n"), TOOLS).tool_calls[0].arguments == '{"s": "x"}'


def test_special_tokens_are_the_tokenizers():
    text = call(parameter("s", "a<|im_start|>b"))
    assert interpret(text, TOOLS).tool_calls[0].arguments_obj == {"s": "a<|im_start|>b"}
    read = interpret(text, TOOLS, special_tokens=[*DEFAULT, "<|im_start|>"])
    assert read.tool_calls[0].arguments_obj == {"s": "ab"}


def test_the_first_call_only():
    text = "x</think>" + 2 * "<tool_call>\n<function=f>\n</function>\n</tool_call>\n"
    assert len(interpret(text, TOOLS).tool_calls) == 2
    assert len(interpret(text, TOOLS, parallel_tool_calls=False).tool_calls) == 1


def test_an_unknown_profile_is_named():
    with pytest.raises(StudyError, match="unknown interpreter profile 'vllm-9'; known: vllm-0.27.1"):
        interpret("x", TOOLS, profile="vllm-9")


# Properties

plain = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="<"), max_size=30)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | plain,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(plain, inner, max_size=3), max_leaves=8)
names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.-]{0,12}", fullmatch=True)
declared = st.one_of(
    st.tuples(st.just("string"), plain), st.tuples(st.just("integer"), st.integers()),
    st.tuples(st.just("number"), st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: x != math.trunc(x))),
    st.tuples(st.just("boolean"), st.booleans()), st.tuples(st.just("array"), st.lists(json_values, max_size=3)),
    st.tuples(st.just("object"), st.dictionaries(plain, json_values, max_size=3)),
    st.tuples(st.just("null"), st.none()))


@settings(max_examples=120, deadline=None)
@given(thought=plain, before=plain,
       written=st.lists(st.tuples(names, st.dictionaries(names, declared, max_size=4)), min_size=1, max_size=3,
                        unique_by=lambda one: one[0]))
def test_valid_calls_round_trip(thought, before, written):
    tools = [{"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {
        key: {"type": kind} for key, (kind, _) in members.items()}}}} for name, members in written]
    text = f"{thought}</think>{before}"
    for name, members in written:
        body = "".join(parameter(key, value if kind == "string" else json.dumps(value, ensure_ascii=False))
                       for key, (kind, value) in members.items())
        text += f"\n<tool_call>\n<function={name}>\n{body}</function>\n</tool_call>"
    read = interpret(text, tools)
    assert read.reasoning == (thought or None) and read.content == (before.strip() or None)
    assert [c.name for c in read.tool_calls] == [name for name, _ in written]
    for found, (_, members) in zip(read.tool_calls, written, strict=True):
        assert typed(found.arguments_obj) == typed({key: value for key, (_, value) in members.items()})
        assert typed(json.loads(found.arguments)) == typed(found.arguments_obj)
    assert not set(read.warnings) - {"argument_text_lost", "whitespace_kept", "none_as_text"}


pieces = st.sampled_from([
    "<think>", "</think>", "<tool_call>", "</tool_call>", "<function=", "<function=f>", "</function>", "<parameter=",
    "<parameter=s>", "<parameter=a>", "</parameter>", ">", "<", "\n", "< / parameter >", "{", "[", '"name": "f"',
    "1e999", "NaN", "9" * 4400, '{"a": ' * 40, "<|im_end|>", "<|im", "null", "\ud800", "\x00"])


@settings(max_examples=400, deadline=None)
@given(text=st.lists(pieces | st.text(max_size=8), max_size=25).map("".join), thinking=st.none() | st.booleans(),
       choice=st.sampled_from(["auto", "none", "required", None]), offered=st.sampled_from([TOOLS, [], None]))
def test_no_text_raises(text, thinking, choice, offered):
    read = interpret(text, offered, enable_thinking=thinking, tool_choice=choice)
    assert read.text == text
    assert not read.tool_calls or (offered and choice not in ("none", None))
    for found in read.tool_calls:
        assert found.name and isinstance(found.arguments_obj, dict)


def test_deep_nesting_never_raises():
    for depth in [*range(150, 1100, 19), 20_000]:
        for opening, closing in (("[", "]"), ('{"a":', "}")):
            nested = opening * depth + "1" + closing * depth
            read = interpret(call(parameter("a", nested) + parameter("o", nested)), TOOLS)
            assert list(read.tool_calls[0].arguments_obj) == ["a", "o"]


@pytest.mark.parametrize("piece", ["<", "<think>", "</think>", "<function=f></function>", "<parameter=s>", "<function=",
                                   "< ", "<\n/ ", '"name":'])
def test_a_long_value_of_tag_pieces_is_kept_whole(piece):
    value = piece * (200_000 // len(piece))
    text = call(parameter("s", value))
    read = interpret(text, TOOLS)
    assert read.text == text and read.tool_calls


def test_leading_system_messages_become_one():
    system = [{"role": "system", "content": text} for text in ("One.", "", "Two.")]
    rest = [{"role": "user", "content": "hi"}, {"role": "system", "content": "late"}]
    assert coalesce_system(system + rest) == [{"role": "system", "content": "One.\n\nTwo."}, *rest]
    assert coalesce_system(rest) == rest and coalesce_system([]) == []
    parts = [{"role": "system", "content": [{"type": "text", "text": "One."}]}, {"role": "system", "content": "Two."}]
    assert coalesce_system(parts) == [{"role": "system", "content": "One.\n\nTwo."}]
    assert [m["content"] for m in system] == ["One.", "", "Two."]


def test_every_warning_code_is_documented():
    page = (Path(__file__).parents[2] / "docs" / "interpreter.md").read_text(encoding="utf-8")
    listed = {line.split("`")[1] for line in page.splitlines() if line.startswith("| `")}
    assert listed == set(CODES)
