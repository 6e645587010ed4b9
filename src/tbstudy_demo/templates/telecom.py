"""Telecom's templates."""

from __future__ import annotations

from typing import Any

from tbstudy_demo.cases import Call, Case, Domain, Say, Template
from tbstudy_demo.telecom import DATA, POLICY, server
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
from tbstudy_demo.words import COUNTS, Draw

PLANS = ("Basic", "Flex", "Family", "Max", "Student")


def _line(draw: Draw, line: str, owner: str, **fixed: Any) -> dict[str, Any]:
    # What a template does not fix varies, so that only the field that its policy names decides.
    row = {"line_id": line, "owner": owner, "role": "main", "plan": draw.choice(*PLANS),
           "status": draw.choice("active", "suspended"), "contract": draw.choice(True, False),
           "outage": draw.choice(True, False), "esim_ready": draw.choice(True, False),
           "ends": draw.choice(None, draw.date())}
    return row | fixed


def _look_up(line: str) -> Call:
    return Call("I look the line up.", "get_line", {"line_id": line})


def plan_change(draw: Draw, twin: str) -> Case:
    name, line = draw.name(), draw.id("L")
    plan, old, other = draw.rng.sample(PLANS, 3)
    query = draw.choice(f"Hi, I am {name}. Please move my line to the {plan} plan.",
                        f"This is {name}. I would like the {plan} plan from now on.",
                        f"I am {name} and I want to switch to the {plan} plan.",
                        f"My name is {name}. Can you put me on the {plan} plan?")
    rows = {"lines": [_line(draw, line, name, plan=old, contract=twin == "in_contract")]}
    change = {"line_id": line, "plan": plan}
    end = done("Your plan is changed.")
    approved = Branch((
        Call(because("contract", True, APPROVAL_FIRST), "request_approval", {"line_id": line, "action": "plan change"}),
        Call("The approval is granted, so I change the plan.", "change_plan", change)), end)
    free = Branch((Call(because("contract", False, ALLOWED), "change_plan", change),), end)
    right, wrong = (approved, free) if twin == "in_contract" else (free, approved)
    extra = Call("I add a credit as well.", "add_credit", {"line_id": line, "amount": 10, "reason": "goodwill"})
    return build(query, rows, (ask("line number"), _look_up(line)), right, wrong,
                 wrong={"plan": other}, extra=extra, facts={"line number": line})


def outage_credit(draw: Draw, twin: str) -> Case:
    name, line, amount = draw.name(), draw.id("L"), draw.amount()
    query = draw.choice(f"I am {name}, line {line}. I want a credit because the network was down.",
                        f"{name} here. My line {line} had no signal, please credit me.",
                        f"This is {name}. Please give line {line} a credit for the outage.")
    rows = {"lines": [_line(draw, line, name, outage=twin == "outage")]}
    credit = {"line_id": line, "amount": amount, "reason": "outage"}
    allowed = Branch((Call(because("outage", True, ALLOWED), "add_credit", credit),),
                     done("The credit is on your next bill."))
    refused = Branch((Call(because("outage", False, DECLINE), "note_decline",
                           {"line_id": line, "reason": "no outage"}),),
                     declined("No outage is on record, so no credit."))
    start = (ask("credit amount"), _look_up(line))
    extra = Call("I add a credit as well.", "add_credit", credit | {"reason": "goodwill"})
    facts = {"credit amount": str(amount)}
    if twin == "outage":
        return build(query, rows, start, allowed, refused, wrong={"reason": "goodwill"}, extra=extra, facts=facts)
    return build(query, rows, start, refused, allowed, wrong={"reason": "contract"}, extra=extra, facts=facts)


def more_data(draw: Draw, twin: str) -> Case:
    name, line, size = draw.name(), draw.id("L"), draw.count()
    other = draw.choice(*(n for n in COUNTS if n != size))
    query = draw.choice(f"I am {name}. Please add {size} GB to my line {line}.",
                        f"{name} here, line {line}. I need {size} GB more.",
                        f"This is {name}. Can line {line} get {size} GB of extra data?")
    rows = {"lines": [_line(draw, line, name, status=twin)]}
    allowed = Branch((Call(because("status", "active", ALLOWED), "add_data", {"line_id": line, "gigabytes": size}),),
                     done("The data pack is added."))
    refused = Branch((Call(because("status", "suspended", DECLINE), "note_decline",
                           {"line_id": line, "reason": "suspended"}),),
                     declined("The line is suspended, so no data is added."))
    start = (_look_up(line),)
    extra = Call("I add the data pack as well.", "add_data", {"line_id": line, "gigabytes": size})
    if twin == "active":
        return build(query, rows, start, allowed, refused, wrong={"gigabytes": other}, extra=extra)
    return build(query, rows, start, refused, allowed, wrong={"reason": "contract"}, extra=extra)


def new_sim(draw: Draw, twin: str) -> Case:
    name, line = draw.name(), draw.id("L")
    lost = draw.choice(True, False)
    state = "was lost" if lost else "is broken"
    query = draw.choice(f"I am {name}. My SIM {state}, please send a new one.",
                        f"{name} here. I need a new SIM, the old one {state}.",
                        f"This is {name}. The SIM of my phone {state}. Can I get another?")
    rows = {"lines": [_line(draw, line, name, esim_ready=twin == "esim_ready")]}

    def send(ready: bool) -> Branch:
        kind = "esim" if ready else "plastic"
        return Branch((Call(because("esim_ready", ready, f"{kind} is right"), "send_sim",
                            {"line_id": line, "kind": kind, "block_old": lost}),), done("A new SIM is on its way."))

    right, other = send(twin == "esim_ready"), send(twin != "esim_ready")
    extra = Call("I send the other kind as well.", "send_sim", other.calls[0].arguments)
    return build(query, rows, (ask("line number"), _look_up(line)), right, other,
                 wrong={"block_old": not lost}, extra=extra, facts={"line number": line})


def line_end(draw: Draw, twin: str) -> Case:
    name, line, date, other = draw.name(), draw.id("L"), draw.date(), draw.date()
    query = draw.choice(f"I am {name}. I want to end my line {line}.",
                        f"{name} here. Please cancel line {line} for me.",
                        f"This is {name}. I no longer need line {line}, please end it.")
    rows = {"lines": [_line(draw, line, name, ends=None if twin == "open" else other)]}
    ended = Branch((Call(because("ends", None, ALLOWED), "end_line", {"line_id": line, "date": date}),),
                   done("Your line ends on that date."))
    kept = Branch((), Say(because("ends", other, ALREADY), "The end of this line is already set. <DONE>"))
    start = (ask("end date"), _look_up(line))
    facts = {"end date": date}
    if twin == "open":
        extra = Call("I note this down as well.", "note_decline", {"line_id": line, "reason": "contract"})
        return build(query, rows, start, ended, kept, wrong={"date": other}, extra=extra, facts=facts)
    extra = Call(because("ends", other, DECLINE), "note_decline", {"line_id": line, "reason": "contract"})
    approval = Call("I ask for approval of the end.", "request_approval", {"line_id": line, "action": "line end"})
    return build(query, rows, start, kept, ended, extra=extra, approval=approval, facts=facts)


def goodwill_credit(draw: Draw, twin: str) -> Case:
    name, line, amount = draw.name(), draw.id("L"), draw.amount()
    query = draw.choice(f"I am {name}. Your colleague promised me a goodwill credit of {amount}.",
                        f"{name} here. Please book the goodwill credit of {amount} that I was promised.",
                        f"This is {name}. I am still waiting for {amount} as a goodwill credit.")
    rows = {"lines": [_line(draw, line, name, role=twin)]}
    credit = {"line_id": line, "amount": amount, "reason": "goodwill"}
    booked = Branch((Call(because("role", "main", ALLOWED), "add_credit", credit),),
                    done("The goodwill credit is booked."))
    refused = Branch((Call(because("role", "extra", DECLINE), "note_decline",
                           {"line_id": line, "reason": "extra line"}),),
                     declined("An extra line gets no goodwill credit."))
    start = (Call("I find the lines of the owner.", "find_lines", {"owner": name}),)
    extra = Call("I credit the line as well.", "add_credit", credit)
    if twin == "main":
        return build(query, rows, start, booked, refused, wrong={"reason": "outage"}, extra=extra, blind=False)
    return build(query, rows, start, refused, booked, wrong={"reason": "contract"}, extra=extra, blind=False)


TEMPLATES = (
    Template("plan_change", ("in_contract", "no_contract"), plan_change),
    Template("outage_credit", ("outage", "no_outage"), outage_credit),
    Template("more_data", ("active", "suspended"), more_data),
    Template("new_sim", ("esim_ready", "not_ready"), new_sim),
    Template("line_end", ("open", "already_set"), line_end),
    Template("goodwill_credit", ("main", "extra"), goodwill_credit),
)

domain = Domain("telecom", server, POLICY, DATA, TEMPLATES)
