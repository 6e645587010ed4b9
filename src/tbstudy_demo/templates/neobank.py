"""Neobank's templates."""

from __future__ import annotations

from typing import Any

from tbstudy_demo.cases import Call, Case, Domain, Template
from tbstudy_demo.neobank import DATA, POLICY, server
from tbstudy_demo.templates import ALLOWED, APPROVAL_FIRST, DECLINE, Branch, ask, because, build, declined, done
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
    rows = {"accounts": [_account(draw, account, name, hold=None if twin == "no_hold" else hold)],
            "payments": [{"payment_id": p, "account_id": account, "amount": draw.amount()} for p in (one, two)]}
    start, facts = (ask("account number"), _see_account(account)), {"account number": account}
    wrong = draw.choice({"category": other}, {"payment_ids": [one]})
    dispute = {"payment_ids": [one, two], "category": category}
    opened = Branch((Call(because("hold", None, ALLOWED), "open_dispute", dispute),), done("Your dispute is open."))
    refused = Branch((Call(because("hold", hold, DECLINE), "file_refusal",
                           {"account_id": account, "reason": "hold"}),),
                     declined("Your account has a hold, so no dispute."))
    if twin == "no_hold":
        extra = Call("I note a refusal as well.", "file_refusal", {"account_id": account, "reason": "other"})
        return build(query, rows, start, opened, refused, wrong=wrong, extra=extra, facts=facts)
    extra = Call("I open the dispute as well.", "open_dispute", dispute)
    return build(query, rows, start, refused, opened, wrong={"reason": "basic tier"}, extra=extra, facts=facts)


def card_limit(draw: Draw, twin: str) -> Case:
    name, card, amount = draw.name(), draw.id("K"), draw.amount()
    limit = draw.choice(amount, amount, None)
    wish = "remove the limit of my card" if limit is None else f"set the limit of my card to {limit}"
    query = draw.choice(f"I am {name}. Please {wish}.",
                        f"{name} here. I want you to {wish}.",
                        f"This is {name}. Can you {wish}, please?",
                        f"My name is {name}. Could you {wish}?")
    row = _card(draw, card, name, minor=twin == "minor")
    new = {"card_id": card, "limit": limit}
    end = done("Your limit is changed.")
    approved = Branch((
        Call(because("minor", True, APPROVAL_FIRST), "request_guardian", {"card_id": card, "topic": "limit"}),
        Call("The approval is granted, so I set the limit.", "set_limit", new)), end)
    free = Branch((Call(because("minor", False, ALLOWED), "set_limit", new),), end)
    right, wrong = (approved, free) if twin == "minor" else (free, approved)
    extra = Call("I freeze the card as well.", "freeze_card", {"card_id": card})
    return build(query, {"cards": [row]}, (ask("card number"), _see_card(card)), right, wrong,
                 wrong={"limit": row["spent"]}, extra=extra, facts={"card number": card})


def lost_card(draw: Draw, twin: str) -> Case:
    name, card = draw.name(), draw.id("K")
    express = draw.choice(True, False)
    mail = "by express" if express else "by normal mail"
    query = draw.choice(f"I am {name}. I lost my card, please send a new one {mail}.",
                        f"{name} here. My card is gone and I need another {mail}.",
                        f"This is {name}. Someone took my card, can I get a new one {mail}?")
    rows = {"cards": [_card(draw, card, name, status=twin)]}
    sent = {"card_id": card, "express": express}
    end = done("A new card is on its way.")
    both = Branch((
        Call(because("status", "active", "freezing comes first"), "freeze_card", {"card_id": card}),
        Call("The card is frozen, so I replace it.", "replace_card", sent)), end)
    only = Branch((Call(because("status", "frozen", "I only replace it"), "replace_card", sent),), end)
    right, wrong = (both, only) if twin == "active" else (only, both)
    extra = Call("I ask the guardian as well.", "request_guardian", {"card_id": card, "topic": "replacement"})
    return build(query, rows, (ask("card number"), _see_card(card)), right, wrong, wrong={"express": not express},
                 extra=extra, facts={"card number": card})


def fee_refund(draw: Draw, twin: str) -> Case:
    name, account = draw.name(), draw.id("A")
    query = draw.choice(f"I am {name}. Please pay back the fee on account {account}.",
                        f"{name} here. Why is there a fee on account {account}? I want it back.",
                        f"This is {name}. I should not pay a fee for account {account}, please refund it.")
    row = _account(draw, account, name, tier=twin)
    rows, start = {"accounts": [row]}, (_see_account(account),)
    fee = {"account_id": account, "amount": row["fee"]}
    refunded = Branch((Call(because("tier", "plus", ALLOWED), "refund_fee", fee),), done("Your fee is refunded."))
    refused = Branch((Call(because("tier", "basic", DECLINE), "file_refusal",
                           {"account_id": account, "reason": "basic tier"}),),
                     declined("Your tier has no free account."))
    extra = Call("I refund the fee as well.", "refund_fee", fee)
    if twin == "plus":
        return build(query, rows, start, refunded, refused, wrong={"amount": row["balance"]}, extra=extra)
    return build(query, rows, start, refused, refunded, wrong={"reason": "hold"}, extra=extra, blind=False)


TEMPLATES = (
    Template("payment_dispute", ("no_hold", "hold"), payment_dispute),
    Template("card_limit", ("minor", "adult"), card_limit),
    Template("lost_card", ("active", "frozen"), lost_card),
    Template("fee_refund", ("plus", "basic"), fee_refund),
)

domain = Domain("neobank", server, POLICY, DATA, TEMPLATES)
