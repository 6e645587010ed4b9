"""Auto insurance: policies, claims, payouts and rental cars."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from tbstudy.sandbox.sqlite import SqliteServer

# Amounts are NUMERIC so that a whole amount reads back as 25, the way it is written in texts.
SCHEMA = """
CREATE TABLE policies (policy_id TEXT PRIMARY KEY, holder TEXT NOT NULL, drivers TEXT NOT NULL,
  rental_cover INTEGER NOT NULL, lender TEXT, deductible NUMERIC NOT NULL);
CREATE TABLE car_claims (claim_id TEXT PRIMARY KEY, policy_id TEXT NOT NULL, fraud_flag INTEGER NOT NULL,
  estimate NUMERIC NOT NULL, towing NUMERIC NOT NULL);
CREATE TABLE payouts (claim_id TEXT NOT NULL, amount NUMERIC NOT NULL);
CREATE TABLE investigations (claim_id TEXT NOT NULL, police_report INTEGER NOT NULL);
CREATE TABLE referrals (policy_id TEXT NOT NULL, topic TEXT NOT NULL);
CREATE TABLE added_drivers (policy_id TEXT NOT NULL, driver TEXT NOT NULL, years INTEGER NOT NULL);
CREATE TABLE rentals (claim_id TEXT NOT NULL, days INTEGER NOT NULL);
CREATE TABLE rejected_requests (policy_id TEXT NOT NULL, reason TEXT NOT NULL);
"""

POLICY = """\
You are the claims agent of Axlewise, a car insurer. Today is 2026-03-02.
- Look the policy or claim up before you act. Ask for what the customer did not say.
- Payout: when fraud_flag is false, approve_payout of exactly the estimate.
- Payout: when fraud_flag is true, pay nothing and investigate. Say whether there is a police report.
- New driver: when drivers is restricted, refer_to_underwriter first, then add_driver.
- New driver: when drivers is any, add_driver only, without a referral.
- Rental car: fetch_claim, then its policy. When rental_cover is true, book_rental. Otherwise reject with no cover.
- Deductible: when lender is null, set_deductible. When a lender is set, reject with lender.
- Do each thing once and nothing that was not asked.
"""

DATA: dict[str, list[dict[str, Any]]] = {
    "policies": [
        {"policy_id": "P-1001", "holder": "Zora Finch", "drivers": "any", "rental_cover": True, "lender": None,
         "deductible": 40},
        {"policy_id": "P-1002", "holder": "Otto Brinke", "drivers": "restricted", "rental_cover": False,
         "lender": "B-1001", "deductible": 75},
    ],
    "car_claims": [
        {"claim_id": "C-1001", "policy_id": "P-1001", "fraud_flag": False, "estimate": 60, "towing": 15},
        {"claim_id": "C-1002", "policy_id": "P-1002", "fraud_flag": True, "estimate": 95, "towing": 30},
    ],
}

server = SqliteServer("auto_insurance", SCHEMA)

PolicyId = Annotated[str, Field(description="Policy number")]
ClaimId = Annotated[str, Field(description="Claim number")]


@server.tool
def fetch_policy(policy_id: PolicyId) -> dict[str, Any]:
    """Show a policy."""
    policy = server.row("policies", "policy_id", policy_id)
    return {"holder": policy["holder"], "drivers": policy["drivers"], "rental_cover": bool(policy["rental_cover"]),
            "lender": policy["lender"], "deductible": policy["deductible"]}


@server.tool
def fetch_claim(claim_id: ClaimId) -> dict[str, Any]:
    """Show a claim."""
    claim = server.row("car_claims", "claim_id", claim_id)
    return {"policy_id": claim["policy_id"], "fraud_flag": bool(claim["fraud_flag"]), "estimate": claim["estimate"],
            "towing": claim["towing"]}


@server.tool
def approve_payout(claim_id: ClaimId, amount: float) -> dict[str, Any]:
    """Pay a claim."""
    server.row("car_claims", "claim_id", claim_id)
    server.insert("payouts", claim_id=claim_id, amount=amount)
    return {"paid": True}


@server.tool
def investigate(
    claim_id: ClaimId, police_report: Annotated[bool, Field(description="Whether there is one")]
) -> dict[str, Any]:
    """Hand a claim to the investigators."""
    server.row("car_claims", "claim_id", claim_id)
    server.insert("investigations", claim_id=claim_id, police_report=police_report)
    return {"opened": True}


@server.tool
def refer_to_underwriter(policy_id: PolicyId, topic: Literal["driver", "deductible"]) -> dict[str, Any]:
    """Ask the underwriter to approve a change."""
    server.row("policies", "policy_id", policy_id)
    server.insert("referrals", policy_id=policy_id, topic=topic)
    return {"approval": "granted"}


@server.tool
def add_driver(
    policy_id: PolicyId,
    driver: Annotated[str, Field(description="Full name")],
    years: Annotated[int, Field(description="Years with a license")],
) -> dict[str, Any]:
    """Add a driver to a policy."""
    server.row("policies", "policy_id", policy_id)
    server.insert("added_drivers", policy_id=policy_id, driver=driver, years=years)
    return {"added": True}


@server.tool
def book_rental(claim_id: ClaimId, days: int) -> dict[str, Any]:
    """Book a rental car for a claim."""
    server.row("car_claims", "claim_id", claim_id)
    server.insert("rentals", claim_id=claim_id, days=days)
    return {"booked": True}


@server.tool
def set_deductible(policy_id: PolicyId, amount: float) -> dict[str, Any]:
    """Change the deductible of a policy."""
    server.update("policies", "policy_id", policy_id, deductible=amount)
    return {"changed": True}


@server.tool
def reject(policy_id: PolicyId, reason: Literal["no cover", "lender", "other"]) -> dict[str, Any]:
    """Record that a request is declined."""
    server.row("policies", "policy_id", policy_id)
    server.insert("rejected_requests", policy_id=policy_id, reason=reason)
    return {"noted": True}


if __name__ == "__main__":
    server.main()
