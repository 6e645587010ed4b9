"""Fixtures of a check: objects made from configuration, with what they need injected by parameter name."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import Any


def make_fixtures(names: Iterable[str], configs: Mapping[str, Mapping[str, Any]], given: Mapping[str, Any],
                  stack: ExitStack) -> dict[str, Any]:
    """The fixtures `names`, made with what they depend on. Context managers are entered on `stack`.

    `configs` maps a name to `{"type": "package.module.attr", **arguments}`; `given` holds what exists already (`x`,
    `judge`). A parameter without default that the configuration does not set is injected from `given` or another
    fixture.

    Raises:
        LookupError: a fixture is unknown, cannot be imported, or depends on itself.
        RuntimeError: making one failed.
    """
    made: dict[str, Any] = {}

    def make(name: str, chain: tuple[str, ...]) -> Any:
        if name in given:
            return given[name]
        if name in made:
            return made[name]
        if name in chain:
            raise LookupError(f"fixtures depend on each other: {' -> '.join((*chain, name))}")
        if name not in configs:
            needed = f" (needed by {chain[-1]!r})" if chain else ""
            raise LookupError(f"there is no fixture {name!r}{needed}; known: {', '.join((*given, *configs)) or 'none'}")
        arguments = dict(configs[name])
        factory = _load(name, arguments.pop("type"))
        for parameter in _injected(factory, arguments):
            arguments[parameter] = make(parameter, (*chain, name))
        try:
            value = factory(**arguments)
        except Exception as error:
            raise RuntimeError(f"fixture {name!r} failed: {type(error).__name__}: {error}") from error
        if hasattr(value, "__enter__") and hasattr(value, "__exit__"):
            value = stack.enter_context(value)
        made[name] = value
        return value

    return {name: make(name, ()) for name in names}


def _load(name: str, path: str) -> Any:
    module, _, attribute = path.rpartition(".")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise LookupError(f"fixture {name!r} cannot be loaded from {path!r}: {error}") from error


def _injected(factory: Any, arguments: Mapping[str, Any]) -> list[str]:
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (ValueError, TypeError):
        return []
    return [p.name for p in parameters
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty
            and p.name not in arguments]
