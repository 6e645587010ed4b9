"""Retail's templates."""

from __future__ import annotations

from typing import Any

from tbstudy_demo.cases import Call, Case, Domain, Say, Template
from tbstudy_demo.retail import DATA, POLICY, server
from tbstudy_demo.templates import GIVES_UP, ask, declined, done
from tbstudy_demo.words import Draw

PRODUCTS = ("jacket", "boots", "shirt", "scarf", "dress")
SIZES = ("small", "medium", "large")


def _order(draw: Draw, order: str, buyer: str, **fixed: Any) -> dict[str, Any]:
    # What a template does not fix varies, so that only the field that its policy names decides.
    row = {"order_id": order, "buyer": buyer, "status": draw.choice("open", "shipped"),
           "window": draw.choice("open", "closed"), "sale": draw.choice(True, False), "total": draw.amount(),
           "refund_to": None}
    return row | fixed


def _look_up(order: str) -> Call:
    return Call("I look the order up.", "get_order", {"order_id": order})


def return_window(draw: Draw, twin: str) -> Case:
    name, order = draw.name(), draw.id("O")
    one, two, three = draw.id("I"), draw.id("I"), draw.id("I")
    reason, other = draw.rng.sample(("damaged", "unwanted", "late"), 2)
    query = draw.choice(f"I am {name}. I want to return {one} and {two}, they are {reason}.",
                        f"{name} here. Items {one} and {two} are {reason}, please take them back.",
                        f"This is {name}. Can I send {one} and {two} back? They are {reason}.")
    start = (ask("order number"), _look_up(order))
    allowed, refusal = "The window is open, so this is allowed.", "The window is closed, so I decline."
    end, refused = done("Your return is open."), declined("This order can no longer be returned.")

    def give_back(thought: str, why: str = reason, items: tuple[str, ...] = (one, two)) -> Call:
        return Call(thought, "return_items", {"order_id": order, "item_ids": list(items), "reason": why})

    def deny(thought: str, why: str = "window closed") -> Call:
        return Call(thought, "log_denial", {"order_id": order, "reason": why})

    if twin == "window_open":
        approval = Call("I ask for approval of the return.", "ask_supervisor", {"order_id": order, "topic": "return"})
        script = (*start, give_back(allowed), end)
        mistakes = {
            "wrong_branch": (*start, deny(refusal), refused),
            "wrong_field": (*start, give_back(allowed, other), end),
            "stops_early": (*start, give_back(allowed, items=(one,)), end),
            "extra_write": (*start, approval, give_back("The approval is granted, so I open the return."), end),
            "skips_lookup": (start[0], deny("I decline at once."), refused),
            "gives_up": GIVES_UP,
        }
    else:
        script = (*start, deny(refusal), refused)
        mistakes = {
            "wrong_branch": (*start, give_back(allowed), end),
            "wrong_field": (*start, deny(refusal, "not in stock"), refused),
            "stops_early": (*start, refused),
            "extra_write": (*start, deny(refusal), give_back("I open the return all the same."), end),
            "skips_lookup": (start[0], give_back("I open the return at once."), end),
            "gives_up": GIVES_UP,
        }
    rows = {"orders": [_order(draw, order, name, window="open" if twin == "window_open" else "closed")],
            "items": [{"item_id": item, "order_id": order, "product": product, "in_stock": draw.choice(True, False)}
                      for item, product in zip((one, two, three), draw.rng.sample(PRODUCTS, 3), strict=True)]}
    return Case(query, rows, script, mistakes, {"order number": order})


def size_exchange(draw: Draw, twin: str) -> Case:
    name, order, item, neighbour = draw.name(), draw.id("O"), draw.id("I"), draw.id("I")
    product, second = draw.rng.sample(PRODUCTS, 2)
    size, other = draw.rng.sample(SIZES, 2)
    query = draw.choice(f"I am {name}. The {product} of order {order} does not fit me.",
                        f"{name} here. I need another size of the {product} in order {order}.",
                        f"This is {name}. Can I swap the {product} from order {order}, it fits badly?")
    start = (ask("new size"), Call("I list the items of the order.", "list_items", {"order_id": order}))
    in_stock = f"The {product} {item} has in_stock true, so this is allowed."
    sold_out = f"The {product} {item} has in_stock false, so it waits."
    end, waits = done("Your exchange is on its way."), done("You are on the waitlist.")

    def exchange(thought: str, which: str = item, what: str = size) -> Call:
        return Call(thought, "exchange_item", {"item_id": which, "size": what})

    def wait(thought: str, which: str = item, what: str = size) -> Call:
        return Call(thought, "join_waitlist", {"item_id": which, "size": what})

    if twin == "in_stock":
        script = (*start, exchange(in_stock), end)
        mistakes = {
            "wrong_branch": (*start, wait(sold_out), waits),
            "wrong_field": (*start, exchange(in_stock, what=other), end),
            "wrong_item": (*start, exchange(f"The {product} {neighbour} has in_stock true, so this is allowed.",
                                            neighbour), end),
            "stops_early": (*start, end),
            "extra_write": (*start, exchange(in_stock), wait("I add the waitlist as well."), end),
            "gives_up": GIVES_UP,
        }
    else:
        script = (*start, wait(sold_out), waits)
        mistakes = {
            "wrong_branch": (*start, exchange(in_stock), end),
            "wrong_field": (*start, wait(sold_out, what=other), waits),
            "wrong_item": (*start, wait(f"The {product} {neighbour} has in_stock false, so it waits.", neighbour),
                           waits),
            "stops_early": (*start, waits),
            "extra_write": (*start, wait(sold_out), exchange("I exchange it all the same."), end),
            "gives_up": GIVES_UP,
        }
    items = [{"item_id": item, "order_id": order, "product": product, "in_stock": twin == "in_stock"},
             {"item_id": neighbour, "order_id": order, "product": second, "in_stock": draw.choice(True, False)}]
    return Case(query, {"orders": [_order(draw, order, name)], "items": items}, script, mistakes, {"new size": size})


def price_match(draw: Draw, twin: str) -> Case:
    name, order, amount = draw.name(), draw.id("O"), draw.amount()
    row = _order(draw, order, name, sale=twin == "on_sale")
    query = draw.choice(f"I am {name}. Order {order} is cheaper elsewhere, please refund {amount}.",
                        f"{name} here. I found order {order} for less and want {amount} back.",
                        f"This is {name}. Please match the price of order {order} and pay me {amount}.")
    start = (_look_up(order),)
    granted, free = "The approval is granted, so I refund the price.", "The sale is false, so this is allowed."
    end = done("The price difference is refunded.")

    def approve(thought: str) -> Call:
        return Call(thought, "ask_supervisor", {"order_id": order, "topic": "price"})

    def refund(thought: str, what: float = amount) -> Call:
        return Call(thought, "refund_price", {"order_id": order, "amount": what})

    first = approve("The sale is true, so approval comes first.")
    extra = Call("I cancel the order as well.", "cancel_order", {"order_id": order, "refund_to": "card"})
    if twin == "on_sale":
        script = (*start, first, refund(granted), end)
        mistakes = {
            "wrong_branch": (*start, refund(free), end),
            "wrong_field": (*start, first, refund(granted, row["total"]), end),
            "stops_early": (*start, first, end),
            "extra_write": (*start, first, refund(granted), extra, end),
            "skips_lookup": (refund("I refund the price at once."), end),
            "gives_up": GIVES_UP,
        }
    else:
        script = (*start, refund(free), end)
        mistakes = {
            "wrong_branch": (*start, first, refund(granted), end),
            "wrong_field": (*start, refund(free, row["total"]), end),
            "stops_early": (*start, end),
            "extra_write": (*start, refund(free), extra, end),
            "skips_lookup": (approve("I ask for approval at once."), refund(granted), end),
            "gives_up": GIVES_UP,
        }
    return Case(query, {"orders": [row]}, script, mistakes)


def order_cancel(draw: Draw, twin: str) -> Case:
    name, order = draw.name(), draw.id("O")
    target, other = draw.rng.sample(("card", "wallet"), 2)
    query = draw.choice(f"I am {name}. Please cancel my order and refund my {target}.",
                        f"{name} here. I no longer want my order, pay it back to my {target}.",
                        f"This is {name}. Stop my order please, the money goes to my {target}.")
    start = (ask("order number"), _look_up(order))
    free, end = "The status is open, so this is allowed.", done("Your order is canceled.")
    already = Say("The status is canceled, so this is already done.", "This order was canceled before. <DONE>")

    def cancel(thought: str, to: str = target) -> Call:
        return Call(thought, "cancel_order", {"order_id": order, "refund_to": to})

    deny = Call("I note a denial as well.", "log_denial", {"order_id": order, "reason": "other"})
    approval = Call("I ask for approval of the refund.", "ask_supervisor", {"order_id": order, "topic": "return"})
    if twin == "open":
        script = (*start, cancel(free), end)
        mistakes = {
            "wrong_branch": (*start, already),
            "wrong_field": (*start, cancel(free, other), end),
            "stops_early": (*start, Say("The order is looked up.", end.text)),
            "extra_write": (*start, approval, cancel("The approval is granted, so I cancel it."), end),
            "skips_lookup": (start[0], Say("I think this is already done.", already.text)),
            "gives_up": GIVES_UP,
        }
    else:
        script = (*start, already)
        mistakes = {
            "wrong_branch": (*start, cancel(free), end),
            "extra_write": (*start, deny, already),
            "asks_approval": (*start, approval, already),
            "skips_lookup": (start[0], cancel("I cancel the order at once."), end),
        }
    rows = {"orders": [_order(draw, order, name, status=twin)]}
    return Case(query, rows, script, mistakes, {"order number": order})


TEMPLATES = (
    Template("return_window", ("window_open", "window_closed"), return_window),
    Template("size_exchange", ("in_stock", "out_of_stock"), size_exchange),
    Template("price_match", ("on_sale", "full_price"), price_match),
    Template("order_cancel", ("open", "canceled"), order_cancel),
)

domain = Domain("retail", server, POLICY, DATA, TEMPLATES)
