"""The chat-template proxy against a fake model server, over real sockets where time and order matter."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time

import httpx2 as httpx
import pytest
import uvicorn

from tbstudy.errors import StudyError
from tbstudy.evaluation.proxy import ChatProxy, ProxySettings, rewrite

SAMPLING = {"temperature": 1.0, "top_p": 0.95, "top_k": 20, "max_completion_tokens": 8192}


class ModelServer:
    """Remembers requests; streams three pieces with a gate between them; answers as `status` and `models` say."""

    def __init__(self):
        self.requests, self.status, self.models = [], 200, ["policy"]
        self.gate, self.cancelled = threading.Event(), threading.Event()
        self.gate.set()

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        self.requests.append((scope["method"], scope["path"], dict(scope["headers"]), body, scope["query_string"]))
        stream = b'"stream": true' in body
        kind = b"text/event-stream" if stream else b"application/json"
        await send({"type": "http.response.start", "status": self.status,
                    "headers": [(b"content-type", kind), (b"x-request-id", b"r1")]})
        if scope["path"] == "/v1/models":
            said = json.dumps({"data": [{"id": name} for name in self.models]}).encode()
            await send({"type": "http.response.body", "body": said})
            return
        if not stream:
            await send({"type": "http.response.body", "body": b'{"ok": "\xc3\xa4"}'})
            return
        await send({"type": "http.response.body", "body": b"data: one\n\n", "more_body": True})
        while not self.gate.is_set():
            watch = asyncio.ensure_future(receive())
            done, _ = await asyncio.wait({watch}, timeout=0.02)
            if done and watch.result()["type"] == "http.disconnect":
                self.cancelled.set()
                return
            watch.cancel()
        for piece in (b"data: two\n\n", b"data: [DONE]\n\n"):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


class Served:
    """An ASGI application on a free port, in a thread."""

    def __init__(self, app, **options):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        config = uvicorn.Config(app, host="127.0.0.1", port=self.port, log_level="error", **options)
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, daemon=True)

    def __enter__(self):
        self.thread.start()
        for _ in range(500):
            if self.server.started:
                return self
            time.sleep(0.01)
        raise RuntimeError("the test server did not start")

    def __exit__(self, *_):
        self.server.should_exit = True
        self.thread.join(10)


@pytest.fixture(autouse=True)
def no_network_proxy(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "https_proxy", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def model():
    return ModelServer()


@pytest.fixture
def pair(model):
    with Served(model) as behind:
        with Served(ChatProxy(ProxySettings(behind.url, "policy", SAMPLING))) as front:
            yield front, model


def chat(url, **body):
    return httpx.post(f"{url}/v1/chat/completions", json=body, headers={"Authorization": "Bearer mine"})


def test_leading_system_messages_become_one_and_sampling_is_filled_in(pair):
    front, model = pair
    messages = [{"role": "system", "content": "a"}, {"role": "system", "content": "b"},
                {"role": "user", "content": "ü", "extra": 1}]
    answer = chat(front.url, model="policy", messages=messages, temperature=0.2, tools=[{"x": 1}])
    assert answer.status_code == 200 and answer.json() == {"ok": "ä"} and answer.headers["x-request-id"] == "r1"
    method, path, headers, body, _ = model.requests[-1]
    sent = json.loads(body)
    assert (method, path) == ("POST", "/v1/chat/completions") and headers[b"authorization"] == b"Bearer mine"
    assert sent["messages"] == [{"role": "system", "content": "a\n\nb"}, messages[2]]
    assert sent["temperature"] == 0.2 and sent["top_k"] == 20 and sent["max_completion_tokens"] == 8192
    assert sent["tools"] == [{"x": 1}] and int(headers[b"content-length"]) == len(body)


def test_a_limit_under_its_old_name_counts():
    assert "max_completion_tokens" not in json.loads(rewrite(b'{"messages": [], "max_tokens": 5}', SAMPLING))


def test_what_is_no_chat_request_is_the_servers_to_refuse(pair):
    front, model = pair
    model.status = 422
    assert chat(front.url, messages="hello").status_code == 422
    assert json.loads(model.requests[-1][3])["messages"] == "hello"


@pytest.mark.parametrize(("body", "said"), [(b"{", "not JSON"), (b"[1]", "not a JSON object"), (b"", "not JSON")])
def test_bodies_that_are_no_json_object_are_refused_here(pair, body, said):
    front, model = pair
    answer = httpx.post(f"{front.url}/v1/chat/completions", content=body)
    assert answer.status_code == 400 and said in answer.json()["error"]["message"] and not model.requests


def test_other_paths_pass_as_they_are(pair):
    front, model = pair
    answer = httpx.post(f"{front.url}/v1/completions?a=1&b=%20", content=b'{"prompt":  [1, 2]}')
    assert answer.status_code == 200
    assert model.requests[-1][1:2] == ("/v1/completions",) and model.requests[-1][3] == b'{"prompt":  [1, 2]}'
    assert model.requests[-1][4] == b"a=1&b=%20"
    assert httpx.get(f"{front.url}/metrics").status_code == 404


def test_streams_pass_piece_by_piece(pair):
    front, model = pair
    model.gate.clear()
    with httpx.stream("POST", f"{front.url}/v1/chat/completions", json={"messages": [], "stream": True}) as answer:
        assert answer.headers["content-type"] == "text/event-stream"
        pieces = answer.iter_raw()
        # The first piece is here while the server still waits before the second.
        assert next(pieces) == b"data: one\n\n"
        model.gate.set()
        assert b"".join(pieces) == b"data: two\n\ndata: [DONE]\n\n"


def test_a_client_that_goes_away_stops_the_server(pair):
    front, model = pair
    model.gate.clear()
    with httpx.stream("POST", f"{front.url}/v1/chat/completions", json={"messages": [], "stream": True}) as answer:
        next(answer.iter_raw())
    assert model.cancelled.wait(10)


def test_ready_only_when_the_server_serves_the_model(pair):
    front, model = pair
    assert httpx.get(f"{front.url}/healthz").json() == {"status": "ok"}
    assert httpx.get(f"{front.url}/readyz").status_code == 200
    model.models = ["base"]
    answer = httpx.get(f"{front.url}/readyz")
    assert answer.status_code == 503 and answer.json()["status"] == "the model server serves base, not policy"
    model.status = 500
    assert "HTTP 500" in httpx.get(f"{front.url}/readyz").json()["status"]


def test_a_server_that_is_not_there():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with Served(ChatProxy(ProxySettings(url))) as front:
            assert httpx.get(f"{front.url}/readyz").status_code == 503
            answer = chat(front.url, messages=[])
            assert answer.status_code == 502 and "does not answer" in answer.json()["error"]["message"]


def test_a_server_that_takes_too_long_and_a_body_that_is_too_large(model):
    async def slow(scope, receive, send):
        if scope["type"] == "http":
            await asyncio.sleep(30)

    with Served(slow, timeout_graceful_shutdown=1) as behind:
        with Served(ChatProxy(ProxySettings(behind.url, timeout_seconds=0.2, max_body=1000))) as front:
            answer = chat(front.url, messages=[])
            assert answer.status_code == 504 and "longer than 0.2 s" in answer.json()["error"]["message"]
            assert chat(front.url, messages=[{"role": "user", "content": "x" * 2000}]).status_code == 413


def test_the_servers_key_replaces_the_clients(model, monkeypatch):
    monkeypatch.setenv("SERVER_KEY", "theirs")
    with Served(model) as behind:
        with Served(ChatProxy(ProxySettings(behind.url, api_key_env="SERVER_KEY"))) as front:
            chat(front.url, messages=[])
    assert model.requests[-1][2][b"authorization"] == b"Bearer theirs"
    monkeypatch.delenv("SERVER_KEY")
    with pytest.raises(StudyError, match="SERVER_KEY"):
        ChatProxy(ProxySettings("http://x", api_key_env="SERVER_KEY"))


def test_many_requests_at_once(pair):
    front, model = pair

    async def all_of_them():
        async with httpx.AsyncClient() as client:
            answers = await asyncio.gather(*(client.post(
                f"{front.url}/v1/chat/completions", json={"messages": [{"role": "user", "content": str(i)}]})
                for i in range(60)))
        return [answer.status_code for answer in answers]

    assert asyncio.run(all_of_them()) == [200] * 60
    assert {json.loads(body)["messages"][0]["content"] for *_, body, _ in model.requests} == set(map(str, range(60)))
