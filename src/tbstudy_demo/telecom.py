"""Telecom: a mobile network's lines, plans and credits."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from tbstudy.sandbox.sqlite import SqliteServer

SCHEMA = """
CREATE TABLE plans (plan TEXT PRIMARY KEY, price REAL NOT NULL);
CREATE TABLE lines (line_id TEXT PRIMARY KEY, owner TEXT NOT NULL, role TEXT NOT NULL, plan TEXT NOT NULL,
  status TEXT NOT NULL, contract INTEGER NOT NULL, outage INTEGER NOT NULL, esim_ready INTEGER NOT NULL, ends TEXT);
CREATE TABLE approvals (line_id TEXT NOT NULL, action TEXT NOT NULL);
CREATE TABLE declines (line_id TEXT NOT NULL, reason TEXT NOT NULL);
CREATE TABLE credits (line_id TEXT NOT NULL, amount REAL NOT NULL, reason TEXT NOT NULL);
CREATE TABLE data_packs (line_id TEXT NOT NULL, gigabytes INTEGER NOT NULL);
CREATE TABLE sims (line_id TEXT NOT NULL, kind TEXT NOT NULL, block_old INTEGER NOT NULL);
"""

POLICY = """\
You are the support agent of Nordline, a mobile network. Today is 2026-03-02.
- Look a line up with get_line before you act. Ask for what the customer did not say.
- Plan change: when contract is true, request_approval first, then change_plan.
- Outage credit: only when outage is true. Otherwise note_decline with no outage.
- More data: only when status is active. Otherwise note_decline with suspended.
- New SIM: esim when esim_ready is true, otherwise plastic. Set block_old when the old SIM was lost.
- End of a line: when ends is already set, it stays as it is and nothing is changed.
- Goodwill credit: find_lines of the owner. Only when role is main. Otherwise note_decline with extra line.
- Do each thing once and nothing that was not asked.
"""

DATA: dict[str, list[dict[str, Any]]] = {
    "plans": [{"plan": "Basic", "price": 15}, {"plan": "Flex", "price": 25}, {"plan": "Family", "price": 45},
              {"plan": "Max", "price": 60}, {"plan": "Student", "price": 10}],
    "lines": [
        {"line_id": "L-1001", "owner": "Zora Finch", "role": "main", "plan": "Flex", "status": "active",
         "contract": True, "outage": False, "esim_ready": True, "ends": None},
        {"line_id": "L-1002", "owner": "Zora Finch", "role": "extra", "plan": "Basic", "status": "suspended",
         "contract": False, "outage": False, "esim_ready": False, "ends": None},
        {"line_id": "L-1003", "owner": "Otto Brinke", "role": "main", "plan": "Max", "status": "active",
         "contract": False, "outage": True, "esim_ready": True, "ends": "2026-04-11"},
    ],
}

server = SqliteServer("telecom", SCHEMA)

LineId = Annotated[str, Field(description="Line number")]


@server.tool
def find_lines(owner: Annotated[str, Field(description="Full name")]) -> list[dict[str, Any]]:
    """Find the lines of an owner."""
    return server.rows("SELECT line_id, role, plan FROM lines WHERE owner = ? ORDER BY line_id", owner)


@server.tool
def get_line(line_id: LineId) -> dict[str, Any]:
    """Look a line up."""
    line = server.row("lines", "line_id", line_id)
    return {"plan": line["plan"], "status": line["status"], "contract": bool(line["contract"]),
            "outage": bool(line["outage"]), "esim_ready": bool(line["esim_ready"]), "ends": line["ends"]}


@server.tool
def request_approval(line_id: LineId, action: Literal["plan change", "credit", "line end"]) -> dict[str, Any]:
    """Ask a supervisor to approve an action."""
    server.row("lines", "line_id", line_id)
    server.insert("approvals", line_id=line_id, action=action)
    return {"approval": "granted"}


@server.tool
def note_decline(line_id: LineId,
                 reason: Literal["no outage", "suspended", "contract", "extra line"]) -> dict[str, Any]:
    """Record that a request is declined."""
    server.row("lines", "line_id", line_id)
    server.insert("declines", line_id=line_id, reason=reason)
    return {"noted": True}


@server.tool
def change_plan(line_id: LineId, plan: Annotated[str, Field(description="Name of the plan")]) -> dict[str, Any]:
    """Move a line to another plan."""
    server.row("plans", "plan", plan)
    server.update("lines", "line_id", line_id, plan=plan)
    return {"changed": True}


@server.tool
def add_credit(line_id: LineId, amount: float, reason: Literal["outage", "goodwill"]) -> dict[str, Any]:
    """Give a credit on the next bill."""
    server.row("lines", "line_id", line_id)
    server.insert("credits", line_id=line_id, amount=amount, reason=reason)
    return {"credited": True}


@server.tool
def add_data(line_id: LineId, gigabytes: int) -> dict[str, Any]:
    """Add a data pack."""
    server.row("lines", "line_id", line_id)
    server.insert("data_packs", line_id=line_id, gigabytes=gigabytes)
    return {"added": True}


@server.tool
def send_sim(line_id: LineId, kind: Literal["esim", "plastic"], block_old: bool = False) -> dict[str, Any]:
    """Send a new SIM."""
    server.row("lines", "line_id", line_id)
    server.insert("sims", line_id=line_id, kind=kind, block_old=block_old)
    return {"sent": True}


@server.tool
def end_line(line_id: LineId, date: Annotated[str, Field(description="ISO date")]) -> dict[str, Any]:
    """End a line on a date."""
    server.update("lines", "line_id", line_id, ends=date)
    return {"ended": True}


if __name__ == "__main__":
    server.main()
