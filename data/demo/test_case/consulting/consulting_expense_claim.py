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
    query: Greta Santos here. I want my hotel expense paid back.
    user_context: |
      You are Greta Santos.
      expense number: X-176
    init:
      consulting:
        data_patch:
          employees:
          - {employee_id: E-191, name: Greta Santos, clearance: partial, project: null, floor: 7}
          expenses:
          - {expense_id: X-176, employee_id: E-191, receipt: true, amount: 32.5, tip: 55}
        golden_test_case:
          tool_interactions:
          - tool: view_expense
            parameters: {expense_id: X-176}
          - tool: reimburse
            parameters: {expense_id: X-176, amount: 32.5}
    tags: ['template:expense_claim', 'twin:receipt']
    """
    validate_database(x)


def test_001(x: TestContext):
    """!
    query: My name is Jonas Pereira. I paid a taxi myself and want it back.
    user_context: |
      You are Jonas Pereira.
      expense number: X-926
    init:
      consulting:
        data_patch:
          employees:
          - {employee_id: E-901, name: Jonas Pereira, clearance: partial, project: J-642, floor: 8}
          expenses:
          - {expense_id: X-926, employee_id: E-901, receipt: false, amount: 75, tip: 65}
        golden_test_case:
          tool_interactions:
          - tool: view_expense
            parameters: {expense_id: X-926}
          - tool: close_ticket
            parameters: {employee_id: E-901, reason: no receipt}
    tags: ['template:expense_claim', 'twin:no_receipt']
    """
    validate_database(x)


def test_002(x: TestContext):
    """!
    query: My name is Clara Fontaine. I paid a taxi myself and want it back.
    user_context: |
      You are Clara Fontaine.
      expense number: X-857
    init:
      consulting:
        data_patch:
          employees:
          - {employee_id: E-186, name: Clara Fontaine, clearance: complete, project: null, floor: 4}
          expenses:
          - {expense_id: X-857, employee_id: E-186, receipt: true, amount: 40, tip: 12.5}
        golden_test_case:
          tool_interactions:
          - tool: view_expense
            parameters: {expense_id: X-857}
          - tool: reimburse
            parameters: {expense_id: X-857, amount: 40}
    tags: ['template:expense_claim', 'twin:receipt']
    """
    validate_database(x)


def test_003(x: TestContext):
    """!
    query: This is Greta Eriksen. When do I get the money for my last trip?
    user_context: |
      You are Greta Eriksen.
      expense number: X-330
    init:
      consulting:
        data_patch:
          employees:
          - {employee_id: E-942, name: Greta Eriksen, clearance: partial, project: J-714, floor: 2}
          expenses:
          - {expense_id: X-330, employee_id: E-942, receipt: false, amount: 27.5, tip: 60}
        golden_test_case:
          tool_interactions:
          - tool: view_expense
            parameters: {expense_id: X-330}
          - tool: close_ticket
            parameters: {employee_id: E-942, reason: no receipt}
    tags: ['template:expense_claim', 'twin:no_receipt']
    """
    validate_database(x)


def test_004(x: TestContext):
    """!
    query: Vera Iversen here. I want my hotel expense paid back.
    user_context: |
      You are Vera Iversen.
      expense number: X-960
    init:
      consulting:
        data_patch:
          employees:
          - {employee_id: E-971, name: Vera Iversen, clearance: partial, project: null, floor: 6}
          expenses:
          - {expense_id: X-960, employee_id: E-971, receipt: true, amount: 70, tip: 30}
        golden_test_case:
          tool_interactions:
          - tool: view_expense
            parameters: {expense_id: X-960}
          - tool: reimburse
            parameters: {expense_id: X-960, amount: 70}
    tags: ['template:expense_claim', 'twin:receipt']
    """
    validate_database(x)


def test_005(x: TestContext):
    """!
    query: My name is Umut Urbina. I paid a taxi myself and want it back.
    user_context: |
      You are Umut Urbina.
      expense number: X-926
    init:
      consulting:
        data_patch:
          employees:
          - {employee_id: E-558, name: Umut Urbina, clearance: complete, project: null, floor: 3}
          expenses:
          - {expense_id: X-926, employee_id: E-558, receipt: false, amount: 67.5, tip: 42.5}
        golden_test_case:
          tool_interactions:
          - tool: view_expense
            parameters: {expense_id: X-926}
          - tool: close_ticket
            parameters: {employee_id: E-558, reason: no receipt}
    tags: ['template:expense_claim', 'twin:no_receipt']
    """
    validate_database(x)
