"""Travel's templates."""

from __future__ import annotations

from typing import Any

from tbstudy_demo.cases import Ask, Call, Case, Domain, Say, Template
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
from tbstudy_demo.travel import DATA, POLICY, server
from tbstudy_demo.words import Draw

ROOMS = ("single", "double", "suite")
EXTRAS = ("breakfast", "parking", "spa", "bikes")


def _reservation(draw: Draw, reservation: str, guest: str, **fixed: Any) -> dict[str, Any]:
    # What a template does not fix varies, so that only the field that its policy names decides.
    row = {"reservation_id": reservation, "guest": guest, "room": draw.choice(*ROOMS), "check_in": draw.date(),
           "nights": draw.count(), "approval": draw.choice("needed", "waived"), "package": draw.choice(None, "full")}
    return row | fixed


def _ticket(draw: Draw, ticket: str, passenger: str, **fixed: Any) -> dict[str, Any]:
    row = {"ticket_id": ticket, "passenger": passenger, "fare": draw.choice("flexible", "saver"), "date": draw.date(),
           "price": draw.amount(), "delayed": draw.choice(True, False), "compensation": draw.amount(),
           "seat_kept": None}
    return row | fixed


def _see_reservation(reservation: str) -> Call:
    return Call("I look the reservation up.", "get_reservation", {"reservation_id": reservation})


def _see_ticket(ticket: str) -> Call:
    return Call("I look the ticket up.", "get_ticket", {"ticket_id": ticket})


def _decline(thought: str, reference: str, reason: str) -> Call:
    return Call(thought, "decline_request", {"reference": reference, "reason": reason})


def room_downgrade(draw: Draw, twin: str) -> Case:
    name, reservation = draw.name(), draw.id("R")
    room, other = draw.rng.sample(ROOMS[:2], 2)
    query = draw.choice(f"Hi, I am {name}. Please move me to a {room} room.",
                        f"This is {name}. I want a cheaper room, a {room} please.",
                        f"{name} here. My room costs too much, can I have a {room}?",
                        f"My name is {name} and I would like a {room} room instead.")
    approval = "needed" if twin == "approval_needed" else "waived"
    rows = {"reservations": [_reservation(draw, reservation, name, room="suite", approval=approval)]}
    new = {"reservation_id": reservation, "room": room}
    end = done("Your room is changed.")
    approved = Branch((
        Call(because("approval", "needed", APPROVAL_FIRST), "request_manager_approval",
             {"reservation_id": reservation, "topic": "room downgrade"}),
        Call("The approval is granted, so I change the room.", "change_room", new)), end)
    free = Branch((Call(because("approval", "waived", ALLOWED), "change_room", new),), end)
    right, wrong = (approved, free) if twin == "approval_needed" else (free, approved)
    extra = Call("I add breakfast as well.", "add_extras", {"reservation_id": reservation, "extras": ["breakfast"]})
    return build(query, rows, (ask("reservation number"), _see_reservation(reservation)), right, wrong,
                 wrong={"room": other}, extra=extra, facts={"reservation number": reservation})


def flight_rebook(draw: Draw, twin: str) -> Case:
    name, ticket, date = draw.name(), draw.id("T"), draw.date()
    keep = draw.choice(True, False)
    seat = "I want to keep my seat" if keep else "any seat is fine"
    query = draw.choice(f"I am {name}. Please move ticket {ticket} to another day, {seat}.",
                        f"This is {name}. Can I fly later with ticket {ticket}? For me, {seat}.",
                        f"{name} here, ticket {ticket}. I need a later flight, {seat}.")
    row = _ticket(draw, ticket, name, fare=twin)
    rebooked = Branch((
        Ask(because("fare", "flexible", ALLOWED), "What is your new date?"),
        Call("I have the new date now.", "rebook_ticket", {"ticket_id": ticket, "date": date, "keep_seat": keep})),
        done("Your flight is moved."))
    refused = Branch((_decline(because("fare", "saver", DECLINE), ticket, "saver fare"),),
                     declined("This ticket cannot be moved."))
    extra = Call("I give a voucher as well.", "issue_voucher", {"ticket_id": ticket, "amount": row["compensation"]})
    right, other, wrong = ((rebooked, refused, {"keep_seat": not keep}) if twin == "flexible" else
                           (refused, rebooked, {"reason": "no delay"}))
    return build(query, {"tickets": [row]}, (_see_ticket(ticket),), right, other, wrong=wrong, extra=extra,
                 facts={"new date": date})


def delay_voucher(draw: Draw, twin: str) -> Case:
    name, ticket = draw.name(), draw.id("T")
    query = draw.choice(f"Hi, I am {name}. My flight was late, please compensate me.",
                        f"This is {name}. I landed far too late and want compensation.",
                        f"{name} here. I waited for hours, can I get a voucher?",
                        f"My name is {name}. Please pay me for the long wait at the airport.")
    row = _ticket(draw, ticket, name, delayed=twin == "delayed")
    rows, facts = {"tickets": [row]}, {"ticket number": ticket}
    start = (ask("ticket number"), _see_ticket(ticket))

    def pay(thought: str) -> Call:
        return Call(thought, "issue_voucher", {"ticket_id": ticket, "amount": row["compensation"]})

    paid = Branch((pay(because("delayed", True, ALLOWED)),), done("Your voucher is issued."))
    refused = Branch((_decline(because("delayed", False, DECLINE), ticket, "no delay"),),
                     declined("No delay is on record, so no voucher."))
    if twin == "delayed":
        return build(query, rows, start, paid, refused, wrong={"amount": row["price"]},
                     extra=pay("I give another voucher as well."), facts=facts)
    return build(query, rows, start, refused, paid, wrong={"reason": "saver fare"},
                 extra=pay("I give a voucher as well."), facts=facts, blind=False)


def stay_extras(draw: Draw, twin: str) -> Case:
    name, reservation = draw.name(), draw.id("R")
    one, two, three = draw.rng.sample(EXTRAS, 3)
    query = draw.choice(f"I am {name}. Please add {one} and {two} to reservation {reservation}.",
                        f"This is {name}. For reservation {reservation} I also want {one} and {two}.",
                        f"{name} here. Can you put {one} and {two} on reservation {reservation}?")
    package = None if twin == "package_null" else "full"
    rows = {"reservations": [_reservation(draw, reservation, name, package=package)]}
    start = (_see_reservation(reservation),)
    added = Branch((Call(because("package", None, ALLOWED), "add_extras",
                         {"reservation_id": reservation, "extras": [one, two]}),), done("Your extras are added."))
    included = Branch((), Say(because("package", "full", ALREADY), "Your package has these extras already. <DONE>"))
    approval = Call("I ask for approval of the extras.", "request_manager_approval",
                    {"reservation_id": reservation, "topic": "extras"})
    wrong = draw.choice([one], [one, three])
    if twin == "package_null":
        return build(query, rows, start, added, included, wrong={"extras": wrong}, extra=approval)
    return build(query, rows, start, included, added, approval=approval,
                 extra=_decline(because("package", "full", DECLINE), reservation, "other"))


TEMPLATES = (
    Template("room_downgrade", ("approval_needed", "approval_waived"), room_downgrade),
    Template("flight_rebook", ("flexible", "saver"), flight_rebook),
    Template("delay_voucher", ("delayed", "on_time"), delay_voucher),
    Template("stay_extras", ("package_null", "package_full"), stay_extras),
)

domain = Domain("travel", server, POLICY, DATA, TEMPLATES)
