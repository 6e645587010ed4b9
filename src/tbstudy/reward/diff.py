"""Explains a failed verdict from what the tool servers say about the terminal state."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_PATH = re.compile(r"([^.\[\]]+)(?:\[(\d+)\])?(?:\.(.*))?")
_KINDS = ("wrong", "missing", "extra")


def explain(effects: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The differences that all servers report, as dicts with kind, server, table, row, field, expected, actual.

    Servers of this package report them in that form. Those of ThinkingBox's benchmark report paths such as
    `orders[3].status` into row lists sorted by id, which shift when a row is missing; where they also give both
    states, the rows are compared by id instead, in the fields that the report names.
    """
    found: list[dict[str, Any]] = []
    for server, effect in effects.items():
        items = effect.get("diff") if isinstance(effect, dict) else None
        if not isinstance(items, list):
            continue
        ready = [d for d in items if isinstance(d, dict) and d.get("kind") in _KINDS]
        found += ready if len(ready) == len(items) else _from_paths(server, effect, items)
    return found


def _from_paths(server: str, effect: Mapping[str, Any], items: list[Any]) -> list[dict[str, Any]]:
    states = effect.get("golden_db_state"), effect.get("result_db_state")
    found: list[dict[str, Any]] = []
    tables: dict[str, list[tuple[int | None, str | None, dict[str, Any]]]] = {}
    for item in items:
        match = _PATH.fullmatch(str(item.get("path", ""))) if isinstance(item, dict) else None
        if match is None:
            found.append(_entry("wrong", server, None, None, None, None, item))
            continue
        table, index, field = match.groups()
        tables.setdefault(table, []).append((int(index) if index else None, field, item))
    for table, changes in tables.items():
        want, got = (_by_id(s.get(table)) if isinstance(s, dict) else None for s in states)
        if want is not None and got is not None:
            fields = {f.split(".")[0].split("[")[0] for _, f, _ in changes if f}
            found += _compare(server, table, want, got, fields)
            continue
        for index, field, item in changes:
            if index is None and "length" in item.get("type", ""):
                continue  # the rows beyond the shorter list are reported one by one
            kind = ("missing" if item.get("type", "").startswith("missing") else
                    "extra" if item.get("type", "").startswith("present") else "wrong")
            found.append(_entry(kind, server, table, index, field, item.get("golden"), item.get("result")))
    return found


def _by_id(rows: Any) -> dict[str, dict[str, Any]] | None:
    if not isinstance(rows, list) or not all(isinstance(r, dict) and "id" in r for r in rows):
        return None
    by_id = {str(r["id"]): r for r in rows}
    return by_id if len(by_id) == len(rows) else None


def _compare(server: str, table: str, want: dict[str, dict[str, Any]], got: dict[str, dict[str, Any]],
             fields: set[str]) -> list[dict[str, Any]]:
    found = [_entry("missing", server, table, row, None, want[row], None) for row in want if row not in got]
    found += [_entry("extra", server, table, row, None, None, got[row]) for row in got if row not in want]
    for row in want.keys() & got.keys():
        found += [_entry("wrong", server, table, row, f, want[row].get(f), got[row].get(f))
                  for f in sorted(fields) if want[row].get(f) != got[row].get(f)]
    return sorted(found, key=lambda d: (d["kind"], str(d["row"]), str(d["field"])))


def _entry(kind: str, server: str, table: str | None, row: Any, field: str | None, want: Any,
           got: Any) -> dict[str, Any]:
    return {"kind": kind, "server": server, "table": table, "row": row, "field": field, "expected": want,
            "actual": got}
