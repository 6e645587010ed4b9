"""An OpenAI-compatible server of a small checkpoint, with faults to order; also a program:

    python tests/policies/model_server.py CHECKPOINT --port 8000
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tbstudy.interpreter import coalesce_system, interpret
from tbstudy.policies.sampler import Engine, Row, Sampling
from tbstudy.policies.small_model import SmallLM
from tbstudy.policies.small_tokenizer import load_tokenizer


class Brain:
    """A small model: prompt ids in, sampled ids out."""

    def __init__(self, folder: Path, context: int = 4096):
        self.model, self.tokenizer, self.context = SmallLM.load(folder), load_tokenizer(folder), context
        self._lock, self._calls = threading.Lock(), 0

    def generate(self, ids: list[int], limit: int, seed: int | None, temperature: float) -> list[int]:
        with self._lock:
            self._calls += 1
            rng = np.random.default_rng(self._calls if seed is None else seed)
            engine = Engine(self.model, self.tokenizer.eos_token_id, Sampling(max(temperature, 1e-4), 20, 0.95))
            row = Row("request", rng.random(limit), pending=list(ids), budget=limit)
            engine.admit([row])
            engine.run()
            return row.ids


class ModelServer:
    """`url` answers `/chat/completions` and `/completions` while the context is open.

    `faults` are taken from the front, one a request: a function of the request that answers in its place, or None
    for a normal answer. `script` answers chat requests with message dicts instead of the model. `seen` holds the
    bodies of all requests, `headers` their headers.
    """

    def __init__(self, brain: Brain | None, *, raw: str = "none", usage: bool = True,
                 script: Callable[[dict], dict] | None = None):
        self.brain, self.raw, self.usage, self.script = brain, raw, usage, script
        self.faults: list[Callable[[Request], Response] | None] = []
        self.seen: list[dict] = []
        self.headers: list[dict] = []
        self.running = self.most = 0
        app = Starlette(routes=[Route("/v1/chat/completions", self._chat, methods=["POST"]),
                                Route("/v1/completions", self._complete, methods=["POST"])])
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"
        self._server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off"))
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)

    def __enter__(self) -> ModelServer:
        self._thread.start()
        while not self._server.started:
            time.sleep(0.005)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(10)
        self._socket.close()

    async def _answer(self, request: Request, make: Callable[[dict], Response]) -> Response:
        self.seen.append(json.loads(await request.body()))
        self.headers.append(dict(request.headers))
        fault = self.faults.pop(0) if self.faults else None
        if fault is not None:
            answer = fault(request)
            return await answer if asyncio.iscoroutine(answer) else answer
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            return await asyncio.to_thread(make, self.seen[-1])
        finally:
            self.running -= 1

    async def _chat(self, request: Request) -> Response:
        return await self._answer(request, self._chat_reply)

    async def _complete(self, request: Request) -> Response:
        return await self._answer(request, self._text_reply)

    def _chat_reply(self, body: dict) -> Response:
        if self.script is not None:
            message = self.script(body)
            finish = message.pop("finish_reason", "tool_calls" if message.get("tool_calls") else "stop")
            return JSONResponse(self._body([{"index": 0, "message": message, "finish_reason": finish}], 100, 10))
        tokenizer, tools = self.brain.tokenizer, body.get("tools")
        messages = coalesce_system(body["messages"])
        for message in messages:
            for call in message.get("tool_calls") or ():
                call["function"]["arguments"] = json.loads(call["function"]["arguments"])
        prompt = tokenizer.apply_chat_template(messages, tools=tools, add_generation_prompt=True, tokenize=False)
        ids = tokenizer.encode(prompt, add_special_tokens=False)
        limit = body.get("max_completion_tokens") or self.brain.context
        if len(ids) + limit > self.brain.context:
            return overflow(len(ids) + limit, self.brain.context)
        out, finish = self._sample(ids, limit, body)
        text = tokenizer.decode(out[:-1] if finish == "stop" else out)
        read = interpret(text, tools, finish_reason=finish, special_tokens=tuple(tokenizer.all_special_tokens))
        message = {"role": "assistant", "content": read.content, "reasoning_content": read.reasoning,
                   "tool_calls": [{"id": f"srv-{i}", "type": "function",
                                   "function": {"name": c.name, "arguments": c.arguments}}
                                  for i, c in enumerate(read.tool_calls)]}
        choice = {"index": 0, "message": message, "finish_reason": read.finish_reason}
        if self.raw == "text":
            message["raw_text"] = text
        elif self.raw == "ids":
            choice["token_ids"] = out
        return JSONResponse(self._body([choice], len(ids), len(out)))

    def _text_reply(self, body: dict) -> Response:
        out, finish = self._sample(body["prompt"], body["max_tokens"], body)
        text = self.brain.tokenizer.decode(out[:-1] if finish == "stop" else out)
        choice = {"index": 0, "text": text, "finish_reason": finish}
        if self.raw == "ids" and body.get("return_token_ids"):
            choice["token_ids"] = out
        return JSONResponse(self._body([choice], len(body["prompt"]), len(out)))

    def _sample(self, ids: list[int], limit: int, body: dict) -> tuple[list[int], str]:
        out = self.brain.generate(ids, limit, body.get("seed"), body.get("temperature", 1.0))
        return out, "stop" if out[-1] == self.brain.tokenizer.eos_token_id else "length"

    def _body(self, choices: list[dict], used: int, made: int) -> dict:
        body = {"id": "x", "object": "chat.completion", "created": 0, "model": "small", "choices": choices}
        if self.usage:
            body["usage"] = {"prompt_tokens": used, "completion_tokens": made, "total_tokens": used + made,
                             "prompt_tokens_details": {"cached_tokens": used // 2}}
        return body


# faults ----------------------------------------------------------------------------------------------------------


def status(code: int, message: str = "no", error: str | None = None, **headers: str) -> Callable[[Request], Response]:
    """An HTTP error as OpenAI-compatible servers word it."""
    body = {"error": {"message": message, "code": error}}
    return lambda request: JSONResponse(body, code, {k.replace("_", "-"): v for k, v in headers.items()})


def overflow(wanted: int, context: int) -> Response:
    """vLLM's refusal of a request that does not fit."""
    return JSONResponse({"object": "error", "type": "BadRequestError", "code": 400, "message": (
        f"This model's maximum context length is {context} tokens. However, you requested {wanted} tokens. Please "
        "reduce the length of the messages or completion.")}, 400)


def said(body: str, kind: str = "application/json") -> Callable[[Request], Response]:
    """200 with this body."""
    return lambda request: Response(body, media_type=kind)


LATE = b'{"choices": [{"message": {"content": "late"}}]}'


def hang(seconds: float) -> Callable[[Request], object]:
    """No answer for a while, then a good one."""
    async def wait(request: Request) -> Response:
        await asyncio.sleep(seconds)
        return Response(LATE, media_type="application/json")
    return wait


class _Torn(Response):
    async def __call__(self, scope, receive, send) -> None:
        await send({"type": "http.response.start", "status": 200,
                    "headers": [(b"content-type", b"application/json"), (b"content-length", b"5000")]})
        await send({"type": "http.response.body", "body": b'{"choices": [{"mess', "more_body": True})
        raise ConnectionResetError


class _Trickle(Response):
    async def __call__(self, scope, receive, send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        for _ in range(600):
            await send({"type": "http.response.body", "body": b" ", "more_body": True})
            await asyncio.sleep(0.05)
        await send({"type": "http.response.body", "body": LATE})


def torn(request: Request) -> Response:
    """The connection drops in the middle of the body."""
    return _Torn()


def trickle(request: Request) -> Response:
    """A blank every 50 ms, for half a minute: no single read ever times out."""
    return _Trickle()


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve a small checkpoint over an OpenAI-compatible API.")
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--port", type=int, default=8000)
    options = parser.parse_args()
    server = ModelServer(Brain(options.checkpoint), raw="text")
    uvicorn.run(server._server.config.app, port=options.port, log_level="warning")


if __name__ == "__main__":
    main()
