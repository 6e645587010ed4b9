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
    query: Vera Santos here. I want you to set the limit of my card to 22.5.
    user_context: |
      You are Vera Santos.
      card number: K-922
    init:
      neobank:
        data_patch:
          cards:
          - {card_id: K-922, holder: Vera Santos, minor: true, status: active, spending_limit: 70, spent: 42.5}
        golden_test_case:
          tool_interactions:
          - tool: show_card
            parameters: {card_id: K-922}
          - tool: request_guardian
            parameters: {card_id: K-922, topic: limit}
          - tool: set_limit
            parameters: {card_id: K-922, limit: 22.5}
    tags: ['template:card_limit', 'twin:minor']
    """
    validate_database(x)


def test_001(x: TestContext):
    """!
    query: I am Quinn Hoffman. Please set the limit of my card to 70.
    user_context: |
      You are Quinn Hoffman.
      card number: K-980
    init:
      neobank:
        data_patch:
          cards:
          - {card_id: K-980, holder: Quinn Hoffman, minor: false, status: frozen, spending_limit: 42.5,
            spent: 52.5}
        golden_test_case:
          tool_interactions:
          - tool: show_card
            parameters: {card_id: K-980}
          - tool: set_limit
            parameters: {card_id: K-980, limit: 70}
    tags: ['template:card_limit', 'twin:adult']
    """
    validate_database(x)


def test_002(x: TestContext):
    """!
    query: This is Umut Grant. Can you remove the limit of my card, please?
    user_context: |
      You are Umut Grant.
      card number: K-655
    init:
      neobank:
        data_patch:
          cards:
          - {card_id: K-655, holder: Umut Grant, minor: true, status: frozen, spending_limit: 75, spent: 62.5}
        golden_test_case:
          tool_interactions:
          - tool: show_card
            parameters: {card_id: K-655}
          - tool: request_guardian
            parameters: {card_id: K-655, topic: limit}
          - tool: set_limit
            parameters: {card_id: K-655, limit: null}
    tags: ['template:card_limit', 'twin:minor']
    """
    validate_database(x)


def test_003(x: TestContext):
    """!
    query: Ines Novak here. I want you to remove the limit of my card.
    user_context: |
      You are Ines Novak.
      card number: K-413
    init:
      neobank:
        data_patch:
          cards:
          - {card_id: K-413, holder: Ines Novak, minor: false, status: frozen, spending_limit: 80, spent: 62.5}
        golden_test_case:
          tool_interactions:
          - tool: show_card
            parameters: {card_id: K-413}
          - tool: set_limit
            parameters: {card_id: K-413, limit: null}
    tags: ['template:card_limit', 'twin:adult']
    """
    validate_database(x)


def test_004(x: TestContext):
    """!
    query: Mona Duarte here. I want you to set the limit of my card to 27.5.
    user_context: |
      You are Mona Duarte.
      card number: K-408
    init:
      neobank:
        data_patch:
          cards:
          - {card_id: K-408, holder: Mona Duarte, minor: true, status: frozen, spending_limit: 67.5, spent: 10}
        golden_test_case:
          tool_interactions:
          - tool: show_card
            parameters: {card_id: K-408}
          - tool: request_guardian
            parameters: {card_id: K-408, topic: limit}
          - tool: set_limit
            parameters: {card_id: K-408, limit: 27.5}
    tags: ['template:card_limit', 'twin:minor']
    """
    validate_database(x)


def test_005(x: TestContext):
    """!
    query: I am Mona Weber. Please set the limit of my card to 32.5.
    user_context: |
      You are Mona Weber.
      card number: K-235
    init:
      neobank:
        data_patch:
          cards:
          - {card_id: K-235, holder: Mona Weber, minor: false, status: frozen, spending_limit: 52.5, spent: 95}
        golden_test_case:
          tool_interactions:
          - tool: show_card
            parameters: {card_id: K-235}
          - tool: set_limit
            parameters: {card_id: K-235, limit: 32.5}
    tags: ['template:card_limit', 'twin:adult']
    """
    validate_database(x)
