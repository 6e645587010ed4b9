from thinkingbox.common import TestContext

"""!
scenario: neobank
"""


def validate_database(x: TestContext):
    effects = x.effects["neobank"]
    found = ["The final state differs."]
    for d in effects["diff"]:
        place = " ".join(str(part) for part in (d["table"], d["row"], d["field"]) if part is not None)
        found.append(f"{d['kind']} {place}: expected {d['expected']!r}, found {d['actual']!r}")
    assert effects["result_db_hash"] == effects["golden_db_hash"], "\n".join(found)


def test_000(x: TestContext):
    """!
    query: I am Yusuf Iversen. Payments Y-518 and Y-574 are unknown, please dispute them.
    user_context: |
      You are Yusuf Iversen.
      account number: A-361
    init:
      neobank:
        data_patch:
          accounts:
          - {account_id: A-361, owner: Yusuf Iversen, tier: plus, hold: null, balance: 45, fee: 17.5}
          payments:
          - {payment_id: Y-518, account_id: A-361, amount: 22.5}
          - {payment_id: Y-574, account_id: A-361, amount: 80}
        golden_test_case:
          tool_interactions:
          - tool: show_account
            parameters: {account_id: A-361}
          - tool: open_dispute
            parameters:
              payment_ids: [Y-518, Y-574]
              category: unknown
    tags: ['template:payment_dispute', 'twin:no_hold']
    """
    validate_database(x)


def test_001(x: TestContext):
    """!
    query: Stefan Vargas here. I want to dispute Y-320 and Y-475, both are unknown.
    user_context: |
      You are Stefan Vargas.
      account number: A-808
    init:
      neobank:
        data_patch:
          accounts:
          - {account_id: A-808, owner: Stefan Vargas, tier: basic, hold: H-941, balance: 27.5, fee: 60}
          payments:
          - {payment_id: Y-320, account_id: A-808, amount: 32.5}
          - {payment_id: Y-475, account_id: A-808, amount: 90}
        golden_test_case:
          tool_interactions:
          - tool: show_account
            parameters: {account_id: A-808}
          - tool: file_refusal
            parameters: {account_id: A-808, reason: hold}
    tags: ['template:payment_dispute', 'twin:hold']
    """
    validate_database(x)


def test_002(x: TestContext):
    """!
    query: I am Dmitri Hoffman. Payments Y-901 and Y-646 are duplicate, please dispute them.
    user_context: |
      You are Dmitri Hoffman.
      account number: A-120
    init:
      neobank:
        data_patch:
          accounts:
          - {account_id: A-120, owner: Dmitri Hoffman, tier: basic, hold: null, balance: 42.5, fee: 20}
          payments:
          - {payment_id: Y-901, account_id: A-120, amount: 80}
          - {payment_id: Y-646, account_id: A-120, amount: 12.5}
        golden_test_case:
          tool_interactions:
          - tool: show_account
            parameters: {account_id: A-120}
          - tool: open_dispute
            parameters:
              payment_ids: [Y-901, Y-646]
              category: duplicate
    tags: ['template:payment_dispute', 'twin:no_hold']
    """
    validate_database(x)


def test_003(x: TestContext):
    """!
    query: I am Hugo Brandt. Payments Y-235 and Y-538 are overcharged, please dispute them.
    user_context: |
      You are Hugo Brandt.
      account number: A-956
    init:
      neobank:
        data_patch:
          accounts:
          - {account_id: A-956, owner: Hugo Brandt, tier: plus, hold: H-931, balance: 62.5, fee: 60}
          payments:
          - {payment_id: Y-235, account_id: A-956, amount: 80}
          - {payment_id: Y-538, account_id: A-956, amount: 10}
        golden_test_case:
          tool_interactions:
          - tool: show_account
            parameters: {account_id: A-956}
          - tool: file_refusal
            parameters: {account_id: A-956, reason: hold}
    tags: ['template:payment_dispute', 'twin:hold']
    """
    validate_database(x)


def test_004(x: TestContext):
    """!
    query: Elena Okafor here. I want to dispute Y-521 and Y-368, both are overcharged.
    user_context: |
      You are Elena Okafor.
      account number: A-922
    init:
      neobank:
        data_patch:
          accounts:
          - {account_id: A-922, owner: Elena Okafor, tier: plus, hold: null, balance: 20, fee: 90}
          payments:
          - {payment_id: Y-521, account_id: A-922, amount: 10}
          - {payment_id: Y-368, account_id: A-922, amount: 25}
        golden_test_case:
          tool_interactions:
          - tool: show_account
            parameters: {account_id: A-922}
          - tool: open_dispute
            parameters:
              payment_ids: [Y-521, Y-368]
              category: overcharged
    tags: ['template:payment_dispute', 'twin:no_hold']
    """
    validate_database(x)


def test_005(x: TestContext):
    """!
    query: This is Omar Hoffman. Can I get Y-786 and Y-438 back? They are overcharged.
    user_context: |
      You are Omar Hoffman.
      account number: A-495
    init:
      neobank:
        data_patch:
          accounts:
          - {account_id: A-495, owner: Omar Hoffman, tier: basic, hold: H-274, balance: 37.5, fee: 42.5}
          payments:
          - {payment_id: Y-786, account_id: A-495, amount: 70}
          - {payment_id: Y-438, account_id: A-495, amount: 15}
        golden_test_case:
          tool_interactions:
          - tool: show_account
            parameters: {account_id: A-495}
          - tool: file_refusal
            parameters: {account_id: A-495, reason: hold}
    tags: ['template:payment_dispute', 'twin:hold']
    """
    validate_database(x)
