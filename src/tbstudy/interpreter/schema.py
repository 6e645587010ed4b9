"""From a raw parameter text to the JSON value that is served, by the declared schema.

Types are collected from a schema, then tried in a fixed order; the first that fits wins. A text that fits none of the
declared types is read as plain JSON, and stays text when it is not JSON either.
"""

from __future__ import annotations

import json
import math
from functools import lru_cache
from typing import Any

from tbstudy.interpreter.profile import Profile

_ENUM_TYPES = (bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"), (list, "array"), (dict, "object")
MISS = object()  # no value: None is one


def declared_types(schema: Any) -> set[str]:
    """Type names that `type`, `enum`, `anyOf`, `oneOf` and `allOf` declare; {"string"} when they declare none.

    Everything else in a schema (`$ref`, `const`, `items`, `properties`, ...) is ignored, as the server does.
    """
    if not isinstance(schema, dict):
        return {"string"}
    types: set[str] = set()
    declared = schema.get("type")
    if isinstance(declared, str):
        types.add(declared)
    elif isinstance(declared, list):
        types.update(name for name in declared if isinstance(name, str))
    values = schema.get("enum")
    if isinstance(values, list):
        for value in values:
            if value is None:
                types.add("null")
                continue
            for kind, name in _ENUM_TYPES:
                if isinstance(value, kind):
                    types.add(name)
                    break
    for key in ("anyOf", "oneOf", "allOf"):
        choices = schema.get(key)
        if isinstance(choices, list):
            for choice in choices:
                types |= declared_types(choice)
    return types or {"string"}


@lru_cache(maxsize=1024)
def _ordered(types: frozenset[str], profile: Profile) -> tuple[str, ...]:
    aliases = dict(profile.type_aliases)
    names = {aliases.get(name, name) for name in (raw.strip().lower() for raw in types)}
    return tuple(name for name in profile.type_order if name in names)


def finite_json(value: str) -> Any:
    """`value` decoded, or `MISS` when it is not JSON, holds a non-finite number, or nests too deep to decode."""
    try:
        parsed = json.loads(value)
        # Only these characters can bring in a non-finite number: 1e999, 999(...)9.0, NaN, Infinity.
        if isinstance(parsed, str) or not any(char in value for char in ".eENI"):
            return parsed
        json.dumps(parsed, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        return MISS
    return parsed


def _null(value: str) -> Any:
    return None if value.lower() == "null" else MISS


def _integer(value: str) -> Any:
    try:
        return int(value)
    except ValueError:
        return MISS


def _number(value: str) -> Any:
    try:
        number = float(value)
    except ValueError:
        return MISS
    if not math.isfinite(number):
        return MISS
    return int(number) if number == int(number) else number


def _boolean(value: str) -> Any:
    word = value.lower().strip()
    if word in ("true", "1"):
        return True
    return False if word in ("false", "0") else MISS


def _string(value: str) -> Any:
    return value


_READERS = {
    "null": _null,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "object": finite_json,
    "array": finite_json,
    "string": _string,
}


def type_order(schema: Any, profile: Profile) -> tuple[str, ...]:
    """Known types that `schema` declares, aliases resolved, in the order in which the profile tries them."""
    return _ordered(frozenset(declared_types(schema)), profile)


def coerce(value: str, schema: Any, profile: Profile) -> Any:
    """The JSON value served for the text `value` under `schema`; `value` itself when it stays text."""
    for name in type_order(schema, profile):
        read = _READERS[name](value)
        if read is not MISS:
            return read
    read = finite_json(value)
    return value if read is MISS else read


def coerce_decoded(value: Any, schema: dict[str, Any], profile: Profile) -> tuple[Any, bool]:
    """Same for a value that arrived already decoded (a call written as JSON); returns (value, changed).

    Objects follow `properties` and lists follow `items` here; they are changed in place.
    """
    if isinstance(value, str):
        read = coerce(value, schema, profile)
        return read, read is not value
    if isinstance(value, dict):
        properties = schema.get("properties")
        return value, isinstance(properties, dict) and coerce_members(value, properties, profile)
    if isinstance(value, list):
        items = schema.get("items")
        changed = False
        if isinstance(items, dict):
            for index, item in enumerate(value):
                value[index], item_changed = coerce_decoded(item, items, profile)
                changed = changed or item_changed
        return value, changed
    read = coerce(json.dumps(value, ensure_ascii=False), schema, profile)
    if type(read) is not type(value) or read != value:
        return read, True
    return value, False


def coerce_members(values: dict[str, Any], properties: dict[str, Any], profile: Profile) -> bool:
    """`coerce_decoded` over the members that `properties` declares, in place; True when one changed."""
    changed = False
    for key, value in values.items():
        schema = properties.get(key)
        if isinstance(schema, dict):
            read, member_changed = coerce_decoded(value, schema, profile)
            if member_changed:
                values[key] = read
                changed = True
    return changed


def find_properties(tools: list[dict[str, Any]] | None, name: str) -> dict[str, Any]:
    """Declared properties of the first tool called `name`; {} when there is none or it declares none."""
    for tool in tools or ():
        function = tool.get("function") if isinstance(tool, dict) else None
        if isinstance(function, dict) and function.get("name") == name:
            parameters = function.get("parameters")
            properties = parameters.get("properties") if isinstance(parameters, dict) else None
            return properties if isinstance(properties, dict) else {}
    return {}
