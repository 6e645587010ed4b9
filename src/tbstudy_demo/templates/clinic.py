"""Clinic's templates."""

from __future__ import annotations

from typing import Any

from tbstudy_demo.cases import Call, Case, Domain, Say, Template
from tbstudy_demo.clinic import DATA, POLICY, server
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

SPECIALTIES = ("cardiology", "dermatology", "neurology", "urology")
TESTS = ("iron", "glucose", "lipids", "thyroid", "calcium")
KINDS = ("checkup", "vaccination", "ultrasound")


def _patient(draw: Draw, patient: str, name: str, **fixed: Any) -> dict[str, Any]:
    row = {"patient_id": patient, "name": name, "insurance": draw.choice("public", "private"),
           "medication": draw.choice("free", "controlled"), "referral": draw.choice(True, False),
           "diabetic": draw.choice(True, False)}
    return row | fixed


def _get(patient: str) -> Call:
    return Call("I look the patient up.", "get_patient", {"patient_id": patient})


def _find(name: str) -> Call:
    return Call("I find the visits of the patient.", "find_visits", {"name": name})


def refill(draw: Draw, twin: str) -> Case:
    name, patient, packs = draw.name(), draw.id("P"), draw.count()
    other = draw.choice(*(n for n in COUNTS if n != packs))
    query = draw.choice(f"I am {name}. I need {packs} packs of my medication again.",
                        f"{name} here. Please refill my medication, {packs} packs.",
                        f"This is {name}. Can I get {packs} more packs of my medication?",
                        f"My name is {name} and I would like {packs} packs of my usual medication.")
    rows = {"patients": [_patient(draw, patient, name, medication=twin)]}
    packed = {"patient_id": patient, "packs": packs}
    end = done("Your medication is refilled.")
    approved = Branch((
        Call(because("medication", "controlled", APPROVAL_FIRST), "ask_doctor",
             {"patient_id": patient, "topic": "refill"}),
        Call("The approval is granted, so I refill the medication.", "refill_medication", packed)), end)
    free = Branch((Call(because("medication", "free", ALLOWED), "refill_medication", packed),), end)
    right, wrong = (approved, free) if twin == "controlled" else (free, approved)
    extra = Call("I order a test as well.", "order_tests",
                 {"patient_id": patient, "tests": ["iron"], "fasting": True})
    return build(query, rows, (ask("patient number"), _get(patient)), right, wrong,
                 wrong={"packs": other}, extra=extra, facts={"patient number": patient})


def specialist(draw: Draw, twin: str) -> Case:
    name, patient, date = draw.name(), draw.id("P"), draw.date()
    specialty, other = draw.rng.sample(SPECIALTIES, 2)
    query = draw.choice(f"I am {name}, patient {patient}. Please book me into {specialty} on {date}.",
                        f"{name} here, patient {patient}. I need a {specialty} visit on {date}.",
                        f"This is {name}, patient {patient}. Can I see {specialty} on {date}?")
    rows = {"patients": [_patient(draw, patient, name, referral=twin == "referred")]}
    booking = {"patient_id": patient, "date": date, "specialty": specialty}
    end = done("Your specialist visit is booked.")
    approved = Branch((
        Call(because("referral", False, APPROVAL_FIRST), "ask_doctor",
             {"patient_id": patient, "topic": "specialist"}),
        Call("The approval is granted, so I book the specialist.", "book_specialist", booking)), end)
    free = Branch((Call(because("referral", True, ALLOWED), "book_specialist", booking),), end)
    right, wrong = (free, approved) if twin == "referred" else (approved, free)
    extra = Call("I order a test as well.", "order_tests",
                 {"patient_id": patient, "tests": ["iron"], "fasting": True})
    return build(query, rows, (_get(patient),), right, wrong, wrong={"specialty": other}, extra=extra)


def blood_tests(draw: Draw, twin: str) -> Case:
    name, patient = draw.name(), draw.id("P")
    first, second, third = draw.rng.sample(TESTS, 3)
    query = draw.choice(f"I am {name}. Please order blood tests for {first} and {second}.",
                        f"{name} here. I want my {first} and {second} tested.",
                        f"This is {name}. Can my blood be tested for {first} and {second}?")
    rows = {"patients": [_patient(draw, patient, name, diabetic=twin == "diabetic")]}

    def order(diabetic: bool) -> Branch:
        decision = "no fasting" if diabetic else "fasting is needed"
        return Branch((Call(because("diabetic", diabetic, decision), "order_tests",
                            {"patient_id": patient, "tests": [first, second], "fasting": not diabetic}),),
                      done("Your blood tests are ordered."))

    right, other = order(twin == "diabetic"), order(twin != "diabetic")
    extra = Call("I ask the doctor as well.", "ask_doctor", {"patient_id": patient, "topic": "tests"})
    return build(query, rows, (ask("patient number"), _get(patient)), right, other,
                 wrong={"tests": draw.choice([first], [first, third])}, extra=extra, facts={"patient number": patient})


def move(draw: Draw, twin: str) -> Case:
    name, visit, date, old = draw.name(), draw.id("V"), draw.date(), draw.date()
    query = draw.choice(f"I am {name}. I cannot come to my visit and need another date.",
                        f"{name} here. Please move my visit to another day.",
                        f"This is {name}. Can I have a different date for my visit?")
    rows = {"visits": [{"visit_id": visit, "name": name, "kind": draw.choice(*KINDS), "date": old, "status": twin}]}
    allowed = Branch((Call(because("status", "planned", ALLOWED), "move_visit", {"visit_id": visit, "date": date}),),
                     done("Your visit is moved."))
    refused = Branch((Call(because("status", "locked", DECLINE), "record_refusal",
                           {"visit_id": visit, "reason": "locked"}),),
                     declined("This visit can no longer be moved."))
    start = (ask("new date"), _find(name))
    facts = {"new date": date}
    if twin == "planned":
        extra = Call("I cancel the old visit as well.", "cancel_visit", {"visit_id": visit, "waive_fee": False})
        return build(query, rows, start, allowed, refused, wrong={"date": old}, extra=extra, facts=facts, blind=False)
    extra = Call("I move the visit as well.", "move_visit", {"visit_id": visit, "date": date})
    return build(query, rows, start, refused, allowed, wrong={"reason": "too late"}, extra=extra, facts=facts,
                 blind=False)


def sick_note(draw: Draw, twin: str) -> Case:
    name, patient = draw.name(), draw.id("P")
    query = draw.choice(f"I am {name}. Please get me a sick note for my employer.",
                        f"{name} here. I stay in bed this week and need a sick note.",
                        f"This is {name}. Can the doctor write that I am ill?")
    rows = {"patients": [_patient(draw, patient, name, insurance=twin)]}

    def note(insurance: str) -> Branch:
        topic = "form" if insurance == "public" else "certificate"
        return Branch((Call(because("insurance", insurance, f"a {topic} is right"), "ask_doctor",
                            {"patient_id": patient, "topic": topic}),), done("The doctor writes your sick note."))

    right, other = (note("public"), note("private")) if twin == "public" else (note("private"), note("public"))
    extra = Call("I ask for the other as well.", "ask_doctor", other.calls[0].arguments)
    return build(query, rows, (ask("patient number"), _get(patient)), right, other, extra=extra,
                 facts={"patient number": patient})


def cancel(draw: Draw, twin: str) -> Case:
    name, visit, date = draw.name(), draw.id("V"), draw.date()
    ill = draw.choice(True, False)
    reason = "I am ill" if ill else "I have to work"
    query = draw.choice(f"This is {name}. Please cancel my visit {visit}, {reason}.",
                        f"{name} here. I want to cancel visit {visit} because {reason}.",
                        f"My name is {name}. Visit {visit} must be cancelled since {reason}.")
    rows = {"visits": [{"visit_id": visit, "name": name, "kind": draw.choice(*KINDS), "date": date, "status": twin}]}
    cancelled = Branch((Call(because("status", "planned", ALLOWED), "cancel_visit",
                             {"visit_id": visit, "waive_fee": ill}),), done("Your visit is cancelled."))
    kept = Branch((), Say(because("status", "cancelled", ALREADY), "This visit is already cancelled. <DONE>"))
    if twin == "planned":
        extra = Call("I record a refusal as well.", "record_refusal", {"visit_id": visit, "reason": "too late"})
        return build(query, rows, (_find(name),), cancelled, kept, wrong={"waive_fee": not ill}, extra=extra)
    extra = Call(because("status", "cancelled", DECLINE), "record_refusal", {"visit_id": visit, "reason": "too late"})
    return build(query, rows, (_find(name),), kept, cancelled, extra=extra)


TEMPLATES = (
    Template("refill", ("controlled", "free"), refill),
    Template("specialist", ("referred", "not_referred"), specialist),
    Template("blood_tests", ("diabetic", "not_diabetic"), blood_tests),
    Template("move", ("planned", "locked"), move),
    Template("sick_note", ("public", "private"), sick_note),
    Template("cancel", ("planned", "cancelled"), cancel),
)

domain = Domain("clinic", server, POLICY, DATA, TEMPLATES)
