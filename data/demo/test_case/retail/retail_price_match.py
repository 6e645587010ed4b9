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
    query: I am Liam Urbina. Order O-877 is cheaper elsewhere, please refund 90.
    user_context: |
      You are Liam Urbina.
    init:
      retail:
        data_patch:
          orders:
          - {order_id: O-877, buyer: Liam Urbina, status: shipped, window: closed, sale: true, shipping: 57.5,
            refund_to: null}
        golden_test_case:
          tool_interactions:
          - tool: get_order
            parameters: {order_id: O-877}
          - tool: ask_supervisor
            parameters: {order_id: O-877, topic: price}
          - tool: refund_price
            parameters: {order_id: O-877, amount: 90}
    tags: ['template:price_match', 'twin:on_sale']
    """
    validate_database(x)


def test_001(x: TestContext):
    """!
    query: Petra Jansen here. I found order O-769 for less and want 62.5 back.
    user_context: |
      You are Petra Jansen.
    init:
      retail:
        data_patch:
          orders:
          - {order_id: O-769, buyer: Petra Jansen, status: shipped, window: closed, sale: false, shipping: 30,
            refund_to: null}
        golden_test_case:
          tool_interactions:
          - tool: get_order
            parameters: {order_id: O-769}
          - tool: refund_price
            parameters: {order_id: O-769, amount: 62.5}
    tags: ['template:price_match', 'twin:full_price']
    """
    validate_database(x)


def test_002(x: TestContext):
    """!
    query: Omar Rossi here. I found order O-403 for less and want 95 back.
    user_context: |
      You are Omar Rossi.
    init:
      retail:
        data_patch:
          orders:
          - {order_id: O-403, buyer: Omar Rossi, status: open, window: closed, sale: true, shipping: 37.5,
            refund_to: null}
        golden_test_case:
          tool_interactions:
          - tool: get_order
            parameters: {order_id: O-403}
          - tool: ask_supervisor
            parameters: {order_id: O-403, topic: price}
          - tool: refund_price
            parameters: {order_id: O-403, amount: 95}
    tags: ['template:price_match', 'twin:on_sale']
    """
    validate_database(x)


def test_003(x: TestContext):
    """!
    query: This is Hugo Quist. Please match the price of order O-274 and pay me 80.
    user_context: |
      You are Hugo Quist.
    init:
      retail:
        data_patch:
          orders:
          - {order_id: O-274, buyer: Hugo Quist, status: open, window: closed, sale: false, shipping: 22.5,
            refund_to: null}
        golden_test_case:
          tool_interactions:
          - tool: get_order
            parameters: {order_id: O-274}
          - tool: refund_price
            parameters: {order_id: O-274, amount: 80}
    tags: ['template:price_match', 'twin:full_price']
    """
    validate_database(x)


def test_004(x: TestContext):
    """!
    query: Vera Santos here. I found order O-282 for less and want 30 back.
    user_context: |
      You are Vera Santos.
    init:
      retail:
        data_patch:
          orders:
          - {order_id: O-282, buyer: Vera Santos, status: open, window: closed, sale: true, shipping: 27.5,
            refund_to: null}
        golden_test_case:
          tool_interactions:
          - tool: get_order
            parameters: {order_id: O-282}
          - tool: ask_supervisor
            parameters: {order_id: O-282, topic: price}
          - tool: refund_price
            parameters: {order_id: O-282, amount: 30}
    tags: ['template:price_match', 'twin:on_sale']
    """
    validate_database(x)


def test_005(x: TestContext):
    """!
    query: This is Tara Zhang. Please match the price of order O-625 and pay me 27.5.
    user_context: |
      You are Tara Zhang.
    init:
      retail:
        data_patch:
          orders:
          - {order_id: O-625, buyer: Tara Zhang, status: open, window: open, sale: false, shipping: 65,
            refund_to: null}
        golden_test_case:
          tool_interactions:
          - tool: get_order
            parameters: {order_id: O-625}
          - tool: refund_price
            parameters: {order_id: O-625, amount: 27.5}
    tags: ['template:price_match', 'twin:full_price']
    """
    validate_database(x)
