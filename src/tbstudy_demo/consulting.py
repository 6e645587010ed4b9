"""Consulting: the IT and HR desk of a consultancy."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from tbstudy.sandbox.sqlite import SqliteServer

# Amounts are NUMERIC so that a whole amount reads back as 25, the way it is written in texts.
SCHEMA = """
CREATE TABLE employees (employee_id TEXT PRIMARY KEY, name TEXT NOT NULL, clearance TEXT NOT NULL, project TEXT,
  floor INTEGER NOT NULL);
CREATE TABLE devices (device_id TEXT PRIMARY KEY, model TEXT NOT NULL, warranty INTEGER NOT NULL,
  next_check TEXT NOT NULL, remote INTEGER NOT NULL);
CREATE TABLE expenses (expense_id TEXT PRIMARY KEY, employee_id TEXT NOT NULL, receipt INTEGER NOT NULL,
  amount NUMERIC NOT NULL, tip NUMERIC NOT NULL);
CREATE TABLE owner_requests (employee_id TEXT NOT NULL, topic TEXT NOT NULL);
CREATE TABLE access_grants (employee_id TEXT NOT NULL, system TEXT NOT NULL, read_only INTEGER NOT NULL);
CREATE TABLE leaves (employee_id TEXT NOT NULL, start TEXT NOT NULL, days INTEGER NOT NULL);
CREATE TABLE reimbursements (expense_id TEXT NOT NULL, amount NUMERIC NOT NULL);
CREATE TABLE device_orders (device_id TEXT NOT NULL, action TEXT NOT NULL, loaner INTEGER NOT NULL);
CREATE TABLE closed_tickets (employee_id TEXT NOT NULL, reason TEXT NOT NULL);
"""

POLICY = """\
You are the IT and HR desk of Beaconfield, a consultancy. Today is 2026-03-02.
- Look the employee, device or expense up before you act. Ask for what the employee did not say.
- Access: when clearance is partial, ask_owner first, then grant_access. When clearance is complete, grant_access only.
- Access covers all systems that were named. Set read_only when they only read.
- Leave: when project is null, book_leave. When a project is set, book nothing: close_ticket with project.
- Expense: when receipt is true, reimburse exactly the amount without the tip.
- Expense: when receipt is false, pay nothing: close_ticket of its employee with no receipt.
- Broken laptop: when warranty is true, the action is repair, otherwise replace. Set loaner when a spare is needed.
- Do each thing once and nothing that was not asked.
"""

DATA: dict[str, list[dict[str, Any]]] = {
    "employees": [
        {"employee_id": "E-1001", "name": "Zora Finch", "clearance": "complete", "project": None, "floor": 8},
        {"employee_id": "E-1002", "name": "Otto Brinke", "clearance": "partial", "project": "J-1001", "floor": 3},
    ],
    "devices": [
        {"device_id": "D-1001", "model": "slim", "warranty": True, "next_check": "2026-04-03", "remote": False},
    ],
    "expenses": [
        {"expense_id": "X-1001", "employee_id": "E-1001", "receipt": False, "amount": 65, "tip": 10},
        {"expense_id": "X-1002", "employee_id": "E-1002", "receipt": True, "amount": 30, "tip": 15},
    ],
}

server = SqliteServer("consulting", SCHEMA)

EmployeeId = Annotated[str, Field(description="Employee number")]
DeviceId = Annotated[str, Field(description="Device number")]
ExpenseId = Annotated[str, Field(description="Expense number")]


@server.tool
def find_employee(name: Annotated[str, Field(description="Full name")]) -> dict[str, Any]:
    """Find an employee by name."""
    return server.row("employees", "name", name)


@server.tool
def view_device(device_id: DeviceId) -> dict[str, Any]:
    """Show a device."""
    device = server.row("devices", "device_id", device_id)
    return {"model": device["model"], "warranty": bool(device["warranty"]), "next_check": device["next_check"],
            "remote": bool(device["remote"])}


@server.tool
def view_expense(expense_id: ExpenseId) -> dict[str, Any]:
    """Show an expense."""
    expense = server.row("expenses", "expense_id", expense_id)
    return {"employee_id": expense["employee_id"], "receipt": bool(expense["receipt"]), "amount": expense["amount"],
            "tip": expense["tip"]}


@server.tool
def ask_owner(employee_id: EmployeeId, topic: Literal["access", "leave"]) -> dict[str, Any]:
    """Ask the owner in charge to approve a request."""
    server.row("employees", "employee_id", employee_id)
    server.insert("owner_requests", employee_id=employee_id, topic=topic)
    return {"approval": "granted"}


@server.tool
def grant_access(
    employee_id: EmployeeId, systems: list[Literal["crm", "ledger", "wiki", "payroll"]], read_only: bool = False
) -> dict[str, Any]:
    """Give access to systems."""
    server.row("employees", "employee_id", employee_id)
    for system in systems:
        server.insert("access_grants", employee_id=employee_id, system=system, read_only=read_only)
    return {"granted": True}


@server.tool
def book_leave(
    employee_id: EmployeeId, start: Annotated[str, Field(description="First date")], days: int
) -> dict[str, Any]:
    """Book leave."""
    server.row("employees", "employee_id", employee_id)
    server.insert("leaves", employee_id=employee_id, start=start, days=days)
    return {"booked": True}


@server.tool
def reimburse(expense_id: ExpenseId, amount: float) -> dict[str, Any]:
    """Pay an expense."""
    server.row("expenses", "expense_id", expense_id)
    server.insert("reimbursements", expense_id=expense_id, amount=amount)
    return {"paid": True}


@server.tool
def service_device(device_id: DeviceId, action: Literal["repair", "replace"], loaner: bool = False) -> dict[str, Any]:
    """Have a device repaired or replaced."""
    server.row("devices", "device_id", device_id)
    server.insert("device_orders", device_id=device_id, action=action, loaner=loaner)
    return {"ordered": True}


@server.tool
def close_ticket(employee_id: EmployeeId, reason: Literal["project", "no receipt", "other"]) -> dict[str, Any]:
    """Record that a request is declined."""
    server.row("employees", "employee_id", employee_id)
    server.insert("closed_tickets", employee_id=employee_id, reason=reason)
    return {"noted": True}


if __name__ == "__main__":
    server.main()
