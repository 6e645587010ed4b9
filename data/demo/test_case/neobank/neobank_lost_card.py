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
    query: I am Kira Duarte. I lost my card, please send a new one by express.
    user_context: |
      You are Kira Duarte.
      card number: K-254
    init:
      neobank:
        data_patch:
          cards:
          - {card_id: K-254, holder: Kira Duarte, minor: true, status: active, spending_limit: 67.5, spent: 27.5}
        golden_test_case:
          tool_interactions:
          - tool: show_card
            parameters: {card_id: K-254}
          - tool: freeze_card
            parameters: {card_id: K-254}
          - tool: replace_card
            parameters: {card_id: K-254, express: true}
    tags: ['template:lost_card', 'twin:active']
    """
    validate_database(x)


def test_001(x: TestContext):
    """!
    query: Vera Santos here. My card is gone and I need another by normal mail.
    user_context: |
      You are Vera Santos.
      card number: K-175
    init:
      neobank:
        data_patch:
          cards:
          - {card_id: K-175, holder: Vera Santos, minor: true, status: frozen, spending_limit: 95, spent: 75}
        golden_test_case:
          tool_interactions:
          - tool: show_card
            parameters: {card_id: K-175}
          - tool: replace_card
            parameters: {card_id: K-175, express: false}
    tags: ['template:lost_card', 'twin:frozen']
    """
    validate_database(x)


def test_002(x: TestContext):
    """!
    query: This is Ada Abbott. Someone took my card, can I get a new one by normal mail?
    user_context: |
      You are Ada Abbott.
      card number: K-858
    init:
      neobank:
        data_patch:
          cards:
          - {card_id: K-858, holder: Ada Abbott, minor: true, status: active, spending_limit: 35, spent: 80}
        golden_test_case:
          tool_interactions:
          - tool: show_card
            parameters: {card_id: K-858}
          - tool: freeze_card
            parameters: {card_id: K-858}
          - tool: replace_card
            parameters: {card_id: K-858, express: false}
    tags: ['template:lost_card', 'twin:active']
    """
    validate_database(x)


def test_003(x: TestContext):
    """!
    query: Greta Jansen here. My card is gone and I need another by express.
    user_context: |
      You are Greta Jansen.
      card number: K-510
    init:
      neobank:
        data_patch:
          cards:
          - {card_id: K-510, holder: Greta Jansen, minor: true, status: frozen, spending_limit: 65, spent: 67.5}
        golden_test_case:
          tool_interactions:
          - tool: show_card
            parameters: {card_id: K-510}
          - tool: replace_card
            parameters: {card_id: K-510, express: true}
    tags: ['template:lost_card', 'twin:frozen']
    """
    validate_database(x)


def test_004(x: TestContext):
    """!
    query: I am Stefan Grant. I lost my card, please send a new one by express.
    user_context: |
      You are Stefan Grant.
      card number: K-960
    init:
      neobank:
        data_patch:
          cards:
          - {card_id: K-960, holder: Stefan Grant, minor: false, status: active, spending_limit: 42.5,
            spent: 80}
        golden_test_case:
          tool_interactions:
          - tool: show_card
            parameters: {card_id: K-960}
          - tool: freeze_card
            parameters: {card_id: K-960}
          - tool: replace_card
            parameters: {card_id: K-960, express: true}
    tags: ['template:lost_card', 'twin:active']
    """
    validate_database(x)


def test_005(x: TestContext):
    """!
    query: I am Umut Lindqvist. I lost my card, please send a new one by normal mail.
    user_context: |
      You are Umut Lindqvist.
      card number: K-168
    init:
      neobank:
        data_patch:
          cards:
          - {card_id: K-168, holder: Umut Lindqvist, minor: true, status: frozen, spending_limit: 75,
            spent: 55}
        golden_test_case:
          tool_interactions:
          - tool: show_card
            parameters: {card_id: K-168}
          - tool: replace_card
            parameters: {card_id: K-168, express: false}
    tags: ['template:lost_card', 'twin:frozen']
    """
    validate_database(x)
