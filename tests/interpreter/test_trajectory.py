"""Token-exact trajectories over random episodes and over templates that are and are not prefix-stable."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_templates import CHATML, NUMBERED, QWEN3_DROPS, QWEN3_KEEPS, QWEN3_QUERY, STABLE, small_tokenizer

from tbstudy.errors import StudyError
from tbstudy.interpreter import TemplateError, Trajectory
from tbstudy.policies.small_tokenizer import CHAT_TEMPLATE

TOOLS = [{"type": "function", "function": {"name": "look_up", "description": "Look up.", "parameters": {
    "type": "object", "properties": {"key": {"type": "string"}}}}}]
START = [{"role": "system", "content": "Be exact."}, {"role": "user", "content": "What does line 7 cost?"}]
TEMPLATES = {**STABLE, "bundled": CHAT_TEMPLATE}

words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="<"), max_size=12)
spoken = words.filter(str.strip)


@st.composite
def turns(draw):
    """[(assistant message, what follows it)]: calls are answered, an answer is followed by the user."""
    episode = []
    for index in range(draw(st.integers(1, 4))):
        message = {"role": "assistant", "content": draw(st.none() | words)}
        if draw(st.booleans()):
            message["reasoning_content"] = draw(words)
        count = draw(st.integers(0, 2))
        if count:
            message["tool_calls"] = [
                {"id": f"call_{index}_{i}", "type": "function",
                 "function": {"name": "look_up", "arguments": json.dumps({"key": draw(st.sampled_from("abc"))})}}
                for i in range(count)]
            after = [{"role": "tool", "tool_call_id": f"call_{index}_{i}", "name": "look_up", "content": draw(words)}
                     for i in range(count)]
        else:
            after = [{"role": "user", "content": draw(spoken)}]
        episode.append((message, after))
    return episode


def rendered(tokenizer, messages, prompt):
    decoded = [m if "tool_calls" not in m else {**m, "tool_calls": [
        {**c, "function": {**c["function"], "arguments": json.loads(c["function"]["arguments"])}}
        for c in m["tool_calls"]]} for m in messages]
    return tokenizer.apply_chat_template(decoded, tools=TOOLS, add_generation_prompt=prompt, tokenize=False)


def encoded(tokenizer, text):
    return tokenizer.encode(text, add_special_tokens=False)


def as_template_says(tokenizer, history, message):
    """The ids a policy would sample to mean `message`, up to and with the end-of-turn token."""
    prompt, whole = rendered(tokenizer, history, True), rendered(tokenizer, [*history, message], False)
    return encoded(tokenizer, whole[len(prompt):].removesuffix("\n"))


@pytest.mark.parametrize("family", TEMPLATES)
@settings(max_examples=40, deadline=None)
@given(episode=turns(), verify=st.sampled_from(["shape", "each"]))
def test_ids_equal_the_rendering_of_the_whole_conversation(family, episode, verify):
    tokenizer = small_tokenizer(TEMPLATES[family])
    trajectory = Trajectory(tokenizer, TOOLS, START, verify=verify)
    history, sampled = list(START), []
    for number, (message, after) in enumerate(episode):
        ids = as_template_says(tokenizer, history, message)
        sampled.append(ids)
        trajectory.append_generation(ids, [-float(number + 1)] * len(ids), True)
        assert trajectory.append_observation(after, message)
        history += [message, *after]
    assert trajectory.ids == encoded(tokenizer, rendered(tokenizer, history, True))
    assert [trajectory.response_ids[a:b] for a, b in trajectory.turns] == sampled
    inside = [any(a <= i < b for a, b in trajectory.turns) for i in range(len(trajectory.response_ids))]
    assert trajectory.response_mask == [int(flag) for flag in inside]
    assert [p != 0 for p in trajectory.logprobs] == inside
    assert trajectory.positions == list(range(len(trajectory.prompt_ids) + len(trajectory.response_ids)))
    assert not trajectory.truncated


@settings(max_examples=30, deadline=None)
@given(text=spoken, data=st.data())
def test_sampled_ids_are_kept_however_they_spell_the_text(text, data):
    tokenizer = small_tokenizer(CHATML)
    spelled = [i for char in text for i in encoded(tokenizer, char)]
    ids = data.draw(st.sampled_from([spelled, encoded(tokenizer, text)])) + [tokenizer.eos_token_id]
    trajectory = Trajectory(tokenizer, TOOLS, START)
    trajectory.append_generation(ids, [-0.5] * len(ids), True)
    trajectory.append_observation([{"role": "user", "content": "And then?"}], {"role": "assistant", "content": text})
    start, end = trajectory.turns[0]
    assert trajectory.response_ids[start:end] == ids
    added = tokenizer.decode(trajectory.response_ids[end:])
    assert added == "\n<|im_start|>user\nAnd then?<|im_end|>\n<|im_start|>assistant\n"


@pytest.mark.parametrize("finished", [True, False])
def test_a_turn_without_its_end_token_is_closed_by_the_environment(finished):
    tokenizer = small_tokenizer(QWEN3_KEEPS)
    ids = encoded(tokenizer, "hm\n</think>\n\nWell")
    trajectory = Trajectory(tokenizer, TOOLS, START)
    trajectory.append_generation(ids, [-1.0] * len(ids), finished)
    assert trajectory.truncated is not finished
    message = {"role": "assistant", "content": "Well", "reasoning_content": "hm"}
    trajectory.append_observation([{"role": "user", "content": "Yes?"}], message)
    closing = trajectory.response_ids[len(ids)]
    assert closing == tokenizer.eos_token_id and trajectory.response_mask[len(ids)] == 0
    assert trajectory.ids == encoded(tokenizer, rendered(
        tokenizer, [*START, message, {"role": "user", "content": "Yes?"}], True))


THOUGHT = {"role": "assistant", "content": "20 a month.", "reasoning_content": "I know it."}
USER = [{"role": "user", "content": "Thanks, and line 8?"}]


def one_turn(template, messages=START, message=THOUGHT, after=USER, **options):
    tokenizer = small_tokenizer(template)
    trajectory = Trajectory(tokenizer, TOOLS, messages, **options)
    ids = as_template_says(tokenizer, messages, message)
    trajectory.append_generation(ids, [-1.0] * len(ids), True)
    trajectory.append_observation(after, message)
    return trajectory


def test_a_template_that_drops_earlier_thoughts_is_refused_with_both_windows():
    with pytest.raises(TemplateError, match="rewrites an earlier turn") as refused:
        one_turn(QWEN3_DROPS)
    told = str(refused.value)
    alone, followed = told.split("\n")[1:3]
    assert "the anchor alone:" in alone and "'<think>'" in alone
    assert "when the new messages follow:" in followed and "'<think>'" not in followed
    assert isinstance(refused.value, StudyError)


def test_the_same_template_serves_tool_results_after_one_query():
    call = {**THOUGHT, "tool_calls": [{"id": "call_0", "type": "function",
                                       "function": {"name": "look_up", "arguments": '{"key": "7"}'}}]}
    answer = [{"role": "tool", "tool_call_id": "call_0", "name": "look_up", "content": "20"}]
    trajectory = one_turn(QWEN3_DROPS, message=call, after=answer)
    assert trajectory.ids == encoded(small_tokenizer(QWEN3_DROPS),
                                     rendered(small_tokenizer(QWEN3_DROPS), [*START, call, *answer], True))


def test_a_template_that_renders_by_context_is_refused_with_both_windows():
    with pytest.raises(TemplateError, match="by their context") as refused:
        one_turn(NUMBERED, message={"role": "assistant", "content": "20"})
    told = str(refused.value)
    assert "behind the anchor:" in told and "'3'" in told and "in the conversation:" in told and "'4'" in told


def test_a_template_that_requires_a_user_query_says_so():
    assert one_turn(QWEN3_QUERY).turns
    with pytest.raises(TemplateError, match=r"refuses the messages \[system\]: No user query found") as refused:
        Trajectory(small_tokenizer(QWEN3_QUERY), TOOLS, START[:1])
    with_query, as_they_are = str(refused.value).split("\n")[1:3]
    assert "with a user query before them:" in with_query and "'<|im_start|>'" in with_query
    assert as_they_are == "  as they are: (nothing)"
    with pytest.raises(TemplateError, match="refuses the messages .system user.: never") as refused:
        Trajectory(small_tokenizer('{{- raise_exception("never") if messages | length > 1 and not tools is none }}'
                                   + CHATML), TOOLS, START)
    assert "\n" not in str(refused.value)


def test_a_prompt_that_pre_opens_a_thought_which_history_does_not_show_is_refused():
    template = QWEN3_KEEPS.replace('"<think>\\n" + (message.reasoning_content or "") + "\\n</think>\\n\\n"', '""')
    tokenizer = small_tokenizer(template)
    trajectory = Trajectory(tokenizer, TOOLS, START)
    trajectory.append_generation([tokenizer.eos_token_id], [-1.0], True)
    with pytest.raises(TemplateError, match="otherwise than it was prompted"):
        trajectory.append_observation(USER, THOUGHT)


def test_a_new_shape_of_conversation_is_verified_although_another_passed():
    # Renders by context only from the second observation on.
    template = CHATML.replace("message.role +", '("late " if loop.index > 4 else "") + message.role +')
    tokenizer = small_tokenizer(template)
    message = {"role": "assistant", "content": "20"}
    trajectory = one_turn(template, message=message)
    trajectory.append_generation([tokenizer.eos_token_id], [-1.0], True)
    with pytest.raises(TemplateError):
        trajectory.append_observation(USER, message)


def test_template_arguments_reach_the_template_and_are_cached_apart():
    template = CHATML + '{%- if mood is defined %}{{- "[" + mood + "]" }}{%- endif %}'
    tokenizer = small_tokenizer(template)
    for mood in "ab":
        trajectory = Trajectory(tokenizer, None, START, chat_template_kwargs={"mood": mood})
        assert tokenizer.decode(trajectory.prompt_ids).endswith(f"[{mood}]")


def test_leading_system_messages_are_one_in_the_prompt():
    tokenizer = small_tokenizer(CHATML)
    system = [{"role": "system", "content": text} for text in ("One.", "Two.")]
    prompt = tokenizer.decode(Trajectory(tokenizer, None, [*system, START[1]]).prompt_ids)
    assert prompt.startswith("<|im_start|>system\nOne.\n\nTwo.<|im_end|>\n<|im_start|>user")


def test_budgets_cap_turns_and_the_episode():
    tokenizer = small_tokenizer(CHATML)
    free = Trajectory(tokenizer, None, START)
    assert free.remaining() == 8192
    size = len(free.prompt_ids)
    trajectory = Trajectory(tokenizer, None, START, max_turn_tokens=6, max_tokens=size + 10)
    assert trajectory.remaining() == 6
    with pytest.raises(StudyError, match="7 sampled ids exceed the 6"):
        trajectory.append_generation([1] * 7, [0.0] * 7, True)
    trajectory.append_generation([1] * 6, [-1.0] * 6, True)
    assert trajectory.remaining() == 4 and not trajectory.truncated
    before = list(trajectory.ids)
    assert trajectory.append_observation(USER, {"role": "assistant", "content": "x"}) is False
    assert trajectory.truncated and trajectory.ids == before
    assert Trajectory(tokenizer, None, START, max_tokens=3).remaining() == 0


def test_misuse_is_refused():
    trajectory = Trajectory(small_tokenizer(CHATML), None, START)
    with pytest.raises(StudyError, match="append_generation comes first"):
        trajectory.append_observation(USER, THOUGHT)
    with pytest.raises(StudyError, match="1 sampled ids with 2 log-probabilities"):
        trajectory.append_generation([1], [0.0, 0.0], True)
    trajectory.append_generation([1], [-1.0], True)
    with pytest.raises(StudyError, match="two generations in a row"):
        trajectory.append_generation([1], [-1.0], True)


@pytest.mark.parametrize("arguments", ["not json", "[1]", ""])
def test_arguments_that_are_no_object_do_not_stop_an_episode(arguments):
    message = {"role": "assistant", "content": None, "tool_calls": [
        {"id": "call_0", "type": "function", "function": {"name": "look_up", "arguments": arguments}}]}
    trajectory = Trajectory(small_tokenizer(QWEN3_KEEPS), TOOLS, START)
    trajectory.append_generation([1], [-1.0], True)
    assert trajectory.append_observation([{"role": "tool", "tool_call_id": "call_0", "content": "no"}], message)
