"""The eight domains by name, imported when first asked for."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial

from tbstudy.errors import StudyError
from tbstudy_demo.cases import Domain

#: Domains of the training pool's candidates.
POOL = ("telecom", "clinic", "parcel")
#: Domains that only the benchmark uses.
BENCHMARK = ("retail", "travel", "auto_insurance", "neobank", "consulting")


def _import(name: str) -> Domain:
    return importlib.import_module(f"tbstudy_demo.templates.{name}").domain


#: A loader by domain name.
DOMAINS: dict[str, Callable[[], Domain]] = {name: partial(_import, name) for name in (*POOL, *BENCHMARK)}


def load(name: str) -> Domain:
    """The domain of that name.

    Raises:
        StudyError: there is none.
    """
    if name not in DOMAINS:
        raise StudyError(f"no bundled domain {name!r}; domains: {', '.join(DOMAINS)}")
    return DOMAINS[name]()
