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
    query: This is Yusuf Weber. Can my deductible be 15, please?
    user_context: |
      You are Yusuf Weber.
      policy number: P-554
    init:
      auto_insurance:
        data_patch:
          policies:
          - {policy_id: P-554, holder: Yusuf Weber, drivers: restricted, rental_cover: false, lender: null,
            deductible: 12.5}
        golden_test_case:
          tool_interactions:
          - tool: fetch_policy
            parameters: {policy_id: P-554}
          - tool: set_deductible
            parameters: {policy_id: P-554, amount: 15}
    tags: ['template:deductible_change', 'twin:no_lender']
    """
    validate_database(x)


def test_001(x: TestContext):
    """!
    query: This is Mona Moreau. Can my deductible be 42.5, please?
    user_context: |
      You are Mona Moreau.
      policy number: P-519
    init:
      auto_insurance:
        data_patch:
          policies:
          - {policy_id: P-519, holder: Mona Moreau, drivers: restricted, rental_cover: false, lender: B-473,
            deductible: 25}
        golden_test_case:
          tool_interactions:
          - tool: fetch_policy
            parameters: {policy_id: P-519}
          - tool: reject
            parameters: {policy_id: P-519, reason: lender}
    tags: ['template:deductible_change', 'twin:lender']
    """
    validate_database(x)


def test_002(x: TestContext):
    """!
    query: Umut Brandt here. I want a deductible of 67.5 from now on.
    user_context: |
      You are Umut Brandt.
      policy number: P-725
    init:
      auto_insurance:
        data_patch:
          policies:
          - {policy_id: P-725, holder: Umut Brandt, drivers: restricted, rental_cover: false, lender: null,
            deductible: 27.5}
        golden_test_case:
          tool_interactions:
          - tool: fetch_policy
            parameters: {policy_id: P-725}
          - tool: set_deductible
            parameters: {policy_id: P-725, amount: 67.5}
    tags: ['template:deductible_change', 'twin:no_lender']
    """
    validate_database(x)


def test_003(x: TestContext):
    """!
    query: My name is Elena Tanaka and I would like a deductible of 12.5.
    user_context: |
      You are Elena Tanaka.
      policy number: P-576
    init:
      auto_insurance:
        data_patch:
          policies:
          - {policy_id: P-576, holder: Elena Tanaka, drivers: any, rental_cover: false, lender: B-265,
            deductible: 80}
        golden_test_case:
          tool_interactions:
          - tool: fetch_policy
            parameters: {policy_id: P-576}
          - tool: reject
            parameters: {policy_id: P-576, reason: lender}
    tags: ['template:deductible_change', 'twin:lender']
    """
    validate_database(x)


def test_004(x: TestContext):
    """!
    query: This is Wade Pereira. Can my deductible be 40, please?
    user_context: |
      You are Wade Pereira.
      policy number: P-235
    init:
      auto_insurance:
        data_patch:
          policies:
          - {policy_id: P-235, holder: Wade Pereira, drivers: restricted, rental_cover: false, lender: null,
            deductible: 52.5}
        golden_test_case:
          tool_interactions:
          - tool: fetch_policy
            parameters: {policy_id: P-235}
          - tool: set_deductible
            parameters: {policy_id: P-235, amount: 40}
    tags: ['template:deductible_change', 'twin:no_lender']
    """
    validate_database(x)


def test_005(x: TestContext):
    """!
    query: This is Liam Pereira. Can my deductible be 32.5, please?
    user_context: |
      You are Liam Pereira.
      policy number: P-891
    init:
      auto_insurance:
        data_patch:
          policies:
          - {policy_id: P-891, holder: Liam Pereira, drivers: any, rental_cover: false, lender: B-942,
            deductible: 80}
        golden_test_case:
          tool_interactions:
          - tool: fetch_policy
            parameters: {policy_id: P-891}
          - tool: reject
            parameters: {policy_id: P-891, reason: lender}
    tags: ['template:deductible_change', 'twin:lender']
    """
    validate_database(x)
