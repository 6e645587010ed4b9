from thinkingbox.common import TestContext

"""!
scenario: telecom
"""


def validate_database(x: TestContext):
    effects = x.effects["telecom"]
    found = ["The final state differs."]
    for d in effects["diff"]:
        place = " ".join(str(part) for part in (d["table"], d["row"], d["field"]) if part is not None)
        found.append(f"{d['kind']} {place}: expected {d['expected']!r}, found {d['actual']!r}")
    assert effects["result_db_hash"] == effects["golden_db_hash"], "\n".join(found)


def test_000(x: TestContext):
    """!
    query: I am Liam Kovacs. I want to end my line L-408.
    user_context: |
      You are Liam Kovacs.
      end date: 2026-09-18
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-408, owner: Liam Kovacs, role: main, plan: Max, status: suspended, contract: false,
            outage: true, esim_ready: true, ends: null}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-408}
          - tool: end_line
            parameters: {line_id: L-408, date: '2026-09-18'}
    tags: ['template:line_end', 'twin:open']
    """
    validate_database(x)


def test_001(x: TestContext):
    """!
    query: I am Greta Eriksen. I want to end my line L-845.
    user_context: |
      You are Greta Eriksen.
      end date: 2026-05-03
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-845, owner: Greta Eriksen, role: main, plan: Flex, status: active, contract: false,
            outage: true, esim_ready: true, ends: '2026-05-21'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-845}
    tags: ['template:line_end', 'twin:already_set']
    """
    validate_database(x)


def test_002(x: TestContext):
    """!
    query: Dmitri Castillo here. Please cancel line L-129 for me.
    user_context: |
      You are Dmitri Castillo.
      end date: 2026-06-11
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-129, owner: Dmitri Castillo, role: main, plan: Student, status: active, contract: false,
            outage: true, esim_ready: true, ends: null}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-129}
          - tool: end_line
            parameters: {line_id: L-129, date: '2026-06-11'}
    tags: ['template:line_end', 'twin:open']
    """
    validate_database(x)


def test_003(x: TestContext):
    """!
    query: This is Yusuf Iversen. I no longer need line L-205, please end it.
    user_context: |
      You are Yusuf Iversen.
      end date: 2026-09-24
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-205, owner: Yusuf Iversen, role: main, plan: Basic, status: suspended, contract: true,
            outage: true, esim_ready: false, ends: '2026-05-18'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-205}
    tags: ['template:line_end', 'twin:already_set']
    """
    validate_database(x)


def test_004(x: TestContext):
    """!
    query: This is Hugo Brandt. I no longer need line L-792, please end it.
    user_context: |
      You are Hugo Brandt.
      end date: 2026-04-21
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-792, owner: Hugo Brandt, role: main, plan: Student, status: active, contract: true,
            outage: true, esim_ready: true, ends: null}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-792}
          - tool: end_line
            parameters: {line_id: L-792, date: '2026-04-21'}
    tags: ['template:line_end', 'twin:open']
    """
    validate_database(x)


def test_005(x: TestContext):
    """!
    query: This is Yusuf Iversen. I no longer need line L-367, please end it.
    user_context: |
      You are Yusuf Iversen.
      end date: 2026-05-14
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-367, owner: Yusuf Iversen, role: main, plan: Family, status: suspended, contract: false,
            outage: true, esim_ready: false, ends: '2026-07-03'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-367}
    tags: ['template:line_end', 'twin:already_set']
    """
    validate_database(x)


def test_006(x: TestContext):
    """!
    query: I am Tara Zhang. I want to end my line L-714.
    user_context: |
      You are Tara Zhang.
      end date: 2026-06-14
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-714, owner: Tara Zhang, role: main, plan: Flex, status: suspended, contract: false,
            outage: false, esim_ready: false, ends: null}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-714}
          - tool: end_line
            parameters: {line_id: L-714, date: '2026-06-14'}
    tags: ['template:line_end', 'twin:open']
    """
    validate_database(x)


def test_007(x: TestContext):
    """!
    query: This is Omar Hoffman. I no longer need line L-922, please end it.
    user_context: |
      You are Omar Hoffman.
      end date: 2026-08-14
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-922, owner: Omar Hoffman, role: main, plan: Basic, status: active, contract: false,
            outage: false, esim_ready: true, ends: '2026-04-24'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-922}
    tags: ['template:line_end', 'twin:already_set']
    """
    validate_database(x)


def test_008(x: TestContext):
    """!
    query: Clara Fontaine here. Please cancel line L-274 for me.
    user_context: |
      You are Clara Fontaine.
      end date: 2026-05-14
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-274, owner: Clara Fontaine, role: main, plan: Family, status: suspended, contract: false,
            outage: false, esim_ready: false, ends: null}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-274}
          - tool: end_line
            parameters: {line_id: L-274, date: '2026-05-14'}
    tags: ['template:line_end', 'twin:open']
    """
    validate_database(x)


def test_009(x: TestContext):
    """!
    query: This is Jonas Pereira. I no longer need line L-534, please end it.
    user_context: |
      You are Jonas Pereira.
      end date: 2026-04-21
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-534, owner: Jonas Pereira, role: main, plan: Student, status: suspended, contract: false,
            outage: true, esim_ready: false, ends: '2026-08-07'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-534}
    tags: ['template:line_end', 'twin:already_set']
    """
    validate_database(x)


def test_010(x: TestContext):
    """!
    query: I am Ines Santos. I want to end my line L-135.
    user_context: |
      You are Ines Santos.
      end date: 2026-05-11
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-135, owner: Ines Santos, role: main, plan: Basic, status: suspended, contract: false,
            outage: true, esim_ready: true, ends: null}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-135}
          - tool: end_line
            parameters: {line_id: L-135, date: '2026-05-11'}
    tags: ['template:line_end', 'twin:open']
    """
    validate_database(x)


def test_011(x: TestContext):
    """!
    query: This is Vera Iversen. I no longer need line L-133, please end it.
    user_context: |
      You are Vera Iversen.
      end date: 2026-05-18
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-133, owner: Vera Iversen, role: main, plan: Family, status: active, contract: true,
            outage: true, esim_ready: true, ends: '2026-08-14'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-133}
    tags: ['template:line_end', 'twin:already_set']
    """
    validate_database(x)


def test_012(x: TestContext):
    """!
    query: I am Mona Moreau. I want to end my line L-471.
    user_context: |
      You are Mona Moreau.
      end date: 2026-06-24
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-471, owner: Mona Moreau, role: main, plan: Max, status: suspended, contract: false,
            outage: true, esim_ready: true, ends: null}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-471}
          - tool: end_line
            parameters: {line_id: L-471, date: '2026-06-24'}
    tags: ['template:line_end', 'twin:open']
    """
    validate_database(x)


def test_013(x: TestContext):
    """!
    query: Umut Lindqvist here. Please cancel line L-647 for me.
    user_context: |
      You are Umut Lindqvist.
      end date: 2026-09-21
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-647, owner: Umut Lindqvist, role: main, plan: Family, status: suspended, contract: false,
            outage: false, esim_ready: false, ends: '2026-05-21'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-647}
    tags: ['template:line_end', 'twin:already_set']
    """
    validate_database(x)
