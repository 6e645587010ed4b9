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
    query: Wade Pereira here. The ultrasound should be on 2026-05-11 instead.
    user_context: |
      You are Wade Pereira.
    init:
      clinic:
        data_patch:
          visits:
          - {visit_id: V-518, name: Wade Pereira, kind: ultrasound, date: '2026-06-21', status: planned}
          - {visit_id: V-554, name: Wade Pereira, kind: vaccination, date: '2026-08-21', status: planned}
        golden_test_case:
          tool_interactions:
          - tool: find_visits
            parameters: {name: Wade Pereira}
          - tool: move_visit
            parameters: {visit_id: V-518, date: '2026-05-11'}
    tags: ['template:move_kind', 'twin:named_first']
    """
    validate_database(x)


def test_001(x: TestContext):
    """!
    query: This is Tara Eriksen. Can my vaccination take place on 2026-06-21?
    user_context: |
      You are Tara Eriksen.
    init:
      clinic:
        data_patch:
          visits:
          - {visit_id: V-700, name: Tara Eriksen, kind: ultrasound, date: '2026-07-21', status: planned}
          - {visit_id: V-773, name: Tara Eriksen, kind: vaccination, date: '2026-07-24', status: planned}
        golden_test_case:
          tool_interactions:
          - tool: find_visits
            parameters: {name: Tara Eriksen}
          - tool: move_visit
            parameters: {visit_id: V-773, date: '2026-06-21'}
    tags: ['template:move_kind', 'twin:named_second']
    """
    validate_database(x)


def test_002(x: TestContext):
    """!
    query: I am Umut Urbina. Please move my vaccination to 2026-08-21.
    user_context: |
      You are Umut Urbina.
    init:
      clinic:
        data_patch:
          visits:
          - {visit_id: V-270, name: Umut Urbina, kind: vaccination, date: '2026-06-11', status: planned}
          - {visit_id: V-368, name: Umut Urbina, kind: ultrasound, date: '2026-08-07', status: planned}
        golden_test_case:
          tool_interactions:
          - tool: find_visits
            parameters: {name: Umut Urbina}
          - tool: move_visit
            parameters: {visit_id: V-270, date: '2026-08-21'}
    tags: ['template:move_kind', 'twin:named_first']
    """
    validate_database(x)


def test_003(x: TestContext):
    """!
    query: Yusuf Duarte here. The vaccination should be on 2026-05-24 instead.
    user_context: |
      You are Yusuf Duarte.
    init:
      clinic:
        data_patch:
          visits:
          - {visit_id: V-345, name: Yusuf Duarte, kind: checkup, date: '2026-07-24', status: planned}
          - {visit_id: V-786, name: Yusuf Duarte, kind: vaccination, date: '2026-08-18', status: planned}
        golden_test_case:
          tool_interactions:
          - tool: find_visits
            parameters: {name: Yusuf Duarte}
          - tool: move_visit
            parameters: {visit_id: V-786, date: '2026-05-24'}
    tags: ['template:move_kind', 'twin:named_second']
    """
    validate_database(x)


def test_004(x: TestContext):
    """!
    query: Umut Urbina here. The checkup should be on 2026-06-11 instead.
    user_context: |
      You are Umut Urbina.
    init:
      clinic:
        data_patch:
          visits:
          - {visit_id: V-250, name: Umut Urbina, kind: checkup, date: '2026-09-03', status: planned}
          - {visit_id: V-329, name: Umut Urbina, kind: vaccination, date: '2026-08-21', status: planned}
        golden_test_case:
          tool_interactions:
          - tool: find_visits
            parameters: {name: Umut Urbina}
          - tool: move_visit
            parameters: {visit_id: V-250, date: '2026-06-11'}
    tags: ['template:move_kind', 'twin:named_first']
    """
    validate_database(x)


def test_005(x: TestContext):
    """!
    query: This is Ada Fontaine. Can my checkup take place on 2026-05-11?
    user_context: |
      You are Ada Fontaine.
    init:
      clinic:
        data_patch:
          visits:
          - {visit_id: V-538, name: Ada Fontaine, kind: vaccination, date: '2026-07-24', status: planned}
          - {visit_id: V-716, name: Ada Fontaine, kind: checkup, date: '2026-06-07', status: planned}
        golden_test_case:
          tool_interactions:
          - tool: find_visits
            parameters: {name: Ada Fontaine}
          - tool: move_visit
            parameters: {visit_id: V-716, date: '2026-05-11'}
    tags: ['template:move_kind', 'twin:named_second']
    """
    validate_database(x)


def test_006(x: TestContext):
    """!
    query: Tara Santos here. The ultrasound should be on 2026-07-11 instead.
    user_context: |
      You are Tara Santos.
    init:
      clinic:
        data_patch:
          visits:
          - {visit_id: V-558, name: Tara Santos, kind: ultrasound, date: '2026-07-21', status: planned}
          - {visit_id: V-723, name: Tara Santos, kind: checkup, date: '2026-05-28', status: planned}
        golden_test_case:
          tool_interactions:
          - tool: find_visits
            parameters: {name: Tara Santos}
          - tool: move_visit
            parameters: {visit_id: V-558, date: '2026-07-11'}
    tags: ['template:move_kind', 'twin:named_first']
    """
    validate_database(x)


def test_007(x: TestContext):
    """!
    query: This is Umut Lindqvist. Can my vaccination take place on 2026-08-07?
    user_context: |
      You are Umut Lindqvist.
    init:
      clinic:
        data_patch:
          visits:
          - {visit_id: V-439, name: Umut Lindqvist, kind: checkup, date: '2026-08-14', status: planned}
          - {visit_id: V-640, name: Umut Lindqvist, kind: vaccination, date: '2026-06-03', status: planned}
        golden_test_case:
          tool_interactions:
          - tool: find_visits
            parameters: {name: Umut Lindqvist}
          - tool: move_visit
            parameters: {visit_id: V-640, date: '2026-08-07'}
    tags: ['template:move_kind', 'twin:named_second']
    """
    validate_database(x)


def test_008(x: TestContext):
    """!
    query: This is Kira Novak. Can my ultrasound take place on 2026-06-07?
    user_context: |
      You are Kira Novak.
    init:
      clinic:
        data_patch:
          visits:
          - {visit_id: V-175, name: Kira Novak, kind: ultrasound, date: '2026-07-07', status: planned}
          - {visit_id: V-444, name: Kira Novak, kind: vaccination, date: '2026-04-03', status: planned}
        golden_test_case:
          tool_interactions:
          - tool: find_visits
            parameters: {name: Kira Novak}
          - tool: move_visit
            parameters: {visit_id: V-175, date: '2026-06-07'}
    tags: ['template:move_kind', 'twin:named_first']
    """
    validate_database(x)


def test_009(x: TestContext):
    """!
    query: I am Wade Brandt. Please move my ultrasound to 2026-04-28.
    user_context: |
      You are Wade Brandt.
    init:
      clinic:
        data_patch:
          visits:
          - {visit_id: V-396, name: Wade Brandt, kind: vaccination, date: '2026-08-11', status: planned}
          - {visit_id: V-521, name: Wade Brandt, kind: ultrasound, date: '2026-09-14', status: planned}
        golden_test_case:
          tool_interactions:
          - tool: find_visits
            parameters: {name: Wade Brandt}
          - tool: move_visit
            parameters: {visit_id: V-521, date: '2026-04-28'}
    tags: ['template:move_kind', 'twin:named_second']
    """
    validate_database(x)


def test_010(x: TestContext):
    """!
    query: Omar Moreau here. The ultrasound should be on 2026-09-18 instead.
    user_context: |
      You are Omar Moreau.
    init:
      clinic:
        data_patch:
          visits:
          - {visit_id: V-640, name: Omar Moreau, kind: ultrasound, date: '2026-06-03', status: planned}
          - {visit_id: V-769, name: Omar Moreau, kind: checkup, date: '2026-09-21', status: planned}
        golden_test_case:
          tool_interactions:
          - tool: find_visits
            parameters: {name: Omar Moreau}
          - tool: move_visit
            parameters: {visit_id: V-640, date: '2026-09-18'}
    tags: ['template:move_kind', 'twin:named_first']
    """
    validate_database(x)


def test_011(x: TestContext):
    """!
    query: Hugo Lindqvist here. The checkup should be on 2026-05-03 instead.
    user_context: |
      You are Hugo Lindqvist.
    init:
      clinic:
        data_patch:
          visits:
          - {visit_id: V-971, name: Hugo Lindqvist, kind: vaccination, date: '2026-08-07', status: planned}
          - {visit_id: V-980, name: Hugo Lindqvist, kind: checkup, date: '2026-07-21', status: planned}
        golden_test_case:
          tool_interactions:
          - tool: find_visits
            parameters: {name: Hugo Lindqvist}
          - tool: move_visit
            parameters: {visit_id: V-980, date: '2026-05-03'}
    tags: ['template:move_kind', 'twin:named_second']
    """
    validate_database(x)


def test_012(x: TestContext):
    """!
    query: I am Yusuf Iversen. Please move my ultrasound to 2026-06-18.
    user_context: |
      You are Yusuf Iversen.
    init:
      clinic:
        data_patch:
          visits:
          - {visit_id: V-367, name: Yusuf Iversen, kind: ultrasound, date: '2026-08-14', status: planned}
          - {visit_id: V-688, name: Yusuf Iversen, kind: vaccination, date: '2026-07-07', status: planned}
        golden_test_case:
          tool_interactions:
          - tool: find_visits
            parameters: {name: Yusuf Iversen}
          - tool: move_visit
            parameters: {visit_id: V-367, date: '2026-06-18'}
    tags: ['template:move_kind', 'twin:named_first']
    """
    validate_database(x)


def test_013(x: TestContext):
    """!
    query: I am Ben Weber. Please move my ultrasound to 2026-05-14.
    user_context: |
      You are Ben Weber.
    init:
      clinic:
        data_patch:
          visits:
          - {visit_id: V-830, name: Ben Weber, kind: vaccination, date: '2026-08-14', status: planned}
          - {visit_id: V-857, name: Ben Weber, kind: ultrasound, date: '2026-04-21', status: planned}
        golden_test_case:
          tool_interactions:
          - tool: find_visits
            parameters: {name: Ben Weber}
          - tool: move_visit
            parameters: {visit_id: V-857, date: '2026-05-14'}
    tags: ['template:move_kind', 'twin:named_second']
    """
    validate_database(x)
