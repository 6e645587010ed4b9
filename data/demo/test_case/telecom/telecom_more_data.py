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
    query: I am Farid Lindqvist. Please add 4 GB to my line L-633.
    user_context: |
      You are Farid Lindqvist.
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-633, owner: Farid Lindqvist, role: main, plan: Family, status: active, contract: true,
            outage: true, esim_ready: true, ends: null}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-633}
          - tool: add_data
            parameters: {line_id: L-633, gigabytes: 4}
    tags: ['template:more_data', 'twin:active']
    """
    validate_database(x)


def test_001(x: TestContext):
    """!
    query: Nadia Tanaka here, line L-655. I need 8 GB more.
    user_context: |
      You are Nadia Tanaka.
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-655, owner: Nadia Tanaka, role: main, plan: Flex, status: suspended, contract: false,
            outage: true, esim_ready: false, ends: null}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-655}
          - tool: note_decline
            parameters: {line_id: L-655, reason: suspended}
    tags: ['template:more_data', 'twin:suspended']
    """
    validate_database(x)


def test_002(x: TestContext):
    """!
    query: Dmitri Hoffman here, line L-175. I need 6 GB more.
    user_context: |
      You are Dmitri Hoffman.
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-175, owner: Dmitri Hoffman, role: main, plan: Student, status: active, contract: false,
            outage: false, esim_ready: true, ends: '2026-04-03'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-175}
          - tool: add_data
            parameters: {line_id: L-175, gigabytes: 6}
    tags: ['template:more_data', 'twin:active']
    """
    validate_database(x)


def test_003(x: TestContext):
    """!
    query: Stefan Quist here, line L-449. I need 4 GB more.
    user_context: |
      You are Stefan Quist.
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-449, owner: Stefan Quist, role: main, plan: Max, status: suspended, contract: true,
            outage: true, esim_ready: true, ends: '2026-09-03'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-449}
          - tool: note_decline
            parameters: {line_id: L-449, reason: suspended}
    tags: ['template:more_data', 'twin:suspended']
    """
    validate_database(x)


def test_004(x: TestContext):
    """!
    query: Yusuf Iversen here, line L-534. I need 3 GB more.
    user_context: |
      You are Yusuf Iversen.
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-534, owner: Yusuf Iversen, role: main, plan: Family, status: active, contract: true,
            outage: true, esim_ready: false, ends: null}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-534}
          - tool: add_data
            parameters: {line_id: L-534, gigabytes: 3}
    tags: ['template:more_data', 'twin:active']
    """
    validate_database(x)


def test_005(x: TestContext):
    """!
    query: I am Greta Eriksen. Please add 7 GB to my line L-208.
    user_context: |
      You are Greta Eriksen.
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-208, owner: Greta Eriksen, role: main, plan: Student, status: suspended, contract: false,
            outage: true, esim_ready: true, ends: '2026-07-21'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-208}
          - tool: note_decline
            parameters: {line_id: L-208, reason: suspended}
    tags: ['template:more_data', 'twin:suspended']
    """
    validate_database(x)


def test_006(x: TestContext):
    """!
    query: Liam Urbina here, line L-150. I need 3 GB more.
    user_context: |
      You are Liam Urbina.
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-150, owner: Liam Urbina, role: main, plan: Family, status: active, contract: true,
            outage: true, esim_ready: true, ends: null}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-150}
          - tool: add_data
            parameters: {line_id: L-150, gigabytes: 3}
    tags: ['template:more_data', 'twin:active']
    """
    validate_database(x)


def test_007(x: TestContext):
    """!
    query: Quinn Castillo here, line L-539. I need 5 GB more.
    user_context: |
      You are Quinn Castillo.
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-539, owner: Quinn Castillo, role: main, plan: Family, status: suspended, contract: true,
            outage: false, esim_ready: false, ends: '2026-04-07'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-539}
          - tool: note_decline
            parameters: {line_id: L-539, reason: suspended}
    tags: ['template:more_data', 'twin:suspended']
    """
    validate_database(x)


def test_008(x: TestContext):
    """!
    query: This is Greta Jansen. Can line L-953 get 5 GB of extra data?
    user_context: |
      You are Greta Jansen.
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-953, owner: Greta Jansen, role: main, plan: Student, status: active, contract: true,
            outage: true, esim_ready: false, ends: '2026-04-03'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-953}
          - tool: add_data
            parameters: {line_id: L-953, gigabytes: 5}
    tags: ['template:more_data', 'twin:active']
    """
    validate_database(x)


def test_009(x: TestContext):
    """!
    query: This is Quinn Quist. Can line L-161 get 6 GB of extra data?
    user_context: |
      You are Quinn Quist.
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-161, owner: Quinn Quist, role: main, plan: Flex, status: suspended, contract: false,
            outage: false, esim_ready: true, ends: '2026-07-24'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-161}
          - tool: note_decline
            parameters: {line_id: L-161, reason: suspended}
    tags: ['template:more_data', 'twin:suspended']
    """
    validate_database(x)


def test_010(x: TestContext):
    """!
    query: This is Farid Quist. Can line L-633 get 9 GB of extra data?
    user_context: |
      You are Farid Quist.
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-633, owner: Farid Quist, role: main, plan: Basic, status: active, contract: false,
            outage: true, esim_ready: false, ends: null}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-633}
          - tool: add_data
            parameters: {line_id: L-633, gigabytes: 9}
    tags: ['template:more_data', 'twin:active']
    """
    validate_database(x)


def test_011(x: TestContext):
    """!
    query: Clara Okafor here, line L-720. I need 8 GB more.
    user_context: |
      You are Clara Okafor.
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-720, owner: Clara Okafor, role: main, plan: Max, status: suspended, contract: false,
            outage: false, esim_ready: false, ends: '2026-09-07'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-720}
          - tool: note_decline
            parameters: {line_id: L-720, reason: suspended}
    tags: ['template:more_data', 'twin:suspended']
    """
    validate_database(x)


def test_012(x: TestContext):
    """!
    query: Liam Pereira here, line L-830. I need 2 GB more.
    user_context: |
      You are Liam Pereira.
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-830, owner: Liam Pereira, role: main, plan: Basic, status: active, contract: true,
            outage: false, esim_ready: false, ends: '2026-07-28'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-830}
          - tool: add_data
            parameters: {line_id: L-830, gigabytes: 2}
    tags: ['template:more_data', 'twin:active']
    """
    validate_database(x)


def test_013(x: TestContext):
    """!
    query: I am Clara Fontaine. Please add 6 GB to my line L-471.
    user_context: |
      You are Clara Fontaine.
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-471, owner: Clara Fontaine, role: main, plan: Family, status: suspended, contract: false,
            outage: true, esim_ready: true, ends: null}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-471}
          - tool: note_decline
            parameters: {line_id: L-471, reason: suspended}
    tags: ['template:more_data', 'twin:suspended']
    """
    validate_database(x)
