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
    query: Clara Tanaka here. Please get me a rental car for 9 days after my accident.
    user_context: |
      You are Clara Tanaka.
      claim number: C-282
    init:
      auto_insurance:
        data_patch:
          policies:
          - {policy_id: P-725, holder: Clara Tanaka, drivers: any, rental_cover: true, lender: B-320,
            deductible: 52.5}
          car_claims:
          - {claim_id: C-282, policy_id: P-725, fraud_flag: false, estimate: 22.5, towing: 40}
        golden_test_case:
          tool_interactions:
          - tool: fetch_claim
            parameters: {claim_id: C-282}
          - tool: fetch_policy
            parameters: {policy_id: P-725}
          - tool: book_rental
            parameters: {claim_id: C-282, days: 9}
    tags: ['template:rental_car', 'twin:covered']
    """
    validate_database(x)


def test_001(x: TestContext):
    """!
    query: I am Stefan Grant. I need a rental car for 5 days while mine is repaired.
    user_context: |
      You are Stefan Grant.
      claim number: C-509
    init:
      auto_insurance:
        data_patch:
          policies:
          - {policy_id: P-716, holder: Stefan Grant, drivers: any, rental_cover: false, lender: null,
            deductible: 27.5}
          car_claims:
          - {claim_id: C-509, policy_id: P-716, fraud_flag: true, estimate: 40, towing: 50}
        golden_test_case:
          tool_interactions:
          - tool: fetch_claim
            parameters: {claim_id: C-509}
          - tool: fetch_policy
            parameters: {policy_id: P-716}
          - tool: reject
            parameters: {policy_id: P-716, reason: no cover}
    tags: ['template:rental_car', 'twin:not_covered']
    """
    validate_database(x)


def test_002(x: TestContext):
    """!
    query: I am Liam Fontaine. I need a rental car for 9 days while mine is repaired.
    user_context: |
      You are Liam Fontaine.
      claim number: C-521
    init:
      auto_insurance:
        data_patch:
          policies:
          - {policy_id: P-519, holder: Liam Fontaine, drivers: any, rental_cover: true, lender: B-855,
            deductible: 67.5}
          car_claims:
          - {claim_id: C-521, policy_id: P-519, fraud_flag: false, estimate: 57.5, towing: 10}
        golden_test_case:
          tool_interactions:
          - tool: fetch_claim
            parameters: {claim_id: C-521}
          - tool: fetch_policy
            parameters: {policy_id: P-519}
          - tool: book_rental
            parameters: {claim_id: C-521, days: 9}
    tags: ['template:rental_car', 'twin:covered']
    """
    validate_database(x)


def test_003(x: TestContext):
    """!
    query: This is Petra Okafor. My car is in the garage, can I have another one for 9 days?
    user_context: |
      You are Petra Okafor.
      claim number: C-554
    init:
      auto_insurance:
        data_patch:
          policies:
          - {policy_id: P-359, holder: Petra Okafor, drivers: any, rental_cover: false, lender: null,
            deductible: 45}
          car_claims:
          - {claim_id: C-554, policy_id: P-359, fraud_flag: true, estimate: 67.5, towing: 15}
        golden_test_case:
          tool_interactions:
          - tool: fetch_claim
            parameters: {claim_id: C-554}
          - tool: fetch_policy
            parameters: {policy_id: P-359}
          - tool: reject
            parameters: {policy_id: P-359, reason: no cover}
    tags: ['template:rental_car', 'twin:not_covered']
    """
    validate_database(x)


def test_004(x: TestContext):
    """!
    query: I am Wade Pereira. I need a rental car for 9 days while mine is repaired.
    user_context: |
      You are Wade Pereira.
      claim number: C-383
    init:
      auto_insurance:
        data_patch:
          policies:
          - {policy_id: P-161, holder: Wade Pereira, drivers: restricted, rental_cover: true, lender: B-519,
            deductible: 65}
          car_claims:
          - {claim_id: C-383, policy_id: P-161, fraud_flag: false, estimate: 17.5, towing: 25}
        golden_test_case:
          tool_interactions:
          - tool: fetch_claim
            parameters: {claim_id: C-383}
          - tool: fetch_policy
            parameters: {policy_id: P-161}
          - tool: book_rental
            parameters: {claim_id: C-383, days: 9}
    tags: ['template:rental_car', 'twin:covered']
    """
    validate_database(x)


def test_005(x: TestContext):
    """!
    query: I am Quinn Castillo. I need a rental car for 2 days while mine is repaired.
    user_context: |
      You are Quinn Castillo.
      claim number: C-820
    init:
      auto_insurance:
        data_patch:
          policies:
          - {policy_id: P-788, holder: Quinn Castillo, drivers: any, rental_cover: false, lender: B-312,
            deductible: 40}
          car_claims:
          - {claim_id: C-820, policy_id: P-788, fraud_flag: false, estimate: 80, towing: 55}
        golden_test_case:
          tool_interactions:
          - tool: fetch_claim
            parameters: {claim_id: C-820}
          - tool: fetch_policy
            parameters: {policy_id: P-788}
          - tool: reject
            parameters: {policy_id: P-788, reason: no cover}
    tags: ['template:rental_car', 'twin:not_covered']
    """
    validate_database(x)
