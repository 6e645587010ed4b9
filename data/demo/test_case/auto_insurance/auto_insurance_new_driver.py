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
    query: This is Jonas Pereira. My friend, licensed for 9 years, should be on policy P-723.
    user_context: |
      You are Jonas Pereira.
      driver name: Petra Abbott
    init:
      auto_insurance:
        data_patch:
          policies:
          - {policy_id: P-723, holder: Jonas Pereira, drivers: restricted, rental_cover: true, lender: null,
            deductible: 22.5}
        golden_test_case:
          tool_interactions:
          - tool: fetch_policy
            parameters: {policy_id: P-723}
          - tool: refer_to_underwriter
            parameters: {policy_id: P-723, topic: driver}
          - tool: add_driver
            parameters: {policy_id: P-723, driver: Petra Abbott, years: 9}
    tags: ['template:new_driver', 'twin:restricted']
    """
    validate_database(x)


def test_001(x: TestContext):
    """!
    query: I am Petra Tanaka, policy P-449. Please add a driver who drives for 7 years.
    user_context: |
      You are Petra Tanaka.
      driver name: Quinn Hoffman
    init:
      auto_insurance:
        data_patch:
          policies:
          - {policy_id: P-449, holder: Petra Tanaka, drivers: any, rental_cover: false, lender: B-289,
            deductible: 52.5}
        golden_test_case:
          tool_interactions:
          - tool: fetch_policy
            parameters: {policy_id: P-449}
          - tool: add_driver
            parameters: {policy_id: P-449, driver: Quinn Hoffman, years: 7}
    tags: ['template:new_driver', 'twin:any']
    """
    validate_database(x)


def test_002(x: TestContext):
    """!
    query: This is Farid Quist. My friend, licensed for 6 years, should be on policy P-204.
    user_context: |
      You are Farid Quist.
      driver name: Ada Abbott
    init:
      auto_insurance:
        data_patch:
          policies:
          - {policy_id: P-204, holder: Farid Quist, drivers: restricted, rental_cover: false, lender: B-235,
            deductible: 25}
        golden_test_case:
          tool_interactions:
          - tool: fetch_policy
            parameters: {policy_id: P-204}
          - tool: refer_to_underwriter
            parameters: {policy_id: P-204, topic: driver}
          - tool: add_driver
            parameters: {policy_id: P-204, driver: Ada Abbott, years: 6}
    tags: ['template:new_driver', 'twin:restricted']
    """
    validate_database(x)


def test_003(x: TestContext):
    """!
    query: This is Dmitri Castillo. My friend, licensed for 7 years, should be on policy P-282.
    user_context: |
      You are Dmitri Castillo.
      driver name: Greta Eriksen
    init:
      auto_insurance:
        data_patch:
          policies:
          - {policy_id: P-282, holder: Dmitri Castillo, drivers: any, rental_cover: true, lender: B-787,
            deductible: 25}
        golden_test_case:
          tool_interactions:
          - tool: fetch_policy
            parameters: {policy_id: P-282}
          - tool: add_driver
            parameters: {policy_id: P-282, driver: Greta Eriksen, years: 7}
    tags: ['template:new_driver', 'twin:any']
    """
    validate_database(x)


def test_004(x: TestContext):
    """!
    query: This is Ben Rossi. My friend, licensed for 5 years, should be on policy P-720.
    user_context: |
      You are Ben Rossi.
      driver name: Clara Abbott
    init:
      auto_insurance:
        data_patch:
          policies:
          - {policy_id: P-720, holder: Ben Rossi, drivers: restricted, rental_cover: true, lender: B-646,
            deductible: 60}
        golden_test_case:
          tool_interactions:
          - tool: fetch_policy
            parameters: {policy_id: P-720}
          - tool: refer_to_underwriter
            parameters: {policy_id: P-720, topic: driver}
          - tool: add_driver
            parameters: {policy_id: P-720, driver: Clara Abbott, years: 5}
    tags: ['template:new_driver', 'twin:restricted']
    """
    validate_database(x)


def test_005(x: TestContext):
    """!
    query: Clara Okafor here. On policy P-475 I need a second driver, licensed for 8 years.
    user_context: |
      You are Clara Okafor.
      driver name: Vera Novak
    init:
      auto_insurance:
        data_patch:
          policies:
          - {policy_id: P-475, holder: Clara Okafor, drivers: any, rental_cover: true, lender: null, deductible: 45}
        golden_test_case:
          tool_interactions:
          - tool: fetch_policy
            parameters: {policy_id: P-475}
          - tool: add_driver
            parameters: {policy_id: P-475, driver: Vera Novak, years: 8}
    tags: ['template:new_driver', 'twin:any']
    """
    validate_database(x)
