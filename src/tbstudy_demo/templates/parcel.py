"""Parcel's templates."""

from __future__ import annotations

from typing import Any

from tbstudy_demo.cases import Call, Case, Domain, Say, Template
from tbstudy_demo.parcel import DATA, POLICY, server
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
from tbstudy_demo.words import Draw

KINDS = ("letter", "box", "tube")
DOCUMENTS = ("invoice", "permit", "certificate", "licence")


def _parcel(draw: Draw, parcel: str, recipient: str, **fixed: Any) -> dict[str, Any]:
    row = {"parcel_id": parcel, "recipient": recipient, "kind": draw.choice(*KINDS),
           "status": draw.choice("in_transit", "delivered"), "insured": draw.choice(True, False),
           "heavy": draw.choice(True, False), "perishable": draw.choice(True, False),
           "customs": draw.choice("held", "cleared"), "locker": draw.id("K")}
    return row | fixed


def _track(parcel: str) -> Call:
    return Call("I look the parcel up.", "track_parcel", {"parcel_id": parcel})


def other_locker(draw: Draw, twin: str) -> Case:
    name, parcel, locker, other = draw.name(), draw.id("T"), draw.id("K"), draw.id("K")
    query = draw.choice(f"I am {name}. Please send my parcel to locker {locker} instead of {other}.",
                        f"{name} here. I want my parcel in locker {locker} and not in {other}.",
                        f"This is {name}. Can my parcel go to locker {locker}? Now it goes to {other}.")
    rows = {"parcels": [_parcel(draw, parcel, name, kind=draw.choice("letter", "box"),
                                 insured=twin == "insured", locker=other)]}
    redirect = {"parcel_id": parcel, "locker": locker}
    end = done("Your parcel goes to the new locker.")
    approved = Branch((
        Call(because("insured", True, APPROVAL_FIRST), "ask_depot", {"parcel_id": parcel, "step": "redirect"}),
        Call("The approval is granted, so I redirect the parcel.", "redirect_parcel", redirect)), end)
    free = Branch((Call(because("insured", False, ALLOWED), "redirect_parcel", redirect),), end)
    right, wrong = (approved, free) if twin == "insured" else (free, approved)
    extra = Call("I hold the parcel as well.", "hold_parcel", {"parcel_id": parcel, "until": None})
    return build(query, rows, (ask("parcel number"), _track(parcel)), right, wrong,
                 wrong={"locker": other}, extra=extra, facts={"parcel number": parcel})


def claim(draw: Draw, twin: str) -> Case:
    name, parcel, amount = draw.name(), draw.id("T"), draw.amount()
    cause, word, other = draw.choice(("damage", "damaged", "loss"), ("loss", "incomplete", "damage"))
    query = draw.choice(f"I am {name}. Parcel {parcel} is {word} and I want money for the {cause}.",
                        f"{name} here. Please open a claim for {cause} on parcel {parcel}.",
                        f"This is {name}. I claim {cause} for parcel {parcel}.")
    rows = {"parcels": [_parcel(draw, parcel, name, status=twin)]}
    claimed = {"parcel_id": parcel, "amount": amount, "cause": cause}
    allowed = Branch((Call(because("status", "delivered", ALLOWED), "open_claim", claimed),),
                     done("Your claim is open."))
    refused = Branch((Call(because("status", "in_transit", DECLINE), "log_rejection",
                           {"parcel_id": parcel, "reason": "not delivered"}),),
                     declined("A claim is possible only after delivery."))
    start = (ask("claim amount"), _track(parcel))
    facts = {"claim amount": str(amount)}
    extra = Call("I open a second claim as well.", "open_claim", claimed | {"cause": other})
    if twin == "delivered":
        return build(query, rows, start, allowed, refused, wrong={"cause": other}, extra=extra, facts=facts)
    return build(query, rows, start, refused, allowed, wrong={"reason": "customs"}, extra=extra, facts=facts)


def hold(draw: Draw, twin: str) -> Case:
    name, parcel, date = draw.name(), draw.id("T"), draw.date()
    until, phrase = draw.choice((date, f"until {date}"), (date, f"until {date}"), (None, "until further notice"))
    query = draw.choice(f"I am {name}. Please hold my parcel {phrase}.",
                        f"{name} here. I am away, keep my parcel at the depot {phrase}.",
                        f"This is {name}. Can my parcel wait at the depot {phrase}?")
    rows = {"parcels": [_parcel(draw, parcel, name, perishable=twin == "perishable")]}
    allowed = Branch((Call(because("perishable", False, ALLOWED), "hold_parcel",
                           {"parcel_id": parcel, "until": until}),), done("Your parcel is held."))
    refused = Branch((Call(because("perishable", True, DECLINE), "log_rejection",
                           {"parcel_id": parcel, "reason": "perishable"}),),
                     declined("A perishable parcel cannot be held."))
    start = (ask("parcel number"), _track(parcel))
    facts = {"parcel number": parcel}
    extra = Call("I hold the parcel as well.", "hold_parcel", {"parcel_id": parcel, "until": until})
    if twin == "durable":
        wrong = {"until": None if until else date}
        return build(query, rows, start, allowed, refused, wrong=wrong, extra=extra, facts=facts)
    return build(query, rows, start, refused, allowed, wrong={"reason": "customs"}, extra=extra, facts=facts)


def customs(draw: Draw, twin: str) -> Case:
    name, parcel = draw.name(), draw.id("T")
    first, second, third = draw.rng.sample(DOCUMENTS, 3)
    query = draw.choice(f"I am {name}. For the customs of parcel {parcel} I have {first} and {second}.",
                        f"{name} here. Please declare {first} and {second} for parcel {parcel}.",
                        f"This is {name}. Can you pass {first} and {second} to customs for parcel {parcel}?")
    rows = {"parcels": [_parcel(draw, parcel, name, customs=twin)]}
    declare = {"parcel_id": parcel, "documents": [first, second]}
    allowed = Branch((Call(because("customs", "held", ALLOWED), "declare_documents", declare),),
                     done("Your documents are declared."))
    kept = Branch((), Say(because("customs", "cleared", ALREADY), "This parcel has already passed customs. <DONE>"))
    if twin == "held":
        extra = Call("I hold the parcel as well.", "hold_parcel", {"parcel_id": parcel, "until": None})
        return build(query, rows, (_track(parcel),), allowed, kept,
                     wrong={"documents": draw.choice([first], [first, third])}, extra=extra)
    extra = Call(because("customs", "cleared", DECLINE), "log_rejection", {"parcel_id": parcel, "reason": "customs"})
    approval = Call("I ask for approval of the papers.", "ask_depot", {"parcel_id": parcel, "step": "customs"})
    return build(query, rows, (_track(parcel),), kept, allowed, extra=extra, approval=approval)


def pickup(draw: Draw, twin: str) -> Case:
    name, parcel, date = draw.name(), draw.id("T"), draw.date()
    fragile = draw.choice(True, False)
    nature = "fragile" if fragile else "robust"
    query = draw.choice(f"I am {name}. Please pick up my {nature} parcel {parcel}.",
                        f"{name} here. Parcel {parcel} is {nature} and waits for a pickup.",
                        f"This is {name}. Can someone fetch parcel {parcel}? It is {nature}.")
    rows = {"parcels": [_parcel(draw, parcel, name, heavy=twin == "heavy")]}

    def book(heavy: bool) -> Branch:
        vehicle = "van" if heavy else "bike"
        return Branch((Call(because("heavy", heavy, f"a {vehicle} is right"), "book_pickup",
                            {"parcel_id": parcel, "date": date, "vehicle": vehicle, "fragile": fragile}),),
                      done("Your pickup is booked."))

    right, other = book(twin == "heavy"), book(twin != "heavy")
    extra = Call("I book the other vehicle as well.", "book_pickup", other.calls[0].arguments)
    return build(query, rows, (ask("pickup date"), _track(parcel)), right, other,
                 wrong={"fragile": not fragile}, extra=extra, facts={"pickup date": date})


def any_locker(draw: Draw, twin: str) -> Case:
    name, parcel, locker, old = draw.name(), draw.id("T"), draw.id("K"), draw.id("K")
    query = draw.choice(f"I am {name}. Whatever is on its way to me should go to locker {locker}.",
                        f"{name} here. I moved, please use locker {locker} for what you have for me.",
                        f"This is {name}. Can my delivery be in locker {locker}? I have no number.")
    rows = {"parcels": [_parcel(draw, parcel, name, kind=twin, insured=False, locker=old)]}
    redirected = Branch((Call(because("kind", "box", ALLOWED), "redirect_parcel",
                              {"parcel_id": parcel, "locker": locker}),), done("Your parcel goes to the new locker."))
    refused = Branch((Call(because("kind", "tube", DECLINE), "log_rejection",
                           {"parcel_id": parcel, "reason": "too long"}),),
                     declined("A tube is too long for a locker."))
    start = (Call("I find the parcels of the recipient.", "find_parcels", {"recipient": name}),)
    extra = Call("I redirect the parcel as well.", "redirect_parcel", {"parcel_id": parcel, "locker": locker})
    if twin == "box":
        extra = Call("I hold the parcel as well.", "hold_parcel", {"parcel_id": parcel, "until": None})
        return build(query, rows, start, redirected, refused, wrong={"locker": old}, extra=extra, blind=False)
    return build(query, rows, start, refused, redirected, wrong={"reason": "customs"}, extra=extra, blind=False)


TEMPLATES = (
    Template("other_locker", ("insured", "uninsured"), other_locker),
    Template("claim", ("delivered", "in_transit"), claim),
    Template("hold", ("perishable", "durable"), hold),
    Template("customs", ("held", "cleared"), customs),
    Template("pickup", ("heavy", "light"), pickup),
    Template("any_locker", ("box", "tube"), any_locker),
)

domain = Domain("parcel", server, POLICY, DATA, TEMPLATES)
