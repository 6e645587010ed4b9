"""Neobank's templates."""

from __future__ import annotations

from typing import Any

from tbstudy_demo.cases import Call, Case, Domain, Template
from tbstudy_demo.neobank import DATA, POLICY, server
from tbstudy_demo.templates import GIVES_UP, ask, declined, done
from tbstudy_demo.words import Draw

CATEGORIES = ("duplicate", "unknown", "overcharged")


def _account(draw: Draw, account: str, owner: str, **fixed: Any) -> dict[str, Any]:
    # What a template does not fix varies, so that only the field that its policy names decides.
    row = {"account_id": account, "owner": owner, "tier": draw.choice("plus", "basic"),
           "hold": draw.choice(None, draw.id("H")), "balance": draw.amount(), "fee": draw.amount()}
    return row | fixed


def _card(draw: Draw, card: str, holder: str, **fixed: Any) -> dict[str, Any]:
    row = {"card_id": card, "holder": holder, "minor": draw.choice(True, False),
           "status": draw.choice("active", "frozen"), "spending_limit": draw.amount(), "spent": draw.amount()}
    return row | fixed


def _see_account(account: str) -> Call:
    return Call("I look the account up.", "show_account", {"account_id": account})


def _see_card(card: str) -> Call:
    return Call("I look the card up.", "show_card", {"card_id": card})


def payment_dispute(draw: Draw, twin: str) -> Case:
    name, account, hold = draw.name(), draw.id("A"), draw.id("H")
    one, two = draw.id("Y"), draw.id("Y")
    category, other = draw.rng.sample(CATEGORIES, 2)
    query = draw.choice(f"I am {name}. Payments {one} and {two} are {category}, please dispute them.",
                        f"{name} here. I want to dispute {one} and {two}, both are {category}.",
                        f"This is {name}. Can I get {one} and {two} back? They are {category}.")
    start = (ask("account number"), _see_account(account))
    free, refusal = "The hold is null, so this is allowed.", "The hold is set, so I decline."
    end, refused = done("Your dispute is open."), declined("Your account has a hold, so no dispute.")

    def dispute(thought: str, why: str = category, payments: tuple[str, ...] = (one, two)) -> Call:
        return Call(thought, "open_dispute", {"payment_ids": list(payments), "category": why})

    def refuse(thought: str, reason: str = "hold") -> Call:
        return Call(thought, "file_refusal", {"account_id": account, "reason": reason})

    if twin == "no_hold":
        script = (*start, dispute(free), end)
        mistakes = {
            "wrong_branch": (*start, refuse(refusal), refused),
            "wrong_field": (*start, dispute(free, other), end),
            "stops_early": (*start, dispute(free, payments=(one,)), end),
            "extra_write": (*start, dispute(free), refuse("I note a refusal as well.", "other"), end),
            "skips_lookup": (start[0], refuse("I decline at once."), refused),
            "gives_up": GIVES_UP,
        }
    else:
        script = (*start, refuse(refusal), refused)
        mistakes = {
            "wrong_branch": (*start, dispute(free), end),
            "wrong_field": (*start, refuse(refusal, "basic tier"), refused),
            "stops_early": (*start, refused),
            "extra_write": (*start, refuse(refusal), dispute("I open the dispute all the same."), end),
            "skips_lookup": (start[0], dispute("I open the dispute at once."), end),
            "gives_up": GIVES_UP,
        }
    rows = {"accounts": [_account(draw, account, name, hold=None if twin == "no_hold" else hold)],
            "payments": [{"payment_id": p, "account_id": account, "amount": draw.amount()} for p in (one, two)]}
    return Case(query, rows, script, mistakes, {"account number": account})


def card_limit(draw: Draw, twin: str) -> Case:
    name, card, amount = draw.name(), draw.id("K"), draw.amount()
    limit = draw.choice(amount, amount, None)
    wish = "remove the limit of my card" if limit is None else f"set the limit of my card to {limit}"
    query = draw.choice(f"I am {name}. Please {wish}.",
                        f"{name} here. I want you to {wish}.",
                        f"This is {name}. Can you {wish}, please?",
                        f"My name is {name}. Could you {wish}?")
    row = _card(draw, card, name, minor=twin == "minor")
    start = (ask("card number"), _see_card(card))
    granted, free = "The approval is granted, so I set the limit.", "The minor is false, so this is allowed."
    end = done("Your limit is changed.")

    def guardian(thought: str) -> Call:
        return Call(thought, "request_guardian", {"card_id": card, "topic": "limit"})

    def change(thought: str, to: float | None = limit) -> Call:
        return Call(thought, "set_limit", {"card_id": card, "limit": to})

    first = guardian("The minor is true, so approval comes first.")
    extra = Call("I freeze the card as well.", "freeze_card", {"card_id": card})
    if twin == "minor":
        script = (*start, first, change(granted), end)
        mistakes = {
            "wrong_branch": (*start, change(free), end),
            "wrong_field": (*start, first, change(granted, row["spent"]), end),
            "stops_early": (*start, first, end),
            "extra_write": (*start, first, change(granted), extra, end),
            "skips_lookup": (start[0], change("I set the limit at once."), end),
            "gives_up": GIVES_UP,
        }
    else:
        script = (*start, change(free), end)
        mistakes = {
            "wrong_branch": (*start, first, change(granted), end),
            "wrong_field": (*start, change(free, row["spent"]), end),
            "stops_early": (*start, end),
            "extra_write": (*start, change(free), extra, end),
            "skips_lookup": (start[0], guardian("I ask for approval at once."), change(granted), end),
            "gives_up": GIVES_UP,
        }
    return Case(query, {"cards": [row]}, script, mistakes, {"card number": card})


def lost_card(draw: Draw, twin: str) -> Case:
    name, card = draw.name(), draw.id("K")
    express = draw.choice(True, False)
    mail = "by express" if express else "by normal mail"
    query = draw.choice(f"I am {name}. I lost my card, please send a new one {mail}.",
                        f"{name} here. My card is gone and I need another {mail}.",
                        f"This is {name}. Someone took my card, can I get a new one {mail}?")
    start = (ask("card number"), _see_card(card))
    active, frozen = "The status is active, so freezing comes first.", "The status is frozen, so I only replace it."
    then, end = "The card is frozen, so I replace it.", done("A new card is on its way.")

    def freeze(thought: str) -> Call:
        return Call(thought, "freeze_card", {"card_id": card})

    def replace(thought: str, fast: bool = express) -> Call:
        return Call(thought, "replace_card", {"card_id": card, "express": fast})

    again = Call("I ask for approval as well.", "request_guardian", {"card_id": card, "topic": "replacement"})
    if twin == "active":
        script = (*start, freeze(active), replace(then), end)
        mistakes = {
            "wrong_branch": (*start, replace(frozen), end),
            "wrong_field": (*start, freeze(active), replace(then, not express), end),
            "stops_early": (*start, freeze(active), end),
            "extra_write": (*start, freeze(active), replace(then), again, end),
            "skips_lookup": (start[0], replace("I replace the card at once."), end),
            "gives_up": GIVES_UP,
        }
    else:
        script = (*start, replace(frozen), end)
        mistakes = {
            "wrong_branch": (*start, freeze(active), replace(then), end),
            "wrong_field": (*start, replace(frozen, not express), end),
            "stops_early": (*start, end),
            "extra_write": (*start, replace(frozen), again, end),
            "skips_lookup": (start[0], freeze("I freeze the card at once."), replace(then), end),
            "gives_up": GIVES_UP,
        }
    return Case(query, {"cards": [_card(draw, card, name, status=twin)]}, script, mistakes, {"card number": card})


def fee_refund(draw: Draw, twin: str) -> Case:
    name, account = draw.name(), draw.id("A")
    query = draw.choice(f"I am {name}. Please pay back the fee on account {account}.",
                        f"{name} here. Why is there a fee on account {account}? I want it back.",
                        f"This is {name}. I should not pay a fee for account {account}, please refund it.")
    row = _account(draw, account, name, tier=twin)
    start = (_see_account(account),)
    allowed, refusal = "The tier is plus, so this is allowed.", "The tier is basic, so I decline."
    end, refused = done("Your fee is refunded."), declined("Your tier has no free account.")

    def refund(thought: str, amount: float = row["fee"]) -> Call:
        return Call(thought, "refund_fee", {"account_id": account, "amount": amount})

    def refuse(thought: str, reason: str = "basic tier") -> Call:
        return Call(thought, "file_refusal", {"account_id": account, "reason": reason})

    if twin == "plus":
        script = (*start, refund(allowed), end)
        mistakes = {
            "wrong_branch": (*start, refuse(refusal), refused),
            "wrong_field": (*start, refund(allowed, row["balance"]), end),
            "stops_early": (*start, end),
            "extra_write": (*start, refund(allowed), refund("I refund the fee once more."), end),
            "skips_lookup": (refuse("I decline at once."), refused),
            "gives_up": GIVES_UP,
        }
    else:
        script = (*start, refuse(refusal), refused)
        mistakes = {
            "wrong_branch": (*start, refund(allowed), end),
            "wrong_field": (*start, refuse(refusal, "hold"), refused),
            "stops_early": (*start, refused),
            "extra_write": (*start, refuse(refusal), refund("I refund the fee all the same."), end),
            "skips_lookup": (refuse("I decline at once.", "other"), refused),
            "gives_up": GIVES_UP,
        }
    return Case(query, {"accounts": [row]}, script, mistakes)


TEMPLATES = (
    Template("payment_dispute", ("no_hold", "hold"), payment_dispute),
    Template("card_limit", ("minor", "adult"), card_limit),
    Template("lost_card", ("active", "frozen"), lost_card),
    Template("fee_refund", ("plus", "basic"), fee_refund),
)

domain = Domain("neobank", server, POLICY, DATA, TEMPLATES)
