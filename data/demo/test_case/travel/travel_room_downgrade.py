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
    query: Hugo Brandt here. My room costs too much, can I have a single?
    user_context: |
      You are Hugo Brandt.
      reservation number: R-908
    init:
      travel:
        data_patch:
          reservations:
          - {reservation_id: R-908, guest: Hugo Brandt, room: suite, check_in: '2026-09-18', nights: 4,
            approval: needed, package: full}
        golden_test_case:
          tool_interactions:
          - tool: get_reservation
            parameters: {reservation_id: R-908}
          - tool: request_manager_approval
            parameters: {reservation_id: R-908, topic: room downgrade}
          - tool: change_room
            parameters: {reservation_id: R-908, room: single}
    tags: ['template:room_downgrade', 'twin:approval_needed']
    """
    validate_database(x)


def test_001(x: TestContext):
    """!
    query: My name is Kira Duarte and I would like a double room instead.
    user_context: |
      You are Kira Duarte.
      reservation number: R-235
    init:
      travel:
        data_patch:
          reservations:
          - {reservation_id: R-235, guest: Kira Duarte, room: suite, check_in: '2026-04-24', nights: 7,
            approval: waived, package: full}
        golden_test_case:
          tool_interactions:
          - tool: get_reservation
            parameters: {reservation_id: R-235}
          - tool: change_room
            parameters: {reservation_id: R-235, room: double}
    tags: ['template:room_downgrade', 'twin:approval_waived']
    """
    validate_database(x)


def test_002(x: TestContext):
    """!
    query: Hi, I am Quinn Quist. Please move me to a single room.
    user_context: |
      You are Quinn Quist.
      reservation number: R-625
    init:
      travel:
        data_patch:
          reservations:
          - {reservation_id: R-625, guest: Quinn Quist, room: suite, check_in: '2026-09-28', nights: 6,
            approval: needed, package: null}
        golden_test_case:
          tool_interactions:
          - tool: get_reservation
            parameters: {reservation_id: R-625}
          - tool: request_manager_approval
            parameters: {reservation_id: R-625, topic: room downgrade}
          - tool: change_room
            parameters: {reservation_id: R-625, room: single}
    tags: ['template:room_downgrade', 'twin:approval_needed']
    """
    validate_database(x)


def test_003(x: TestContext):
    """!
    query: This is Ines Iversen. I want a cheaper room, a single please.
    user_context: |
      You are Ines Iversen.
      reservation number: R-714
    init:
      travel:
        data_patch:
          reservations:
          - {reservation_id: R-714, guest: Ines Iversen, room: suite, check_in: '2026-06-14', nights: 7,
            approval: waived, package: null}
        golden_test_case:
          tool_interactions:
          - tool: get_reservation
            parameters: {reservation_id: R-714}
          - tool: change_room
            parameters: {reservation_id: R-714, room: single}
    tags: ['template:room_downgrade', 'twin:approval_waived']
    """
    validate_database(x)


def test_004(x: TestContext):
    """!
    query: Hi, I am Stefan Vargas. Please move me to a single room.
    user_context: |
      You are Stefan Vargas.
      reservation number: R-942
    init:
      travel:
        data_patch:
          reservations:
          - {reservation_id: R-942, guest: Stefan Vargas, room: suite, check_in: '2026-08-11', nights: 5,
            approval: needed, package: null}
        golden_test_case:
          tool_interactions:
          - tool: get_reservation
            parameters: {reservation_id: R-942}
          - tool: request_manager_approval
            parameters: {reservation_id: R-942, topic: room downgrade}
          - tool: change_room
            parameters: {reservation_id: R-942, room: single}
    tags: ['template:room_downgrade', 'twin:approval_needed']
    """
    validate_database(x)


def test_005(x: TestContext):
    """!
    query: This is Mona Moreau. I want a cheaper room, a double please.
    user_context: |
      You are Mona Moreau.
      reservation number: R-625
    init:
      travel:
        data_patch:
          reservations:
          - {reservation_id: R-625, guest: Mona Moreau, room: suite, check_in: '2026-04-24', nights: 3,
            approval: waived, package: null}
        golden_test_case:
          tool_interactions:
          - tool: get_reservation
            parameters: {reservation_id: R-625}
          - tool: change_room
            parameters: {reservation_id: R-625, room: double}
    tags: ['template:room_downgrade', 'twin:approval_waived']
    """
    validate_database(x)
