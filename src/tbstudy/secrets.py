"""Keys from the environment: taken out of whatever is written, and kept from processes that have no use for them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping

#: Names that keys have: a part of the name says so. The short words stand alone, or MONKEY and AUTHOR were keys too.
_NAME = re.compile(r"API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|TOKEN(?!IZ)|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|"
                   r"(^|_)(KEYS?|AUTH|PASS)(_|$)", re.IGNORECASE)
#: A shorter value may be an ordinary word, and words must stay in records. A key that is in use is known by itself.
_SHORTEST, _SHORTEST_GUESSED = 8, 16
SHOWN = "[key]"
_used: set[str] = set()


def is_secret_name(name: str) -> bool:
    """Whether an environment variable of this name is taken for a key."""
    return _NAME.search(name) is not None


def use(value: str) -> str:
    """Note a key that this process uses, and return it."""
    if len(value) >= _SHORTEST:
        _used.add(value)
    return value


def in_use() -> int:
    """How many keys `use` has noted; a scrubber made before does not know those that came since."""
    return len(_used)


def scrubber(environment: Mapping[str, str] | None = None) -> Callable[[str], str]:
    """A function that replaces keys in a text by `[key]`: those in use, and values of 16 characters or more of
    variables whose names say that they are keys. Also as they are written inside JSON."""
    found = set(_used)
    for name, value in (os.environ if environment is None else environment).items():
        if len(value) >= _SHORTEST_GUESSED and is_secret_name(name):
            found.add(value)
    found |= {json.dumps(value)[1:-1] for value in found}
    found |= {json.dumps(value, ensure_ascii=False)[1:-1] for value in found}
    ordered = sorted(found, key=len, reverse=True)

    def scrub(text: str) -> str:
        for value in ordered:
            if value in text:
                text = text.replace(value, SHOWN)
        return text

    return scrub


def scrub(text: str) -> str:
    """`text` without keys; see `scrubber`."""
    return scrubber()(text)


def without_secrets(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment for a process that needs no keys: without names that say key, and without keys in use."""
    return {name: value for name, value in (os.environ if environment is None else environment).items()
            if not is_secret_name(name) and value not in _used}
