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
    query: Elena Okafor here. I need another size of the boots in order O-359.
    user_context: |
      You are Elena Okafor.
      new size: medium
    init:
      retail:
        data_patch:
          orders:
          - {order_id: O-359, buyer: Elena Okafor, status: shipped, window: open, sale: true, shipping: 20,
            refund_to: null}
          items:
          - {item_id: I-446, order_id: O-359, product: boots, in_stock: true}
          - {item_id: I-769, order_id: O-359, product: jacket, in_stock: false}
        golden_test_case:
          tool_interactions:
          - tool: list_items
            parameters: {order_id: O-359}
          - tool: exchange_item
            parameters: {item_id: I-446, size: medium}
    tags: ['template:size_exchange', 'twin:in_stock']
    """
    validate_database(x)


def test_001(x: TestContext):
    """!
    query: Umut Urbina here. I need another size of the scarf in order O-245.
    user_context: |
      You are Umut Urbina.
      new size: small
    init:
      retail:
        data_patch:
          orders:
          - {order_id: O-245, buyer: Umut Urbina, status: open, window: closed, sale: true, shipping: 85,
            refund_to: null}
          items:
          - {item_id: I-288, order_id: O-245, product: scarf, in_stock: false}
          - {item_id: I-927, order_id: O-245, product: jacket, in_stock: true}
        golden_test_case:
          tool_interactions:
          - tool: list_items
            parameters: {order_id: O-245}
          - tool: join_waitlist
            parameters: {item_id: I-288, size: small}
    tags: ['template:size_exchange', 'twin:out_of_stock']
    """
    validate_database(x)


def test_002(x: TestContext):
    """!
    query: Farid Castillo here. I need another size of the jacket in order O-787.
    user_context: |
      You are Farid Castillo.
      new size: large
    init:
      retail:
        data_patch:
          orders:
          - {order_id: O-787, buyer: Farid Castillo, status: open, window: closed, sale: false, shipping: 30,
            refund_to: null}
          items:
          - {item_id: I-554, order_id: O-787, product: jacket, in_stock: true}
          - {item_id: I-345, order_id: O-787, product: scarf, in_stock: true}
        golden_test_case:
          tool_interactions:
          - tool: list_items
            parameters: {order_id: O-787}
          - tool: exchange_item
            parameters: {item_id: I-554, size: large}
    tags: ['template:size_exchange', 'twin:in_stock']
    """
    validate_database(x)


def test_003(x: TestContext):
    """!
    query: I am Yusuf Iversen. The jacket of order O-605 does not fit me.
    user_context: |
      You are Yusuf Iversen.
      new size: small
    init:
      retail:
        data_patch:
          orders:
          - {order_id: O-605, buyer: Yusuf Iversen, status: shipped, window: closed, sale: true, shipping: 65,
            refund_to: null}
          items:
          - {item_id: I-714, order_id: O-605, product: jacket, in_stock: false}
          - {item_id: I-971, order_id: O-605, product: shirt, in_stock: true}
        golden_test_case:
          tool_interactions:
          - tool: list_items
            parameters: {order_id: O-605}
          - tool: join_waitlist
            parameters: {item_id: I-714, size: small}
    tags: ['template:size_exchange', 'twin:out_of_stock']
    """
    validate_database(x)


def test_004(x: TestContext):
    """!
    query: Tara Novak here. I need another size of the jacket in order O-289.
    user_context: |
      You are Tara Novak.
      new size: small
    init:
      retail:
        data_patch:
          orders:
          - {order_id: O-289, buyer: Tara Novak, status: open, window: closed, sale: false, shipping: 57.5,
            refund_to: null}
          items:
          - {item_id: I-574, order_id: O-289, product: jacket, in_stock: true}
          - {item_id: I-808, order_id: O-289, product: scarf, in_stock: true}
        golden_test_case:
          tool_interactions:
          - tool: list_items
            parameters: {order_id: O-289}
          - tool: exchange_item
            parameters: {item_id: I-574, size: small}
    tags: ['template:size_exchange', 'twin:in_stock']
    """
    validate_database(x)


def test_005(x: TestContext):
    """!
    query: This is Ines Novak. Can I swap the boots from order O-245, it fits badly?
    user_context: |
      You are Ines Novak.
      new size: small
    init:
      retail:
        data_patch:
          orders:
          - {order_id: O-245, buyer: Ines Novak, status: shipped, window: open, sale: false, shipping: 67.5,
            refund_to: null}
          items:
          - {item_id: I-982, order_id: O-245, product: boots, in_stock: false}
          - {item_id: I-204, order_id: O-245, product: dress, in_stock: true}
        golden_test_case:
          tool_interactions:
          - tool: list_items
            parameters: {order_id: O-245}
          - tool: join_waitlist
            parameters: {item_id: I-982, size: small}
    tags: ['template:size_exchange', 'twin:out_of_stock']
    """
    validate_database(x)
