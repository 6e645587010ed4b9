"""Retail's templates."""

from __future__ import annotations

from typing import Any

from tbstudy_demo.cases import Call, Case, Domain, Say, Template
from tbstudy_demo.retail import DATA, POLICY, server
from tbstudy_demo.templates import (
    ALLOWED,
    ALREADY,
    APPROVAL_FIRST,
    DECLINE,
    Branch,
    ask,
    because,
    build,
    declined,
    done,
)
from tbstudy_demo.words import Draw

PRODUCTS = ("jacket", "boots", "shirt", "scarf", "dress")
SIZES = ("small", "medium", "large")
REASONS = ("damaged", "unwanted", "late")


def _order(draw: Draw, order: str, buyer: str, **fixed: Any) -> dict[str, Any]:
    # What a template does not fix varies, so that only the field that its policy names decides.
    row = {"order_id": order, "buyer": buyer, "status": draw.choice("open", "shipped"),
           "window": draw.choice("open", "closed"), "sale": draw.choice(True, False), "shipping": draw.amount(),
           "refund_to": None}
    return row | fixed


def _look_up(order: str) -> Call:
    return Call("I look the order up.", "get_order", {"order_id": order})


def return_window(draw: Draw, twin: str) -> Case:
    name, order = draw.name(), draw.id("O")
    one, two, three = draw.id("I"), draw.id("I"), draw.id("I")
    reason, other = draw.rng.sample(REASONS, 2)
    query = draw.choice(f"I am {name}. I want to return {one} and {two}, they are {reason}.",
                        f"{name} here. Items {one} and {two} are {reason}, please take them back.",
                        f"This is {name}. Can I send {one} and {two} back? They are {reason}.")
    rows = {"orders": [_order(draw, order, name, window="open" if twin == "window_open" else "closed")],
            "items": [{"item_id": item, "order_id": order, "product": product, "in_stock": draw.choice(True, False)}
                      for item, product in zip((one, two, three), draw.rng.sample(PRODUCTS, 3), strict=True)]}
    start, facts = (ask("order number"), _look_up(order)), {"order number": order}
    wrong = draw.choice({"reason": other}, {"item_ids": [one]})
    back = {"order_id": order, "item_ids": [one, two], "reason": reason}
    returned = Branch((Call(because("window", "open", ALLOWED), "return_items", back),), done("Your return is open."))
    refused = Branch((Call(because("window", "closed", DECLINE), "log_denial",
                           {"order_id": order, "reason": "window closed"}),),
                     declined("This order can no longer be returned."))
    if twin == "window_open":
        extra = Call("I ask a supervisor as well.", "ask_supervisor", {"order_id": order, "topic": "return"})
        return build(query, rows, start, returned, refused, wrong=wrong, extra=extra, facts=facts)
    extra = Call("I open the return as well.", "return_items", back)
    return build(query, rows, start, refused, returned, wrong={"reason": "not in stock"}, extra=extra, facts=facts)


def size_exchange(draw: Draw, twin: str) -> Case:
    name, order = draw.name(), draw.id("O")
    item, neighbour = draw.id("I"), draw.id("I")
    product, second = draw.rng.sample(PRODUCTS, 2)
    size, other = draw.rng.sample(SIZES, 2)
    query = draw.choice(f"I am {name}. The {product} of order {order} does not fit me.",
                        f"{name} here. I need another size of the {product} in order {order}.",
                        f"This is {name}. Can I swap the {product} from order {order}, it fits badly?")
    rows = {"orders": [_order(draw, order, name)],
            "items": [{"item_id": item, "order_id": order, "product": product, "in_stock": twin == "in_stock"},
                      {"item_id": neighbour, "order_id": order, "product": second,
                       "in_stock": draw.choice(True, False)}]}
    start = (ask("new size"), Call("I list the items of the order.", "list_items", {"order_id": order}))
    new = {"item_id": item, "size": size}
    swapped = Branch((Call(because("in_stock", True, ALLOWED, f"{product} {item}"), "exchange_item", new),),
                     done("Your exchange is on its way."))
    waiting = Branch((Call(because("in_stock", False, "it waits", f"{product} {item}"), "join_waitlist", new),),
                     done("You are on the waitlist."))
    right, wrong = (swapped, waiting) if twin == "in_stock" else (waiting, swapped)
    extra = Call("I do the other as well.", wrong.calls[0].tool, new)
    return build(query, rows, start, right, wrong, wrong=draw.choice({"size": other}, {"item_id": neighbour}),
                 extra=extra, facts={"new size": size}, blind=False)


def price_match(draw: Draw, twin: str) -> Case:
    name, order, amount = draw.name(), draw.id("O"), draw.amount()
    query = draw.choice(f"I am {name}. Order {order} is cheaper elsewhere, please refund {amount}.",
                        f"{name} here. I found order {order} for less and want {amount} back.",
                        f"This is {name}. Please match the price of order {order} and pay me {amount}.")
    row = _order(draw, order, name, sale=twin == "on_sale")
    refund = {"order_id": order, "amount": amount}
    end = done("The price difference is refunded.")
    approved = Branch((
        Call(because("sale", True, APPROVAL_FIRST), "ask_supervisor", {"order_id": order, "topic": "price"}),
        Call("The approval is granted, so I refund the price.", "refund_price", refund)), end)
    free = Branch((Call(because("sale", False, ALLOWED), "refund_price", refund),), end)
    right, wrong = (approved, free) if twin == "on_sale" else (free, approved)
    extra = Call("I cancel the order as well.", "cancel_order", {"order_id": order, "refund_to": "card"})
    return build(query, {"orders": [row]}, (_look_up(order),), right, wrong, wrong={"amount": row["shipping"]},
                 extra=extra)


def order_cancel(draw: Draw, twin: str) -> Case:
    name, order = draw.name(), draw.id("O")
    target, other = draw.rng.sample(("card", "wallet"), 2)
    query = draw.choice(f"I am {name}. Please cancel my order and refund my {target}.",
                        f"{name} here. I no longer want my order, pay it back to my {target}.",
                        f"This is {name}. Stop my order please, the money goes to my {target}.")
    rows, facts = {"orders": [_order(draw, order, name, status=twin)]}, {"order number": order}
    start = (ask("order number"), _look_up(order))
    canceled = Branch((Call(because("status", "open", ALLOWED), "cancel_order",
                            {"order_id": order, "refund_to": target}),), done("Your order is canceled."))
    kept = Branch((), Say(because("status", "canceled", ALREADY), "This order was canceled before. <DONE>"))
    approval = Call("I ask a supervisor as well.", "ask_supervisor", {"order_id": order, "topic": "return"})
    if twin == "open":
        return build(query, rows, start, canceled, kept, wrong={"refund_to": other}, extra=approval, facts=facts)
    extra = Call(because("status", "canceled", DECLINE), "log_denial", {"order_id": order, "reason": "other"})
    return build(query, rows, start, kept, canceled, extra=extra, approval=approval, facts=facts)


TEMPLATES = (
    Template("return_window", ("window_open", "window_closed"), return_window),
    Template("size_exchange", ("in_stock", "out_of_stock"), size_exchange),
    Template("price_match", ("on_sale", "full_price"), price_match),
    Template("order_cancel", ("open", "canceled"), order_cancel),
)

domain = Domain("retail", server, POLICY, DATA, TEMPLATES)
