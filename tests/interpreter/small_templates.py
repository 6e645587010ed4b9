"""Chat templates of three families and a byte-level tokenizer for each, made on the spot."""

from functools import lru_cache

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

CHATML = r"""
{%- for message in messages %}
{{- "<|im_start|>" + message.role + "\n" + (message.content or "") }}
{%- for call in message.tool_calls or [] %}
{{- "\n<tool_call>\n" + (call.function | tojson) + "\n</tool_call>" }}
{%- endfor %}
{{- "<|im_end|>\n" }}
{%- endfor %}
{%- if add_generation_prompt %}{{- "<|im_start|>assistant\n" }}{%- endif %}
""".strip()

# `thoughts` is an expression that says whether an assistant message keeps its thought.
_QWEN3 = r"""
{%- set ns = namespace(last_query=-1) %}
{%- for message in messages %}
{%- if message.role == "user" %}{%- set ns.last_query = loop.index0 %}{%- endif %}
{%- endfor %}
{%- if require_query and ns.last_query < 0 %}{{- raise_exception("No user query found in messages.") }}{%- endif %}
{%- for message in messages %}
{%- if message.role == "assistant" %}
{{- "<|im_start|>assistant\n" }}
{%- if THOUGHTS %}{{- "<think>\n" + (message.reasoning_content or "") + "\n</think>\n\n" }}{%- endif %}
{{- message.content or "" }}
{%- for call in message.tool_calls or [] %}
{{- "\n<tool_call>\n<function=" + call.function.name + ">\n" }}
{%- for key, value in call.function.arguments | items %}
{{- "<parameter=" + key + ">\n" + (value if value is string else value | tojson) + "\n</parameter>\n" }}
{%- endfor %}
{{- "</function>\n</tool_call>" }}
{%- endfor %}
{{- "<|im_end|>\n" }}
{%- elif message.role == "tool" %}
{%- if loop.first or messages[loop.index0 - 1].role != "tool" %}{{- "<|im_start|>user" }}{%- endif %}
{{- "\n<tool_response>\n" + message.content + "\n</tool_response>" }}
{%- if loop.last or messages[loop.index0 + 1].role != "tool" %}{{- "<|im_end|>\n" }}{%- endif %}
{%- else %}
{{- "<|im_start|>" + message.role + "\n" + message.content + "<|im_end|>\n" }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- "<|im_start|>assistant\n<think>\n" }}{%- endif %}
""".strip()

QWEN3_KEEPS = _QWEN3.replace("THOUGHTS", "true")
QWEN3_DROPS = _QWEN3.replace("THOUGHTS", "loop.index0 > ns.last_query")
QWEN3_QUERY = "{%- set require_query = true %}" + QWEN3_KEEPS
NUMBERED = CHATML.replace('message.role +', 'message.role + (" %d" % loop.index if message.role == "user" else "") +')

STABLE = {"chatml": CHATML, "qwen3": QWEN3_KEEPS}

_CORPUS = [
    "<think>\nI look it up.\n</think>\n\nThe plan of line 7 costs 20 a month.",
    "user asks for the refund of order 12",
    "<tool_response>\n{\"status\": \"ok\", \"rows\": []}\n</tool_response>",
    "<parameter=plan>\nMax\n</parameter>",
] * 4


@lru_cache
def small_tokenizer(template: str):
    """Byte-level BPE with some merges; newlines stand alone, so that text can be parted behind one."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"\n"), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(_CORPUS, trainers.BpeTrainer(
        vocab_size=330, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False))
    tokenizer.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    tokenizer.add_tokens([AddedToken(tag, normalized=False) for tag in ("<think>", "</think>", "<tool_call>")])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>",
                                   chat_template=template, clean_up_tokenization_spaces=False)
