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
    query: This is Tara Novak. For reservation R-265 I also want breakfast and parking.
    user_context: |
      You are Tara Novak.
    init:
      travel:
        data_patch:
          reservations:
          - {reservation_id: R-265, guest: Tara Novak, room: double, check_in: '2026-09-18', nights: 8,
            approval: needed, package: null}
        golden_test_case:
          tool_interactions:
          - tool: get_reservation
            parameters: {reservation_id: R-265}
          - tool: add_extras
            parameters:
              reservation_id: R-265
              extras: [breakfast, parking]
    tags: ['template:stay_extras', 'twin:package_null']
    """
    validate_database(x)


def test_001(x: TestContext):
    """!
    query: I am Rosa Okafor. Please add parking and spa to reservation R-270.
    user_context: |
      You are Rosa Okafor.
    init:
      travel:
        data_patch:
          reservations:
          - {reservation_id: R-270, guest: Rosa Okafor, room: double, check_in: '2026-06-21', nights: 3,
            approval: needed, package: full}
        golden_test_case:
          tool_interactions:
          - tool: get_reservation
            parameters: {reservation_id: R-270}
    tags: ['template:stay_extras', 'twin:package_full']
    """
    validate_database(x)


def test_002(x: TestContext):
    """!
    query: This is Hugo Grant. For reservation R-679 I also want spa and parking.
    user_context: |
      You are Hugo Grant.
    init:
      travel:
        data_patch:
          reservations:
          - {reservation_id: R-679, guest: Hugo Grant, room: suite, check_in: '2026-08-11', nights: 4,
            approval: needed, package: null}
        golden_test_case:
          tool_interactions:
          - tool: get_reservation
            parameters: {reservation_id: R-679}
          - tool: add_extras
            parameters:
              reservation_id: R-679
              extras: [spa, parking]
    tags: ['template:stay_extras', 'twin:package_null']
    """
    validate_database(x)


def test_003(x: TestContext):
    """!
    query: I am Clara Okafor. Please add bikes and breakfast to reservation R-561.
    user_context: |
      You are Clara Okafor.
    init:
      travel:
        data_patch:
          reservations:
          - {reservation_id: R-561, guest: Clara Okafor, room: suite, check_in: '2026-04-14', nights: 8,
            approval: needed, package: full}
        golden_test_case:
          tool_interactions:
          - tool: get_reservation
            parameters: {reservation_id: R-561}
    tags: ['template:stay_extras', 'twin:package_full']
    """
    validate_database(x)


def test_004(x: TestContext):
    """!
    query: Yusuf Weber here. Can you put spa and bikes on reservation R-475?
    user_context: |
      You are Yusuf Weber.
    init:
      travel:
        data_patch:
          reservations:
          - {reservation_id: R-475, guest: Yusuf Weber, room: suite, check_in: '2026-09-21', nights: 6,
            approval: waived, package: null}
        golden_test_case:
          tool_interactions:
          - tool: get_reservation
            parameters: {reservation_id: R-475}
          - tool: add_extras
            parameters:
              reservation_id: R-475
              extras: [spa, bikes]
    tags: ['template:stay_extras', 'twin:package_null']
    """
    validate_database(x)


def test_005(x: TestContext):
    """!
    query: I am Quinn Hoffman. Please add spa and parking to reservation R-989.
    user_context: |
      You are Quinn Hoffman.
    init:
      travel:
        data_patch:
          reservations:
          - {reservation_id: R-989, guest: Quinn Hoffman, room: suite, check_in: '2026-07-28', nights: 2,
            approval: needed, package: full}
        golden_test_case:
          tool_interactions:
          - tool: get_reservation
            parameters: {reservation_id: R-989}
    tags: ['template:stay_extras', 'twin:package_full']
    """
    validate_database(x)
