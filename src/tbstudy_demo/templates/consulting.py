"""Consulting's templates."""

from __future__ import annotations

from typing import Any

from tbstudy_demo.cases import Ask, Call, Case, Domain, Template
from tbstudy_demo.consulting import DATA, POLICY, server
from tbstudy_demo.templates import GIVES_UP, ask, declined, done
from tbstudy_demo.words import Draw

SYSTEMS = ("crm", "ledger", "wiki", "payroll")


def _employee(draw: Draw, employee: str, name: str, **fixed: Any) -> dict[str, Any]:
    # What a template does not fix varies, so that only the field that its policy names decides.
    row = {"employee_id": employee, "name": name, "clearance": draw.choice("complete", "partial"),
           "project": draw.choice(None, draw.id("J")), "leave_days": draw.count()}
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
                        f"This is {name}. Can I get into {one} and {two}? In both {use}.")
    start = (_find(name),)
    granted, free = "The approval is granted, so I give access.", "The clearance is complete, so this is allowed."
    end = done("Your access is ready.")

    def owner(thought: str) -> Call:
        return Call(thought, "ask_owner", {"employee_id": employee, "topic": "access"})

    def grant(thought: str, systems: tuple[str, ...] = (one, two), read: bool = read_only) -> Call:
        return Call(thought, "grant_access", {"employee_id": employee, "systems": list(systems), "read_only": read})

    first = owner("The clearance is partial, so approval comes first.")
    extra = grant("I add another system as well.", (three,))
    if twin == "partial":
        script = (*start, first, grant(granted), end)
        mistakes = {
            "wrong_branch": (*start, grant(free), end),
            "wrong_field": (*start, first, grant(granted, read=not read_only), end),
            "wrong_system": (*start, first, grant(granted, (one, three)), end),
            "stops_early": (*start, first, end),
            "extra_write": (*start, first, grant(granted), extra, end),
            "gives_up": GIVES_UP,
        }
    else:
        script = (*start, grant(free), end)
        mistakes = {
            "wrong_branch": (*start, first, grant(granted), end),
            "wrong_field": (*start, grant(free, read=not read_only), end),
            "wrong_system": (*start, grant(free, (one, three)), end),
            "stops_early": (*start, end),
            "extra_write": (*start, grant(free), extra, end),
            "gives_up": GIVES_UP,
        }
    return Case(query, {"employees": [_employee(draw, employee, name, clearance=twin)]}, script, mistakes)


def leave_request(draw: Draw, twin: str) -> Case:
    name, employee, days, date, project = draw.name(), draw.id("E"), draw.count(), draw.date(), draw.id("J")
    other = draw.choice(*(n for n in range(2, 10) if n != days))
    query = draw.choice(f"I am {name}. I would like to take {days} days off.",
                        f"{name} here. Please book {days} days of leave for me.",
                        f"This is {name}. Can I have {days} days of holiday?")
    start = (_find(name),)
    free = Ask("The project is null, so this is allowed.", "What is your start date?")
    refusal, refused = "The project is set, so I decline.", declined("Your project does not allow leave.")
    end = done("Your leave is booked.")

    def book(thought: str = "I have the start date now.", how_long: int = days) -> Call:
        return Call(thought, "book_leave", {"employee_id": employee, "start": date, "days": how_long})

    def refuse(thought: str, reason: str = "project") -> Call:
        return Call(thought, "close_ticket", {"employee_id": employee, "reason": reason})

    owner = Call("I ask for approval of the leave.", "ask_owner", {"employee_id": employee, "topic": "leave"})
    granted = book("The approval is granted, so I book it.")
    if twin == "no_project":
        script = (*start, free, book(), end)
        mistakes = {
            "wrong_branch": (*start, refuse(refusal), refused),
            "wrong_field": (*start, free, book(how_long=other), end),
            "stops_early": (*start, free, end),
            "asks_approval": (*start, free, owner, granted, end),
            "extra_write": (*start, free, book(), refuse("I close the ticket as well.", "other"), end),
            "gives_up": GIVES_UP,
        }
    else:
        script = (*start, refuse(refusal), refused)
        mistakes = {
            "wrong_branch": (*start, free, book(), end),
            "wrong_field": (*start, refuse(refusal, "other"), refused),
            "stops_early": (*start, refused),
            "asks_approval": (*start, owner, refuse("I decline all the same."), refused),
            "extra_write": (*start, refuse(refusal), ask("start date"), book("I book it all the same."), end),
            "gives_up": GIVES_UP,
        }
    rows = {"employees": [_employee(draw, employee, name, project=None if twin == "no_project" else project)]}
    return Case(query, rows, script, mistakes, {"start date": date})


def expense_claim(draw: Draw, twin: str) -> Case:
    name, employee, expense = draw.name(), draw.id("E"), draw.id("X")
    query = draw.choice(f"I am {name}. Please pay me back for the train to my client.",
                        f"{name} here. I want my hotel expense paid back.",
                        f"This is {name}. When do I get the money for my last trip?",
                        f"My name is {name}. I paid a taxi myself and want it back.")
    row = {"expense_id": expense, "employee_id": employee, "receipt": twin == "receipt", "amount": draw.amount(),
           "tip": draw.amount()}
    start = (ask("expense number"), Call("I look the expense up.", "view_expense", {"expense_id": expense}))
    allowed, refusal = "The receipt is true, so this is allowed.", "The receipt is false, so I decline."
    end, refused = done("Your expense is paid."), declined("Your expense has no receipt.")

    def pay(thought: str, amount: float = row["amount"]) -> Call:
        return Call(thought, "reimburse", {"expense_id": expense, "amount": amount})

    def refuse(thought: str, reason: str = "no receipt") -> Call:
        return Call(thought, "close_ticket", {"employee_id": employee, "reason": reason})

    if twin == "receipt":
        script = (*start, pay(allowed), end)
        mistakes = {
            "wrong_branch": (*start, refuse(refusal), refused),
            "wrong_field": (*start, pay(allowed, row["tip"]), end),
            "stops_early": (*start, end),
            "extra_write": (*start, pay(allowed), pay("I pay the tip as well.", row["tip"]), end),
            "gives_up": GIVES_UP,
        }
    else:
        script = (*start, refuse(refusal), refused)
        mistakes = {
            "wrong_branch": (*start, pay(allowed), end),
            "wrong_field": (*start, refuse(refusal, "project"), refused),
            "stops_early": (*start, refused),
            "extra_write": (*start, refuse(refusal), pay("I pay the expense all the same."), end),
            "gives_up": GIVES_UP,
        }
    rows = {"employees": [_employee(draw, employee, name)], "expenses": [row]}
    return Case(query, rows, script, mistakes, {"expense number": expense})


def broken_laptop(draw: Draw, twin: str) -> Case:
    name, device = draw.name(), draw.id("D")
    loaner = draw.choice(True, False)
    meanwhile = "I need a spare one meanwhile" if loaner else "I need no spare one"
    query = draw.choice(f"I am {name}. My laptop {device} is broken, {meanwhile}.",
                        f"{name} here. Laptop {device} does not start any more, {meanwhile}.",
                        f"This is {name}. The screen of laptop {device} went dark, {meanwhile}.")
    start = (Call("I look the device up.", "view_device", {"device_id": device}),)
    right, wrong = ("repair", "replace") if twin == "warranty" else ("replace", "repair")
    thoughts = {"repair": "The warranty is true, so a repair is right.",
                "replace": "The warranty is false, so a replacement is right."}
    end = done("Your laptop is taken care of.")

    def service(thought: str, action: str = right, spare: bool = loaner) -> Call:
        return Call(thought, "service_device", {"device_id": device, "action": action, "loaner": spare})

    script = (*start, service(thoughts[right]), end)
    mistakes = {
        "wrong_branch": (*start, service(thoughts[wrong], wrong), end),
        "wrong_field": (*start, service(thoughts[right], spare=not loaner), end),
        "stops_early": (*start, end),
        "extra_write": (*start, service(thoughts[right]), service("I order the other as well.", wrong), end),
        "skips_lookup": (service("I order the service at once.", wrong), end),
        "gives_up": GIVES_UP,
    }
    rows = {"devices": [{"device_id": device, "model": draw.choice("slim", "pro"), "warranty": twin == "warranty",
                         "bought": draw.date(), "remote": draw.choice(True, False)}]}
    return Case(query, rows, script, mistakes)


TEMPLATES = (
    Template("access_grant", ("partial", "complete"), access_grant),
    Template("leave_request", ("no_project", "project"), leave_request),
    Template("expense_claim", ("receipt", "no_receipt"), expense_claim),
    Template("broken_laptop", ("warranty", "no_warranty"), broken_laptop),
)

domain = Domain("consulting", server, POLICY, DATA, TEMPLATES)
