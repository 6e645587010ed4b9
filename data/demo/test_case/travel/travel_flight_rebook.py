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
    query: This is Quinn Castillo. Can I fly later with ticket T-539? For me, any seat is fine.
    user_context: |
      You are Quinn Castillo.
      new date: 2026-05-03
    init:
      travel:
        data_patch:
          tickets:
          - {ticket_id: T-539, passenger: Quinn Castillo, fare: flexible, date: '2026-04-28', price: 95,
            delayed: false, compensation: 12.5, seat_kept: null}
        golden_test_case:
          tool_interactions:
          - tool: get_ticket
            parameters: {ticket_id: T-539}
          - tool: rebook_ticket
            parameters: {ticket_id: T-539, date: '2026-05-03', keep_seat: false}
    tags: ['template:flight_rebook', 'twin:flexible']
    """
    validate_database(x)


def test_001(x: TestContext):
    """!
    query: I am Elena Tanaka. Please move ticket T-926 to another day, any seat is fine.
    user_context: |
      You are Elena Tanaka.
      new date: 2026-05-07
    init:
      travel:
        data_patch:
          tickets:
          - {ticket_id: T-926, passenger: Elena Tanaka, fare: saver, date: '2026-04-11', price: 90, delayed: true,
            compensation: 30, seat_kept: null}
        golden_test_case:
          tool_interactions:
          - tool: get_ticket
            parameters: {ticket_id: T-926}
          - tool: decline_request
            parameters: {reference: T-926, reason: saver fare}
    tags: ['template:flight_rebook', 'twin:saver']
    """
    validate_database(x)


def test_002(x: TestContext):
    """!
    query: I am Dmitri Hoffman. Please move ticket T-956 to another day, any seat is fine.
    user_context: |
      You are Dmitri Hoffman.
      new date: 2026-07-11
    init:
      travel:
        data_patch:
          tickets:
          - {ticket_id: T-956, passenger: Dmitri Hoffman, fare: flexible, date: '2026-08-07', price: 45,
            delayed: false, compensation: 27.5, seat_kept: null}
        golden_test_case:
          tool_interactions:
          - tool: get_ticket
            parameters: {ticket_id: T-956}
          - tool: rebook_ticket
            parameters: {ticket_id: T-956, date: '2026-07-11', keep_seat: false}
    tags: ['template:flight_rebook', 'twin:flexible']
    """
    validate_database(x)


def test_003(x: TestContext):
    """!
    query: This is Umut Lindqvist. Can I fly later with ticket T-720? For me, I want to keep my seat.
    user_context: |
      You are Umut Lindqvist.
      new date: 2026-04-18
    init:
      travel:
        data_patch:
          tickets:
          - {ticket_id: T-720, passenger: Umut Lindqvist, fare: saver, date: '2026-04-28', price: 20,
            delayed: false, compensation: 22.5, seat_kept: null}
        golden_test_case:
          tool_interactions:
          - tool: get_ticket
            parameters: {ticket_id: T-720}
          - tool: decline_request
            parameters: {reference: T-720, reason: saver fare}
    tags: ['template:flight_rebook', 'twin:saver']
    """
    validate_database(x)


def test_004(x: TestContext):
    """!
    query: Kira Novak here, ticket T-634. I need a later flight, I want to keep my seat.
    user_context: |
      You are Kira Novak.
      new date: 2026-07-03
    init:
      travel:
        data_patch:
          tickets:
          - {ticket_id: T-634, passenger: Kira Novak, fare: flexible, date: '2026-04-11', price: 10, delayed: false,
            compensation: 12.5, seat_kept: null}
        golden_test_case:
          tool_interactions:
          - tool: get_ticket
            parameters: {ticket_id: T-634}
          - tool: rebook_ticket
            parameters: {ticket_id: T-634, date: '2026-07-03', keep_seat: true}
    tags: ['template:flight_rebook', 'twin:flexible']
    """
    validate_database(x)


def test_005(x: TestContext):
    """!
    query: This is Ada Kovacs. Can I fly later with ticket T-354? For me, any seat is fine.
    user_context: |
      You are Ada Kovacs.
      new date: 2026-06-07
    init:
      travel:
        data_patch:
          tickets:
          - {ticket_id: T-354, passenger: Ada Kovacs, fare: saver, date: '2026-07-03', price: 90, delayed: false,
            compensation: 65, seat_kept: null}
        golden_test_case:
          tool_interactions:
          - tool: get_ticket
            parameters: {ticket_id: T-354}
          - tool: decline_request
            parameters: {reference: T-354, reason: saver fare}
    tags: ['template:flight_rebook', 'twin:saver']
    """
    validate_database(x)
