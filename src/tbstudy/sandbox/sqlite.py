"""A tool server whose state is one SQLite database: an ordinary MCP server, and fast to reset.

One `SqliteServer` serves any number of sessions at once: the database of the session being served travels in a
context variable, so two sessions never share a row. Over stdio the process holds one session; in process the
sandbox opens a database per episode from bytes prepared once per task.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import anyio.to_thread
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, TextContent
from pydantic import ValidationError

RESERVED = "__reserved__"
_database: ContextVar[sqlite3.Connection] = ContextVar("tbstudy_database")


class Refusal(ToolError):
    """Raised by a tool that will not do what was asked; the policy reads the message as the tool's answer."""


class _Mcp(MCPServer):
    """The MCP server of a `SqliteServer`: a visible tool is called as in process, with the same text and rollback."""

    def __init__(self, owner: SqliteServer):
        super().__init__(owner.name)
        self._owner = owner

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Context | None = None) -> Any:
        if name.startswith(RESERVED):
            return await super().call_tool(name, arguments, context)
        text, failed = await anyio.to_thread.run_sync(self._owner._serve, name, arguments)
        return CallToolResult(content=[TextContent(type="text", text=text)], is_error=failed)


class SqliteServer:
    """A named set of tools over one SQLite schema.

    `schema` is DDL. A table with a primary key is compared row by row under that key; a table without one is
    compared as a multiset; tables that SQLite keeps for itself are not compared. World state for the server:
    `{"data": {table: [row, ...]}, "data_patch": {table: [row, ...]}, "golden_test_case": {"tool_interactions":
    [{"tool": ..., "parameters": {...}}, ...]}}`, where a patched row replaces the row of the same primary key.
    """

    def __init__(self, name: str, schema: str):
        self.name = name
        self.schema = schema
        self.mcp = _Mcp(self)
        self.keys = _primary_keys(schema)
        self._functions: dict[str, Callable[..., Any]] = {}
        self._session: sqlite3.Connection | None = None
        # Over the protocol calls may come at once, and one database holds one call's savepoint at a time.
        self._serving = threading.Lock()
        self._golden: dict[str, list[dict[str, Any]]] | None = None
        self._register_reserved()

    # tools -----------------------------------------------------------------------------------------------------

    def tool(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Register `fn` (typed arguments, JSON-serialisable result) as a tool; its docstring is the description."""

        # Answers are one line of compact JSON text, the same in process and over the protocol.
        def answer(**arguments: Any) -> str:
            return encode(fn(**arguments))

        answer.__name__, answer.__doc__ = fn.__name__, fn.__doc__
        answer.__signature__ = _signature_as_text(fn)  # type: ignore[attr-defined]
        answer.__annotations__ = {**fn.__annotations__, "return": str}
        self.mcp.tool(structured_output=False)(answer)
        self._functions[fn.__name__] = answer
        return fn

    def tool_schemas(self) -> list[dict[str, Any]]:
        """OpenAI-style tool dicts of the visible tools, in order of definition."""
        return [
            {"type": "function", "function": {"name": t.name, "description": t.description.strip(),
                                              "parameters": _without_titles(t.parameters)}}
            for t in self.mcp._tool_manager.list_tools() if not t.name.startswith(RESERVED)
        ]

    @property
    def db(self) -> sqlite3.Connection:
        """The database of the session being served."""
        return _database.get(self._session)  # type: ignore[arg-type]

    def row(self, table: str, key: str, value: Any) -> dict[str, Any]:
        """The row of `table` whose column `key` equals `value`; raises `Refusal` when there is none."""
        found = self.db.execute(f'SELECT * FROM "{table}" WHERE "{key}" = ?', (value,)).fetchone()
        if found is None:
            raise Refusal(f"no {table} entry with {key} {value}")
        return decode_row(found)

    def rows(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        """All rows of a query as dicts."""
        return [decode_row(r) for r in self.db.execute(sql, values).fetchall()]

    def insert(self, table: str, **row: Any) -> None:
        """Insert a row; lists and mappings are stored as JSON text."""
        insert_row(self.db, table, row)

    def update(self, table: str, key: str, value: Any, **changes: Any) -> None:
        """Change columns of the row of `table` whose `key` equals `value`; raises `Refusal` when there is none."""
        names = ", ".join(f'"{c}" = ?' for c in changes)
        done = self.db.execute(f'UPDATE "{table}" SET {names} WHERE "{key}" = ?',
                               (*map(encode_cell, changes.values()), value))
        if done.rowcount == 0:
            raise Refusal(f"no {table} entry with {key} {value}")

    # sessions --------------------------------------------------------------------------------------------------

    def prepare(self, config: dict[str, Any]) -> bytes:
        """Initial database of a task as SQLite bytes.

        Raises:
            ValueError: a table or column that the schema does not have, or rows that are none; it names the place.
        """
        db = connect()
        try:
            db.executescript(self.schema)
            for part in ("data", "data_patch"):
                for table, rows in _mapping(config.get(part) or {}, f"{self.name}.{part}").items():
                    if table not in self.keys:
                        raise ValueError(f"{self.name}.{part}: no table {table!r} (tables: {', '.join(self.keys)})")
                    for position, row in enumerate(_list(rows, f"{self.name}.{part}.{table}")):
                        where = f"{self.name}.{part}.{table}[{position}]"
                        try:
                            insert_row(db, table, _mapping(row, where), replace=True)
                        except (sqlite3.Error, OverflowError, TypeError, UnicodeError) as error:
                            raise ValueError(f"{where}: initial rows do not fit the schema: {error}") from error
            db.commit()
            return db.serialize()
        except sqlite3.Error as error:
            raise ValueError(f"{self.name}: initial rows do not fit the schema: {error}") from error
        finally:
            db.close()

    def invoke(self, db: sqlite3.Connection, name: str, arguments: dict[str, Any]) -> str:
        """Call a visible tool on `db`; refusals, bad arguments and whatever a tool did not foresee come back as text,
        state unchanged by them.

        The arguments are validated by the same model that the MCP server uses.
        """
        return self._call(db, name, arguments)[0]

    def _serve(self, name: str, arguments: dict[str, Any]) -> tuple[str, bool]:
        with self._serving:
            if self._session is None:
                return "Error: session not initialised", True
            return self._call(self._session, name, arguments)

    def _call(self, db: sqlite3.Connection, name: str, arguments: dict[str, Any]) -> tuple[str, bool]:
        """A tool's answer and whether the call failed, in which case it changed nothing."""
        tool = self.mcp._tool_manager.get_tool(name)
        if tool is None or name.startswith(RESERVED):
            return f"Error: function '{name}' does not exist", True
        try:
            validated = tool.fn_metadata.validate_arguments(arguments)
        except ValidationError as error:
            return "Error: " + "; ".join(
                f"{'.'.join(map(str, e['loc'])) or 'arguments'}: {e['msg']}" for e in error.errors()), True
        except Exception as error:
            return f"Error: {error}", True
        token = _database.set(db)
        try:
            db.execute("SAVEPOINT call")
            answer = self._functions[name](**validated)
            db.execute("RELEASE call")
            return answer, False
        except Exception as error:
            _roll_back(db)
            return f"Error: {error}", True
        finally:
            _database.reset(token)

    def golden_state(self, config: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
        """Terminal state after the task's golden calls on a fresh database.

        Raises:
            ValueError: a golden call is none or fails, which means that the task is broken; it names server and call.
        """
        where = f"{self.name}.golden_test_case"
        case = _mapping(config.get("golden_test_case") or {}, where)
        db = open_database(self.prepare(config))
        try:
            for position, call in enumerate(_list(case.get("tool_interactions") or [], f"{where}.tool_interactions")):
                here = f"{where}.tool_interactions[{position}]"
                tool = _mapping(call, here).get("tool")
                if not isinstance(tool, str):
                    raise ValueError(f"{here}: field 'tool' must be the name of a tool, it is {tool!r}")
                parameters = _mapping(call.get("parameters") or {}, f"{here}.parameters")
                answer, failed = self._call(db, tool, parameters)
                if failed or answer.startswith("Error:"):
                    raise ValueError(f"{self.name}: golden call {tool}({parameters}) refused: {answer}")
            return dump(db, self.keys)
        finally:
            db.close()

    def effects(self, db: sqlite3.Connection, golden: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
        """What the check sees: two state hashes and the differences that explain an inequality."""
        result = dump(db, self.keys)
        return {"status": "ok", "result_db_hash": digest(result), "golden_db_hash": digest(golden),
                "diff": difference(golden, result, self.keys, self.name)}

    # the MCP server --------------------------------------------------------------------------------------------

    def _register_reserved(self) -> None:
        def init(config: dict[str, Any]) -> dict[str, Any]:
            """Reset the session to the given world state."""
            try:
                self._session = open_database(self.prepare(config))
                self._golden = self.golden_state(config)
            except ValueError as error:
                raise ToolError(str(error)) from error  # of any other exception the client would not read the words
            return {"status": "ok"}

        def geteffects() -> dict[str, Any]:
            """State hashes and differences of the session."""
            if self._session is None or self._golden is None:
                raise ToolError("session not initialised")
            return self.effects(self._session, self._golden)

        def teardown() -> dict[str, Any]:
            """End the session."""
            if self._session is not None:
                self._session.close()
            self._session = self._golden = None
            return {"status": "ok"}

        for suffix, fn in (("init", init), ("geteffects", geteffects), ("teardown", teardown)):
            self.mcp.tool(name=RESERVED + suffix, structured_output=False)(fn)

    def main(self) -> None:
        """Serve over stdio."""
        self.mcp.run("stdio")


# databases -----------------------------------------------------------------------------------------------------


def connect() -> sqlite3.Connection:
    """An empty in-memory database whose rows read like mappings."""
    # One thread serves a session at a time, but the SDK may run a tool in a worker thread.
    db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    db.row_factory = sqlite3.Row
    db.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)  # whatever SQL is run here, it opens no other file
    return db


def open_database(snapshot: bytes) -> sqlite3.Connection:
    """A private copy of a prepared database."""
    db = connect()
    db.deserialize(snapshot)
    return db


def _roll_back(db: sqlite3.Connection) -> None:
    try:
        db.execute("ROLLBACK TO call")
        db.execute("RELEASE call")
    except sqlite3.Error:
        pass  # no savepoint is open: there was none to be had, or SQLite has rolled everything back


def encode(value: Any) -> str:
    """Compact one-line JSON text, in valid Unicode."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair out of stored JSON text
        text = json.dumps(value)
    return text


def encode_cell(value: Any) -> Any:
    """A value as SQLite stores it: lists and mappings as JSON text, booleans as 0 and 1."""
    return json.dumps(value, sort_keys=True) if isinstance(value, (list, dict)) else value


def decode_row(row: sqlite3.Row) -> dict[str, Any]:
    """A row as tools return it: JSON text back to lists and mappings."""
    return {k: _decode_cell(v) for k, v in zip(row.keys(), row, strict=True)}


def _decode_cell(value: Any) -> Any:
    if isinstance(value, str) and value[:1] in "[{":
        try:
            return json.loads(value)
        except (ValueError, RecursionError):  # text that only begins like JSON, or nests too deep to be read
            return value
    return value


def insert_row(db: sqlite3.Connection, table: str, row: dict[str, Any], replace: bool = False) -> None:
    columns = ", ".join(f'"{c}"' for c in row)
    marks = ", ".join("?" * len(row))
    verb = "INSERT OR REPLACE" if replace else "INSERT"
    db.execute(f'{verb} INTO "{table}" ({columns}) VALUES ({marks})', tuple(map(encode_cell, row.values())))


def _primary_keys(schema: str) -> dict[str, tuple[str, ...]]:
    db = connect()
    try:
        db.executescript(schema)
        # What SQLite keeps for itself (counters, statistics, the insides of virtual tables) is no state of the world.
        own = {r["name"] for r in db.execute("PRAGMA table_list") if r["type"] == "shadow"}
        tables = [r[0] for r in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid")
                  if r[0] not in own and not r[0].lower().startswith("sqlite_")]
        return {t: tuple(c["name"] for c in sorted(db.execute(f'PRAGMA table_info("{t}")'), key=lambda c: c["pk"])
                         if c["pk"]) for t in tables}
    finally:
        db.close()


# state comparison ----------------------------------------------------------------------------------------------


def canonical(value: Any) -> Any:
    """Values that mean the same compare the same: 25 and 25.0, 0 and -0.0, in JSON text too, whatever its key order."""
    if isinstance(value, str) and value[:1] in "[{":
        try:
            return json.dumps(_same_numbers(json.loads(value)), sort_keys=True)
        except (ValueError, RecursionError):  # text that only begins like JSON, or nests too deep to be read
            return value
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"  # as SQL writes it; JSON has no bytes
    return _same_numbers(value)


def _same_numbers(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_same_numbers(v) for v in value]
    if isinstance(value, dict):
        return {k: _same_numbers(v) for k, v in value.items()}
    return value


def dump(db: sqlite3.Connection, keys: dict[str, tuple[str, ...]]) -> dict[str, list[dict[str, Any]]]:
    """The whole state by table: canonical values, rows sorted so that neither insertion nor query order matters."""
    state = {}
    for table in keys:
        rows = [{k: canonical(v) for k, v in zip(r.keys(), r, strict=True)}
                for r in db.execute(f'SELECT * FROM "{table}"')]
        state[table] = sorted(rows, key=lambda r: json.dumps(r, sort_keys=True, default=str))
    return state


def digest(state: dict[str, list[dict[str, Any]]]) -> str:
    """SHA-256 of a dumped state."""
    return hashlib.sha256(json.dumps(state, sort_keys=True, default=str).encode()).hexdigest()


def difference(expected: dict[str, list[dict[str, Any]]], actual: dict[str, list[dict[str, Any]]],
               keys: dict[str, tuple[str, ...]], server: str) -> list[dict[str, Any]]:
    """Every difference between two dumped states, as dicts with kind (wrong, missing, extra), server, table, row,
    field, expected, actual. A missing or extra row has field None and the whole row as value."""
    found: list[dict[str, Any]] = []

    def add(kind: str, table: str, row: Any, field: str | None, want: Any, got: Any) -> None:
        found.append({"kind": kind, "server": server, "table": table, "row": row, "field": field,
                      "expected": want, "actual": got})

    for table, key in keys.items():
        if not key:
            want, got = (Counter(json.dumps(r, sort_keys=True) for r in s[table]) for s in (expected, actual))
            for text in (want - got).elements():
                add("missing", table, None, None, json.loads(text), None)
            for text in (got - want).elements():
                add("extra", table, None, None, None, json.loads(text))
            continue
        want, got = ({tuple(r[k] for k in key): r for r in s[table]} for s in (expected, actual))
        for k in want.keys() | got.keys():
            name = ", ".join(map(str, k))
            if k not in got:
                add("missing", table, name, None, want[k], None)
            elif k not in want:
                add("extra", table, name, None, None, got[k])
            else:
                for field in want[k]:
                    if want[k][field] != got[k][field]:
                        add("wrong", table, name, field, want[k][field], got[k][field])
    return sorted(found, key=lambda d: (d["table"], str(d["row"]), str(d["field"]), d["kind"],
                                        json.dumps([d["expected"], d["actual"]], sort_keys=True)))


def _mapping(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{where} must be a mapping, it is {value!r:.200}")
    return value


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, (list, tuple)):
        raise ValueError(f"{where} must be a list, it is {value!r:.200}")
    return list(value)


def _without_titles(schema: Any) -> Any:
    # pydantic adds a title to every property; it repeats the name and costs the policy context.
    if isinstance(schema, dict):
        return {k: _without_titles(v) for k, v in schema.items() if not (k == "title" and isinstance(v, str))}
    if isinstance(schema, list):
        return [_without_titles(v) for v in schema]
    return schema


def _signature_as_text(fn: Callable[..., Any]) -> Any:
    return inspect.signature(fn, eval_str=True).replace(return_annotation=str)
