"""Auto insurance's templates."""

from __future__ import annotations

from typing import Any

from tbstudy_demo.auto_insurance import DATA, POLICY, server
from tbstudy_demo.cases import Call, Case, Domain, Template
from tbstudy_demo.templates import GIVES_UP, ask, declined, done
from tbstudy_demo.words import COUNTS, Draw


def _policy(draw: Draw, policy: str, holder: str, **fixed: Any) -> dict[str, Any]:
    # What a template does not fix varies, so that only the field that its policy names decides.
    row = {"policy_id": policy, "holder": holder, "drivers": draw.choice("any", "restricted"),
           "rental_cover": draw.choice(True, False), "lender": draw.choice(None, draw.id("B")),
           "deductible": draw.amount()}
    return row | fixed


def _claim(draw: Draw, claim: str, policy: str, **fixed: Any) -> dict[str, Any]:
    row = {"claim_id": claim, "policy_id": policy, "fraud_flag": draw.choice(True, False), "estimate": draw.amount(),
           "towing": draw.amount()}
    return row | fixed


def _see_policy(policy: str) -> Call:
    return Call("I look the policy up.", "fetch_policy", {"policy_id": policy})


def _see_claim(claim: str) -> Call:
    return Call("I look the claim up.", "fetch_claim", {"claim_id": claim})


def claim_payout(draw: Draw, twin: str) -> Case:
    name, claim, policy = draw.name(), draw.id("C"), draw.id("P")
    report = draw.choice(True, False)
    paper = "I have a police report" if report else "there is no police report"
    query = draw.choice(f"I am {name}. Please pay out claim {claim}, {paper}.",
                        f"{name} here. I want the money for claim {claim}, {paper}.",
                        f"This is {name}. When is claim {claim} paid? By the way, {paper}.")
    row = _claim(draw, claim, policy, fraud_flag=twin == "flagged")
    start = (_see_claim(claim),)
    clean, flagged = "The fraud_flag is false, so this is allowed.", "The fraud_flag is true, so I investigate."
    end, opened = done("Your claim is paid."), declined("Your claim is under investigation.")

    def pay(thought: str, amount: float = row["estimate"]) -> Call:
        return Call(thought, "approve_payout", {"claim_id": claim, "amount": amount})

    def look_into(thought: str, police_report: bool = report) -> Call:
        return Call(thought, "investigate", {"claim_id": claim, "police_report": police_report})

    if twin == "clean":
        script = (*start, pay(clean), end)
        mistakes = {
            "wrong_branch": (*start, look_into(flagged), opened),
            "wrong_field": (*start, pay(clean, row["towing"]), end),
            "stops_early": (*start, end),
            "extra_write": (*start, pay(clean), pay("I pay the towing as well.", row["towing"]), end),
            "skips_lookup": (look_into("I investigate at once."), opened),
            "gives_up": GIVES_UP,
        }
    else:
        script = (*start, look_into(flagged), opened)
        mistakes = {
            "wrong_branch": (*start, pay(clean), end),
            "wrong_field": (*start, look_into(flagged, not report), opened),
            "stops_early": (*start, opened),
            "extra_write": (*start, look_into(flagged), pay("I pay the claim all the same."), end),
            "gives_up": GIVES_UP,
        }
    rows = {"policies": [_policy(draw, policy, name)], "claims": [row]}
    return Case(query, rows, script, mistakes)


def new_driver(draw: Draw, twin: str) -> Case:
    name, policy, driver, years = draw.name(), draw.id("P"), draw.name(), draw.count()
    query = draw.choice(f"I am {name}, policy {policy}. Please add a driver who drives for {years} years.",
                        f"{name} here. On policy {policy} I need a second driver, licensed for {years} years.",
                        f"This is {name}. My friend, licensed for {years} years, should be on policy {policy}.")
    start = (ask("driver name"), _see_policy(policy))
    granted, free = "The approval is granted, so I add the driver.", "The drivers is any, so this is allowed."
    end = done("The driver is added.")

    def refer(thought: str) -> Call:
        return Call(thought, "refer_to_underwriter", {"policy_id": policy, "topic": "driver"})

    def add(thought: str, who: str = driver) -> Call:
        return Call(thought, "add_driver", {"policy_id": policy, "driver": who, "years": years})

    first = refer("The drivers is restricted, so approval comes first.")
    if twin == "restricted":
        script = (*start, first, add(granted), end)
        mistakes = {
            "wrong_branch": (*start, add(free), end),
            "wrong_field": (*start, first, add(granted, name), end),
            "stops_early": (*start, first, end),
            "extra_write": (*start, first, add(granted), add("I add the holder as well.", name), end),
            "skips_lookup": (start[0], add("I add the driver at once."), end),
            "gives_up": GIVES_UP,
        }
    else:
        script = (*start, add(free), end)
        mistakes = {
            "wrong_branch": (*start, first, add(granted), end),
            "wrong_field": (*start, add(free, name), end),
            "stops_early": (*start, end),
            "extra_write": (*start, add(free), add("I add the holder as well.", name), end),
            "skips_lookup": (start[0], refer("I ask for approval at once."), add(granted), end),
            "gives_up": GIVES_UP,
        }
    rows = {"policies": [_policy(draw, policy, name, drivers=twin)]}
    return Case(query, rows, script, mistakes, {"driver name": driver})


def rental_car(draw: Draw, twin: str) -> Case:
    name, claim, policy, days = draw.name(), draw.id("C"), draw.id("P"), draw.count()
    other = draw.choice(*(n for n in COUNTS if n != days))
    query = draw.choice(f"I am {name}. I need a rental car for {days} days while mine is repaired.",
                        f"{name} here. Please get me a rental car for {days} days after my accident.",
                        f"This is {name}. My car is in the garage, can I have another one for {days} days?")
    start = (ask("claim number"), _see_claim(claim), _see_policy(policy))
    allowed, refusal = "The rental_cover is true, so this is allowed.", "The rental_cover is false, so I decline."
    end, refused = done("Your rental car is booked."), declined("Your policy has no rental cover.")

    def book(thought: str, how_long: int = days) -> Call:
        return Call(thought, "book_rental", {"claim_id": claim, "days": how_long})

    def refuse(thought: str, reason: str = "no cover") -> Call:
        return Call(thought, "reject", {"policy_id": policy, "reason": reason})

    if twin == "covered":
        script = (*start, book(allowed), end)
        mistakes = {
            "wrong_branch": (*start, refuse(refusal), refused),
            "wrong_field": (*start, book(allowed, other), end),
            "stops_early": (*start, end),
            "extra_write": (*start, book(allowed), book("I book another car as well."), end),
            "skips_lookup": (*start[:2], refuse("I decline at once."), refused),
            "gives_up": GIVES_UP,
        }
    else:
        script = (*start, refuse(refusal), refused)
        mistakes = {
            "wrong_branch": (*start, book(allowed), end),
            "wrong_field": (*start, refuse(refusal, "lender"), refused),
            "stops_early": (*start, refused),
            "extra_write": (*start, refuse(refusal), book("I book the car all the same."), end),
            "skips_lookup": (*start[:2], book("I book the car at once."), end),
            "gives_up": GIVES_UP,
        }
    rows = {"policies": [_policy(draw, policy, name, rental_cover=twin == "covered")],
            "claims": [_claim(draw, claim, policy)]}
    return Case(query, rows, script, mistakes, {"claim number": claim})


def deductible_change(draw: Draw, twin: str) -> Case:
    name, policy, amount, wrong, lender = draw.name(), draw.id("P"), draw.amount(), draw.amount(), draw.id("B")
    query = draw.choice(f"I am {name}. Please change my deductible to {amount}.",
                        f"{name} here. I want a deductible of {amount} from now on.",
                        f"This is {name}. Can my deductible be {amount}, please?",
                        f"My name is {name} and I would like a deductible of {amount}.")
    start = (ask("policy number"), _see_policy(policy))
    free, refusal = "The lender is null, so this is allowed.", "The lender is set, so I decline."
    end, refused = done("Your deductible is changed."), declined("Your lender fixes the deductible.")

    def change(thought: str, to: float = amount) -> Call:
        return Call(thought, "set_deductible", {"policy_id": policy, "amount": to})

    def refuse(thought: str, reason: str = "lender") -> Call:
        return Call(thought, "reject", {"policy_id": policy, "reason": reason})

    referral = Call("I ask for approval of the change.", "refer_to_underwriter",
                    {"policy_id": policy, "topic": "deductible"})
    if twin == "no_lender":
        script = (*start, change(free), end)
        mistakes = {
            "wrong_branch": (*start, refuse(refusal), refused),
            "wrong_field": (*start, change(free, wrong), end),
            "stops_early": (*start, end),
            "extra_write": (*start, referral, change("The approval is granted, so I change it."), end),
            "skips_lookup": (start[0], refuse("I decline at once."), refused),
            "gives_up": GIVES_UP,
        }
    else:
        script = (*start, refuse(refusal), refused)
        mistakes = {
            "wrong_branch": (*start, change(free), end),
            "wrong_field": (*start, refuse(refusal, "no cover"), refused),
            "stops_early": (*start, refused),
            "asks_approval": (*start, referral, change("The approval is granted, so I change it."), end),
            "extra_write": (*start, refuse(refusal), change("I change it all the same."), end),
            "skips_lookup": (start[0], change("I change it at once."), end),
        }
    rows = {"policies": [_policy(draw, policy, name, lender=None if twin == "no_lender" else lender)]}
    return Case(query, rows, script, mistakes, {"policy number": policy})


TEMPLATES = (
    Template("claim_payout", ("clean", "flagged"), claim_payout),
    Template("new_driver", ("restricted", "any"), new_driver),
    Template("rental_car", ("covered", "not_covered"), rental_car),
    Template("deductible_change", ("no_lender", "lender"), deductible_change),
)

domain = Domain("auto_insurance", server, POLICY, DATA, TEMPLATES)
