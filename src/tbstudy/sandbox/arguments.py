"""Which arguments of a policy's call go to a tool server, and text that can be stored and sent.

What is refused here is refused as text to the policy: whatever a model writes must not become an infrastructure
failure, or it could choose to have no verdict.
"""

from __future__ import annotations

import json
from typing import Any

#: No tool takes more. A server that is handed a bomb would die, hang, or store it.
MAX_BYTES, MAX_DEPTH = 1 << 20, 64


def refusal(arguments: str) -> str:
    """Why the wire text of a call's arguments is of no use to any server; empty when it is.

    Useful is a JSON object of at most 1 MB, nested at most 64 deep, without NaN or infinities, in valid Unicode.
    """
    if len(arguments) > MAX_BYTES:
        return f"they have {len(arguments)} characters, at most {MAX_BYTES} are taken"
    try:
        value = json.loads(arguments, parse_constant=_no_number)
        if not isinstance(value, dict):
            return f"they are {type(value).__name__}"
        if arguments.count("[") + arguments.count("{") > MAX_DEPTH and depth(value) > MAX_DEPTH:
            return f"they are nested more than {MAX_DEPTH} deep"
        # Infinities also come as 1e999, and half a surrogate pair as an escape.
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError as error:
        return f"they hold half a surrogate pair ({error.object[error.start:error.start + 1]!r})"
    except RecursionError:
        return f"they are nested more than {MAX_DEPTH} deep"
    except ValueError as error:
        return str(error)
    return ""


def depth(value: Any) -> int:
    """How deep lists and mappings nest; without recursion, since that is what is being found out."""
    found, level = 0, [value]
    while outer := [v for v in level if isinstance(v, (dict, list))]:
        level = [inner for v in outer for inner in (v.values() if isinstance(v, dict) else v)]
        found += 1
    return found


def clean(text: str) -> str:
    """The text with halves of surrogate pairs replaced by U+FFFD, so that it can be stored and sent."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def clean_json(text: str) -> str:
    """JSON text as ASCII if it holds halves of surrogate pairs: the same value in valid Unicode."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join(c if c < "\ud800" else json.dumps(c)[1:-1] for c in text)
    return text


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")
