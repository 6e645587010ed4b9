"""A tool server that goes wrong to order: a stdio MCP server in plain Python, with one note as its state.

The world state says `fault: {at: init | call | effects | teardown, kind: ...}`; for faults before that, the environment
variable FAULT says `<initialize or tools/list>:<kind>`.
"""

import json
import os
import signal
import sys
import time

STATE = {"fault": {}, "notes": [], "golden": [], "at": "", "kind": ""}
TEXT = {"type": "string"}
TOOLS = [
    {"name": name, "description": "", "inputSchema": {"type": "object", "properties": properties,
                                                      "required": list(properties)}}
    for name, properties in (("__reserved__init", {"config": {"type": "object"}}), ("__reserved__geteffects", {}),
                             ("__reserved__teardown", {}), ("note", {"text": TEXT}))]
SECONDS = float(os.environ.get("FAULT_SECONDS", "3600"))


def out(data):
    sys.stdout.flush()
    view = memoryview(data)
    while view:
        view = view[os.write(1, view):]


def line(message):
    out(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def hang():
    time.sleep(SECONDS)
    os._exit(0)


def die(number):
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    hang()


def flood(data):
    while True:
        out(data)


def say(number, result):
    line({"id": number, "result": result})


def text(number, value):
    say(number, {"content": [{"type": "text", "text": value}]})


#: What a fault does in place of answering the request `number`. None may return with a good answer.
FAULTS = {
    "exit": lambda n: os._exit(7),
    "exit_zero": lambda n: os._exit(0),
    "killed": lambda n: die(signal.SIGKILL),
    "crash": lambda n: die(signal.SIGSEGV),
    "stopped": lambda n: os.kill(os.getpid(), signal.SIGSTOP),
    "hang": lambda n: hang(),
    "hang_deaf": lambda n: (signal.signal(signal.SIGTERM, signal.SIG_IGN), hang()),
    "late": lambda n: (time.sleep(min(SECONDS, 15)), text(n, "{}")),
    "flood_lines": lambda n: flood(b"x" * 1023 + b"\n"),
    "flood_no_line": lambda n: flood(b"x" * 65536),
    "flood_notes": lambda n: flood(b'{"jsonrpc": "2.0", "method": "notifications/message"}\n' * 500),
    "flood_stderr": lambda n: [os.write(2, b"noise " * 1000) for _ in range(3000)] and hang(),
    "close_output": lambda n: (os.close(1), hang()),
    "close_mid_message": lambda n: (out(b'{"jsonrpc": "2.0", "id": %d, "result": {"con' % n), os._exit(0)),
    "half_message": lambda n: (out(b'{"jsonrpc": "2.0", "id": %d, "result": {"con' % n), hang()),
    "garbage": lambda n: (out(bytes(range(32, 256)) * 4 + b"\n"), hang()),
    "no_utf8": lambda n: (out(b'{"jsonrpc": "2.0", "id": %d, "result": {"content": "\xff\xfe"}}\n' % n), hang()),
    "other_id": lambda n: (say(n + 1000, {"content": []}), say([n], {}), say(str(n), {}), hang()),
    "no_result": lambda n: line({"id": n}),
    "result_is_text": lambda n: say(n, "well"),
    "result_is_list": lambda n: say(n, [1, 2]),
    "content_is_number": lambda n: say(n, {"content": 5, "tools": 5}),
    "parts_are_numbers": lambda n: say(n, {"content": [{"type": "text", "text": 5}], "tools": [{"name": 5}]}),
    "nested": lambda n: out(b'{"jsonrpc": "2.0", "id": %d, "result": ' % n + b"[" * 100_000 + b"]" * 100_000 + b"}\n"),
    "internal": lambda n: line({"id": n, "error": {"code": -32603, "message": "out of order"}}),
    "error_is_odd": lambda n: line({"id": n, "error": {"code": [1], "data": {"a": [None]}}, "result": 3}),
    "endless_pages": lambda n: say(n, {"tools": [], "nextCursor": "on"}),
}
#: Which faults are none where the answer is free text, or a list of tools; and what is wrong only in reserved answers.
ONLY = {"endless_pages": ("tools/list",)}
NOT_AT = {"error_is_odd": ("call",), "parts_are_numbers": ("initialize",), "content_is_number": ("initialize",)}
RESERVED = {
    "not_json": lambda n: text(n, "<html>Bad gateway</html>"),
    "not_an_object": lambda n: text(n, "[1, 2]"),
    "says_error": lambda n: text(n, '{"status": "error", "message": "no ledger today"}'),
    "says_nothing": lambda n: text(n, ""),
    "is_error": lambda n: say(n, {"content": [{"type": "text", "text": "{}"}], "isError": True}),
    "cut_json": lambda n: text(n, '{"result_db_hash": "a", "golden_db'),
    "deep_json": lambda n: text(n, "[" * 100_000),
    "refused": lambda n: line({"id": n, "error": {"code": -32602, "message": "no such tool"}}),
}
PLACES = ("initialize", "tools/list", "init", "call", "effects")


def kinds_at(place):
    """The faults that can be injected at a place."""
    found = [k for k in FAULTS if place in ONLY.get(k, (place,)) and place not in NOT_AT.get(k, ())]
    return found + (list(RESERVED) if place in ("init", "effects") else [])


def answer(message):
    method, params, number = message["method"], message.get("params") or {}, message["id"]
    name = params.get("name", "")
    place = {"__reserved__init": "init", "__reserved__geteffects": "effects", "note": "call",
             "__reserved__teardown": "teardown"}.get(name, method)
    if place == "init":
        STATE.update(notes=[], golden=params["arguments"]["config"].get("golden", []),
                     at=params["arguments"]["config"].get("fault", {}).get("at", STATE["at"]),
                     kind=params["arguments"]["config"].get("fault", {}).get("kind", STATE["kind"]))
    if place == STATE["at"]:
        return {**FAULTS, **RESERVED}[STATE["kind"]](number)
    if method == "initialize":
        return say(number, {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                            "serverInfo": {"name": "faulty", "version": "1"}})
    if method == "tools/list":
        return say(number, {"tools": TOOLS})
    if place == "call":
        STATE["notes"].append(params["arguments"]["text"])
        return text(number, json.dumps({"noted": len(STATE["notes"])}))
    if place == "effects":
        return text(number, json.dumps({"result_db_hash": str(STATE["notes"]), "golden_db_hash": str(STATE["golden"]),
                                        "diff": []}))
    return text(number, '{"status": "ok"}') if name else say(number, {})


def main():
    STATE["at"], _, STATE["kind"] = os.environ.get("FAULT", "").rpartition(":")
    for text_line in sys.stdin:
        message = json.loads(text_line)
        if "id" in message:
            answer(message)


if __name__ == "__main__":
    main()
