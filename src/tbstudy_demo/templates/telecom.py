"""Telecom's templates."""

from __future__ import annotations

from typing import Any

from tbstudy_demo.cases import Call, Case, Domain, Say, Template
from tbstudy_demo.telecom import DATA, POLICY, server
from tbstudy_demo.templates import GIVES_UP, ask, declined, done
from tbstudy_demo.words import Draw

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
    start = (ask("line number"), _look_up(line))
    first = Call("The contract is true, so approval comes first.", "request_approval",
                 {"line_id": line, "action": "plan change"})
    approved = "The approval is granted, so I change the plan."
    free = "The contract is false, so this is allowed."
    skip = "I change the plan at once."
    end = done("Your plan is changed.")

    def change(thought: str, to: str = plan) -> Call:
        return Call(thought, "change_plan", {"line_id": line, "plan": to})

    credit = Call("I add a credit as well.", "add_credit", {"line_id": line, "amount": 10, "reason": "goodwill"})
    if twin == "in_contract":
        script = (*start, first, change(approved), end)
        mistakes = {
            "wrong_branch": (*start, change(free), end),
            "wrong_field": (*start, first, change(approved, other), end),
            "stops_early": (*start, first, end),
            "extra_write": (*start, first, change(approved), credit, end),
            "skips_lookup": (start[0], change(skip), end),
            "gives_up": GIVES_UP,
        }
    else:
        script = (*start, change(free), end)
        mistakes = {
            "wrong_branch": (*start, first, change(approved), end),
            "wrong_field": (*start, change(free, other), end),
            "stops_early": (*start, end),
            "extra_write": (*start, change(free), credit, end),
            "skips_lookup": (start[0], Call("I ask for approval at once.", first.tool, first.arguments),
                             change(approved), end),
            "gives_up": GIVES_UP,
        }
    rows = {"lines": [_line(draw, line, name, plan=old, contract=twin == "in_contract")]}
    return Case(query, rows, script, mistakes, {"line number": line})


def outage_credit(draw: Draw, twin: str) -> Case:
    name, line, amount = draw.name(), draw.id("L"), draw.amount()
    query = draw.choice(f"I am {name}, line {line}. I want a credit because the network was down.",
                        f"{name} here. My line {line} had no signal, please credit me.",
                        f"This is {name}. Please give line {line} a credit for the outage.")
    start = (ask("credit amount"), _look_up(line))
    end, refused = done("The credit is on your next bill."), declined("No outage is on record, so no credit.")

    def credit(thought: str, reason: str = "outage") -> Call:
        return Call(thought, "add_credit", {"line_id": line, "amount": amount, "reason": reason})

    def decline(thought: str, reason: str = "no outage") -> Call:
        return Call(thought, "note_decline", {"line_id": line, "reason": reason})

    allowed, refusal = "The outage is true, so this is allowed.", "The outage is false, so I decline."
    if twin == "outage":
        script = (*start, credit(allowed), end)
        mistakes = {
            "wrong_branch": (*start, decline(refusal), refused),
            "wrong_field": (*start, credit(allowed, reason="goodwill"), end),
            "stops_early": (*start, end),
            "extra_write": (*start, credit(allowed), credit("I add a credit as well.", "goodwill"), end),
            "skips_lookup": (start[0], decline("I decline at once."), refused),
            "gives_up": GIVES_UP,
        }
    else:
        script = (*start, decline(refusal), refused)
        mistakes = {
            "wrong_branch": (*start, credit(allowed), end),
            "wrong_field": (*start, decline(refusal, "contract"), refused),
            "stops_early": (*start, refused),
            "extra_write": (*start, decline(refusal), credit("I add a credit as well.", "goodwill"), end),
            "skips_lookup": (start[0], credit("I give the credit at once."), end),
            "gives_up": GIVES_UP,
        }
    rows = {"lines": [_line(draw, line, name, outage=twin == "outage")]}
    return Case(query, rows, script, mistakes, {"credit amount": str(amount)})


def more_data(draw: Draw, twin: str) -> Case:
    name, line, size = draw.name(), draw.id("L"), draw.count()
    other = draw.choice(*(n for n in range(2, 10) if n != size))
    query = draw.choice(f"I am {name}. Please add {size} GB to my line {line}.",
                        f"{name} here, line {line}. I need {size} GB more.",
                        f"This is {name}. Can line {line} get {size} GB of extra data?")
    start = (_look_up(line),)
    end, refused = done("The data pack is added."), declined("The line is suspended, so no data is added.")

    def add(thought: str, gigabytes: int = size) -> Call:
        return Call(thought, "add_data", {"line_id": line, "gigabytes": gigabytes})

    def decline(thought: str, reason: str = "suspended") -> Call:
        return Call(thought, "note_decline", {"line_id": line, "reason": reason})

    allowed, refusal = "The status is active, so this is allowed.", "The status is suspended, so I decline."
    if twin == "active":
        script = (*start, add(allowed), end)
        mistakes = {
            "wrong_branch": (*start, decline(refusal), refused),
            "wrong_field": (*start, add(allowed, other), end),
            "stops_early": (*start, end),
            "extra_write": (*start, add(allowed), add("I add the data once more."), end),
            "skips_lookup": (decline("I decline at once."), refused),
            "gives_up": GIVES_UP,
        }
    else:
        script = (*start, decline(refusal), refused)
        mistakes = {
            "wrong_branch": (*start, add(allowed), end),
            "wrong_field": (*start, decline(refusal, "contract"), refused),
            "stops_early": (*start, refused),
            "extra_write": (*start, decline(refusal), add("I add the data all the same."), end),
            "skips_lookup": (add("I add the data at once."), end),
            "gives_up": GIVES_UP,
        }
    rows = {"lines": [_line(draw, line, name, status=twin)]}
    return Case(query, rows, script, mistakes)


def new_sim(draw: Draw, twin: str) -> Case:
    name, line = draw.name(), draw.id("L")
    lost = draw.choice(True, False)
    state = "was lost" if lost else "is broken"
    query = draw.choice(f"I am {name}. My SIM {state}, please send a new one.",
                        f"{name} here. I need a new SIM, the old one {state}.",
                        f"This is {name}. The SIM of my phone {state}. Can I get another?")
    start = (ask("line number"), _look_up(line))
    end = done("A new SIM is on its way.")
    right, wrong = ("esim", "plastic") if twin == "esim_ready" else ("plastic", "esim")
    thoughts = {"esim": "The esim_ready is true, so an esim is right.",
                "plastic": "The esim_ready is false, so a plastic SIM is right."}

    def send(thought: str, kind: str = right, block_old: bool = lost) -> Call:
        return Call(thought, "send_sim", {"line_id": line, "kind": kind, "block_old": block_old})

    script = (*start, send(thoughts[right]), end)
    mistakes = {
        "wrong_branch": (*start, send(thoughts[wrong], wrong), end),
        "wrong_field": (*start, send(thoughts[right], block_old=not lost), end),
        "stops_early": (*start, end),
        "extra_write": (*start, send(thoughts[right]), send("I send the other kind as well.", wrong), end),
        "skips_lookup": (start[0], send("I send a SIM at once.", wrong), end),
        "gives_up": GIVES_UP,
    }
    rows = {"lines": [_line(draw, line, name, esim_ready=twin == "esim_ready")]}
    return Case(query, rows, script, mistakes, {"line number": line})


def line_end(draw: Draw, twin: str) -> Case:
    name, line, date, other = draw.name(), draw.id("L"), draw.date(), draw.date()
    query = draw.choice(f"I am {name}. I want to end my line {line}.",
                        f"{name} here. Please cancel line {line} for me.",
                        f"This is {name}. I no longer need line {line}, please end it.")
    start = (ask("end date"), _look_up(line))
    end, kept = done("Your line ends on that date."), Say("Nothing is to be changed.",
                                                         "The end of this line is already set. <DONE>")

    def finish(thought: str, day: str = date) -> Call:
        return Call(thought, "end_line", {"line_id": line, "date": day})

    free = "The ends is null, so this is allowed."
    approval = Call("I ask for approval of the end.", "request_approval", {"line_id": line, "action": "line end"})
    already = Say("The ends is set, so this is already done.", kept.text)
    if twin == "open":
        script = (*start, finish(free), end)
        mistakes = {
            "wrong_branch": (*start, already),
            "wrong_field": (*start, finish(free, other), end),
            "stops_early": (*start, Say("The line is looked up.", end.text)),
            "extra_write": (*start, approval, finish("The approval is granted, so I end the line."), end),
            "skips_lookup": (start[0], Say("I think this is already done.", kept.text)),
            "gives_up": GIVES_UP,
        }
    else:
        script = (*start, already)
        mistakes = {
            "wrong_branch": (*start, finish(free), end),
            "extra_write": (*start, Call("The ends is set, so I decline.", "note_decline",
                                         {"line_id": line, "reason": "contract"}), kept),
            "asks_approval": (*start, approval, kept),
            "skips_lookup": (start[0], finish("I end the line at once."), end),
        }
    rows = {"lines": [_line(draw, line, name, ends=None if twin == "open" else draw.date())]}
    return Case(query, rows, script, mistakes, {"end date": date})


def goodwill_credit(draw: Draw, twin: str) -> Case:
    name, amount = draw.name(), draw.amount()
    first, second = sorted((draw.id("L"), draw.id("L")))
    query = draw.choice(f"I am {name}. Your colleague promised me a goodwill credit of {amount}.",
                        f"{name} here. Please book the goodwill credit of {amount} that I was promised.",
                        f"This is {name}. I am still waiting for {amount} as a goodwill credit.")
    start = (Call("I find the lines of the owner.", "find_lines", {"owner": name}),)
    end = done("The goodwill credit is booked.")
    main, extra = (first, second) if twin == "main_first" else (second, first)

    def credit(thought: str, line: str = main, reason: str = "goodwill") -> Call:
        return Call(thought, "add_credit", {"line_id": line, "amount": amount, "reason": reason})

    def pick(line: str) -> str:
        return f"The line {line} has role main."

    script = (*start, credit(pick(main)), end)
    mistakes = {
        "wrong_branch": (*start, credit(pick(extra), extra), end),
        "wrong_field": (*start, credit(pick(main), reason="outage"), end),
        "stops_early": (*start, end),
        "extra_write": (*start, credit(pick(main)), credit("I credit the other line as well.", extra), end),
        "gives_up": GIVES_UP,
    }
    rows = {"lines": [_line(draw, line, name, role="main" if line == main else "extra") for line in (first, second)]}
    return Case(query, rows, script, mistakes)


TEMPLATES = (
    Template("plan_change", ("in_contract", "no_contract"), plan_change),
    Template("outage_credit", ("outage", "no_outage"), outage_credit),
    Template("more_data", ("active", "suspended"), more_data),
    Template("new_sim", ("esim_ready", "not_ready"), new_sim),
    Template("line_end", ("open", "already_set"), line_end),
    Template("goodwill_credit", ("main_first", "main_second"), goodwill_credit),
)

domain = Domain("telecom", server, POLICY, DATA, TEMPLATES)
