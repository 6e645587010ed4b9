"""Auto insurance's templates."""

from __future__ import annotations

from typing import Any

from tbstudy_demo.auto_insurance import DATA, POLICY, server
from tbstudy_demo.cases import Call, Case, Domain, Template
from tbstudy_demo.templates import ALLOWED, APPROVAL_FIRST, DECLINE, Branch, ask, because, build, declined, done
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
    rows = {"policies": [_policy(draw, policy, name)], "car_claims": [row]}
    start = (_see_claim(claim),)
    paid = Branch((Call(because("fraud_flag", False, ALLOWED), "approve_payout",
                        {"claim_id": claim, "amount": row["estimate"]}),), done("Your claim is paid."))
    opened = Branch((Call(because("fraud_flag", True, "I investigate"), "investigate",
                          {"claim_id": claim, "police_report": report}),),
                    declined("Your claim is under investigation."))
    if twin == "clean":
        extra = Call("I pay the towing as well.", "approve_payout", {"claim_id": claim, "amount": row["towing"]})
        return build(query, rows, start, paid, opened, wrong={"amount": row["towing"]}, extra=extra)
    extra = Call("I pay the claim as well.", "approve_payout", {"claim_id": claim, "amount": row["estimate"]})
    return build(query, rows, start, opened, paid, wrong={"police_report": not report}, extra=extra, blind=False)


def new_driver(draw: Draw, twin: str) -> Case:
    name, policy, driver, years = draw.name(), draw.id("P"), draw.name(), draw.count()
    query = draw.choice(f"I am {name}, policy {policy}. Please add a driver who drives for {years} years.",
                        f"{name} here. On policy {policy} I need a second driver, licensed for {years} years.",
                        f"This is {name}. My friend, licensed for {years} years, should be on policy {policy}.")
    rows = {"policies": [_policy(draw, policy, name, drivers=twin)]}
    added = {"policy_id": policy, "driver": driver, "years": years}
    end = done("The driver is added.")
    approved = Branch((
        Call(because("drivers", "restricted", APPROVAL_FIRST), "refer_to_underwriter",
             {"policy_id": policy, "topic": "driver"}),
        Call("The approval is granted, so I add the driver.", "add_driver", added)), end)
    free = Branch((Call(because("drivers", "any", ALLOWED), "add_driver", added),), end)
    right, wrong = (approved, free) if twin == "restricted" else (free, approved)
    extra = Call("I add the holder as well.", "add_driver", added | {"driver": name})
    return build(query, rows, (ask("driver name"), _see_policy(policy)), right, wrong, wrong={"driver": name},
                 extra=extra, facts={"driver name": driver})


def rental_car(draw: Draw, twin: str) -> Case:
    name, claim, policy, days = draw.name(), draw.id("C"), draw.id("P"), draw.count()
    other = draw.choice(*(n for n in COUNTS if n != days))
    query = draw.choice(f"I am {name}. I need a rental car for {days} days while mine is repaired.",
                        f"{name} here. Please get me a rental car for {days} days after my accident.",
                        f"This is {name}. My car is in the garage, can I have another one for {days} days?")
    rows = {"policies": [_policy(draw, policy, name, rental_cover=twin == "covered")],
            "car_claims": [_claim(draw, claim, policy)]}
    start, facts = (ask("claim number"), _see_claim(claim), _see_policy(policy)), {"claim number": claim}
    rental = {"claim_id": claim, "days": days}
    booked = Branch((Call(because("rental_cover", True, ALLOWED), "book_rental", rental),),
                    done("Your rental car is booked."))
    refused = Branch((Call(because("rental_cover", False, DECLINE), "reject",
                           {"policy_id": policy, "reason": "no cover"}),),
                     declined("Your policy has no rental cover."))
    extra = Call("I book another car as well.", "book_rental", rental)
    if twin == "covered":
        return build(query, rows, start, booked, refused, wrong={"days": other}, extra=extra, facts=facts, blind=False)
    return build(query, rows, start, refused, booked, wrong={"reason": "lender"}, extra=extra, facts=facts)


def deductible_change(draw: Draw, twin: str) -> Case:
    name, policy, amount, lender = draw.name(), draw.id("P"), draw.amount(), draw.id("B")
    query = draw.choice(f"I am {name}. Please change my deductible to {amount}.",
                        f"{name} here. I want a deductible of {amount} from now on.",
                        f"This is {name}. Can my deductible be {amount}, please?",
                        f"My name is {name} and I would like a deductible of {amount}.")
    rows = {"policies": [_policy(draw, policy, name, lender=None if twin == "no_lender" else lender)]}
    start, facts = (ask("policy number"), _see_policy(policy)), {"policy number": policy}
    new = {"policy_id": policy, "amount": amount}
    changed = Branch((Call(because("lender", None, ALLOWED), "set_deductible", new),),
                     done("Your deductible is changed."))
    refused = Branch((Call(because("lender", lender, DECLINE), "reject", {"policy_id": policy, "reason": "lender"}),),
                     declined("Your lender fixes the deductible."))
    if twin == "no_lender":
        extra = Call("I ask the underwriter as well.", "refer_to_underwriter",
                     {"policy_id": policy, "topic": "deductible"})
        return build(query, rows, start, changed, refused, wrong={"amount": draw.amount()}, extra=extra, facts=facts)
    extra = Call("I change it as well.", "set_deductible", new)
    return build(query, rows, start, refused, changed, wrong={"reason": "no cover"}, extra=extra, facts=facts)


TEMPLATES = (
    Template("claim_payout", ("clean", "flagged"), claim_payout),
    Template("new_driver", ("restricted", "any"), new_driver),
    Template("rental_car", ("covered", "not_covered"), rental_car),
    Template("deductible_change", ("no_lender", "lender"), deductible_change),
)

domain = Domain("auto_insurance", server, POLICY, DATA, TEMPLATES)
