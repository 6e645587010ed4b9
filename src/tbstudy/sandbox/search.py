"""A small stand-in for a Typesense server, for machines without one: collections, documents, ranked text search.

What the clients of ThinkingBox's tool servers use, on SQLite's FTS5: create, read and delete collections and
documents, search one collection, search several at once, grouped hits with highlights. Text is ranked by BM25; where
Typesense would search by embedding, documents without a common word follow, by shared letter trigrams. Rankings differ
from Typesense's, so results obtained with it are not canonical.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import sqlite3
import time
import urllib.request
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tbstudy.errors import StudyError
from tbstudy.sandbox.servers import ServerSpec

HOST, PORT = "127.0.0.1", 8108
#: What /health says besides ok, so that a campaign can tell this service from Typesense.
MARK = "tbstudy-search-service"
_IDLE_SECONDS = 6 * 3600
_LARGEST_BODY = 64 << 20


class ApiError(Exception):
    """A request that is answered with an error status."""

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = status


class Collection:
    """Documents by id, with a full-text index that is made when first searched."""

    def __init__(self, name: str, fields: list[dict[str, Any]]):
        self.name, self.fields = name, fields
        self.documents: dict[str, dict[str, Any]] = {}
        self.created, self.used = int(time.time()), time.monotonic()
        self._index: sqlite3.Connection | None = None
        self._numbered = 0

    def info(self) -> dict[str, Any]:
        return {"name": self.name, "fields": self.fields, "num_documents": len(self.documents),
                "created_at": self.created, "default_sorting_field": ""}

    def add(self, document: Any, replace: bool = False) -> dict[str, Any]:
        if not isinstance(document, dict):
            raise ApiError(400, "Bad JSON: a document is an object")
        key = document.get("id")
        if key is None:
            key = str(self._numbered)
            self._numbered += 1
        key = str(key)
        if key in self.documents and not replace:
            raise ApiError(409, f"A document with id {key} already exists.")
        self.documents[key] = {**document, "id": key}
        self.close()
        return self.documents[key]

    def remove(self, key: str) -> dict[str, Any]:
        if key not in self.documents:
            raise ApiError(404, f"Could not find a document with id: {key}")
        self.close()
        return self.documents.pop(key)

    def close(self) -> None:
        if self._index is not None:
            self._index.close()
            self._index = None

    def ranked(self, query: str, fields: list[str], by_meaning: bool) -> list[tuple[str, float, float]]:
        """(id, text match, distance) of the documents that match, best first.

        Text match grows and distance falls (from 2 to 0) with relevance. With `by_meaning` no document is left out.
        """
        if query.strip() == "*":
            return [(key, 0.0, 2.0) for key in self.documents]
        if self._index is None:
            self._build()
        words = match_expression(query)
        columns = [f for f in fields if f in self._columns]
        found: list[tuple[str, float, float]] = []
        if words and columns:
            assert self._index is not None
            expression = f"{{{' '.join(_quoted(c) for c in columns)}}} : ({words})"
            rows = self._index.execute("SELECT id, bm25(documents) FROM documents WHERE documents MATCH ? "
                                       "ORDER BY bm25(documents), id", (expression,)).fetchall()
            # BM25 in SQLite is negative, better is smaller; the distance keeps its order within (0, 1).
            found = [(key, -score, 1 / (1 + max(0.0, -score))) for key, score in rows]
        if by_meaning:
            seen = {key for key, _, _ in found}
            wanted = trigrams(query)
            rest = [(key, _likeness(wanted, trigrams(" ".join(str(d.get(f, "")) for f in columns))))
                    for key, d in self.documents.items() if key not in seen]
            found += [(key, 0.0, 2 - score) for key, score in sorted(rest, key=lambda r: (-r[1], r[0]))]
        return found

    def _build(self) -> None:
        texts = sorted({f for d in self.documents.values() for f, v in d.items() if isinstance(v, str) and f != "id"})
        self._columns = texts
        self._index = sqlite3.connect(":memory:")
        if not texts:
            return
        names = ", ".join(_quoted(t) for t in texts)
        self._index.execute(f"CREATE VIRTUAL TABLE documents USING fts5(id UNINDEXED, {names}, "
                            "tokenize='porter unicode61')")
        self._index.executemany(
            f"INSERT INTO documents VALUES ({', '.join('?' * (len(texts) + 1))})",
            ([key, *(str(d.get(t, "")) for t in texts)] for key, d in self.documents.items()))


class SearchService:
    """The stand-in's state and its answers to requests."""

    def __init__(self) -> None:
        self.collections: dict[str, Collection] = {}

    def answer(self, method: str, target: str, body: bytes) -> tuple[int, Any]:
        """Status and JSON value (or text, for line-wise imports) of a request."""
        url = urlsplit(target)
        parts = [unquote(p) for p in url.path.split("/") if p]
        params = dict(parse_qsl(url.query, keep_blank_values=True))
        try:
            return self._route(method, parts, params, body)
        except ApiError as error:
            return error.status, {"message": str(error)}
        except (ValueError, TypeError, KeyError) as error:
            return 400, {"message": f"Bad request: {error}"}

    def _route(self, method: str, parts: list[str], params: dict[str, str], body: bytes) -> tuple[int, Any]:
        match method, parts:
            case "GET", ["health"]:
                return 200, {"ok": True, "service": MARK}
            case "GET", ["collections"]:
                return 200, [c.info() for c in self.collections.values()]
            case "POST", ["collections"]:
                return 201, self._create(json.loads(body)).info()
            case "POST", ["multi_search"]:
                searches = json.loads(body).get("searches", [])
                return 200, {"results": [self._try_search({**params, **s}) for s in searches]}
            case _, ["collections", name, *rest]:
                collection = self._collection(name)
                match method, rest:
                    case "GET", []:
                        return 200, collection.info()
                    case "DELETE", []:
                        collection.close()
                        return 200, self.collections.pop(name).info()
                    case "POST", ["documents"]:
                        replace = params.get("action") in ("upsert", "update", "emplace")
                        return 201, collection.add(json.loads(body), replace)
                    case "POST", ["documents", "import"]:
                        return 200, self._import(collection, body, params.get("action", "create"))
                    case "GET", ["documents", "search"]:
                        return 200, self._search(collection, params)
                    case "GET", ["documents", key]:
                        if key not in collection.documents:
                            raise ApiError(404, f"Could not find a document with id: {key}")
                        return 200, collection.documents[key]
                    case "DELETE", ["documents", key]:
                        return 200, collection.remove(key)
        raise ApiError(404, "Not Found")

    def _create(self, schema: Any) -> Collection:
        if not isinstance(schema, dict) or not isinstance(schema.get("name"), str):
            raise ApiError(400, "Parameter `name` is required.")
        if schema["name"] in self.collections:
            raise ApiError(409, f"A collection with name `{schema['name']}` already exists.")
        self._forget_idle()
        collection = Collection(schema["name"], schema.get("fields", []))
        self.collections[collection.name] = collection
        return collection

    def _forget_idle(self) -> None:
        # Sessions that were killed could not delete theirs.
        now = time.monotonic()
        for name in [n for n, c in self.collections.items() if now - c.used > _IDLE_SECONDS]:
            self.collections.pop(name).close()

    def _collection(self, name: str) -> Collection:
        found = self.collections.get(name)
        if found is None:
            raise ApiError(404, "Not Found")
        found.used = time.monotonic()
        return found

    def _import(self, collection: Collection, body: bytes, action: str) -> str:
        lines = []
        for line in body.decode().split("\n"):  # JSON text may hold what Python takes for other line breaks
            if not line.strip():
                continue
            try:
                collection.add(json.loads(line), action != "create")
                lines.append('{"success": true}')
            except (ApiError, ValueError) as error:
                lines.append(json.dumps({"success": False, "error": str(error), "document": line}))
        return "\n".join(lines)

    def _try_search(self, params: dict[str, Any]) -> dict[str, Any]:
        try:
            return self._search(self._collection(str(params.get("collection"))), params)
        except ApiError as error:
            return {"code": error.status, "error": str(error)}

    def _search(self, collection: Collection, params: Mapping[str, Any]) -> dict[str, Any]:
        query, fields = str(params.get("q", "*")), str(params.get("query_by", "")).split(",")
        fields = [f.strip() for f in fields]
        embedded = {f["name"] for f in collection.fields if "embed" in f}
        by_meaning = any(f in embedded for f in fields)
        texts = [f for f in fields if f not in embedded] or ["text"]
        allowed = keep(collection.documents, params.get("filter_by"))
        ranked = [r for r in collection.ranked(query, texts, by_meaning) if r[0] in allowed]
        size, page = int(params.get("per_page", 10)), max(1, int(params.get("page", 1)))
        hidden = {f.strip() for f in str(params.get("exclude_fields", "")).split(",")}
        hits = [self._hit(collection.documents[key], score, distance, query, params, hidden, by_meaning)
                for key, score, distance in ranked]
        out: dict[str, Any] = {"found": len(ranked), "out_of": len(collection.documents), "page": page,
                               "search_time_ms": 0, "request_params": {"q": query, "per_page": size,
                                                                       "collection_name": collection.name}}
        window = slice((page - 1) * size, page * size)
        group_by = params.get("group_by")
        if not group_by:
            return {**out, "hits": hits[window]}
        groups: dict[Any, list[dict[str, Any]]] = {}
        limit = int(params.get("group_limit", 3))
        for hit, (key, _, _) in zip(hits, ranked, strict=True):
            groups.setdefault(collection.documents[key].get(group_by), []).append(hit)
        grouped = [{"group_key": [value], "found": len(members), "hits": members[:limit]}
                   for value, members in groups.items()]
        return {**out, "found": len(groups), "found_docs": len(ranked), "grouped_hits": grouped[window]}

    def _hit(self, document: dict[str, Any], score: float, distance: float, query: str, params: Mapping[str, Any],
             hidden: set[str], by_meaning: bool) -> dict[str, Any]:
        shown = {k: v for k, v in document.items() if k not in hidden}
        hit: dict[str, Any] = {"document": shown, "text_match": round(score * 1_000_000), "highlights": []}
        if by_meaning:
            hit["vector_distance"] = distance
        start, end = params.get("highlight_start_tag", "<mark>"), params.get("highlight_end_tag", "</mark>")
        around = int(params.get("highlight_affix_num_tokens", 4))
        for name in str(params.get("highlight_fields", "")).split(","):
            snippets = highlight(str(document.get(name, "")), query, start, end, around)
            if snippets:
                most = int(params.get("highlight_num_snippets", 5))
                hit["highlights"].append({"field": name, "snippets": snippets[:most], "snippet": snippets[0]})
        return hit


def match_expression(query: str) -> str:
    """A query as an FTS5 expression: any of its words or quoted phrases."""
    phrases = re.findall(r'"([^"]+)"', query)
    words = re.findall(r"\w+", re.sub(r'"[^"]*"', " ", query))
    return " OR ".join(_quoted(p) for p in (*phrases, *words) if re.search(r"\w", p))


def trigrams(text: str) -> set[str]:
    """The letter trigrams of a text's words."""
    return {w[i:i + 3] for w in re.findall(r"\w+", text.lower()) for i in range(max(1, len(w) - 2))}


def _likeness(a: set[str], b: set[str]) -> float:
    return len(a & b) / len(a) if a else 0.0


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def keep(documents: Mapping[str, Mapping[str, Any]], filter_by: Any) -> set[str]:
    """Ids of the documents that pass a filter: `field:=value` or `field:[a, b]`, joined by `||` or `&&`.

    Raises:
        ApiError: a filter of another form.
    """
    if not filter_by:
        return set(documents)

    def clause(text: str) -> set[str]:
        found = re.fullmatch(r"\s*(\w+)\s*:=?\s*(.+?)\s*", text)
        if not found:
            raise ApiError(400, f"Could not parse the filter query: {text!r}")
        name, value = found.groups()
        values = value[1:-1].split(",") if value.startswith("[") and value.endswith("]") else [value]
        wanted = {v.strip().strip("`") for v in values}
        return {key for key, d in documents.items() if str(d.get(name)) in wanted}

    alternatives = [[clause(c) for c in part.split("&&")] for part in str(filter_by).split("||")]
    return set().union(*(set.intersection(*clauses) for clauses in alternatives))


def highlight(text: str, query: str, start: str, end: str, around: int) -> list[str]:
    """Snippets of `around` words before and after each match, with the words of the query marked."""
    wanted = {w.lower() for w in re.findall(r"\w+", query)}
    words = re.findall(r"\S+", text)
    hits = [i for i, w in enumerate(words) if wanted & set(re.findall(r"\w+", w.lower()))]
    snippets, last = [], -1
    for i in hits:
        if i <= last:
            continue
        first, last = max(0, i - around), min(len(words) - 1, i + around)
        marked = {k for k in hits if first <= k <= last}
        snippets.append(" ".join(f"{start}{w}{end}" if k in marked else w
                                 for k, w in enumerate(words[first:last + 1], first)))
    return snippets


# the HTTP side -------------------------------------------------------------------------------------------------------


async def serve(host: str = HOST, port: int = PORT) -> asyncio.Server:
    """Start the stand-in; the caller runs and closes the server.

    Raises:
        StudyError: the address is taken.
    """
    service = SearchService()

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await _read(reader)) is not None:
                method, target, body, stay = request
                status, value = service.answer(method, target, body)
                text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
                data = text.encode()
                writer.write(f"HTTP/1.1 {status} {'OK' if status < 400 else 'Error'}\r\n"
                             f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n"
                             f"Connection: {'keep-alive' if stay else 'close'}\r\n\r\n".encode() + data)
                await writer.drain()
                if not stay:
                    return
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass  # a client that left or does not speak HTTP
        finally:
            writer.close()

    try:
        return await asyncio.start_server(connection, host, port)
    except OSError as error:
        raise StudyError(f"{host}:{port} cannot be used: {error.strerror or error}; is a search service already "
                         "running there?") from error


async def _read(reader: asyncio.StreamReader) -> tuple[str, str, bytes, bool] | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, version = first.split(" ", 2)
    headers = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in lines)}
    size = int(headers.get("content-length") or 0)
    if size > _LARGEST_BODY or "transfer-encoding" in headers:
        raise ValueError("unsupported body")
    body = await reader.readexactly(size) if size else b""
    stay = headers.get("connection", "").lower() != "close" and version != "HTTP/1.0"
    return method, target, body, stay


# readiness -----------------------------------------------------------------------------------------------------------


def needs_search(servers: Iterable[ServerSpec]) -> list[str]:
    """Names of the servers whose settings speak of Typesense."""
    return [s.name for s in servers if any("TYPESENSE" in key.upper() for key in s.env)]


def check_search(servers: Iterable[ServerSpec], host: str = HOST, port: int = PORT, seconds: float = 5.0
                 ) -> dict[str, Any] | None:
    """What search service the servers will find, for a manifest: name, address, and whether it is canonical; None
    when they need none.

    Raises:
        StudyError: they need one and it does not answer.
    """
    names = needs_search(servers)
    if not names:
        return None
    address = f"http://{host}:{port}"
    try:
        with urllib.request.urlopen(f"{address}/health", timeout=seconds) as response:
            health = json.load(response)
        if not isinstance(health, dict):
            raise ValueError(f"it answers {health!r:.80}")
    except (OSError, ValueError, http.client.HTTPException) as error:
        shown = ", ".join(names[:3]) + (" and others" if len(names) > 3 else "")
        raise StudyError(f"no search service at {host}:{port}, which {shown} need ({error}). Start Typesense 30.1 "
                         f"there, or `tbstudy search-service` for replay and development") from error
    standin = health.get("service") == MARK
    return {"service": MARK if standin else "typesense", "address": address, "canonical": not standin}
