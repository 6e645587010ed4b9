"""Campaigns in which every attempt meets one fault, and what became of each.

A *case* is where and what: `server` (at init, call, ...), `policy` (at a turn), `user`, `judge` or `remote`, and a
kind. Each becomes a task of a dataset; the campaign is `tbstudy.campaign.run_campaign` over real server processes and
real HTTP servers. Attempts without a fault run beside them and must pass.
"""

from __future__ import annotations

import json
import os
import random
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import faulty_server
import stamina
import yaml
from faulty_http import ROLES, TRANSPORT, FaultyHttp, Writer, chat, head, policy_fault, policy_turn, whole

from tbstudy import campaign
from tbstudy.config import load_study
from tbstudy.sandbox import transports
from tbstudy.store import is_system_error, read_lines

HERE = Path(__file__).parent
#: Limits in seconds: of a call to a server or endpoint, and of a server's start.
CALL, START = 2.0, 4.0
#: An attempt that takes longer than all its limits together hangs.
HANGS = 60.0
CAUSE = {"server": "backend", "remote": "backend", "policy": "policy", "user": "user", "judge": "judge"}


@dataclass(frozen=True, slots=True)
class Case:
    """A fault: at which party, at what point of its work, of which kind. The kind `none` is no fault."""

    party: str
    point: str
    kind: str

    @property
    def name(self) -> str:
        return re.sub(r"\W", "_", f"test_{self.party}_{self.point}_{self.kind}")


def all_cases(*parties: str) -> list[Case]:
    """Every kind of fault at every point where it is one."""
    found = []
    if "server" in parties:
        found += [Case("server", place, kind) for place in faulty_server.PLACES
                  for kind in faulty_server.kinds_at(place)]
    if "remote" in parties:
        found += [Case("remote", place, kind) for place in ("initialize", "init", "call", "effects") for kind in REMOTE]
    if "policy" in parties:
        found += [Case("policy", str(turn), kind) for turn in range(3) for kind in ROLES["policy"]]
    return found + [Case(role, "answer", kind) for role in ("user", "judge") if role in parties for kind in ROLES[role]]


# datasets ----------------------------------------------------------------------------------------------------------

_CASE = '''

def {name}(x, judge):
    """!
    scenario: {scenario}
    query: "Please note it. [fault {policy}]"
    user_context: "text: done [fault {user}]"
    init: {{{server}: {{golden: [done], fault: {fault}}}}}
    """
    effects = x.effects["{server}"]
    assert effects["result_db_hash"] == effects["golden_db_hash"]
    assert judge.text_yesno(x.response, "Is it noted? [fault {judge}]")
'''


def write_dataset(folder: Path, cases: Iterable[Case], remote: str | None = None) -> None:
    """A dataset with one task a case, its servers, and its list."""
    (folder / "lists").mkdir(parents=True)
    for name in ("agent", "scenario", "test_case"):
        (folder / name).mkdir()
    (folder / "agent" / "clerk.yaml").write_text("system_instructions: You note things.\n")
    servers: dict[str, Any] = {}
    text, uids = "", []
    for case in cases:
        server, fault = "notes", {}
        if case.party == "server" and case.point in ("initialize", "tools/list"):
            server = re.sub(r"\W", "_", f"{case.point}_{case.kind}")
            servers[server] = {"FAULT": f"{case.point}:{case.kind}"}
        elif case.party == "server":
            fault = {"at": case.point, "kind": case.kind}
        elif case.party == "remote":
            server = f"{case.point}_{case.kind}"
        (folder / "scenario" / f"{server}.yaml").write_text(f"world_state: {{{server}: {{}}}}\n")
        servers.setdefault(server, {})
        marks = {role: f"{role} {case.kind}" if case.party == role else "of nobody" for role in ("user", "judge")}
        policy = f"policy {case.kind} {case.point}" if case.party == "policy" else "of nobody"
        text += _CASE.format(name=case.name, scenario=server, server=server, policy=policy, fault=json.dumps(fault),
                             **marks)
        uids.append(f"cases.py:{case.name}")
    (folder / "test_case" / "cases.py").write_text(text)
    (folder / "lists" / "all.yaml").write_text(yaml.safe_dump(uids))
    specs = {name: {"type": "mcp-remote", "endpoint": f"{remote}/{name}"} if remote else {
        "command": ["{python}", "-m", "faulty_server"], "cwd": str(HERE), "env": env} for name, env in servers.items()}
    (folder / "servers.yaml").write_text(yaml.safe_dump({"servers": specs}))


# a remote MCP server -----------------------------------------------------------------------------------------------

REMOTE = {**TRANSPORT, **{
    name: (lambda body: lambda w: _write(w, body))(body) for name, body in {
        "no_result": whole(b'{"jsonrpc": "2.0", "id": 1}'),
        "result_is_list": whole(b'{"jsonrpc": "2.0", "id": 1, "result": [1]}'),
        "odd_events": whole(b"data: {\ndata: nothing\n\n", kind="text/event-stream"),
        "no_event": whole(b": hello\n\n", kind="text/event-stream"),
        "endless_events": head(kind="text/event-stream", Transfer_Encoding="chunked"),
        "circles": whole(b"", 307, Location="?again"),
        "moved": whole(b"", 307, Location="http://localhost:1/mcp"),
    }.items()}}
del REMOTE["http_400"], REMOTE["redirects"]  # the latter lands where a good answer waits


async def _write(writer: Writer, body: bytes) -> None:
    writer.write(body)
    await writer.drain()
    if body.startswith(b"HTTP/1.1 200") and b"chunked" in body:
        while True:
            writer.write(b"400\r\n" + b": noise\n".ljust(1024, b".") + b"\r\n")
            await writer.drain()


class RemoteNotes:
    """The good answers of a remote MCP server; the path, `/<point>_<kind>`, names the fault."""

    def where(self, request: dict[str, Any], path: str) -> str:
        point, _, kind = path.partition("?")[0].rpartition("/")[2].partition("_")
        name = (request.get("params") or {}).get("name", request.get("method", ""))
        place = {"__reserved__init": "init", "__reserved__geteffects": "effects", "note": "call"}.get(name, name)
        return f"[fault remote {kind}]" if kind and place == point else ""

    def answer(self, request: dict[str, Any]) -> bytes:
        method, params = request.get("method"), request.get("params") or {}
        if "id" not in request:
            return whole(b"", 202)
        value: dict[str, Any] = {}
        if method == "initialize":
            value = {"protocolVersion": params["protocolVersion"], "capabilities": {}, "serverInfo": {}}
        elif method == "tools/list":
            value = {"tools": faulty_server.TOOLS}
        elif method == "tools/call":
            said: Any = {"status": "ok"}
            if params["name"] == "note":
                said = {"noted": True}
            elif params["name"] == "__reserved__geteffects":
                said = {"result_db_hash": "a", "golden_db_hash": "a", "diff": []}
            value = {"content": [{"type": "text", "text": json.dumps(said)}]}
        return whole(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": value}).encode())


# campaigns ---------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Outcome:
    """What a campaign made of its faults. `rows`: (party, kind) to counts of injected, system_error, verdict, hang.
    `wrong` tells of every attempt that did not end as it should."""

    rows: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    controls: int = 0
    seconds: float = 0.0
    slowest: float = 0.0

    def total(self, what: str) -> int:
        return sum(row[what] for row in self.rows.values())


@contextmanager
def short_limits() -> Iterator[None]:
    """A server may take `START` seconds to start instead of 120, and retries follow at once."""
    real = transports.open_sandbox
    transports.open_sandbox = partial(real, start_seconds=START)
    try:
        with stamina.set_testing(True, attempts=100, cap=True):
            yield
    finally:
        transports.open_sandbox = real


def run_cases(folder: Path, cases: list[Case], repetitions: int, transport: str = "forked", controls: int = 3,
              at_once: int = 12, deadline: float = 900.0) -> Outcome:
    """Play every case `repetitions` times in one campaign, with `controls` attempts without a fault among them."""
    outcome, began = Outcome(), time.monotonic()
    cases = [*cases, *(Case("none", str(i), "none") for i in range(controls))]
    random.Random(len(cases)).shuffle(cases)
    with ExitStack() as stack:
        stack.enter_context(short_limits())
        stack.enter_context(_no_longer_than(deadline))
        notes, remote = RemoteNotes(), None
        if transport == "http":
            remote = stack.enter_context(FaultyHttp("remote", REMOTE, notes.answer, notes.where)).url
        write_dataset(folder / "data", cases, remote)
        good = {"policy": (policy_turn, policy_fault), "user": (lambda r: whole(chat("The text is done.")),),
                "judge": (lambda r: whole(chat("Yes")),)}
        servers = {role: stack.enter_context(FaultyHttp(role, ROLES[role], *good[role])) for role in good}
        study = load_study(write_config(folder, {r: s.url for r, s in servers.items()}, transport, at_once))
        tasks = campaign.load_tasks(study, "candidates")
        path = folder / "records.jsonl"
        campaign.run_campaign(study, tasks, repetitions, path, name="base", stage="probe")
    by_uid = {f"cases.py:{case.name}": case for case in cases}
    seen: Counter[str] = Counter()
    for _, record in read_lines(path):
        seen[record["uid"]] += 1
        note(outcome, by_uid[record["uid"]], record)
    outcome.wrong += [f"{case.name}: {seen[uid]} records, not {repetitions}" for uid, case in by_uid.items()
                      if seen[uid] != repetitions]
    outcome.seconds = time.monotonic() - began
    return outcome


def note(outcome: Outcome, case: Case, record: dict[str, Any]) -> None:
    """Count an attempt, and tell what is wrong with how it ended."""
    failed, error = is_system_error(record), record["metadata"].get("error") or {}
    seconds = record["metadata"]["seconds"]
    outcome.slowest = max(outcome.slowest, seconds)
    if case.kind == "none":
        outcome.controls += 1
        if failed or not record["test_result"]["result"]:
            outcome.wrong.append(f"{case.name}: an attempt without a fault ended in {error or record['test_result']}")
        return
    row = outcome.rows.setdefault((f"{case.party} {case.point}", case.kind), Counter())
    row["injected"] += 1
    row["system_error" if failed else "verdict"] += 1
    row["hang"] += seconds > HANGS
    if not failed:
        outcome.wrong.append(f"{case.name}: a verdict: {record['test_result']}")
    elif error.get("type") != CAUSE[case.party] or not error.get("message"):
        outcome.wrong.append(f"{case.name}: its cause is {error}")
    elif seconds > HANGS:
        outcome.wrong.append(f"{case.name}: took {seconds} s")


def write_config(folder: Path, urls: dict[str, str], transport: str, at_once: int) -> Path:
    """The campaign's configuration."""
    limits = {"timeout_seconds": CALL, "tries": 2, "max_pause_seconds": 0.0, "concurrency": at_once, "model": "m"}
    raw = {"study": "faults", "seed": 1, "root": ".", "dataset": "data", "servers": "servers.yaml",
           "candidates": "lists/all.yaml", "benchmark": "lists/all.yaml",
           "sandbox": {"transport": transport, "call_seconds": CALL},
           "policy": {"kind": "endpoint", "endpoint": {"base_url": urls["policy"], **limits}},
           "user": {"kind": "endpoint", "endpoint": {"base_url": urls["user"], **limits}},
           "judge": {"endpoint": {"base_url": urls["judge"], **limits}}}
    path = folder / "faults.yaml"
    path.write_text(yaml.safe_dump(raw))
    return path


@contextmanager
def _no_longer_than(seconds: float) -> Iterator[None]:
    """A campaign that hangs ends here, with the stacks of all threads, and not after the machine's patience."""
    import faulthandler

    ended = threading.Event()

    def watch() -> None:
        if not ended.wait(seconds):
            print(f"the campaign hangs: nothing after {seconds:g} s", file=sys.stderr)
            faulthandler.dump_traceback(all_threads=True)
            os._exit(9)

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        ended.set()
