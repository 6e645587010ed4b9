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
    query: Omar Castillo here. Please book 3 days of leave for me.
    user_context: |
      You are Omar Castillo.
      start date: 2026-04-07
    init:
      consulting:
        data_patch:
          employees:
          - {employee_id: E-941, name: Omar Castillo, clearance: complete, project: null, floor: 8}
        golden_test_case:
          tool_interactions:
          - tool: find_employee
            parameters: {name: Omar Castillo}
          - tool: book_leave
            parameters: {employee_id: E-941, start: '2026-04-07', days: 3}
    tags: ['template:leave_request', 'twin:no_project']
    """
    validate_database(x)


def test_001(x: TestContext):
    """!
    query: This is Yusuf Weber. Can I have 2 days of holiday?
    user_context: |
      You are Yusuf Weber.
      start date: 2026-04-21
    init:
      consulting:
        data_patch:
          employees:
          - {employee_id: E-403, name: Yusuf Weber, clearance: complete, project: J-292, floor: 6}
        golden_test_case:
          tool_interactions:
          - tool: find_employee
            parameters: {name: Yusuf Weber}
          - tool: close_ticket
            parameters: {employee_id: E-403, reason: project}
    tags: ['template:leave_request', 'twin:project']
    """
    validate_database(x)


def test_002(x: TestContext):
    """!
    query: I am Jonas Brandt. I would like to take 3 days off.
    user_context: |
      You are Jonas Brandt.
      start date: 2026-08-03
    init:
      consulting:
        data_patch:
          employees:
          - {employee_id: E-738, name: Jonas Brandt, clearance: partial, project: null, floor: 7}
        golden_test_case:
          tool_interactions:
          - tool: find_employee
            parameters: {name: Jonas Brandt}
          - tool: book_leave
            parameters: {employee_id: E-738, start: '2026-08-03', days: 3}
    tags: ['template:leave_request', 'twin:no_project']
    """
    validate_database(x)


def test_003(x: TestContext):
    """!
    query: This is Clara Abbott. Can I have 8 days of holiday?
    user_context: |
      You are Clara Abbott.
      start date: 2026-05-21
    init:
      consulting:
        data_patch:
          employees:
          - {employee_id: E-383, name: Clara Abbott, clearance: partial, project: J-329, floor: 3}
        golden_test_case:
          tool_interactions:
          - tool: find_employee
            parameters: {name: Clara Abbott}
          - tool: close_ticket
            parameters: {employee_id: E-383, reason: project}
    tags: ['template:leave_request', 'twin:project']
    """
    validate_database(x)


def test_004(x: TestContext):
    """!
    query: Kira Duarte here. Please book 7 days of leave for me.
    user_context: |
      You are Kira Duarte.
      start date: 2026-06-14
    init:
      consulting:
        data_patch:
          employees:
          - {employee_id: E-646, name: Kira Duarte, clearance: partial, project: null, floor: 5}
        golden_test_case:
          tool_interactions:
          - tool: find_employee
            parameters: {name: Kira Duarte}
          - tool: book_leave
            parameters: {employee_id: E-646, start: '2026-06-14', days: 7}
    tags: ['template:leave_request', 'twin:no_project']
    """
    validate_database(x)


def test_005(x: TestContext):
    """!
    query: Clara Tanaka here. Please book 3 days of leave for me.
    user_context: |
      You are Clara Tanaka.
      start date: 2026-08-24
    init:
      consulting:
        data_patch:
          employees:
          - {employee_id: E-178, name: Clara Tanaka, clearance: complete, project: J-414, floor: 2}
        golden_test_case:
          tool_interactions:
          - tool: find_employee
            parameters: {name: Clara Tanaka}
          - tool: close_ticket
            parameters: {employee_id: E-178, reason: project}
    tags: ['template:leave_request', 'twin:project']
    """
    validate_database(x)
