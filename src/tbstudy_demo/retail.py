"""Retail: a clothes shop's orders, items and refunds."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from tbstudy.sandbox.sqlite import SqliteServer

# Amounts are NUMERIC so that a whole amount reads back as 25, the way it is written in texts.
SCHEMA = """
CREATE TABLE orders (order_id TEXT PRIMARY KEY, buyer TEXT NOT NULL, status TEXT NOT NULL, window TEXT NOT NULL,
  sale INTEGER NOT NULL, shipping NUMERIC NOT NULL, refund_to TEXT);
CREATE TABLE items (item_id TEXT PRIMARY KEY, order_id TEXT NOT NULL, product TEXT NOT NULL, in_stock INTEGER NOT NULL);
CREATE TABLE item_returns (order_id TEXT NOT NULL, item_id TEXT NOT NULL, reason TEXT NOT NULL);
CREATE TABLE exchanges (item_id TEXT NOT NULL, size TEXT NOT NULL);
CREATE TABLE waitlist (item_id TEXT NOT NULL, size TEXT NOT NULL);
CREATE TABLE supervisor_requests (order_id TEXT NOT NULL, topic TEXT NOT NULL);
CREATE TABLE price_refunds (order_id TEXT NOT NULL, amount NUMERIC NOT NULL);
CREATE TABLE denials (order_id TEXT NOT NULL, reason TEXT NOT NULL);
"""

POLICY = """\
You are the support agent of Threadhall, a clothes shop. Today is 2026-03-02.
- Look the order or its items up before you act. Ask for what the buyer did not say.
- Return: only when window is open, return_items with all item numbers and the reason. No approval is asked.
- Return: when window is closed, log_denial with window closed.
- Other size: list_items and take the product that was named. When its in_stock is true, exchange_item.
- Other size: when in_stock is false, join_waitlist with the same item and size.
- Lower price: when sale is true, ask_supervisor first, then refund_price. When sale is false, refund_price only.
- Cancel: when status is open, cancel_order. When status is canceled, it is done and nothing is changed.
- Do each thing once and nothing that was not asked.
"""

DATA: dict[str, list[dict[str, Any]]] = {
    "orders": [
        {"order_id": "O-1001", "buyer": "Zora Finch", "status": "open", "window": "closed", "sale": True,
         "shipping": 55, "refund_to": None},
        {"order_id": "O-1002", "buyer": "Otto Brinke", "status": "shipped", "window": "open", "sale": False,
         "shipping": 35, "refund_to": None},
    ],
    "items": [
        {"item_id": "I-1001", "order_id": "O-1001", "product": "jacket", "in_stock": False},
        {"item_id": "I-1002", "order_id": "O-1002", "product": "boots", "in_stock": True},
    ],
}

server = SqliteServer("retail", SCHEMA)

OrderId = Annotated[str, Field(description="Order number")]
ItemId = Annotated[str, Field(description="Item number")]
Size = Literal["small", "medium", "large"]


@server.tool
def get_order(order_id: OrderId) -> dict[str, Any]:
    """Look an order up."""
    order = server.row("orders", "order_id", order_id)
    return {"buyer": order["buyer"], "status": order["status"], "window": order["window"],
            "sale": bool(order["sale"]), "shipping": order["shipping"]}


@server.tool
def list_items(order_id: OrderId) -> list[dict[str, Any]]:
    """List the items of an order."""
    server.row("orders", "order_id", order_id)
    items = server.rows("SELECT * FROM items WHERE order_id = ? ORDER BY item_id", order_id)
    return [{"product": i["product"], "item_id": i["item_id"], "in_stock": bool(i["in_stock"])} for i in items]


@server.tool
def return_items(
    order_id: OrderId,
    item_ids: Annotated[list[str], Field(description="Item numbers")],
    reason: Literal["damaged", "unwanted", "late"],
) -> dict[str, Any]:
    """Open a return of items."""
    server.row("orders", "order_id", order_id)
    for item_id in item_ids:
        server.row("items", "item_id", item_id)
        server.insert("item_returns", order_id=order_id, item_id=item_id, reason=reason)
    return {"returned": True}


@server.tool
def exchange_item(item_id: ItemId, size: Size) -> dict[str, Any]:
    """Exchange an item for another size."""
    server.row("items", "item_id", item_id)
    server.insert("exchanges", item_id=item_id, size=size)
    return {"exchanged": True}


@server.tool
def join_waitlist(item_id: ItemId, size: Size) -> dict[str, Any]:
    """Wait for a size to come back."""
    server.row("items", "item_id", item_id)
    server.insert("waitlist", item_id=item_id, size=size)
    return {"waiting": True}


@server.tool
def ask_supervisor(order_id: OrderId, topic: Literal["price", "return"]) -> dict[str, Any]:
    """Ask a supervisor to approve an action."""
    server.row("orders", "order_id", order_id)
    server.insert("supervisor_requests", order_id=order_id, topic=topic)
    return {"approval": "granted"}


@server.tool
def refund_price(order_id: OrderId, amount: float) -> dict[str, Any]:
    """Pay a price difference back."""
    server.row("orders", "order_id", order_id)
    server.insert("price_refunds", order_id=order_id, amount=amount)
    return {"refunded": True}


@server.tool
def cancel_order(order_id: OrderId, refund_to: Literal["card", "wallet"]) -> dict[str, Any]:
    """Cancel an order."""
    server.update("orders", "order_id", order_id, status="canceled", refund_to=refund_to)
    return {"canceled": True}


@server.tool
def log_denial(order_id: OrderId, reason: Literal["window closed", "not in stock", "other"]) -> dict[str, Any]:
    """Record that a request is declined."""
    server.row("orders", "order_id", order_id)
    server.insert("denials", order_id=order_id, reason=reason)
    return {"noted": True}


if __name__ == "__main__":
    server.main()
