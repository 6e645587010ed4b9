"""Consulting's templates."""

from __future__ import annotations

from typing import Any

from tbstudy_demo.cases import Ask, Call, Case, Domain, Template
from tbstudy_demo.consulting import DATA, POLICY, server
from tbstudy_demo.templates import ALLOWED, APPROVAL_FIRST, DECLINE, Branch, ask, because, build, declined, done
from tbstudy_demo.words import COUNTS, Draw

SYSTEMS = ("crm", "ledger", "wiki", "payroll")


def _employee(draw: Draw, employee: str, name: str, **fixed: Any) -> dict[str, Any]:
    # What a template does not fix varies, so that only the field that its policy names decides.
    row = {"employee_id": employee, "name": name, "clearance": draw.choice("complete", "partial"),
           "project": draw.choice(None, draw.id("J")), "floor": draw.count()}
    return row | fixed


def _find(name: str) -> Call:
    return Call("I look the employee up.", "find_employee", {"name": name})


def access_grant(draw: Draw, twin: str) -> Case:
    name, employee = draw.name(), draw.id("E")
    one, two, three = draw.rng.sample(SYSTEMS, 3)
    read_only = draw.choice(True, False)
    use = "I only read there" if read_only else "I also write there"
    query = draw.choice(f"I am {name}. Please give me {one} and {two}, {use}.",
                        f"{name} here. I need access to {one} and {two}, {use}.",
                        f"This is {name}. Can I get into {one} and {two}? In both, {use}.")
    rows = {"employees": [_employee(draw, employee, name, clearance=twin)]}
    access = {"employee_id": employee, "systems": [one, two], "read_only": read_only}
    end = done("Your access is ready.")
    approved = Branch((
        Call(because("clearance", "partial", APPROVAL_FIRST), "ask_owner",
             {"employee_id": employee, "topic": "access"}),
        Call("The approval is granted, so I give access.", "grant_access", access)), end)
    free = Branch((Call(because("clearance", "complete", ALLOWED), "grant_access", access),), end)
    right, wrong = (approved, free) if twin == "partial" else (free, approved)
    extra = Call("I add another system as well.", "grant_access", access | {"systems": [three]})
    return build(query, rows, (_find(name),), right, wrong, extra=extra, blind=False,
                 wrong=draw.choice({"read_only": not read_only}, {"systems": [one, three]}))


def leave_request(draw: Draw, twin: str) -> Case:
    name, employee, days = draw.name(), draw.id("E"), draw.count()
    date, project = draw.date(), draw.id("J")
    other = draw.choice(*(n for n in COUNTS if n != days))
    query = draw.choice(f"I am {name}. I would like to take {days} days off.",
                        f"{name} here. Please book {days} days of leave for me.",
                        f"This is {name}. Can I have {days} days of holiday?")
    rows = {"employees": [_employee(draw, employee, name, project=None if twin == "no_project" else project)]}
    start, facts = (_find(name),), {"start date": date}
    booked = Branch((
        Ask(because("project", None, ALLOWED), "What is your start date?"),
        Call("I have the start date now.", "book_leave", {"employee_id": employee, "start": date, "days": days})),
        done("Your leave is booked."))
    refused = Branch((Call(because("project", project, DECLINE), "close_ticket",
                           {"employee_id": employee, "reason": "project"}),),
                     declined("Your project does not allow leave."))
    extra = Call("I ask the owner as well.", "ask_owner", {"employee_id": employee, "topic": "leave"})
    right, wrong, spoilt = ((booked, refused, {"days": other}) if twin == "no_project" else
                            (refused, booked, {"reason": "other"}))
    return build(query, rows, start, right, wrong, wrong=spoilt, extra=extra, facts=facts, blind=False)


def expense_claim(draw: Draw, twin: str) -> Case:
    name, employee, expense = draw.name(), draw.id("E"), draw.id("X")
    query = draw.choice(f"I am {name}. Please pay me back for the train to my client.",
                        f"{name} here. I want my hotel expense paid back.",
                        f"This is {name}. When do I get the money for my last trip?",
                        f"My name is {name}. I paid a taxi myself and want it back.")
    row = {"expense_id": expense, "employee_id": employee, "receipt": twin == "receipt", "amount": draw.amount(),
           "tip": draw.amount()}
    rows = {"employees": [_employee(draw, employee, name)], "expenses": [row]}
    start = (ask("expense number"), Call("I look the expense up.", "view_expense", {"expense_id": expense}))
    paid = Branch((Call(because("receipt", True, ALLOWED), "reimburse",
                        {"expense_id": expense, "amount": row["amount"]}),), done("Your expense is paid."))
    refused = Branch((Call(because("receipt", False, DECLINE), "close_ticket",
                           {"employee_id": employee, "reason": "no receipt"}),),
                     declined("Your expense has no receipt."))
    extra = Call("I pay the tip as well.", "reimburse", {"expense_id": expense, "amount": row["tip"]})
    right, wrong, spoilt = ((paid, refused, {"amount": row["tip"]}) if twin == "receipt" else
                            (refused, paid, {"reason": "project"}))
    return build(query, rows, start, right, wrong, wrong=spoilt, extra=extra, facts={"expense number": expense},
                 blind=False)


def broken_laptop(draw: Draw, twin: str) -> Case:
    name, device = draw.name(), draw.id("D")
    loaner = draw.choice(True, False)
    meanwhile = "I need a spare one meanwhile" if loaner else "I need no spare one"
    query = draw.choice(f"I am {name}. My laptop {device} is broken, {meanwhile}.",
                        f"{name} here. Laptop {device} does not start any more, {meanwhile}.",
                        f"This is {name}. The screen of laptop {device} went dark, {meanwhile}.")
    rows = {"devices": [{"device_id": device, "model": draw.choice("slim", "pro"), "warranty": twin == "warranty",
                         "next_check": draw.date(), "remote": draw.choice(True, False)}]}
    start = (Call("I look the device up.", "view_device", {"device_id": device}),)

    def service(warranty: bool) -> Branch:
        action = "repair" if warranty else "replace"
        return Branch((Call(because("warranty", warranty, f"I {action} it"), "service_device",
                            {"device_id": device, "action": action, "loaner": loaner}),),
                      done("Your laptop is taken care of."))

    right, wrong = service(twin == "warranty"), service(twin != "warranty")
    extra = Call("I do the other as well.", "service_device", wrong.calls[0].arguments)
    return build(query, rows, start, right, wrong, wrong={"loaner": not loaner}, extra=extra)


TEMPLATES = (
    Template("access_grant", ("partial", "complete"), access_grant),
    Template("leave_request", ("no_project", "project"), leave_request),
    Template("expense_claim", ("receipt", "no_receipt"), expense_claim),
    Template("broken_laptop", ("warranty", "no_warranty"), broken_laptop),
)

domain = Domain("consulting", server, POLICY, DATA, TEMPLATES)
