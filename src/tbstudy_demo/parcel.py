"""Parcel: a carrier's parcels, lockers, claims and pickups."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from tbstudy.sandbox.sqlite import SqliteServer

SCHEMA = """
CREATE TABLE parcels (parcel_id TEXT PRIMARY KEY, recipient TEXT NOT NULL, kind TEXT NOT NULL, status TEXT NOT NULL,
  insured INTEGER NOT NULL, heavy INTEGER NOT NULL, perishable INTEGER NOT NULL, customs TEXT NOT NULL, locker TEXT);
CREATE TABLE depot_requests (parcel_id TEXT NOT NULL, step TEXT NOT NULL);
CREATE TABLE rejections (parcel_id TEXT NOT NULL, reason TEXT NOT NULL);
CREATE TABLE claims (parcel_id TEXT NOT NULL, amount REAL NOT NULL, cause TEXT NOT NULL);
CREATE TABLE declarations (parcel_id TEXT NOT NULL, document TEXT NOT NULL);
CREATE TABLE holds (parcel_id TEXT NOT NULL, until TEXT);
CREATE TABLE pickups (parcel_id TEXT NOT NULL, date TEXT NOT NULL, vehicle TEXT NOT NULL, fragile INTEGER NOT NULL);
"""

POLICY = """\
You are the service agent of Kestrel Parcel. Today is 2026-03-02.
- Look the parcel up before you act. Ask for what the customer did not say.
- Other locker: when insured is true, ask_depot first, then redirect_parcel.
- Claim: only when status is delivered. Otherwise log_rejection with not delivered.
- Hold: not when perishable is true. Then log_rejection with perishable. Open-ended holds have until null.
- Customs: when customs is cleared, change nothing. Otherwise declare_documents.
- Pickup: a van when heavy is true, otherwise a bike. Set fragile when the customer says so.
- Locker without a parcel number: find_parcels of the recipient, then redirect_parcel. But when kind is tube,
  log_rejection with too long.
- Do each thing once and nothing that was not asked.
"""

DATA: dict[str, list[dict[str, Any]]] = {
    "parcels": [
        {"parcel_id": "T-1001", "recipient": "Zora Finch", "kind": "letter", "status": "in_transit", "insured": True,
         "heavy": False, "perishable": False, "customs": "cleared"},
        {"parcel_id": "T-1002", "recipient": "Otto Brinke", "kind": "box", "status": "delivered", "insured": False,
         "heavy": True, "perishable": False, "customs": "held"},
        {"parcel_id": "T-1003", "recipient": "Otto Brinke", "kind": "tube", "status": "in_transit", "insured": False,
         "heavy": False, "perishable": True, "customs": "cleared"},
    ],
}

server = SqliteServer("parcel", SCHEMA)

ParcelId = Annotated[str, Field(description="Parcel number")]


@server.tool
def track_parcel(parcel_id: ParcelId) -> dict[str, Any]:
    """Look a parcel up."""
    parcel = server.row("parcels", "parcel_id", parcel_id)
    return {"status": parcel["status"], "insured": bool(parcel["insured"]), "heavy": bool(parcel["heavy"]),
            "perishable": bool(parcel["perishable"]), "customs": parcel["customs"]}


@server.tool
def find_parcels(recipient: Annotated[str, Field(description="Full name")]) -> list[dict[str, Any]]:
    """Find the parcels of a recipient."""
    return server.rows("SELECT parcel_id, kind, locker FROM parcels WHERE recipient = ? ORDER BY parcel_id", recipient)


@server.tool
def ask_depot(parcel_id: ParcelId, step: Literal["redirect", "customs", "claim"]) -> dict[str, Any]:
    """Ask the depot to approve a step."""
    server.row("parcels", "parcel_id", parcel_id)
    server.insert("depot_requests", parcel_id=parcel_id, step=step)
    return {"approval": "granted"}


@server.tool
def log_rejection(parcel_id: ParcelId,
                  reason: Literal["not delivered", "perishable", "customs", "too long"]) -> dict[str, Any]:
    """Record that a request is rejected."""
    server.row("parcels", "parcel_id", parcel_id)
    server.insert("rejections", parcel_id=parcel_id, reason=reason)
    return {"noted": True}


@server.tool
def redirect_parcel(parcel_id: ParcelId, locker: Annotated[str, Field(description="Locker id")]) -> dict[str, Any]:
    """Send a parcel to another locker."""
    server.update("parcels", "parcel_id", parcel_id, locker=locker)
    return {"redirected": True}


@server.tool
def open_claim(parcel_id: ParcelId, amount: float, cause: Literal["damage", "loss"]) -> dict[str, Any]:
    """Open a claim."""
    server.row("parcels", "parcel_id", parcel_id)
    server.insert("claims", parcel_id=parcel_id, amount=amount, cause=cause)
    return {"opened": True}


@server.tool
def hold_parcel(parcel_id: ParcelId, until: Annotated[str | None, Field(description="ISO date")]) -> dict[str, Any]:
    """Hold a parcel at the depot."""
    server.row("parcels", "parcel_id", parcel_id)
    server.insert("holds", parcel_id=parcel_id, until=until)
    return {"held": True}


@server.tool
def declare_documents(parcel_id: ParcelId, documents: list[str]) -> dict[str, Any]:
    """Declare customs documents."""
    server.row("parcels", "parcel_id", parcel_id)
    for document in documents:
        server.insert("declarations", parcel_id=parcel_id, document=document)
    return {"declared": True}


@server.tool
def book_pickup(parcel_id: ParcelId, date: Annotated[str, Field(description="ISO date")],
                vehicle: Literal["van", "bike"], fragile: bool = False) -> dict[str, Any]:
    """Book a pickup."""
    server.row("parcels", "parcel_id", parcel_id)
    server.insert("pickups", parcel_id=parcel_id, date=date, vehicle=vehicle, fragile=fragile)
    return {"booked": True}


if __name__ == "__main__":
    server.main()
