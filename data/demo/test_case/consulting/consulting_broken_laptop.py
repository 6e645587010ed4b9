from thinkingbox.common import TestContext

"""!
scenario: consulting
"""


def validate_database(x: TestContext):
    effects = x.effects["consulting"]
    found = ["The final state differs."]
    for d in effects["diff"]:
        place = " ".join(str(part) for part in (d["table"], d["row"], d["field"]) if part is not None)
        found.append(f"{d['kind']} {place}: expected {d['expected']!r}, found {d['actual']!r}")
    assert effects["result_db_hash"] == effects["golden_db_hash"], "\n".join(found)


def test_000(x: TestContext):
    """!
    query: This is Clara Fontaine. The screen of laptop D-295 went dark, I need no spare one.
    user_context: |
      You are Clara Fontaine.
    init:
      consulting:
        data_patch:
          devices:
          - {device_id: D-295, model: pro, warranty: true, next_check: '2026-05-03', remote: false}
        golden_test_case:
          tool_interactions:
          - tool: view_device
            parameters: {device_id: D-295}
          - tool: service_device
            parameters: {device_id: D-295, action: repair, loaner: false}
    tags: ['template:broken_laptop', 'twin:warranty']
    """
    validate_database(x)


def test_001(x: TestContext):
    """!
    query: I am Clara Fontaine. My laptop D-640 is broken, I need no spare one.
    user_context: |
      You are Clara Fontaine.
    init:
      consulting:
        data_patch:
          devices:
          - {device_id: D-640, model: slim, warranty: false, next_check: '2026-04-11', remote: false}
        golden_test_case:
          tool_interactions:
          - tool: view_device
            parameters: {device_id: D-640}
          - tool: service_device
            parameters: {device_id: D-640, action: replace, loaner: false}
    tags: ['template:broken_laptop', 'twin:no_warranty']
    """
    validate_database(x)


def test_002(x: TestContext):
    """!
    query: Elena Jansen here. Laptop D-297 does not start any more, I need no spare one.
    user_context: |
      You are Elena Jansen.
    init:
      consulting:
        data_patch:
          devices:
          - {device_id: D-297, model: slim, warranty: true, next_check: '2026-08-28', remote: false}
        golden_test_case:
          tool_interactions:
          - tool: view_device
            parameters: {device_id: D-297}
          - tool: service_device
            parameters: {device_id: D-297, action: repair, loaner: false}
    tags: ['template:broken_laptop', 'twin:warranty']
    """
    validate_database(x)


def test_003(x: TestContext):
    """!
    query: I am Ines Iversen. My laptop D-403 is broken, I need a spare one meanwhile.
    user_context: |
      You are Ines Iversen.
    init:
      consulting:
        data_patch:
          devices:
          - {device_id: D-403, model: slim, warranty: false, next_check: '2026-06-24', remote: true}
        golden_test_case:
          tool_interactions:
          - tool: view_device
            parameters: {device_id: D-403}
          - tool: service_device
            parameters: {device_id: D-403, action: replace, loaner: true}
    tags: ['template:broken_laptop', 'twin:no_warranty']
    """
    validate_database(x)


def test_004(x: TestContext):
    """!
    query: This is Dmitri Vargas. The screen of laptop D-133 went dark, I need a spare one meanwhile.
    user_context: |
      You are Dmitri Vargas.
    init:
      consulting:
        data_patch:
          devices:
          - {device_id: D-133, model: pro, warranty: true, next_check: '2026-08-21', remote: false}
        golden_test_case:
          tool_interactions:
          - tool: view_device
            parameters: {device_id: D-133}
          - tool: service_device
            parameters: {device_id: D-133, action: repair, loaner: true}
    tags: ['template:broken_laptop', 'twin:warranty']
    """
    validate_database(x)


def test_005(x: TestContext):
    """!
    query: I am Petra Abbott. My laptop D-289 is broken, I need a spare one meanwhile.
    user_context: |
      You are Petra Abbott.
    init:
      consulting:
        data_patch:
          devices:
          - {device_id: D-289, model: pro, warranty: false, next_check: '2026-07-24', remote: true}
        golden_test_case:
          tool_interactions:
          - tool: view_device
            parameters: {device_id: D-289}
          - tool: service_device
            parameters: {device_id: D-289, action: replace, loaner: true}
    tags: ['template:broken_laptop', 'twin:no_warranty']
    """
    validate_database(x)
