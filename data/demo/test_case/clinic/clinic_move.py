from thinkingbox.common import TestContext

"""!
scenario: clinic
"""


def validate_database(x: TestContext):
    effects = x.effects["clinic"]
    found = ["The final state differs."]
    for d in effects["diff"]:
        place = " ".join(str(part) for part in (d["table"], d["row"], d["field"]) if part is not None)
        found.append(f"{d['kind']} {place}: expected {d['expected']!r}, found {d['actual']!r}")
    assert effects["result_db_hash"] == effects["golden_db_hash"], "\n".join(found)


def test_000(x: TestContext):
    """!
    query: This is Omar Rossi. Can I have a different date for my visit?
    user_context: |
      You are Omar Rossi.
      new date: 2026-06-24
    init:
      clinic:
        data_patch:
          visits:
          - {visit_id: V-720, name: Omar Rossi, kind: vaccination, date: '2026-07-21', status: planned}
        golden_test_case:
          tool_interactions:
          - tool: find_visits
            parameters: {name: Omar Rossi}
          - tool: move_visit
            parameters: {visit_id: V-720, date: '2026-06-24'}
    tags: ['template:move', 'twin:planned']
    """
    validate_database(x)


def test_001(x: TestContext):
    """!
    query: This is Omar Castillo. Can I have a different date for my visit?
    user_context: |
      You are Omar Castillo.
      new date: 2026-07-28
    init:
      clinic:
        data_patch:
          visits:
          - {visit_id: V-731, name: Omar Castillo, kind: vaccination, date: '2026-04-28', status: locked}
        golden_test_case:
          tool_interactions:
          - tool: find_visits
            parameters: {name: Omar Castillo}
          - tool: record_refusal
            parameters: {visit_id: V-731, reason: locked}
    tags: ['template:move', 'twin:locked']
    """
    validate_database(x)


def test_002(x: TestContext):
    """!
    query: Farid Castillo here. Please move my visit to another day.
    user_context: |
      You are Farid Castillo.
      new date: 2026-04-03
    init:
      clinic:
        data_patch:
          visits:
          - {visit_id: V-880, name: Farid Castillo, kind: vaccination, date: '2026-09-14', status: planned}
        golden_test_case:
          tool_interactions:
          - tool: find_visits
            parameters: {name: Farid Castillo}
          - tool: move_visit
            parameters: {visit_id: V-880, date: '2026-04-03'}
    tags: ['template:move', 'twin:planned']
    """
    validate_database(x)


def test_003(x: TestContext):
    """!
    query: Kira Novak here. Please move my visit to another day.
    user_context: |
      You are Kira Novak.
      new date: 2026-05-03
    init:
      clinic:
        data_patch:
          visits:
          - {visit_id: V-574, name: Kira Novak, kind: vaccination, date: '2026-08-28', status: locked}
        golden_test_case:
          tool_interactions:
          - tool: find_visits
            parameters: {name: Kira Novak}
          - tool: record_refusal
            parameters: {visit_id: V-574, reason: locked}
    tags: ['template:move', 'twin:locked']
    """
    validate_database(x)


def test_004(x: TestContext):
    """!
    query: Ben Rossi here. Please move my visit to another day.
    user_context: |
      You are Ben Rossi.
      new date: 2026-04-24
    init:
      clinic:
        data_patch:
          visits:
          - {visit_id: V-700, name: Ben Rossi, kind: checkup, date: '2026-07-11', status: planned}
        golden_test_case:
          tool_interactions:
          - tool: find_visits
            parameters: {name: Ben Rossi}
          - tool: move_visit
            parameters: {visit_id: V-700, date: '2026-04-24'}
    tags: ['template:move', 'twin:planned']
    """
    validate_database(x)


def test_005(x: TestContext):
    """!
    query: This is Petra Jansen. Can I have a different date for my visit?
    user_context: |
      You are Petra Jansen.
      new date: 2026-04-24
    init:
      clinic:
        data_patch:
          visits:
          - {visit_id: V-739, name: Petra Jansen, kind: checkup, date: '2026-06-14', status: locked}
        golden_test_case:
          tool_interactions:
          - tool: find_visits
            parameters: {name: Petra Jansen}
          - tool: record_refusal
            parameters: {visit_id: V-739, reason: locked}
    tags: ['template:move', 'twin:locked']
    """
    validate_database(x)


def test_006(x: TestContext):
    """!
    query: Liam Pereira here. Please move my visit to another day.
    user_context: |
      You are Liam Pereira.
      new date: 2026-04-21
    init:
      clinic:
        data_patch:
          visits:
          - {visit_id: V-642, name: Liam Pereira, kind: ultrasound, date: '2026-09-14', status: planned}
        golden_test_case:
          tool_interactions:
          - tool: find_visits
            parameters: {name: Liam Pereira}
          - tool: move_visit
            parameters: {visit_id: V-642, date: '2026-04-21'}
    tags: ['template:move', 'twin:planned']
    """
    validate_database(x)


def test_007(x: TestContext):
    """!
    query: Elena Eriksen here. Please move my visit to another day.
    user_context: |
      You are Elena Eriksen.
      new date: 2026-07-21
    init:
      clinic:
        data_patch:
          visits:
          - {visit_id: V-449, name: Elena Eriksen, kind: vaccination, date: '2026-04-21', status: locked}
        golden_test_case:
          tool_interactions:
          - tool: find_visits
            parameters: {name: Elena Eriksen}
          - tool: record_refusal
            parameters: {visit_id: V-449, reason: locked}
    tags: ['template:move', 'twin:locked']
    """
    validate_database(x)


def test_008(x: TestContext):
    """!
    query: This is Jonas Grant. Can I have a different date for my visit?
    user_context: |
      You are Jonas Grant.
      new date: 2026-06-14
    init:
      clinic:
        data_patch:
          visits:
          - {visit_id: V-354, name: Jonas Grant, kind: vaccination, date: '2026-06-28', status: planned}
        golden_test_case:
          tool_interactions:
          - tool: find_visits
            parameters: {name: Jonas Grant}
          - tool: move_visit
            parameters: {visit_id: V-354, date: '2026-06-14'}
    tags: ['template:move', 'twin:planned']
    """
    validate_database(x)


def test_009(x: TestContext):
    """!
    query: Ben Weber here. Please move my visit to another day.
    user_context: |
      You are Ben Weber.
      new date: 2026-04-28
    init:
      clinic:
        data_patch:
          visits:
          - {visit_id: V-879, name: Ben Weber, kind: ultrasound, date: '2026-07-11', status: locked}
        golden_test_case:
          tool_interactions:
          - tool: find_visits
            parameters: {name: Ben Weber}
          - tool: record_refusal
            parameters: {visit_id: V-879, reason: locked}
    tags: ['template:move', 'twin:locked']
    """
    validate_database(x)


def test_010(x: TestContext):
    """!
    query: Elena Okafor here. Please move my visit to another day.
    user_context: |
      You are Elena Okafor.
      new date: 2026-04-28
    init:
      clinic:
        data_patch:
          visits:
          - {visit_id: V-554, name: Elena Okafor, kind: vaccination, date: '2026-08-14', status: planned}
        golden_test_case:
          tool_interactions:
          - tool: find_visits
            parameters: {name: Elena Okafor}
          - tool: move_visit
            parameters: {visit_id: V-554, date: '2026-04-28'}
    tags: ['template:move', 'twin:planned']
    """
    validate_database(x)


def test_011(x: TestContext):
    """!
    query: This is Liam Urbina. Can I have a different date for my visit?
    user_context: |
      You are Liam Urbina.
      new date: 2026-04-11
    init:
      clinic:
        data_patch:
          visits:
          - {visit_id: V-518, name: Liam Urbina, kind: ultrasound, date: '2026-07-11', status: locked}
        golden_test_case:
          tool_interactions:
          - tool: find_visits
            parameters: {name: Liam Urbina}
          - tool: record_refusal
            parameters: {visit_id: V-518, reason: locked}
    tags: ['template:move', 'twin:locked']
    """
    validate_database(x)


def test_012(x: TestContext):
    """!
    query: I am Petra Abbott. I cannot come to my visit and need another date.
    user_context: |
      You are Petra Abbott.
      new date: 2026-09-14
    init:
      clinic:
        data_patch:
          visits:
          - {visit_id: V-312, name: Petra Abbott, kind: vaccination, date: '2026-04-21', status: planned}
        golden_test_case:
          tool_interactions:
          - tool: find_visits
            parameters: {name: Petra Abbott}
          - tool: move_visit
            parameters: {visit_id: V-312, date: '2026-09-14'}
    tags: ['template:move', 'twin:planned']
    """
    validate_database(x)


def test_013(x: TestContext):
    """!
    query: Farid Castillo here. Please move my visit to another day.
    user_context: |
      You are Farid Castillo.
      new date: 2026-09-03
    init:
      clinic:
        data_patch:
          visits:
          - {visit_id: V-716, name: Farid Castillo, kind: vaccination, date: '2026-05-14', status: locked}
        golden_test_case:
          tool_interactions:
          - tool: find_visits
            parameters: {name: Farid Castillo}
          - tool: record_refusal
            parameters: {visit_id: V-716, reason: locked}
    tags: ['template:move', 'twin:locked']
    """
    validate_database(x)
