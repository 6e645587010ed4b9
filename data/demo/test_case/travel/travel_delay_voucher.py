from thinkingbox.common import TestContext

"""!
scenario: travel
"""


def validate_database(x: TestContext):
    effects = x.effects["travel"]
    found = ["The final state differs."]
    for d in effects["diff"]:
        place = " ".join(str(part) for part in (d["table"], d["row"], d["field"]) if part is not None)
        found.append(f"{d['kind']} {place}: expected {d['expected']!r}, found {d['actual']!r}")
    assert effects["result_db_hash"] == effects["golden_db_hash"], "\n".join(found)


def test_000(x: TestContext):
    """!
    query: My name is Mona Weber. Please pay me for the long wait at the airport.
    user_context: |
      You are Mona Weber.
      ticket number: T-878
    init:
      travel:
        data_patch:
          tickets:
          - {ticket_id: T-878, passenger: Mona Weber, fare: saver, date: '2026-04-14', price: 67.5, delayed: true,
            compensation: 95, seat_kept: null}
        golden_test_case:
          tool_interactions:
          - tool: get_ticket
            parameters: {ticket_id: T-878}
          - tool: issue_voucher
            parameters: {ticket_id: T-878, amount: 95}
    tags: ['template:delay_voucher', 'twin:delayed']
    """
    validate_database(x)


def test_001(x: TestContext):
    """!
    query: Hi, I am Mona Rossi. My flight was late, please compensate me.
    user_context: |
      You are Mona Rossi.
      ticket number: T-552
    init:
      travel:
        data_patch:
          tickets:
          - {ticket_id: T-552, passenger: Mona Rossi, fare: flexible, date: '2026-09-11', price: 25, delayed: false,
            compensation: 95, seat_kept: null}
        golden_test_case:
          tool_interactions:
          - tool: get_ticket
            parameters: {ticket_id: T-552}
          - tool: decline_request
            parameters: {reference: T-552, reason: no delay}
    tags: ['template:delay_voucher', 'twin:on_time']
    """
    validate_database(x)


def test_002(x: TestContext):
    """!
    query: Wade Urbina here. I waited for hours, can I get a voucher?
    user_context: |
      You are Wade Urbina.
      ticket number: T-329
    init:
      travel:
        data_patch:
          tickets:
          - {ticket_id: T-329, passenger: Wade Urbina, fare: saver, date: '2026-07-11', price: 10, delayed: true,
            compensation: 17.5, seat_kept: null}
        golden_test_case:
          tool_interactions:
          - tool: get_ticket
            parameters: {ticket_id: T-329}
          - tool: issue_voucher
            parameters: {ticket_id: T-329, amount: 17.5}
    tags: ['template:delay_voucher', 'twin:delayed']
    """
    validate_database(x)


def test_003(x: TestContext):
    """!
    query: Greta Zhang here. I waited for hours, can I get a voucher?
    user_context: |
      You are Greta Zhang.
      ticket number: T-186
    init:
      travel:
        data_patch:
          tickets:
          - {ticket_id: T-186, passenger: Greta Zhang, fare: flexible, date: '2026-07-24', price: 10,
            delayed: false, compensation: 40, seat_kept: null}
        golden_test_case:
          tool_interactions:
          - tool: get_ticket
            parameters: {ticket_id: T-186}
          - tool: decline_request
            parameters: {reference: T-186, reason: no delay}
    tags: ['template:delay_voucher', 'twin:on_time']
    """
    validate_database(x)


def test_004(x: TestContext):
    """!
    query: This is Umut Urbina. I landed far too late and want compensation.
    user_context: |
      You are Umut Urbina.
      ticket number: T-265
    init:
      travel:
        data_patch:
          tickets:
          - {ticket_id: T-265, passenger: Umut Urbina, fare: saver, date: '2026-06-24', price: 35, delayed: true,
            compensation: 27.5, seat_kept: null}
        golden_test_case:
          tool_interactions:
          - tool: get_ticket
            parameters: {ticket_id: T-265}
          - tool: issue_voucher
            parameters: {ticket_id: T-265, amount: 27.5}
    tags: ['template:delay_voucher', 'twin:delayed']
    """
    validate_database(x)


def test_005(x: TestContext):
    """!
    query: Hi, I am Hugo Grant. My flight was late, please compensate me.
    user_context: |
      You are Hugo Grant.
      ticket number: T-198
    init:
      travel:
        data_patch:
          tickets:
          - {ticket_id: T-198, passenger: Hugo Grant, fare: flexible, date: '2026-05-03', price: 55, delayed: false,
            compensation: 25, seat_kept: null}
        golden_test_case:
          tool_interactions:
          - tool: get_ticket
            parameters: {ticket_id: T-198}
          - tool: decline_request
            parameters: {reference: T-198, reason: no delay}
    tags: ['template:delay_voucher', 'twin:on_time']
    """
    validate_database(x)
