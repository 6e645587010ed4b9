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
    query: Vera Santos here. Items I-720 and I-383 are unwanted, please take them back.
    user_context: |
      You are Vera Santos.
      order number: O-375
    init:
      retail:
        data_patch:
          orders:
          - {order_id: O-375, buyer: Vera Santos, status: open, window: open, sale: true, shipping: 80,
            refund_to: null}
          items:
          - {item_id: I-720, order_id: O-375, product: scarf, in_stock: true}
          - {item_id: I-383, order_id: O-375, product: shirt, in_stock: false}
          - {item_id: I-700, order_id: O-375, product: jacket, in_stock: false}
        golden_test_case:
          tool_interactions:
          - tool: get_order
            parameters: {order_id: O-375}
          - tool: return_items
            parameters:
              order_id: O-375
              item_ids: [I-720, I-383]
              reason: unwanted
    tags: ['template:return_window', 'twin:window_open']
    """
    validate_database(x)


def test_001(x: TestContext):
    """!
    query: I am Stefan Lindqvist. I want to return I-383 and I-267, they are unwanted.
    user_context: |
      You are Stefan Lindqvist.
      order number: O-723
    init:
      retail:
        data_patch:
          orders:
          - {order_id: O-723, buyer: Stefan Lindqvist, status: open, window: closed, sale: false, shipping: 60,
            refund_to: null}
          items:
          - {item_id: I-383, order_id: O-723, product: scarf, in_stock: true}
          - {item_id: I-267, order_id: O-723, product: shirt, in_stock: false}
          - {item_id: I-908, order_id: O-723, product: dress, in_stock: true}
        golden_test_case:
          tool_interactions:
          - tool: get_order
            parameters: {order_id: O-723}
          - tool: log_denial
            parameters: {order_id: O-723, reason: window closed}
    tags: ['template:return_window', 'twin:window_closed']
    """
    validate_database(x)


def test_002(x: TestContext):
    """!
    query: I am Jonas Grant. I want to return I-859 and I-403, they are late.
    user_context: |
      You are Jonas Grant.
      order number: O-383
    init:
      retail:
        data_patch:
          orders:
          - {order_id: O-383, buyer: Jonas Grant, status: open, window: open, sale: true, shipping: 70,
            refund_to: null}
          items:
          - {item_id: I-859, order_id: O-383, product: dress, in_stock: false}
          - {item_id: I-403, order_id: O-383, product: jacket, in_stock: true}
          - {item_id: I-808, order_id: O-383, product: scarf, in_stock: false}
        golden_test_case:
          tool_interactions:
          - tool: get_order
            parameters: {order_id: O-383}
          - tool: return_items
            parameters:
              order_id: O-383
              item_ids: [I-859, I-403]
              reason: late
    tags: ['template:return_window', 'twin:window_open']
    """
    validate_database(x)


def test_003(x: TestContext):
    """!
    query: This is Clara Abbott. Can I send I-403 and I-449 back? They are unwanted.
    user_context: |
      You are Clara Abbott.
      order number: O-753
    init:
      retail:
        data_patch:
          orders:
          - {order_id: O-753, buyer: Clara Abbott, status: open, window: closed, sale: false, shipping: 80,
            refund_to: null}
          items:
          - {item_id: I-403, order_id: O-753, product: jacket, in_stock: true}
          - {item_id: I-449, order_id: O-753, product: shirt, in_stock: true}
          - {item_id: I-669, order_id: O-753, product: boots, in_stock: false}
        golden_test_case:
          tool_interactions:
          - tool: get_order
            parameters: {order_id: O-753}
          - tool: log_denial
            parameters: {order_id: O-753, reason: window closed}
    tags: ['template:return_window', 'twin:window_closed']
    """
    validate_database(x)


def test_004(x: TestContext):
    """!
    query: This is Liam Kovacs. Can I send I-428 and I-295 back? They are unwanted.
    user_context: |
      You are Liam Kovacs.
      order number: O-726
    init:
      retail:
        data_patch:
          orders:
          - {order_id: O-726, buyer: Liam Kovacs, status: shipped, window: open, sale: true, shipping: 42.5,
            refund_to: null}
          items:
          - {item_id: I-428, order_id: O-726, product: boots, in_stock: true}
          - {item_id: I-295, order_id: O-726, product: shirt, in_stock: true}
          - {item_id: I-576, order_id: O-726, product: jacket, in_stock: true}
        golden_test_case:
          tool_interactions:
          - tool: get_order
            parameters: {order_id: O-726}
          - tool: return_items
            parameters:
              order_id: O-726
              item_ids: [I-428, I-295]
              reason: unwanted
    tags: ['template:return_window', 'twin:window_open']
    """
    validate_database(x)


def test_005(x: TestContext):
    """!
    query: Wade Pereira here. Items I-375 and I-830 are late, please take them back.
    user_context: |
      You are Wade Pereira.
      order number: O-941
    init:
      retail:
        data_patch:
          orders:
          - {order_id: O-941, buyer: Wade Pereira, status: open, window: closed, sale: false, shipping: 70,
            refund_to: null}
          items:
          - {item_id: I-375, order_id: O-941, product: scarf, in_stock: true}
          - {item_id: I-830, order_id: O-941, product: shirt, in_stock: true}
          - {item_id: I-383, order_id: O-941, product: boots, in_stock: false}
        golden_test_case:
          tool_interactions:
          - tool: get_order
            parameters: {order_id: O-941}
          - tool: log_denial
            parameters: {order_id: O-941, reason: window closed}
    tags: ['template:return_window', 'twin:window_closed']
    """
    validate_database(x)
