"""Model endpoints: one OpenAI-compatible call with retries, bounded concurrency, and an account of tokens and cost.

Whatever goes wrong on the way is one of three things. Trouble that passes (429, 5xx, time-outs, dropped connections,
replies that are no valid JSON) is tried again with growing, jittered pauses, or when the server's Retry-After says
(within the longest pause), and becomes a `SystemFault` of the role that asked once the tries are used up. A request
that can never work (wrong key, no such model, quota used up) is a `StudyError`. A conversation that no longer fits is
a `ContextOverflow`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from tbstudy import bounded, secrets
from tbstudy.errors import StudyError, SystemFault
from tbstudy.policies.base import Usage

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_logger = logging.getLogger(__name__)

#: A reply larger than this (millions of tokens) is no reply.
MAX_REPLY = 16 << 20
#: Finish reasons with which a server says that it, not the model, ended the generation.
_GIVEN_UP = frozenset({"error", "abort", "aborted", "cancelled"})
_PASSING = frozenset({408, 409, 425, 429})
# How servers say that a conversation does not fit: OpenAI, vLLM, SGLang, llama.cpp, Anthropic-compatible gateways.
_OVERFLOW = re.compile(
    r"context[_ ]?(length|window|size)|maximum (model|sequence) length|max_model_len|longer than the "
    r"(model|maximum)|prompt is too long|input is too long|too many (input )?tokens|reduce the length", re.IGNORECASE)
_attempt: ContextVar[list[Usage] | None] = ContextVar("tbstudy_attempt_usage", default=None)


#: Fields of an endpoint that cannot change what it answers; they are not part of a record's identity, so that a run
#: may be continued with a larger budget or another key.
OPERATIONAL = frozenset({"api_key_env", "concurrency", "timeout_seconds", "tries", "max_pause_seconds", "budget_usd",
                         "usd_per_million_input", "usd_per_million_cached", "usd_per_million_output", "budget_tokens"})


class Endpoint(BaseModel):
    """Where a model answers. The key is read from the environment variable `api_key_env`; None sends no real key.

    `api` is "chat" (the server reads calls and reasoning out of the text) or "completions" (we do; needs `tokenizer`,
    a folder with the model's tokenizer and chat template). A call may take `timeout_seconds` and is tried `tries`
    times; pauses grow up to `max_pause_seconds`. `extra_body` is merged into every request. Prices are USD per million
    tokens. The budgets end a run before a policy call once they are spent.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    base_url: str = Field(pattern=r"^https?://")
    model: str = Field(min_length=1)
    api_key_env: str | None = None
    api: Literal["chat", "completions"] = "chat"
    tokenizer: str | None = None
    concurrency: int = Field(default=16, gt=0)
    timeout_seconds: float = Field(default=600.0, gt=0)
    tries: int = Field(default=6, gt=0)
    max_pause_seconds: float = Field(default=60.0, ge=0)
    extra_body: dict[str, Any] = {}
    usd_per_million_input: float | None = Field(default=None, ge=0)
    usd_per_million_cached: float | None = Field(default=None, ge=0)
    usd_per_million_output: float | None = Field(default=None, ge=0)
    budget_usd: float | None = Field(default=None, gt=0)
    budget_tokens: int | None = Field(default=None, gt=0)

    @field_validator("api_key_env")
    @classmethod
    def _a_name(cls, name: str | None) -> str | None:
        # Somebody who pastes the key itself must not find it in a traceback or a committed config.
        if name is not None and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise ValueError("must be the name of an environment variable, not the key itself")
        return name

    @field_validator("base_url")
    @classmethod
    def _no_password(cls, url: str) -> str:
        # It is quoted in errors and stored in configurations.
        if "@" in url.partition("://")[2].partition("/")[0]:
            raise ValueError("must not hold a user or password; name the key's environment variable in api_key_env")
        return url

    @classmethod
    def of(cls, config: Endpoint | BaseModel | Mapping[str, Any]) -> Endpoint:
        """From a configuration section that has some of these fields.

        Raises:
            StudyError: naming the wrong fields, never their values.
        """
        if isinstance(config, cls):
            return config
        try:
            return cls(**(config.model_dump() if isinstance(config, BaseModel) else config))
        except ValidationError as error:
            wrong = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
            raise StudyError(f"endpoint: {wrong}") from None

    def key(self) -> str:
        """The key for the SDK, which insists on one.

        Raises:
            StudyError: the environment variable is not set.
        """
        if self.api_key_env is None:
            return "none"
        value = os.environ.get(self.api_key_env)
        if not value:
            raise StudyError(f"endpoint {self.base_url}: the environment variable {self.api_key_env} is not set; "
                             "put the key there, or leave api_key_env out for a server that needs none")
        return secrets.use(value)

    def cost(self, input_tokens: int, cached_tokens: int, output_tokens: int) -> float | None:
        """USD of a call, None without prices; cached tokens cost as fresh ones where no price is given for them."""
        if self.usd_per_million_input is None or self.usd_per_million_output is None:
            return None
        cached = self.usd_per_million_input if self.usd_per_million_cached is None else self.usd_per_million_cached
        return ((input_tokens - cached_tokens) * self.usd_per_million_input + cached_tokens * cached
                + output_tokens * self.usd_per_million_output) / 1e6


class ContextOverflow(SystemFault):
    """The conversation does not fit into the model's context."""

    def __init__(self, role: str, message: str):
        super().__init__(role, f"context overflow: {message}")


class BudgetReached(StudyError):
    """The run has spent what it may; attempts in flight are dropped unrecorded and the next run plays them."""


@dataclass(slots=True)
class Spent:
    """What one role's calls came to. `cost` is None while no call had a price."""

    calls: int = 0
    retries: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None


@dataclass(slots=True)
class Meter:
    """Tokens and cost of a run by role, and its budget. Clients that share a meter share the budget."""

    budget_usd: float | None = None
    budget_tokens: int | None = None
    roles: dict[str, Spent] = field(default_factory=dict)

    def of(self, role: str) -> Spent:
        return self.roles.setdefault(role, Spent())

    @property
    def cost(self) -> float:
        """USD spent so far, without the roles that have no price."""
        return sum(spent.cost or 0.0 for spent in self.roles.values())

    @property
    def tokens(self) -> int:
        """Input and output tokens so far."""
        return sum(spent.input_tokens + spent.output_tokens for spent in self.roles.values())

    def check(self) -> None:
        """Raise `BudgetReached` when nothing is left.

        Asked before each policy call: what user and judge still cost to end an attempt is paid.
        """
        for spent, limit, unit in ((self.cost, self.budget_usd, "USD"), (self.tokens, self.budget_tokens, "tokens")):
            if limit is not None and spent >= limit:
                raise BudgetReached(f"budget reached: {spent:.6g} of {limit:.6g} {unit} are spent; finished attempts "
                                    "are stored. Raise the budget and start again to continue")

    def table(self) -> list[dict[str, Any]]:
        """One row a role: role, calls, retries, input_tokens, cached_tokens, output_tokens, cost."""
        return [{"role": role, **{name: getattr(spent, name) for name in Spent.__slots__}}
                for role, spent in sorted(self.roles.items())]


@contextmanager
def attempt_usage() -> Iterator[list[Usage]]:
    """Collect the usage of calls made inside it whose caller cannot pass it on, such as a check's judge."""
    found: list[Usage] = []
    token = _attempt.set(found)
    try:
        yield found
    finally:
        _attempt.reset(token)


class _Garbage(Exception):
    """The server answered 200 with something that is no reply."""


class _Function(BaseModel):
    name: str
    arguments: str | dict[str, Any] = "{}"


class _Call(BaseModel):
    function: _Function


class _Message(BaseModel):
    model_config = ConfigDict(extra="allow")
    content: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(BaseModel):
    model_config = ConfigDict(extra="allow")
    message: _Message | None = None
    text: str | None = None
    finish_reason: str | None = None
    token_ids: list[int] | None = None


class _Details(BaseModel):
    cached_tokens: int | None = Field(default=None, ge=0, le=10**9)


class _Usage(BaseModel):
    prompt_tokens: int = Field(ge=0, le=10**9)
    completion_tokens: int = Field(default=0, ge=0, le=10**9)
    prompt_tokens_details: _Details | None = None


class _Body(BaseModel):
    choices: list[_Choice] = Field(min_length=1)
    usage: _Usage | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """One choice of a model call: a chat `message` or a completion's `text`. `counted` is False when the server
    reported no usage."""

    message: _Message | None
    text: str | None
    finish_reason: str
    token_ids: list[int] | None
    raw_text: str | None
    usage: Usage
    counted: bool


class Client:
    """Calls one endpoint in one role (policy, user, judge)."""

    def __init__(self, endpoint: Endpoint, role: str, meter: Meter | None = None):
        self.endpoint, self.role = endpoint, role
        self.meter = meter if meter is not None else Meter(endpoint.budget_usd, endpoint.budget_tokens)
        self._key = endpoint.key()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._sdk: AsyncOpenAI | None = None
        self._slots = asyncio.Semaphore(endpoint.concurrency)
        self._told = False

    async def chat(self, messages: Sequence[Mapping[str, Any]], **body: Any) -> Reply:
        """One chat completion. `body` holds request fields; None leaves a field out.

        Raises:
            SystemFault: the endpoint did not answer; `ContextOverflow` when the conversation does not fit.
            StudyError: the request can never work.
        """
        return await self._ask("/chat/completions", {"messages": list(messages), **body})

    async def complete(self, prompt: str | list[int], **body: Any) -> Reply:
        """One plain completion of text or token ids; raises as `chat`."""
        return await self._ask("/completions", {"prompt": prompt, **body})

    async def text(self, messages: Sequence[Mapping[str, Any]], **body: Any) -> str:
        """The content of a chat reply, empty when there is none; its usage goes to `attempt_usage`."""
        reply = await self.chat(messages, **body)
        collected = _attempt.get()
        if collected is not None:
            collected.append(reply.usage)
        return (reply.message.content if reply.message is not None else None) or ""

    async def close(self) -> None:
        """Close the connections."""
        if self._sdk is not None and self._loop is asyncio.get_running_loop():
            await self._sdk.close()
        self._sdk = None

    async def _ask(self, path: str, body: dict[str, Any]) -> Reply:
        import openai
        import stamina

        body = {"model": self.endpoint.model, **body, **self.endpoint.extra_body}
        body = {name: value for name, value in body.items() if value is not None}
        sdk = self._connect()
        try:
            async with self._slots:
                async for attempt in stamina.retry_context(
                        on=self._again, attempts=self.endpoint.tries, timeout=None, wait_initial=0.5,
                        wait_max=self.endpoint.max_pause_seconds, wait_jitter=1.0):
                    with attempt:
                        if attempt.num > 1:
                            self.meter.of(self.role).retries += 1
                        return await self._once(sdk, path, body)
        except (SystemFault, StudyError):
            raise
        except (openai.APIError, TimeoutError, _Garbage) as error:
            raise self._final(error) from error
        raise AssertionError("stamina tries at least once")

    async def _once(self, sdk: AsyncOpenAI, path: str, body: dict[str, Any]) -> Reply:
        import httpx2
        import openai

        # The SDK's own limit is for each read; a server that trickles would never meet it.
        try:
            async with asyncio.timeout(self.endpoint.timeout_seconds):
                response = await sdk.post(path, body=body, cast_to=httpx2.Response)
        except openai.APIStatusError as error:
            # Servers quote the request that they refuse; whoever prints this error must not print the key.
            error.message = secrets.scrub(error.message)
            error.args = (error.message,)
            raise
        except (bounded.TooLarge, httpx2.HTTPError) as error:  # what the SDK lets through
            raise _Garbage(f"the reply cannot be read: {error or type(error).__name__}") from None
        shown = repr(secrets.scrub(response.content[:500].decode(errors="replace")))[:200]
        try:
            data = _Body.model_validate_json(response.content)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise _Garbage(f"the reply is not a completion: {where or 'body'}: {first['msg']}: {shown}") from None
        choice = data.choices[0]
        if (choice.message is None) == path.startswith("/chat") or (choice.text is None) != path.startswith("/chat"):
            raise _Garbage(f"the reply to {path} holds no choice of that kind: {shown}")
        if choice.finish_reason in _GIVEN_UP:
            raise _Garbage(f"the server gave up (finish_reason {choice.finish_reason!r}): {shown}")
        if self.role == "judge" and not ((choice.message.content if choice.message else choice.text) or "").strip():
            # A policy may say nothing and a silent user does not know. A judge's silence is no No.
            raise _Garbage(f"the reply is empty (finish_reason {choice.finish_reason!r})")
        raw = (choice.message.model_extra or {}).get("raw_text") if choice.message is not None else None
        return Reply(choice.message, choice.text, choice.finish_reason or "stop", choice.token_ids,
                     raw if isinstance(raw, str) else None, self._book(data.usage), data.usage is not None)

    def _book(self, usage: _Usage | None) -> Usage:
        spent, limited = self.meter.of(self.role), self.meter.budget_usd or self.meter.budget_tokens
        spent.calls += 1
        if usage is None:
            if limited:
                raise StudyError(f"endpoint {self.endpoint.base_url} reports no token usage, so no budget can be kept; "
                                 "leave the budget out or use a server that counts")
            return Usage(self.role)
        cached = (usage.prompt_tokens_details.cached_tokens if usage.prompt_tokens_details else None) or 0
        cost = self.endpoint.cost(usage.prompt_tokens, cached, usage.completion_tokens)
        spent.input_tokens += usage.prompt_tokens
        spent.cached_tokens += cached
        spent.output_tokens += usage.completion_tokens
        if cost is not None:
            spent.cost = (spent.cost or 0.0) + cost
        return Usage(self.role, usage.prompt_tokens, usage.completion_tokens, cached)

    def _connect(self) -> AsyncOpenAI:
        import openai

        loop = asyncio.get_running_loop()
        if self._sdk is None or self._loop is not loop:
            # Tool servers in this process turn on logging for everybody; their lines would bury a campaign.
            for name, level in (("httpx2", logging.WARNING), ("stamina", logging.ERROR)):
                if logging.getLogger(name).level == logging.NOTSET:
                    logging.getLogger(name).setLevel(level)
            # Connections and semaphores belong to the loop that made them.
            self._sdk = openai.AsyncOpenAI(base_url=self.endpoint.base_url, api_key=self._key, max_retries=0,
                                           timeout=self.endpoint.timeout_seconds, http_client=_http_client())
            self._loop, self._slots = loop, asyncio.Semaphore(self.endpoint.concurrency)
        return self._sdk

    def _again(self, error: Exception) -> bool | float:
        """As `_pause`; the first error that is tried again is told, as a campaign may wait for long."""
        pause = self._pause(error)
        if pause and not self._told and self.endpoint.tries > 1:
            self._told = True
            _logger.warning("%s endpoint %s: %s: %s. Trying again, each call up to %d times (said once)", self.role,
                            self.endpoint.base_url, type(error).__name__.lstrip("_"), secrets.scrub(str(error)),
                            self.endpoint.tries)
        return pause

    def _pause(self, error: Exception) -> bool | float:
        """Whether to try again, or after how many seconds."""
        import openai

        if isinstance(error, (openai.APIConnectionError, TimeoutError, _Garbage)):
            return True
        if not isinstance(error, openai.APIStatusError) or error.code == "insufficient_quota":
            return False
        if error.status_code not in _PASSING and error.status_code < 500:
            return False
        said = _retry_after(error.response.headers)
        if said is None:
            return True
        # Everybody was told the same moment; coming back all at once would end in another refusal.
        return min(said, self.endpoint.max_pause_seconds) + random.uniform(0.0, min(1.0, 0.1 + said / 4))

    def _final(self, error: Exception) -> Exception:
        import openai

        where = f"{self.role} endpoint {self.endpoint.base_url} (model {self.endpoint.model})"
        if isinstance(error, openai.APIStatusError):
            told = f"{where}: HTTP {error.status_code}: {error.message:.400}"
            if error.status_code in (400, 413, 422) and _OVERFLOW.search(f"{error.code} {error.message}"):
                return ContextOverflow(self.role, told)
            if error.code == "insufficient_quota":
                return StudyError(f"{told}; the account's quota is used up")
            if error.status_code in (401, 403):
                key = self.endpoint.api_key_env
                return StudyError(f"{told}; check " + (f"the key in {key}" if key else "api_key_env: no key was sent"))
            if error.status_code == 404:
                return StudyError(f"{told}; check base_url (it usually ends in /v1) and the model's name")
            return SystemFault(self.role, told)
        if isinstance(error, (openai.APITimeoutError, TimeoutError)):
            return SystemFault(self.role, f"{where}: no answer within {self.endpoint.timeout_seconds:g} s, "
                                          f"{self.endpoint.tries} times")
        cause = error.__cause__ or error
        name = type(cause).__name__.lstrip("_")
        return SystemFault(self.role, f"{where}: {name}: {cause} ({self.endpoint.tries} tries)")


def _http_client() -> Any:
    """The SDK's own HTTP client, with replies of bounded size."""
    import httpx2
    import openai

    class Client(openai.DefaultAsyncHttpxClient):  # type: ignore[misc, name-defined]
        async def send(self, request: httpx2.Request, *, stream: bool = False, **options: Any) -> httpx2.Response:
            response = await super().send(request, stream=True, **options)
            if stream:
                return response
            try:
                body = await bounded.read(response, MAX_REPLY)
            finally:
                await response.aclose()
            # The body is decoded and whole now, whatever it was on the way.
            headers = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in (
                "content-encoding", "content-length", "transfer-encoding")]
            return httpx2.Response(response.status_code, headers=headers, content=body, request=response.request,
                                   extensions=response.extensions)

    return Client()


def arguments_of(function: _Function) -> str:
    """The arguments of a served call as wire text; some servers send an object."""
    given = function.arguments
    return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that a server asks to wait, from Retry-After (seconds or a date) or retry-after-ms."""
    import email.utils
    import math
    import time

    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        text = headers.get(name)
        if not text:
            continue
        try:
            seconds = float(text) * unit
        except ValueError:
            try:
                seconds = email.utils.parsedate_to_datetime(text).timestamp() - time.time()
            except ValueError:
                continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    return None
