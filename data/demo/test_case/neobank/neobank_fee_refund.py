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
    query: Mona Moreau here. Why is there a fee on account A-820? I want it back.
    user_context: |
      You are Mona Moreau.
    init:
      neobank:
        data_patch:
          accounts:
          - {account_id: A-820, owner: Mona Moreau, tier: plus, hold: H-521, balance: 35, fee: 85}
        golden_test_case:
          tool_interactions:
          - tool: show_account
            parameters: {account_id: A-820}
          - tool: refund_fee
            parameters: {account_id: A-820, amount: 85}
    tags: ['template:fee_refund', 'twin:plus']
    """
    validate_database(x)


def test_001(x: TestContext):
    """!
    query: This is Liam Urbina. I should not pay a fee for account A-554, please refund it.
    user_context: |
      You are Liam Urbina.
    init:
      neobank:
        data_patch:
          accounts:
          - {account_id: A-554, owner: Liam Urbina, tier: basic, hold: H-292, balance: 40, fee: 17.5}
        golden_test_case:
          tool_interactions:
          - tool: show_account
            parameters: {account_id: A-554}
          - tool: file_refusal
            parameters: {account_id: A-554, reason: basic tier}
    tags: ['template:fee_refund', 'twin:basic']
    """
    validate_database(x)


def test_002(x: TestContext):
    """!
    query: This is Kira Iversen. I should not pay a fee for account A-714, please refund it.
    user_context: |
      You are Kira Iversen.
    init:
      neobank:
        data_patch:
          accounts:
          - {account_id: A-714, owner: Kira Iversen, tier: plus, hold: null, balance: 10, fee: 17.5}
        golden_test_case:
          tool_interactions:
          - tool: show_account
            parameters: {account_id: A-714}
          - tool: refund_fee
            parameters: {account_id: A-714, amount: 17.5}
    tags: ['template:fee_refund', 'twin:plus']
    """
    validate_database(x)


def test_003(x: TestContext):
    """!
    query: This is Quinn Castillo. I should not pay a fee for account A-631, please refund it.
    user_context: |
      You are Quinn Castillo.
    init:
      neobank:
        data_patch:
          accounts:
          - {account_id: A-631, owner: Quinn Castillo, tier: basic, hold: H-933, balance: 95, fee: 35}
        golden_test_case:
          tool_interactions:
          - tool: show_account
            parameters: {account_id: A-631}
          - tool: file_refusal
            parameters: {account_id: A-631, reason: basic tier}
    tags: ['template:fee_refund', 'twin:basic']
    """
    validate_database(x)


def test_004(x: TestContext):
    """!
    query: This is Ines Santos. I should not pay a fee for account A-633, please refund it.
    user_context: |
      You are Ines Santos.
    init:
      neobank:
        data_patch:
          accounts:
          - {account_id: A-633, owner: Ines Santos, tier: plus, hold: H-471, balance: 20, fee: 37.5}
        golden_test_case:
          tool_interactions:
          - tool: show_account
            parameters: {account_id: A-633}
          - tool: refund_fee
            parameters: {account_id: A-633, amount: 37.5}
    tags: ['template:fee_refund', 'twin:plus']
    """
    validate_database(x)


def test_005(x: TestContext):
    """!
    query: I am Ada Abbott. Please pay back the fee on account A-392.
    user_context: |
      You are Ada Abbott.
    init:
      neobank:
        data_patch:
          accounts:
          - {account_id: A-392, owner: Ada Abbott, tier: basic, hold: H-365, balance: 15, fee: 52.5}
        golden_test_case:
          tool_interactions:
          - tool: show_account
            parameters: {account_id: A-392}
          - tool: file_refusal
            parameters: {account_id: A-392, reason: basic tier}
    tags: ['template:fee_refund', 'twin:basic']
    """
    validate_database(x)
