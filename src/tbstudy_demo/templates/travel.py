"""Travel's templates."""

from __future__ import annotations

from typing import Any

from tbstudy_demo.cases import Ask, Call, Case, Domain, Say, Template
from tbstudy_demo.templates import GIVES_UP, ask, declined, done
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


def room_downgrade(draw: Draw, twin: str) -> Case:
    name, reservation = draw.name(), draw.id("R")
    room, other = draw.rng.sample(ROOMS[:2], 2)
    query = draw.choice(f"Hi, I am {name}. Please move me to a {room} room.",
                        f"This is {name}. I want a cheaper room, a {room} please.",
                        f"{name} here. My room costs too much, can I have a {room}?",
                        f"My name is {name} and I would like a {room} room instead.")
    start = (ask("reservation number"), _see_reservation(reservation))
    granted, free = "The approval is granted, so I change the room.", "The approval is waived, so this is allowed."
    end = done("Your room is changed.")

    def approve(thought: str) -> Call:
        return Call(thought, "request_manager_approval", {"reservation_id": reservation, "topic": "room downgrade"})

    def change(thought: str, to: str = room) -> Call:
        return Call(thought, "change_room", {"reservation_id": reservation, "room": to})

    first = approve("The approval is needed, so approval comes first.")
    extra = Call("I add breakfast as well.", "add_extras", {"reservation_id": reservation, "extras": ["breakfast"]})
    if twin == "approval_needed":
        script = (*start, first, change(granted), end)
        mistakes = {
            "wrong_branch": (*start, change(free), end),
            "wrong_field": (*start, first, change(granted, other), end),
            "stops_early": (*start, first, end),
            "extra_write": (*start, first, change(granted), extra, end),
            "skips_lookup": (start[0], change("I change the room at once."), end),
            "gives_up": GIVES_UP,
        }
    else:
        script = (*start, change(free), end)
        mistakes = {
            "wrong_branch": (*start, first, change(granted), end),
            "wrong_field": (*start, change(free, other), end),
            "stops_early": (*start, end),
            "extra_write": (*start, change(free), extra, end),
            "skips_lookup": (start[0], approve("I ask for approval at once."), change(granted), end),
            "gives_up": GIVES_UP,
        }
    approval = "needed" if twin == "approval_needed" else "waived"
    rows = {"reservations": [_reservation(draw, reservation, name, room="suite", approval=approval)]}
    return Case(query, rows, script, mistakes, {"reservation number": reservation})


def flight_rebook(draw: Draw, twin: str) -> Case:
    name, ticket, date = draw.name(), draw.id("T"), draw.date()
    keep = draw.choice(True, False)
    seat = "I want to keep my seat" if keep else "any seat is fine"
    query = draw.choice(f"I am {name}. Please move ticket {ticket} to another day, {seat}.",
                        f"This is {name}. Can I fly later with ticket {ticket}? For me, {seat}.",
                        f"{name} here, ticket {ticket}. I need a later flight, {seat}.")
    start = (_see_ticket(ticket),)
    row = _ticket(draw, ticket, name, fare=twin)
    allowed = Ask("The fare is flexible, so this is allowed.", "What is your new date?")
    refusal, refused = "The fare is saver, so I decline.", declined("This ticket cannot be moved.")
    end = done("Your flight is moved.")

    def rebook(thought: str = "I have the new date now.", keep_seat: bool = keep) -> Call:
        return Call(thought, "rebook_ticket", {"ticket_id": ticket, "date": date, "keep_seat": keep_seat})

    def refuse(thought: str, reason: str = "saver fare") -> Call:
        return Call(thought, "record_refusal", {"reference": ticket, "reason": reason})

    voucher = Call("I give a voucher as well.", "issue_voucher", {"ticket_id": ticket, "amount": row["compensation"]})
    if twin == "flexible":
        script = (*start, allowed, rebook(), end)
        mistakes = {
            "wrong_branch": (*start, refuse(refusal), refused),
            "wrong_field": (*start, allowed, rebook(keep_seat=not keep), end),
            "stops_early": (*start, allowed, end),
            "extra_write": (*start, allowed, rebook(), voucher, end),
            "skips_lookup": (refuse("I decline at once."), refused),
            "gives_up": GIVES_UP,
        }
    else:
        script = (*start, refuse(refusal), refused)
        mistakes = {
            "wrong_branch": (*start, allowed, rebook(), end),
            "wrong_field": (*start, refuse(refusal, "no delay"), refused),
            "stops_early": (*start, refused),
            "extra_write": (*start, refuse(refusal), voucher, refused),
            "skips_lookup": (ask("new date"), rebook("I move the flight at once."), end),
            "gives_up": GIVES_UP,
        }
    return Case(query, {"tickets": [row]}, script, mistakes, {"new date": date})


def delay_voucher(draw: Draw, twin: str) -> Case:
    name, ticket = draw.name(), draw.id("T")
    query = draw.choice(f"Hi, I am {name}. My flight was late, please compensate me.",
                        f"This is {name}. I landed far too late and want compensation.",
                        f"{name} here. I waited for hours, can I get a voucher?",
                        f"My name is {name}. Please pay me for the long wait at the airport.")
    start = (ask("ticket number"), _see_ticket(ticket))
    row = _ticket(draw, ticket, name, delayed=twin == "delayed")
    allowed, refusal = "The delayed is true, so this is allowed.", "The delayed is false, so I decline."
    end, refused = done("Your voucher is issued."), declined("No delay is on record, so no voucher.")

    def pay(thought: str, amount: float = row["compensation"]) -> Call:
        return Call(thought, "issue_voucher", {"ticket_id": ticket, "amount": amount})

    def refuse(thought: str, reason: str = "no delay") -> Call:
        return Call(thought, "record_refusal", {"reference": ticket, "reason": reason})

    if twin == "delayed":
        script = (*start, pay(allowed), end)
        mistakes = {
            "wrong_branch": (*start, refuse(refusal), refused),
            "wrong_field": (*start, pay(allowed, row["price"]), end),
            "stops_early": (*start, end),
            "extra_write": (*start, pay(allowed), pay("I give another voucher as well."), end),
            "skips_lookup": (start[0], refuse("I decline at once."), refused),
            "gives_up": GIVES_UP,
        }
    else:
        script = (*start, refuse(refusal), refused)
        mistakes = {
            "wrong_branch": (*start, pay(allowed), end),
            "wrong_field": (*start, refuse(refusal, "saver fare"), refused),
            "stops_early": (*start, refused),
            "extra_write": (*start, refuse(refusal), pay("I give a voucher all the same."), end),
            "gives_up": GIVES_UP,
        }
    return Case(query, {"tickets": [row]}, script, mistakes, {"ticket number": ticket})


def stay_extras(draw: Draw, twin: str) -> Case:
    name, reservation = draw.name(), draw.id("R")
    one, two, three = draw.rng.sample(EXTRAS, 3)
    query = draw.choice(f"I am {name}. Please add {one} and {two} to reservation {reservation}.",
                        f"This is {name}. For reservation {reservation} I also want {one} and {two}.",
                        f"{name} here. Can you put {one} and {two} on reservation {reservation}?")
    start = (_see_reservation(reservation),)
    free, end = "The package is null, so this is allowed.", done("Your extras are added.")
    already = Say("The package is full, so this is already done.", "Your package has these extras already. <DONE>")

    def add(thought: str, *extras: str) -> Call:
        return Call(thought, "add_extras", {"reservation_id": reservation, "extras": list(extras)})

    approval = Call("I ask for approval of the extras.", "request_manager_approval",
                    {"reservation_id": reservation, "topic": "extras"})
    if twin == "package_null":
        script = (*start, add(free, one, two), end)
        mistakes = {
            "wrong_branch": (*start, already),
            "wrong_field": (*start, add(free, one, three), end),
            "stops_early": (*start, add(free, one), end),
            "extra_write": (*start, approval, add("The approval is granted, so I add extras.", one, two), end),
            "skips_lookup": (Say("I think this is already done.", already.text),),
            "gives_up": GIVES_UP,
        }
    else:
        script = (*start, already)
        mistakes = {
            "wrong_branch": (*start, add(free, one, two), end),
            "extra_write": (*start, Call("The package is full, so I decline.", "record_refusal",
                                         {"reference": reservation, "reason": "other"}),
                            declined("The package is full.")),
            "asks_approval": (*start, approval, already),
            "skips_lookup": (add("I add the extras at once.", one, two), end),
        }
    package = None if twin == "package_null" else "full"
    rows = {"reservations": [_reservation(draw, reservation, name, package=package)]}
    return Case(query, rows, script, mistakes)


TEMPLATES = (
    Template("room_downgrade", ("approval_needed", "approval_waived"), room_downgrade),
    Template("flight_rebook", ("flexible", "saver"), flight_rebook),
    Template("delay_voucher", ("delayed", "on_time"), delay_voucher),
    Template("stay_extras", ("package_null", "package_full"), stay_extras),
)

domain = Domain("travel", server, POLICY, DATA, TEMPLATES)
