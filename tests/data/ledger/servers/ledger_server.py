"""A tool server for tests: a ledger of accounts, in plain Python, that also misbehaves on request.

It reports effects as the servers of ThinkingBox's benchmark do. The text of a note is not part of the hash.
"""

import datetime
import hashlib
import json
import os
import subprocess
import sys
import time

STATE = {"now": {}, "golden": {}, "start": {}}
TEXT, NUMBER = {"type": "string"}, {"type": "number"}


def tool(name, description, **properties):
    return {"name": name, "description": description, "inputSchema": {
        "type": "object", "title": f"{name}Arguments",
        "required": [k for k, v in properties.items() if "default" not in v],
        "properties": {k: {"title": k.title(), **v} for k, v in properties.items()}}}


TOOLS = [
    tool("__reserved__init", "", config={"type": "object"}),
    tool("__reserved__geteffects", ""),
    tool("__reserved__teardown", "", session_id=TEXT),
    tool("get_account", "Look an account up.", account=TEXT),
    tool("transfer", "Move money.", source=TEXT, target=TEXT, amount=NUMBER),
    tool("add_note", "Note something on an account.", account=TEXT, text=TEXT),
    tool("set_flag", "Mark an account.", account=TEXT, flag={"anyOf": [{"$ref": "#/$defs/flag"}, {"type": "null"}]}),
    tool("opening_hours", "When we are open.", day={**TEXT, "default": "monday"}),
    tool("today", "The date."),
    tool("misbehave", "For tests.", how=TEXT),
]
TOOLS[6]["inputSchema"]["$defs"] = {"flag": {"type": "string", "title": "Flag", "enum": ["ok", "late", "closed"]}}


def account(state, name):
    for row in state["accounts"]:
        if row["id"] == name:
            return row
    raise ValueError(f"no account {name}")


def run(state, name, arguments):
    if name == "get_account":
        return account(state, arguments["account"])
    if name == "transfer":
        source, target = account(state, arguments["source"]), account(state, arguments["target"])
        source["balance"] -= arguments["amount"]
        target["balance"] += arguments["amount"]
        return {"balance": source["balance"]}
    if name == "add_note":
        account(state, arguments["account"])
        state["notes"].append({"account": arguments["account"], "text": arguments["text"]})
        return {"noted": True}
    if name == "set_flag":
        account(state, arguments["account"])["flag"] = arguments["flag"]
        return {"flag": arguments["flag"]}
    if name == "opening_hours":
        return {"day": arguments.get("day", "monday"), "hours": "9 to 5"}
    if name == "today":
        now = datetime.datetime.now(datetime.UTC)
        return {"today": datetime.date.today().isoformat(), "now": now.isoformat(),
                "is": isinstance(now, datetime.datetime), "made": datetime.datetime(2020, 1, 2).isoformat()}
    raise KeyError(name)


def stable(state):
    return {"accounts": sorted(state["accounts"], key=lambda r: r["id"]),
            "notes": [{"account": n["account"]} for n in state["notes"]]}


def digest(state):
    return hashlib.sha256(json.dumps(stable(state), sort_keys=True).encode()).hexdigest()


def differences(got, want, path=""):
    if isinstance(got, dict):
        return [d for k in sorted(want) for d in differences(got[k], want[k], f"{path}.{k}" if path else k)]
    if isinstance(got, list):
        out = []
        if len(got) != len(want):
            out.append({"path": path, "type": "length mismatch", "result": len(got), "golden": len(want)})
        for i in range(max(len(got), len(want))):
            here = f"{path}[{i}]"
            if i >= len(got):
                out.append({"path": here, "type": "missing in result (present in golden)"})
            elif i >= len(want):
                out.append({"path": here, "type": "present in result (missing in golden)"})
            else:
                out += differences(got[i], want[i], here)
        return out
    return [] if got == want else [{"path": path, "type": "value mismatch", "result": got, "golden": want}]


def copy(state):
    return json.loads(json.dumps(state))


def init(config):
    fail = config.get("fail", "")
    if fail == "exit" or (fail.startswith("once:") and not os.path.exists(fail[5:])):
        if fail != "exit":
            open(fail[5:], "w").close()
        print("the ledger cannot be opened", file=sys.stderr, flush=True)
        os._exit(3)
    if fail == "error":
        return {"status": "error", "message": "no ledger today"}
    state = {"accounts": config.get("accounts", []), "notes": config.get("notes", [])}
    STATE.update(now=copy(state), golden=copy(state), start=copy(state))
    for call in (config.get("golden_test_case") or {}).get("tool_interactions", []):
        run(STATE["golden"], call["tool"], call["parameters"])
    STATE["config"] = config
    return {"status": "ok", "ticket": "T-7"}


def effects():
    if STATE["config"].get("fail") == "effects":
        return {"status": "error", "message": "the ledger is on fire"}
    return {"result_db_state": STATE["now"], "golden_db_state": STATE["golden"], "initial_db_state": STATE["start"],
            "result_db_hash": digest(STATE["now"]), "golden_db_hash": digest(STATE["golden"]),
            "diff": differences(stable(STATE["now"]), stable(STATE["golden"]))}


def misbehave(how):
    if how == "exit":
        print("giving up", file=sys.stderr, flush=True)
        os._exit(7)
    if how == "hang":
        time.sleep(3600)
    if how == "flood":
        while True:
            sys.stdout.write("x" * 1023 + "\n")
    if how == "chatter":
        sys.stdout.write("hello\n\n[1, 2]\n")
        write({"method": "notifications/message", "params": {}})
        write({"id": 5, "method": "ping"})
        write({"id": 6, "method": "roots/list"})
        for _ in range(2):
            STATE.setdefault("replies", []).append(json.loads(sys.stdin.readline()))
        return {"replies": STATE["replies"]}
    if how == "big":
        return {"big": "x" * 5_000_000}
    if how == "stderr":
        for _ in range(4000):
            sys.stderr.write("noise " * 200 + "\n")
    if how == "children":
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
        orphan = "import os, time; os.setsid(); os.fork() and os._exit(0); time.sleep(3600)"
        subprocess.Popen([sys.executable, "-c", orphan]).wait()
    return {"how": how}


def answer(message):
    method, params = message["method"], message.get("params") or {}
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "ledger", "version": "1"}}
    if method == "tools/list":
        page = int(params.get("cursor", 0))
        return {"tools": TOOLS[page:page + 4], **({"nextCursor": str(page + 4)} if page + 4 < len(TOOLS) else {})}
    if method != "tools/call":
        return {}
    name, arguments = params["name"], params["arguments"]
    error = False
    try:
        if name == "__reserved__init":
            value = init(arguments["config"])
        elif name == "__reserved__geteffects":
            value = effects()
        elif name == "__reserved__teardown":
            if "teardown_file" in STATE.get("config", {}):
                with open(STATE["config"]["teardown_file"], "a") as file:
                    file.write(arguments["session_id"] + "\n")
            value = {"status": "ok"}
        elif name == "misbehave":
            how = arguments["how"]
            if how == "empty":
                return {"content": []}
            if how == "parts":
                return {"content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]}
            if how == "structured":
                return {"content": [], "structuredContent": {"a": 1}}
            if how == "garbage":
                return "no object"
            if how == "internal":
                return {"rpc_error": {"code": -32603, "message": "internal"}}
            if how == "params":
                return {"rpc_error": {"code": -32602, "message": "bad arguments"}}
            value = misbehave(how)
        else:
            value = run(STATE["now"], name, arguments)
    except Exception as problem:
        value, error = f"{type(problem).__name__}: {problem}", True
    text = value if isinstance(value, str) else json.dumps(value)
    return {"content": [{"type": "text", "text": text}], "isError": error}


def write(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def main():
    for line in sys.stdin:
        message = json.loads(line)
        if "method" in message and "id" in message:
            result = answer(message)
            if isinstance(result, dict) and "rpc_error" in result:
                write({"id": message["id"], "error": result["rpc_error"]})
            else:
                write({"id": message["id"], "result": result})


if __name__ == "__main__":
    main()
