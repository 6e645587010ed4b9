"""Which server's reading is spoken: the tags, type names and special tokens of one serving version.

A profile is data. Another version that differs only in these tables is one more entry in `PROFILES`; one that differs
in procedure brings its own functions beside `markup` and `schema`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tbstudy.errors import StudyError

# Tokens a Qwen3.5 configuration names (eos, pad, audio, image, video, vision). A checkpoint that lists more under
# `additional_special_tokens` must be read with its own `tokenizer.all_special_tokens`.
DEFAULT = (
    "<|im_end|>",
    "<|endoftext|>",
    "<|audio_start|>",
    "<|audio_end|>",
    "<|audio_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
    "<|vision_start|>",
    "<|vision_end|>",
)


@dataclass(frozen=True, slots=True)
class Profile:
    """One serving version. `whitespace` is the set its tag patterns call blank (Unicode White_Space, which unlike
    Python's `str.isspace` leaves out U+001C to U+001F); `type_order` is the order in which types are tried."""

    name: str
    think_start: str = "<think>"
    think_end: str = "</think>"
    call_start: str = "<tool_call>"
    call_end: str = "</tool_call>"
    function_start: str = "<function="
    function_end: str = "</function>"
    parameter_start: str = "<parameter="
    parameter_end: str = "</parameter>"
    whitespace: str = (
        "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
        "\u2028\u2029\u202f\u205f\u3000"
    )
    type_order: tuple[str, ...] = ("null", "integer", "number", "boolean", "object", "array", "string")
    type_aliases: tuple[tuple[str, str], ...] = field(
        default=(
            *((name, "string") for name in ("str", "text", "varchar", "char", "enum")),
            *((name, "integer") for name in ("int", "int32", "int64", "uint", "uint32", "uint64")),
            *((name, "integer") for name in ("long", "short", "unsigned")),
            *((name, "number") for name in ("float", "float32", "float64", "double")),
            ("bool", "boolean"),
            ("dict", "object"),
            *((name, "array") for name in ("arr", "list", "sequence")),
        )
    )

    def tags(self) -> tuple[str, ...]:
        """Every literal the reader takes apart from text, without the lone `>` that closes a name."""
        return (
            self.think_start,
            self.think_end,
            self.call_start,
            self.call_end,
            self.function_start,
            self.function_end,
            self.parameter_start,
            self.parameter_end,
        )


PROFILES = {"vllm-0.27.1": Profile("vllm-0.27.1")}


def get_profile(name: str) -> Profile:
    """The profile called `name`; StudyError names the known ones otherwise."""
    try:
        return PROFILES[name]
    except KeyError:
        raise StudyError(f"unknown interpreter profile {name!r}; known: {', '.join(PROFILES)}") from None
