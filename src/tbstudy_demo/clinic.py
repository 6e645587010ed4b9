"""Clinic: a practice's patients, visits, medication and tests."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from tbstudy.sandbox.sqlite import SqliteServer

SCHEMA = """
CREATE TABLE patients (patient_id TEXT PRIMARY KEY, name TEXT NOT NULL, insurance TEXT NOT NULL,
  medication TEXT NOT NULL, referral INTEGER NOT NULL, diabetic INTEGER NOT NULL);
CREATE TABLE visits (visit_id TEXT PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL, date TEXT NOT NULL,
  status TEXT NOT NULL, fee_waived INTEGER);
CREATE TABLE doctor_requests (patient_id TEXT NOT NULL, topic TEXT NOT NULL);
CREATE TABLE refusals (visit_id TEXT NOT NULL, reason TEXT NOT NULL);
CREATE TABLE refills (patient_id TEXT NOT NULL, packs INTEGER NOT NULL);
CREATE TABLE specialist_visits (patient_id TEXT NOT NULL, specialty TEXT NOT NULL, date TEXT NOT NULL);
CREATE TABLE ordered_tests (patient_id TEXT NOT NULL, test TEXT NOT NULL, fasting INTEGER NOT NULL);
"""

POLICY = """\
You are the front desk agent of Lindenhof Clinic. Today is 2026-03-02.
- Look up the patient or the visits before you act. Ask for what the caller did not say.
- Refill: when medication is controlled, ask_doctor first, then refill_medication.
- Specialist: when referral is false, ask_doctor first, then book_specialist.
- Blood tests: fasting is true, but false when diabetic is true.
- Moving a visit: only when status is planned. Otherwise record_refusal with locked.
- Sick note: ask_doctor for a form when insurance is public, for a certificate when it is private.
- Cancelling: when status is cancelled, change nothing. Set waive_fee for an ill patient only.
- Do each thing once and nothing that was not asked.
"""

DATA: dict[str, list[dict[str, Any]]] = {
    "patients": [
        {"patient_id": "P-1001", "name": "Zora Finch", "insurance": "public", "medication": "free",
         "referral": False, "diabetic": False},
        {"patient_id": "P-1002", "name": "Otto Brinke", "insurance": "private", "medication": "controlled",
         "referral": True, "diabetic": True},
    ],
    "visits": [
        {"visit_id": "V-1001", "name": "Zora Finch", "kind": "checkup", "date": "2026-04-09", "status": "planned"},
        {"visit_id": "V-1002", "name": "Otto Brinke", "kind": "vaccination", "date": "2026-03-02",
         "status": "locked"},
    ],
}

server = SqliteServer("clinic", SCHEMA)

PatientId = Annotated[str, Field(description="Patient number")]
VisitId = Annotated[str, Field(description="Visit id")]
Date = Annotated[str, Field(description="ISO date")]


@server.tool
def get_patient(patient_id: PatientId) -> dict[str, Any]:
    """Look a patient up."""
    patient = server.row("patients", "patient_id", patient_id)
    return {"insurance": patient["insurance"], "medication": patient["medication"],
            "referral": bool(patient["referral"]), "diabetic": bool(patient["diabetic"])}


@server.tool
def find_visits(name: Annotated[str, Field(description="Full name")]) -> list[dict[str, Any]]:
    """Find the visits of a patient."""
    return server.rows("SELECT visit_id, kind, date, status FROM visits WHERE name = ? ORDER BY visit_id", name)


@server.tool
def ask_doctor(patient_id: PatientId,
               topic: Literal["refill", "specialist", "tests", "form", "certificate"]) -> dict[str, Any]:
    """Ask the doctor to approve."""
    server.row("patients", "patient_id", patient_id)
    server.insert("doctor_requests", patient_id=patient_id, topic=topic)
    return {"approval": "granted"}


@server.tool
def record_refusal(visit_id: VisitId, reason: Literal["locked", "too late"]) -> dict[str, Any]:
    """Record that a request is refused."""
    server.row("visits", "visit_id", visit_id)
    server.insert("refusals", visit_id=visit_id, reason=reason)
    return {"noted": True}


@server.tool
def refill_medication(patient_id: PatientId, packs: int) -> dict[str, Any]:
    """Refill the medication."""
    server.row("patients", "patient_id", patient_id)
    server.insert("refills", patient_id=patient_id, packs=packs)
    return {"refilled": True}


@server.tool
def book_specialist(patient_id: PatientId, date: Date,
                    specialty: Literal["cardiology", "dermatology", "neurology", "urology"]) -> dict[str, Any]:
    """Book a visit to a specialist."""
    server.row("patients", "patient_id", patient_id)
    server.insert("specialist_visits", patient_id=patient_id, specialty=specialty, date=date)
    return {"booked": True}


@server.tool
def order_tests(patient_id: PatientId, tests: list[str], fasting: bool) -> dict[str, Any]:
    """Order blood tests."""
    server.row("patients", "patient_id", patient_id)
    for test in tests:
        server.insert("ordered_tests", patient_id=patient_id, test=test, fasting=fasting)
    return {"ordered": True}


@server.tool
def move_visit(visit_id: VisitId, date: Date) -> dict[str, Any]:
    """Move a visit to another date."""
    server.update("visits", "visit_id", visit_id, date=date)
    return {"moved": True}


@server.tool
def cancel_visit(visit_id: VisitId, waive_fee: bool = False) -> dict[str, Any]:
    """Cancel a visit."""
    server.update("visits", "visit_id", visit_id, status="cancelled", fee_waived=waive_fee)
    return {"cancelled": True}


if __name__ == "__main__":
    server.main()
