"""Travel: a travel desk's hotel reservations and flight tickets."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from tbstudy.sandbox.sqlite import SqliteServer

# Amounts are NUMERIC so that a whole amount reads back as 25, the way it is written in texts.
SCHEMA = """
CREATE TABLE reservations (
    reservation_id TEXT PRIMARY KEY, guest TEXT NOT NULL, room TEXT NOT NULL, check_in TEXT NOT NULL,
    nights INTEGER NOT NULL, approval TEXT NOT NULL, package TEXT);
CREATE TABLE tickets (
    ticket_id TEXT PRIMARY KEY, passenger TEXT NOT NULL, fare TEXT NOT NULL, date TEXT NOT NULL, price NUMERIC NOT NULL,
    delayed INTEGER NOT NULL, compensation NUMERIC NOT NULL, seat_kept INTEGER);
CREATE TABLE manager_approvals (reservation_id TEXT NOT NULL, topic TEXT NOT NULL);
CREATE TABLE extras (reservation_id TEXT NOT NULL, extra TEXT NOT NULL);
CREATE TABLE vouchers (ticket_id TEXT NOT NULL, amount NUMERIC NOT NULL);
CREATE TABLE declined_requests (reference TEXT NOT NULL, reason TEXT NOT NULL);
"""

POLICY = """\
You are the assistant of Farawell, a travel desk. Today is 2026-03-02.
- Look the reservation or ticket up before you act. Ask for what the traveller did not say.
- Cheaper room: when approval is needed, request_manager_approval first, then change_room.
- Cheaper room: when approval is waived, change_room and request no approval.
- Another flight date: only when fare is flexible. Ask for the new date; keep_seat when they want their seat.
- When fare is saver, never rebook: decline_request with saver fare.
- Compensation: when delayed is true, issue_voucher of exactly the compensation.
- When delayed is false, no voucher: decline_request with no delay.
- Extras: when package is null, add_extras. When package is full they are included and nothing is changed.
- Do each thing once and nothing that was not asked.
"""

server = SqliteServer("travel", SCHEMA)

ReservationId = Annotated[str, Field(description="Reservation number")]
TicketId = Annotated[str, Field(description="Ticket number")]


@server.tool
def get_reservation(reservation_id: ReservationId) -> dict[str, Any]:
    """Show a hotel reservation."""
    row = server.row("reservations", "reservation_id", reservation_id)
    return {k: row[k] for k in ("guest", "room", "check_in", "nights", "approval", "package")}


@server.tool
def get_ticket(ticket_id: TicketId) -> dict[str, Any]:
    """Show a flight ticket."""
    row = server.row("tickets", "ticket_id", ticket_id)
    return {"passenger": row["passenger"], "fare": row["fare"], "date": row["date"], "price": row["price"],
            "delayed": bool(row["delayed"]), "compensation": row["compensation"]}


@server.tool
def request_manager_approval(
    reservation_id: ReservationId,
    topic: Annotated[Literal["room downgrade", "extras"], Field(description="What to approve")],
) -> dict[str, Any]:
    """Ask the manager to approve a change."""
    server.row("reservations", "reservation_id", reservation_id)
    server.insert("manager_approvals", reservation_id=reservation_id, topic=topic)
    return {"approval": "granted"}


@server.tool
def change_room(
    reservation_id: ReservationId,
    room: Annotated[Literal["single", "double", "suite"], Field(description="New room")],
) -> dict[str, Any]:
    """Move a reservation to another room."""
    server.update("reservations", "reservation_id", reservation_id, room=room)
    return {"changed": True}


@server.tool
def add_extras(
    reservation_id: ReservationId,
    extras: Annotated[list[Literal["breakfast", "parking", "spa", "bikes"]], Field(description="Extras")],
) -> dict[str, Any]:
    """Add extras to a reservation."""
    server.row("reservations", "reservation_id", reservation_id)
    for extra in extras:
        server.insert("extras", reservation_id=reservation_id, extra=extra)
    return {"added": True}


@server.tool
def rebook_ticket(
    ticket_id: TicketId,
    date: Annotated[str, Field(description="New date")],
    keep_seat: Annotated[bool, Field(description="Keep the same seat")],
) -> dict[str, Any]:
    """Move a ticket to another date."""
    server.update("tickets", "ticket_id", ticket_id, date=date, seat_kept=keep_seat)
    return {"rebooked": True}


@server.tool
def issue_voucher(ticket_id: TicketId, amount: float) -> dict[str, Any]:
    """Pay compensation as a voucher."""
    server.row("tickets", "ticket_id", ticket_id)
    server.insert("vouchers", ticket_id=ticket_id, amount=amount)
    return {"issued": True}


@server.tool
def decline_request(
    reference: Annotated[str, Field(description="Reservation or ticket number")],
    reason: Annotated[Literal["saver fare", "no delay", "other"], Field(description="Why")],
) -> dict[str, Any]:
    """Record that a request was declined."""
    table, key = ("tickets", "ticket_id") if reference.startswith("T-") else ("reservations", "reservation_id")
    server.row(table, key, reference)
    server.insert("declined_requests", reference=reference, reason=reason)
    return {"recorded": True}


# Numbers of four digits and these names are never drawn, so that no case meets a base row by accident.
DATA: dict[str, list[dict[str, Any]]] = {
    "reservations": [
        {"reservation_id": "R-1001", "guest": "Ada Weber", "room": "double", "check_in": "2026-05-07", "nights": 3,
         "approval": "waived", "package": None},
        {"reservation_id": "R-1002", "guest": "Hugo Rossi", "room": "suite", "check_in": "2026-06-14", "nights": 2,
         "approval": "needed", "package": "full"},
    ],
    "tickets": [
        {"ticket_id": "T-1001", "passenger": "Mona Zhang", "fare": "saver", "date": "2026-04-21", "price": 55,
         "delayed": False, "compensation": 20, "seat_kept": None},
        {"ticket_id": "T-1002", "passenger": "Vera Rossi", "fare": "flexible", "date": "2026-07-11", "price": 90,
         "delayed": True, "compensation": 35, "seat_kept": None},
    ],
}

if __name__ == "__main__":
    server.main()
