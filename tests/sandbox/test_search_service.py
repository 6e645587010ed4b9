"""The search stand-in: Typesense's endpoints, ranking, readiness."""

import asyncio
import http.client
import json
import socket
import threading

import pytest

from tbstudy.errors import StudyError
from tbstudy.sandbox.search import MARK, SearchService, check_search, highlight, keep, match_expression, serve
from tbstudy.sandbox.servers import ServerSpec

FIELDS = [{"name": "source", "type": "string"}, {"name": "text", "type": "string"},
          {"name": "embedding", "type": "float[]", "embed": {"from": ["text"]}}]
TEXTS = {"returns.md": "You may return a laptop within 30 days. Refunds take a week.",
         "shipping.md": "Shipping takes three days. Tracking numbers come by mail.",
         "warranty.md": "A warranty covers defects of a laptop for a year. Returned laptops, refunded laptops."}


def service():
    found = SearchService()
    ask(found, "POST", "/collections", {"name": "kb", "fields": FIELDS})
    for source, text in TEXTS.items():
        assert ask(found, "POST", "/collections/kb/documents", {"source": source, "text": text, "id": source})[0] == 201
    return found


def ask(found, method, target, body=None):
    return found.answer(method, target, json.dumps(body).encode() if body is not None else b"")


def test_collections_and_documents():
    s = service()
    assert ask(s, "GET", "/health") == (200, {"ok": True, "service": MARK})
    assert ask(s, "GET", "/collections/kb")[1]["num_documents"] == 3
    assert [c["name"] for c in ask(s, "GET", "/collections")[1]] == ["kb"]
    assert ask(s, "POST", "/collections", {"name": "kb"})[0] == 409
    assert ask(s, "POST", "/collections", {})[0] == 400
    assert ask(s, "POST", "/collections/kb/documents", {"id": "returns.md"})[0] == 409
    assert ask(s, "POST", "/collections/kb/documents?action=upsert", {"id": "returns.md", "text": "x"})[0] == 201
    assert ask(s, "GET", "/collections/kb/documents/returns.md")[1]["text"] == "x"
    assert ask(s, "DELETE", "/collections/kb/documents/returns.md")[0] == 200
    assert ask(s, "DELETE", "/collections/kb/documents/returns.md")[0] == 404
    assert ask(s, "GET", "/collections/kb/documents/returns.md")[0] == 404
    status, lines = s.answer("POST", "/collections/kb/documents/import", b'{"text": "a"}\n{"id": "shipping.md"}\nno')
    assert [json.loads(line)["success"] for line in lines.split("\n")] == [True, False, False] and status == 200
    assert ask(s, "DELETE", "/collections/kb")[0] == 200
    assert ask(s, "GET", "/collections/kb") == (404, {"message": "Not Found"})
    assert ask(s, "GET", "/elsewhere")[0] == 404 and s.answer("POST", "/collections", b"{")[0] == 400


def test_an_import_is_cut_at_line_feeds_only():
    s = service()
    texts = ["one\u2028two", "one\x85two\u2029three", "plain"]
    body = "\r\n".join(json.dumps({"id": str(i), "text": t}, ensure_ascii=False) for i, t in enumerate(texts)) + "\n\n"
    status, lines = s.answer("POST", "/collections/kb/documents/import", body.encode())
    assert status == 200 and lines == "\n".join(['{"success": true}'] * 3)
    assert [ask(s, "GET", f"/collections/kb/documents/{i}")[1]["text"] for i in range(3)] == texts


def search(s, **params):
    target = "/multi_search?collection=kb&exclude_fields=embedding"
    return ask(s, "POST", target, {"searches": [params]})[1]["results"][0]


def test_text_is_ranked():
    s = service()
    found = search(s, q="return laptop", query_by="text")
    assert [h["document"]["source"] for h in found["hits"]] == ["warranty.md", "returns.md"] and found["found"] == 2
    scores = [h["text_match"] for h in found["hits"]]
    assert scores == sorted(scores, reverse=True) and scores[0] > 0
    assert [h["document"]["source"] for h in search(s, q='"three days"', query_by="text")["hits"]] == ["shipping.md"]
    assert search(s, q='"days three"', query_by="text")["hits"] == []
    assert search(s, q="zebra", query_by="text")["found"] == 0
    assert search(s, q="*", query_by="text", per_page=0)["found"] == 3
    for odd in ('"', "AND OR NOT (", "text:x*", "a'b \"c", ""):
        assert "found" in search(s, q=odd, query_by="text")


def test_a_search_by_meaning_leaves_nothing_out():
    s = service()
    found = search(s, q="warrantee", query_by="embedding,text")
    assert [h["document"]["source"] for h in found["hits"]][0] == "warranty.md" and found["found"] == 3
    found = search(s, q="tracking", query_by="embedding,text")
    distances = [h["vector_distance"] for h in found["hits"]]
    assert found["hits"][0]["document"]["source"] == "shipping.md"
    assert distances == sorted(distances) and 0 < distances[0] < 1 <= distances[1] <= 2


def test_grouping_filters_pages_and_highlights():
    s = service()
    ask(s, "POST", "/collections/kb/documents", {"source": "returns.md", "text": "Return a phone.", "id": "r2"})
    groups = search(s, q="return", query_by="text", group_by="source")["grouped_hits"]
    assert {g["group_key"][0]: len(g["hits"]) for g in groups} == {"returns.md": 2, "warranty.md": 1}
    found = search(s, q="return", query_by="text", filter_by="source:=warranty.md || source:=shipping.md")
    assert [h["document"]["source"] for h in found["hits"]] == ["warranty.md"]
    assert len(search(s, q="return", query_by="text", per_page=1, page=2)["hits"]) == 1
    hit = search(s, q="tracking", query_by="text", highlight_fields="text", highlight_affix_num_tokens=1)["hits"][0]
    assert hit["highlights"] == [{"field": "text", "snippets": ["days. <mark>Tracking</mark> numbers"],
                                  "snippet": "days. <mark>Tracking</mark> numbers"}]
    assert search(s, q="a", query_by="text", filter_by="???")["code"] == 400
    assert ask(s, "POST", "/multi_search?collection=no", {"searches": [{}]})[1]["results"][0]["code"] == 404
    assert ask(s, "GET", "/collections/kb/documents/search?q=phone&query_by=text")[1]["found"] == 1


def test_parts():
    assert match_expression('see "a b" now') == '"a b" OR "see" OR "now"' and match_expression("? !") == ""
    assert keep({"1": {"a": "x"}, "2": {"a": "y"}}, "a:[x, y] && a:=y") == {"2"}
    assert highlight("one two three two", "two", "[", "]", 0) == ["[two]", "[two]"]
    assert highlight("one two three two", "two", "[", "]", 9) == ["one [two] three [two]"]


def test_over_http():
    async def run():
        server = await serve(port=0)
        port = server.sockets[0].getsockname()[1]

        def client():
            connection = http.client.HTTPConnection("127.0.0.1", port)
            out = []
            for method, path, body in (("GET", "/health", None), ("POST", "/collections", {"name": "a/b"}),
                                       ("GET", "/collections/a%2Fb", None), ("GET", "/nothing", None)):
                connection.request(method, path, json.dumps(body) if body else None)
                response = connection.getresponse()
                out.append((response.status, json.loads(response.read())))
            connection.close()
            raw = http.client.HTTPConnection("127.0.0.1", port)
            raw.connect()
            raw.sock.sendall(b"nonsense\r\n\r\n")
            assert raw.sock.recv(10) == b""  # a client that does not speak HTTP is let go
            raw.close()
            return out

        async with server:
            out = await asyncio.to_thread(client)
            specs = [ServerSpec("shop", env={"TYPESENSE_API_KEY": "x"})]
            ready = await asyncio.to_thread(check_search, specs, "127.0.0.1", port)
            with pytest.raises(StudyError, match="is a search service already"):
                await serve(port=port)
            assert await asyncio.to_thread(check_search, [ServerSpec("plain")], "127.0.0.1", 1) is None
        with pytest.raises(StudyError, match="no search service at 127.0.0.1:1, which shop need"):
            check_search(specs, "127.0.0.1", 1)
        return out, ready, port

    out, ready, port = asyncio.run(run())
    assert [status for status, _ in out] == [200, 201, 200, 404]
    assert ready == {"service": MARK, "address": f"http://127.0.0.1:{port}", "canonical": False}


@pytest.mark.parametrize("said", [b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.0 200 OK\r\n\r\n[]"])
def test_something_else_behind_the_port_is_no_search_service(said):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        def answer():
            with listening.accept()[0] as connection:
                connection.recv(1000)
                connection.sendall(said)

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(StudyError, match="no search service at .*, which shop need"):
            check_search([ServerSpec("shop", env={"TYPESENSE_API_KEY": "x"})], port=listening.getsockname()[1])
        thread.join()
