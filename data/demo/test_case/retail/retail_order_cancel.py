from thinkingbox.common import TestContext

"""!
scenario: retail
"""


def validate_database(x: TestContext):
    effects = x.effects["retail"]
    found = ["The final state differs."]
    for d in effects["diff"]:
        place = " ".join(str(part) for part in (d["table"], d["row"], d["field"]) if part is not None)
        found.append(f"{d['kind']} {place}: expected {d['expected']!r}, found {d['actual']!r}")
    assert effects["result_db_hash"] == effects["golden_db_hash"], "\n".join(found)


def test_000(x: TestContext):
    """!
    query: This is Liam Urbina. Stop my order please, the money goes to my card.
    user_context: |
      You are Liam Urbina.
      order number: O-396
    init:
      retail:
        data_patch:
          orders:
          - {order_id: O-396, buyer: Liam Urbina, status: open, window: closed, sale: false, shipping: 20,
            refund_to: null}
        golden_test_case:
          tool_interactions:
          - tool: get_order
            parameters: {order_id: O-396}
          - tool: cancel_order
            parameters: {order_id: O-396, refund_to: card}
    tags: ['template:order_cancel', 'twin:open']
    """
    validate_database(x)


def test_001(x: TestContext):
    """!
    query: This is Wade Brandt. Stop my order please, the money goes to my card.
    user_context: |
      You are Wade Brandt.
      order number: O-878
    init:
      retail:
        data_patch:
          orders:
          - {order_id: O-878, buyer: Wade Brandt, status: canceled, window: closed, sale: false, shipping: 70,
            refund_to: null}
        golden_test_case:
          tool_interactions:
          - tool: get_order
            parameters: {order_id: O-878}
    tags: ['template:order_cancel', 'twin:canceled']
    """
    validate_database(x)


def test_002(x: TestContext):
    """!
    query: This is Elena Eriksen. Stop my order please, the money goes to my card.
    user_context: |
      You are Elena Eriksen.
      order number: O-414
    init:
      retail:
        data_patch:
          orders:
          - {order_id: O-414, buyer: Elena Eriksen, status: open, window: open, sale: false, shipping: 67.5,
            refund_to: null}
        golden_test_case:
          tool_interactions:
          - tool: get_order
            parameters: {order_id: O-414}
          - tool: cancel_order
            parameters: {order_id: O-414, refund_to: card}
    tags: ['template:order_cancel', 'twin:open']
    """
    validate_database(x)


def test_003(x: TestContext):
    """!
    query: I am Umut Urbina. Please cancel my order and refund my wallet.
    user_context: |
      You are Umut Urbina.
      order number: O-571
    init:
      retail:
        data_patch:
          orders:
          - {order_id: O-571, buyer: Umut Urbina, status: canceled, window: open, sale: false, shipping: 75,
            refund_to: null}
        golden_test_case:
          tool_interactions:
          - tool: get_order
            parameters: {order_id: O-571}
    tags: ['template:order_cancel', 'twin:canceled']
    """
    validate_database(x)


def test_004(x: TestContext):
    """!
    query: I am Wade Urbina. Please cancel my order and refund my card.
    user_context: |
      You are Wade Urbina.
      order number: O-320
    init:
      retail:
        data_patch:
          orders:
          - {order_id: O-320, buyer: Wade Urbina, status: open, window: closed, sale: true, shipping: 47.5,
            refund_to: null}
        golden_test_case:
          tool_interactions:
          - tool: get_order
            parameters: {order_id: O-320}
          - tool: cancel_order
            parameters: {order_id: O-320, refund_to: card}
    tags: ['template:order_cancel', 'twin:open']
    """
    validate_database(x)


def test_005(x: TestContext):
    """!
    query: I am Clara Fontaine. Please cancel my order and refund my card.
    user_context: |
      You are Clara Fontaine.
      order number: O-984
    init:
      retail:
        data_patch:
          orders:
          - {order_id: O-984, buyer: Clara Fontaine, status: canceled, window: closed, sale: true, shipping: 62.5,
            refund_to: null}
        golden_test_case:
          tool_interactions:
          - tool: get_order
            parameters: {order_id: O-984}
    tags: ['template:order_cancel', 'twin:canceled']
    """
    validate_database(x)
