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
    query: My name is Farid Quist. Visit V-700 must be cancelled since I have to work.
    user_context: |
      You are Farid Quist.
    init:
      clinic:
        data_patch:
          visits:
          - {visit_id: V-700, name: Farid Quist, kind: ultrasound, date: '2026-07-18', status: planned}
        golden_test_case:
          tool_interactions:
          - tool: find_visits
            parameters: {name: Farid Quist}
          - tool: cancel_visit
            parameters: {visit_id: V-700, waive_fee: false}
    tags: ['template:cancel', 'twin:planned']
    """
    validate_database(x)


def test_001(x: TestContext):
    """!
    query: Quinn Hoffman here. I want to cancel visit V-943 because I have to work.
    user_context: |
      You are Quinn Hoffman.
    init:
      clinic:
        data_patch:
          visits:
          - {visit_id: V-943, name: Quinn Hoffman, kind: vaccination, date: '2026-06-28', status: cancelled}
        golden_test_case:
          tool_interactions:
          - tool: find_visits
            parameters: {name: Quinn Hoffman}
    tags: ['template:cancel', 'twin:cancelled']
    """
    validate_database(x)


def test_002(x: TestContext):
    """!
    query: This is Farid Castillo. Please cancel my visit V-297, I have to work.
    user_context: |
      You are Farid Castillo.
    init:
      clinic:
        data_patch:
          visits:
          - {visit_id: V-297, name: Farid Castillo, kind: checkup, date: '2026-05-28', status: planned}
        golden_test_case:
          tool_interactions:
          - tool: find_visits
            parameters: {name: Farid Castillo}
          - tool: cancel_visit
            parameters: {visit_id: V-297, waive_fee: false}
    tags: ['template:cancel', 'twin:planned']
    """
    validate_database(x)


def test_003(x: TestContext):
    """!
    query: This is Liam Fontaine. Please cancel my visit V-345, I am ill.
    user_context: |
      You are Liam Fontaine.
    init:
      clinic:
        data_patch:
          visits:
          - {visit_id: V-345, name: Liam Fontaine, kind: checkup, date: '2026-09-18', status: cancelled}
        golden_test_case:
          tool_interactions:
          - tool: find_visits
            parameters: {name: Liam Fontaine}
    tags: ['template:cancel', 'twin:cancelled']
    """
    validate_database(x)


def test_004(x: TestContext):
    """!
    query: Petra Abbott here. I want to cancel visit V-367 because I am ill.
    user_context: |
      You are Petra Abbott.
    init:
      clinic:
        data_patch:
          visits:
          - {visit_id: V-367, name: Petra Abbott, kind: vaccination, date: '2026-06-28', status: planned}
        golden_test_case:
          tool_interactions:
          - tool: find_visits
            parameters: {name: Petra Abbott}
          - tool: cancel_visit
            parameters: {visit_id: V-367, waive_fee: true}
    tags: ['template:cancel', 'twin:planned']
    """
    validate_database(x)


def test_005(x: TestContext):
    """!
    query: Stefan Vargas here. I want to cancel visit V-859 because I am ill.
    user_context: |
      You are Stefan Vargas.
    init:
      clinic:
        data_patch:
          visits:
          - {visit_id: V-859, name: Stefan Vargas, kind: checkup, date: '2026-09-18', status: cancelled}
        golden_test_case:
          tool_interactions:
          - tool: find_visits
            parameters: {name: Stefan Vargas}
    tags: ['template:cancel', 'twin:cancelled']
    """
    validate_database(x)


def test_006(x: TestContext):
    """!
    query: My name is Ines Santos. Visit V-717 must be cancelled since I am ill.
    user_context: |
      You are Ines Santos.
    init:
      clinic:
        data_patch:
          visits:
          - {visit_id: V-717, name: Ines Santos, kind: vaccination, date: '2026-09-14', status: planned}
        golden_test_case:
          tool_interactions:
          - tool: find_visits
            parameters: {name: Ines Santos}
          - tool: cancel_visit
            parameters: {visit_id: V-717, waive_fee: true}
    tags: ['template:cancel', 'twin:planned']
    """
    validate_database(x)


def test_007(x: TestContext):
    """!
    query: This is Omar Moreau. Please cancel my visit V-511, I have to work.
    user_context: |
      You are Omar Moreau.
    init:
      clinic:
        data_patch:
          visits:
          - {visit_id: V-511, name: Omar Moreau, kind: ultrasound, date: '2026-08-07', status: cancelled}
        golden_test_case:
          tool_interactions:
          - tool: find_visits
            parameters: {name: Omar Moreau}
    tags: ['template:cancel', 'twin:cancelled']
    """
    validate_database(x)


def test_008(x: TestContext):
    """!
    query: This is Greta Zhang. Please cancel my visit V-383, I have to work.
    user_context: |
      You are Greta Zhang.
    init:
      clinic:
        data_patch:
          visits:
          - {visit_id: V-383, name: Greta Zhang, kind: ultrasound, date: '2026-06-21', status: planned}
        golden_test_case:
          tool_interactions:
          - tool: find_visits
            parameters: {name: Greta Zhang}
          - tool: cancel_visit
            parameters: {visit_id: V-383, waive_fee: false}
    tags: ['template:cancel', 'twin:planned']
    """
    validate_database(x)


def test_009(x: TestContext):
    """!
    query: This is Mona Duarte. Please cancel my visit V-906, I have to work.
    user_context: |
      You are Mona Duarte.
    init:
      clinic:
        data_patch:
          visits:
          - {visit_id: V-906, name: Mona Duarte, kind: vaccination, date: '2026-05-07', status: cancelled}
        golden_test_case:
          tool_interactions:
          - tool: find_visits
            parameters: {name: Mona Duarte}
    tags: ['template:cancel', 'twin:cancelled']
    """
    validate_database(x)


def test_010(x: TestContext):
    """!
    query: Hugo Grant here. I want to cancel visit V-742 because I have to work.
    user_context: |
      You are Hugo Grant.
    init:
      clinic:
        data_patch:
          visits:
          - {visit_id: V-742, name: Hugo Grant, kind: checkup, date: '2026-06-24', status: planned}
        golden_test_case:
          tool_interactions:
          - tool: find_visits
            parameters: {name: Hugo Grant}
          - tool: cancel_visit
            parameters: {visit_id: V-742, waive_fee: false}
    tags: ['template:cancel', 'twin:planned']
    """
    validate_database(x)


def test_011(x: TestContext):
    """!
    query: My name is Vera Iversen. Visit V-178 must be cancelled since I have to work.
    user_context: |
      You are Vera Iversen.
    init:
      clinic:
        data_patch:
          visits:
          - {visit_id: V-178, name: Vera Iversen, kind: vaccination, date: '2026-05-24', status: cancelled}
        golden_test_case:
          tool_interactions:
          - tool: find_visits
            parameters: {name: Vera Iversen}
    tags: ['template:cancel', 'twin:cancelled']
    """
    validate_database(x)


def test_012(x: TestContext):
    """!
    query: My name is Jonas Pereira. Visit V-347 must be cancelled since I am ill.
    user_context: |
      You are Jonas Pereira.
    init:
      clinic:
        data_patch:
          visits:
          - {visit_id: V-347, name: Jonas Pereira, kind: vaccination, date: '2026-06-28', status: planned}
        golden_test_case:
          tool_interactions:
          - tool: find_visits
            parameters: {name: Jonas Pereira}
          - tool: cancel_visit
            parameters: {visit_id: V-347, waive_fee: true}
    tags: ['template:cancel', 'twin:planned']
    """
    validate_database(x)


def test_013(x: TestContext):
    """!
    query: This is Elena Okafor. Please cancel my visit V-512, I have to work.
    user_context: |
      You are Elena Okafor.
    init:
      clinic:
        data_patch:
          visits:
          - {visit_id: V-512, name: Elena Okafor, kind: ultrasound, date: '2026-09-07', status: cancelled}
        golden_test_case:
          tool_interactions:
          - tool: find_visits
            parameters: {name: Elena Okafor}
    tags: ['template:cancel', 'twin:cancelled']
    """
    validate_database(x)
