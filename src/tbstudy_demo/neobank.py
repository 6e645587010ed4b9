"""Neobank: accounts, cards, disputes and fees of an app-only bank."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from tbstudy.sandbox.sqlite import SqliteServer

# Amounts are NUMERIC so that a whole amount reads back as 25, the way it is written in texts.
SCHEMA = """
CREATE TABLE accounts (account_id TEXT PRIMARY KEY, owner TEXT NOT NULL, tier TEXT NOT NULL, hold TEXT,
  balance NUMERIC NOT NULL, fee NUMERIC NOT NULL);
CREATE TABLE cards (card_id TEXT PRIMARY KEY, holder TEXT NOT NULL, minor INTEGER NOT NULL, status TEXT NOT NULL,
  spending_limit NUMERIC, spent NUMERIC NOT NULL);
CREATE TABLE payments (payment_id TEXT PRIMARY KEY, account_id TEXT NOT NULL, amount NUMERIC NOT NULL);
CREATE TABLE disputes (payment_id TEXT NOT NULL, category TEXT NOT NULL);
CREATE TABLE guardian_requests (card_id TEXT NOT NULL, topic TEXT NOT NULL);
CREATE TABLE freezes (card_id TEXT NOT NULL);
CREATE TABLE replacements (card_id TEXT NOT NULL, express INTEGER NOT NULL);
CREATE TABLE fee_refunds (account_id TEXT NOT NULL, amount NUMERIC NOT NULL);
CREATE TABLE account_refusals (account_id TEXT NOT NULL, reason TEXT NOT NULL);
"""

POLICY = """\
You are the agent of Pennywise, a bank in an app. Today is 2026-03-02.
- Look the account or card up before you act. Ask for what the client did not say.
- Dispute: when hold is null, open_dispute with all payment numbers and the category.
- Dispute: when a hold is set, open nothing: file_refusal with hold.
- Card limit: when minor is true, request_guardian first, then set_limit. The limit null means no limit.
- Card limit: when minor is false, set_limit only, without a guardian.
- Lost card: when status is active, freeze_card first, then replace_card. When it is frozen, replace_card only.
- Fee: when tier is plus, refund_fee of exactly the fee. When tier is basic, file_refusal with basic tier.
- Do each thing once and nothing that was not asked.
"""

DATA: dict[str, list[dict[str, Any]]] = {
    "accounts": [
        {"account_id": "A-1001", "owner": "Zora Finch", "tier": "plus", "hold": None, "balance": 85, "fee": 10},
        {"account_id": "A-1002", "owner": "Otto Brinke", "tier": "basic", "hold": "H-1001", "balance": 40, "fee": 15},
    ],
    "cards": [
        {"card_id": "K-1001", "holder": "Zora Finch", "minor": False, "status": "active", "spending_limit": 90,
         "spent": 20},
        {"card_id": "K-1002", "holder": "Otto Brinke", "minor": True, "status": "frozen", "spending_limit": 30,
         "spent": 25},
    ],
    "payments": [{"payment_id": "Y-1001", "account_id": "A-1001", "amount": 45}],
}

server = SqliteServer("neobank", SCHEMA)

AccountId = Annotated[str, Field(description="Account number")]
CardId = Annotated[str, Field(description="Card number")]


@server.tool
def show_account(account_id: AccountId) -> dict[str, Any]:
    """Show an account."""
    return server.row("accounts", "account_id", account_id)


@server.tool
def show_card(card_id: CardId) -> dict[str, Any]:
    """Show a card."""
    card = server.row("cards", "card_id", card_id)
    return {"holder": card["holder"], "minor": bool(card["minor"]), "status": card["status"],
            "limit": card["spending_limit"], "spent": card["spent"]}


@server.tool
def open_dispute(
    payment_ids: Annotated[list[str], Field(description="Payment numbers")],
    category: Literal["duplicate", "unknown", "overcharged"],
) -> dict[str, Any]:
    """Dispute payments."""
    for payment_id in payment_ids:
        server.row("payments", "payment_id", payment_id)
        server.insert("disputes", payment_id=payment_id, category=category)
    return {"disputed": True}


@server.tool
def request_guardian(card_id: CardId, topic: Literal["limit", "replacement"]) -> dict[str, Any]:
    """Ask the guardian to approve a change."""
    server.row("cards", "card_id", card_id)
    server.insert("guardian_requests", card_id=card_id, topic=topic)
    return {"approval": "granted"}


@server.tool
def set_limit(
    card_id: CardId, limit: Annotated[float | None, Field(description="Amount, null for none")]
) -> dict[str, Any]:
    """Change the spending limit of a card."""
    server.update("cards", "card_id", card_id, spending_limit=limit)
    return {"changed": True}


@server.tool
def freeze_card(card_id: CardId) -> dict[str, Any]:
    """Freeze a card."""
    server.update("cards", "card_id", card_id, status="frozen")
    server.insert("freezes", card_id=card_id)
    return {"frozen": True}


@server.tool
def replace_card(
    card_id: CardId, express: Annotated[bool, Field(description="Send it by express")] = False
) -> dict[str, Any]:
    """Send a new card."""
    server.row("cards", "card_id", card_id)
    server.insert("replacements", card_id=card_id, express=express)
    return {"sent": True}


@server.tool
def refund_fee(account_id: AccountId, amount: float) -> dict[str, Any]:
    """Pay a fee back."""
    server.row("accounts", "account_id", account_id)
    server.insert("fee_refunds", account_id=account_id, amount=amount)
    return {"refunded": True}


@server.tool
def file_refusal(account_id: AccountId, reason: Literal["hold", "basic tier", "other"]) -> dict[str, Any]:
    """Record that a request is declined."""
    server.row("accounts", "account_id", account_id)
    server.insert("account_refusals", account_id=account_id, reason=reason)
    return {"noted": True}


if __name__ == "__main__":
    server.main()
