from thinkingbox.common import TestContext

"""!
scenario: consulting
"""


def validate_database(x: TestContext):
    effects = x.effects["consulting"]
    found = ["The final state differs."]
    for d in effects["diff"]:
        place = " ".join(str(part) for part in (d["table"], d["row"], d["field"]) if part is not None)
        found.append(f"{d['kind']} {place}: expected {d['expected']!r}, found {d['actual']!r}")
    assert effects["result_db_hash"] == effects["golden_db_hash"], "\n".join(found)


def test_000(x: TestContext):
    """!
    query: This is Rosa Eriksen. Can I get into payroll and wiki? In both, I only read there.
    user_context: |
      You are Rosa Eriksen.
    init:
      consulting:
        data_patch:
          employees:
          - {employee_id: E-224, name: Rosa Eriksen, clearance: partial, project: null, floor: 7}
        golden_test_case:
          tool_interactions:
          - tool: find_employee
            parameters: {name: Rosa Eriksen}
          - tool: ask_owner
            parameters: {employee_id: E-224, topic: access}
          - tool: grant_access
            parameters:
              employee_id: E-224
              systems: [payroll, wiki]
              read_only: true
    tags: ['template:access_grant', 'twin:partial']
    """
    validate_database(x)


def test_001(x: TestContext):
    """!
    query: This is Quinn Quist. Can I get into wiki and crm? In both, I also write there.
    user_context: |
      You are Quinn Quist.
    init:
      consulting:
        data_patch:
          employees:
          - {employee_id: E-908, name: Quinn Quist, clearance: complete, project: J-738, floor: 5}
        golden_test_case:
          tool_interactions:
          - tool: find_employee
            parameters: {name: Quinn Quist}
          - tool: grant_access
            parameters:
              employee_id: E-908
              systems: [wiki, crm]
              read_only: false
    tags: ['template:access_grant', 'twin:complete']
    """
    validate_database(x)


def test_002(x: TestContext):
    """!
    query: Clara Abbott here. I need access to payroll and wiki, I only read there.
    user_context: |
      You are Clara Abbott.
    init:
      consulting:
        data_patch:
          employees:
          - {employee_id: E-439, name: Clara Abbott, clearance: partial, project: J-428, floor: 6}
        golden_test_case:
          tool_interactions:
          - tool: find_employee
            parameters: {name: Clara Abbott}
          - tool: ask_owner
            parameters: {employee_id: E-439, topic: access}
          - tool: grant_access
            parameters:
              employee_id: E-439
              systems: [payroll, wiki]
              read_only: true
    tags: ['template:access_grant', 'twin:partial']
    """
    validate_database(x)


def test_003(x: TestContext):
    """!
    query: I am Vera Novak. Please give me payroll and ledger, I only read there.
    user_context: |
      You are Vera Novak.
    init:
      consulting:
        data_patch:
          employees:
          - {employee_id: E-198, name: Vera Novak, clearance: complete, project: null, floor: 4}
        golden_test_case:
          tool_interactions:
          - tool: find_employee
            parameters: {name: Vera Novak}
          - tool: grant_access
            parameters:
              employee_id: E-198
              systems: [payroll, ledger]
              read_only: true
    tags: ['template:access_grant', 'twin:complete']
    """
    validate_database(x)


def test_004(x: TestContext):
    """!
    query: This is Rosa Jansen. Can I get into crm and ledger? In both, I only read there.
    user_context: |
      You are Rosa Jansen.
    init:
      consulting:
        data_patch:
          employees:
          - {employee_id: E-669, name: Rosa Jansen, clearance: partial, project: null, floor: 8}
        golden_test_case:
          tool_interactions:
          - tool: find_employee
            parameters: {name: Rosa Jansen}
          - tool: ask_owner
            parameters: {employee_id: E-669, topic: access}
          - tool: grant_access
            parameters:
              employee_id: E-669
              systems: [crm, ledger]
              read_only: true
    tags: ['template:access_grant', 'twin:partial']
    """
    validate_database(x)


def test_005(x: TestContext):
    """!
    query: This is Petra Tanaka. Can I get into ledger and crm? In both, I only read there.
    user_context: |
      You are Petra Tanaka.
    init:
      consulting:
        data_patch:
          employees:
          - {employee_id: E-984, name: Petra Tanaka, clearance: complete, project: J-625, floor: 6}
        golden_test_case:
          tool_interactions:
          - tool: find_employee
            parameters: {name: Petra Tanaka}
          - tool: grant_access
            parameters:
              employee_id: E-984
              systems: [ledger, crm]
              read_only: true
    tags: ['template:access_grant', 'twin:complete']
    """
    validate_database(x)
