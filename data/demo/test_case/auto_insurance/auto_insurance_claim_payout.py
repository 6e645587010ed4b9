from thinkingbox.common import TestContext

"""!
scenario: auto_insurance
"""


def validate_database(x: TestContext):
    effects = x.effects["auto_insurance"]
    found = ["The final state differs."]
    for d in effects["diff"]:
        place = " ".join(str(part) for part in (d["table"], d["row"], d["field"]) if part is not None)
        found.append(f"{d['kind']} {place}: expected {d['expected']!r}, found {d['actual']!r}")
    assert effects["result_db_hash"] == effects["golden_db_hash"], "\n".join(found)


def test_000(x: TestContext):
    """!
    query: This is Greta Eriksen. When is claim C-554 paid? By the way, I have a police report.
    user_context: |
      You are Greta Eriksen.
    init:
      auto_insurance:
        data_patch:
          policies:
          - {policy_id: P-986, holder: Greta Eriksen, drivers: any, rental_cover: true, lender: B-134,
            deductible: 10}
          car_claims:
          - {claim_id: C-554, policy_id: P-986, fraud_flag: false, estimate: 62.5, towing: 25}
        golden_test_case:
          tool_interactions:
          - tool: fetch_claim
            parameters: {claim_id: C-554}
          - tool: approve_payout
            parameters: {claim_id: C-554, amount: 62.5}
    tags: ['template:claim_payout', 'twin:clean']
    """
    validate_database(x)


def test_001(x: TestContext):
    """!
    query: This is Quinn Castillo. When is claim C-862 paid? By the way, I have a police report.
    user_context: |
      You are Quinn Castillo.
    init:
      auto_insurance:
        data_patch:
          policies:
          - {policy_id: P-647, holder: Quinn Castillo, drivers: any, rental_cover: true, lender: B-315,
            deductible: 40}
          car_claims:
          - {claim_id: C-862, policy_id: P-647, fraud_flag: true, estimate: 52.5, towing: 27.5}
        golden_test_case:
          tool_interactions:
          - tool: fetch_claim
            parameters: {claim_id: C-862}
          - tool: investigate
            parameters: {claim_id: C-862, police_report: true}
    tags: ['template:claim_payout', 'twin:flagged']
    """
    validate_database(x)


def test_002(x: TestContext):
    """!
    query: Ben Moreau here. I want the money for claim C-367, I have a police report.
    user_context: |
      You are Ben Moreau.
    init:
      auto_insurance:
        data_patch:
          policies:
          - {policy_id: P-329, holder: Ben Moreau, drivers: any, rental_cover: false, lender: B-631, deductible: 32.5}
          car_claims:
          - {claim_id: C-367, policy_id: P-329, fraud_flag: false, estimate: 17.5, towing: 35}
        golden_test_case:
          tool_interactions:
          - tool: fetch_claim
            parameters: {claim_id: C-367}
          - tool: approve_payout
            parameters: {claim_id: C-367, amount: 17.5}
    tags: ['template:claim_payout', 'twin:clean']
    """
    validate_database(x)


def test_003(x: TestContext):
    """!
    query: I am Ines Zhang. Please pay out claim C-414, I have a police report.
    user_context: |
      You are Ines Zhang.
    init:
      auto_insurance:
        data_patch:
          policies:
          - {policy_id: P-473, holder: Ines Zhang, drivers: restricted, rental_cover: true, lender: B-428,
            deductible: 32.5}
          car_claims:
          - {claim_id: C-414, policy_id: P-473, fraud_flag: true, estimate: 40, towing: 52.5}
        golden_test_case:
          tool_interactions:
          - tool: fetch_claim
            parameters: {claim_id: C-414}
          - tool: investigate
            parameters: {claim_id: C-414, police_report: true}
    tags: ['template:claim_payout', 'twin:flagged']
    """
    validate_database(x)


def test_004(x: TestContext):
    """!
    query: This is Ines Iversen. When is claim C-688 paid? By the way, there is no police report.
    user_context: |
      You are Ines Iversen.
    init:
      auto_insurance:
        data_patch:
          policies:
          - {policy_id: P-186, holder: Ines Iversen, drivers: restricted, rental_cover: true, lender: B-521,
            deductible: 20}
          car_claims:
          - {claim_id: C-688, policy_id: P-186, fraud_flag: false, estimate: 27.5, towing: 25}
        golden_test_case:
          tool_interactions:
          - tool: fetch_claim
            parameters: {claim_id: C-688}
          - tool: approve_payout
            parameters: {claim_id: C-688, amount: 27.5}
    tags: ['template:claim_payout', 'twin:clean']
    """
    validate_database(x)


def test_005(x: TestContext):
    """!
    query: Vera Duarte here. I want the money for claim C-475, I have a police report.
    user_context: |
      You are Vera Duarte.
    init:
      auto_insurance:
        data_patch:
          policies:
          - {policy_id: P-891, holder: Vera Duarte, drivers: any, rental_cover: true, lender: B-274, deductible: 90}
          car_claims:
          - {claim_id: C-475, policy_id: P-891, fraud_flag: true, estimate: 62.5, towing: 22.5}
        golden_test_case:
          tool_interactions:
          - tool: fetch_claim
            parameters: {claim_id: C-475}
          - tool: investigate
            parameters: {claim_id: C-475, police_report: true}
    tags: ['template:claim_payout', 'twin:flagged']
    """
    validate_database(x)
