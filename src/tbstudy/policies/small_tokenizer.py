"""The small policy's tokenizer and chat template: Qwen's markup, a vocabulary trained on the study's own texts.

Values that episodes copy (ids, names, dates, amounts, enum values) are one token each, whatever stands around them;
the rest is byte-level BPE whose merges may span words. Newlines at the start of a segment stay apart, so that ids
concatenated turn by turn equal the tokenization of the whole conversation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
MARKUP = ("<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>")

#: Qwen's conversation format: tools as JSON lines, calls as XML, every turn's reasoning kept, `<think>` pre-opened.
CHAT_TEMPLATE = r"""
{%- for message in messages %}
{%- if message.role == "system" %}
{{- "<|im_start|>system\n" + message.content }}
{%- if loop.first and tools %}
{{- "\n\n# Tools\n<tools>" }}
{%- for tool in tools %}{{- "\n" + (tool.function | tojson) }}{%- endfor %}
{{- "\n</tools>\nCall a tool like this:\n" }}
{{- "<tool_call>\n<function=name>\n<parameter=key>\nvalue\n</parameter>\n</function>\n</tool_call>" }}
{%- endif %}
{{- "<|im_end|>\n" }}
{%- elif message.role == "user" %}
{{- "<|im_start|>user\n" + message.content + "<|im_end|>\n" }}
{%- elif message.role == "assistant" %}
{{- "<|im_start|>assistant\n<think>\n" + (message.reasoning_content or "") + "</think>" }}
{{- message.content or "" }}
{%- for call in message.tool_calls or [] %}
{{- ("\n\n" if loop.first else "\n") + "<tool_call>\n<function=" + call.function.name + ">\n" }}
{%- for key, value in call.function.arguments.items() %}
{{- "<parameter=" + key + ">\n" + (value if value is string else value | tojson) + "\n</parameter>\n" }}
{%- endfor %}
{{- "</function>\n</tool_call>" }}
{%- endfor %}
{{- "<|im_end|>\n" }}
{%- elif message.role == "tool" %}
{%- if loop.first or messages[loop.index0 - 1].role != "tool" %}{{- "<|im_start|>user" }}{%- endif %}
{{- "\n<tool_response>\n" + message.content + "\n</tool_response>" }}
{%- if loop.last or messages[loop.index0 + 1].role != "tool" %}{{- "<|im_end|>\n" }}{%- endif %}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- "<|im_start|>assistant\n<think>\n" }}{%- endif %}
""".strip("\n")


def build_tokenizer(texts: Iterable[str], atoms: Iterable[str], vocab_size: int) -> Any:
    """Train on rendered conversations; returns a transformers fast tokenizer with the chat template set.

    `atoms` become one token each wherever they stand as whole words. Same texts, same tokenizer.
    """
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    atoms = sorted(set(atoms))
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"^\n+"), "isolated"),
        # The prefix of an id is the cue for copying its number.
        pre_tokenizers.Split(Regex(r"\b[A-Z]{1,2}-$"), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - len(atoms) - len(SPECIAL) - len(MARKUP), min_frequency=2, show_progress=False,
        max_token_length=64, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.train_from_iterator(_segments(texts, atoms), trainer)
    tokenizer.add_special_tokens(list(SPECIAL))
    tokenizer.add_tokens([AddedToken(m, normalized=False) for m in MARKUP])
    tokenizer.add_tokens([AddedToken(a, single_word=True, normalized=False) for a in atoms])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>", chat_template=CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False, model_max_length=4096)


def load_tokenizer(folder: Path) -> Any:
    """The tokenizer of a checkpoint folder, read from disk only."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder, local_files_only=True)


def _segments(texts: Iterable[str], atoms: list[str]) -> Iterator[str]:
    # Training does not split at added tokens by itself; encoding will.
    words = "|".join(map(re.escape, sorted(atoms, key=len, reverse=True)))
    marks = "|".join(map(re.escape, SPECIAL + MARKUP))
    boundary = re.compile(rf"{marks}|(?<!\w)(?:{words})(?!\w)")
    for text in texts:
        yield from (piece for piece in boundary.split(text) if piece)
