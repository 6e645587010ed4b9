"""Chat messages as Qwen's template demands them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def coalesce_system(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """`messages` with its leading system messages merged into one, their texts joined by a blank line.

    Qwen's template refuses a system message anywhere but first. Content given as text parts is joined as text; empty
    texts leave no blank line behind. The input is not changed; later messages are the same objects.
    """
    lead = 0
    while lead < len(messages) and messages[lead].get("role") == "system":
        lead += 1
    if lead < 2:
        return list(messages)
    texts = [_text(message.get("content")) for message in messages[:lead]]
    merged = {**messages[0], "content": "\n\n".join(text for text in texts if text)}
    return [merged, *messages[lead:]]


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(part.get("text", "") if isinstance(part, dict) else str(part) for part in content)
    return content or ""
