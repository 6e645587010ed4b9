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
    query: I am Ben Rossi, line L-948. I want a credit because the network was down.
    user_context: |
      You are Ben Rossi.
      credit amount: 67.5
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-948, owner: Ben Rossi, role: main, plan: Basic, status: suspended, contract: true,
            outage: true, esim_ready: true, ends: '2026-06-11'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-948}
          - tool: add_credit
            parameters: {line_id: L-948, amount: 67.5, reason: outage}
    tags: ['template:outage_credit', 'twin:outage']
    """
    validate_database(x)


def test_001(x: TestContext):
    """!
    query: Dmitri Castillo here. My line L-235 had no signal, please credit me.
    user_context: |
      You are Dmitri Castillo.
      credit amount: 25
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-235, owner: Dmitri Castillo, role: main, plan: Basic, status: suspended, contract: true,
            outage: false, esim_ready: true, ends: '2026-05-18'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-235}
          - tool: note_decline
            parameters: {line_id: L-235, reason: no outage}
    tags: ['template:outage_credit', 'twin:no_outage']
    """
    validate_database(x)


def test_002(x: TestContext):
    """!
    query: Ben Weber here. My line L-731 had no signal, please credit me.
    user_context: |
      You are Ben Weber.
      credit amount: 65
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-731, owner: Ben Weber, role: main, plan: Basic, status: active, contract: false,
            outage: true, esim_ready: true, ends: null}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-731}
          - tool: add_credit
            parameters: {line_id: L-731, amount: 65, reason: outage}
    tags: ['template:outage_credit', 'twin:outage']
    """
    validate_database(x)


def test_003(x: TestContext):
    """!
    query: Stefan Grant here. My line L-182 had no signal, please credit me.
    user_context: |
      You are Stefan Grant.
      credit amount: 15
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-182, owner: Stefan Grant, role: main, plan: Flex, status: active, contract: false,
            outage: false, esim_ready: true, ends: '2026-09-18'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-182}
          - tool: note_decline
            parameters: {line_id: L-182, reason: no outage}
    tags: ['template:outage_credit', 'twin:no_outage']
    """
    validate_database(x)


def test_004(x: TestContext):
    """!
    query: Ben Hoffman here. My line L-631 had no signal, please credit me.
    user_context: |
      You are Ben Hoffman.
      credit amount: 45
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-631, owner: Ben Hoffman, role: main, plan: Family, status: suspended, contract: false,
            outage: true, esim_ready: false, ends: '2026-08-14'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-631}
          - tool: add_credit
            parameters: {line_id: L-631, amount: 45, reason: outage}
    tags: ['template:outage_credit', 'twin:outage']
    """
    validate_database(x)


def test_005(x: TestContext):
    """!
    query: Mona Duarte here. My line L-813 had no signal, please credit me.
    user_context: |
      You are Mona Duarte.
      credit amount: 65
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-813, owner: Mona Duarte, role: main, plan: Flex, status: active, contract: true,
            outage: false, esim_ready: true, ends: null}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-813}
          - tool: note_decline
            parameters: {line_id: L-813, reason: no outage}
    tags: ['template:outage_credit', 'twin:no_outage']
    """
    validate_database(x)


def test_006(x: TestContext):
    """!
    query: I am Tara Santos, line L-438. I want a credit because the network was down.
    user_context: |
      You are Tara Santos.
      credit amount: 15
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-438, owner: Tara Santos, role: main, plan: Basic, status: suspended, contract: true,
            outage: true, esim_ready: false, ends: '2026-09-14'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-438}
          - tool: add_credit
            parameters: {line_id: L-438, amount: 15, reason: outage}
    tags: ['template:outage_credit', 'twin:outage']
    """
    validate_database(x)


def test_007(x: TestContext):
    """!
    query: This is Ada Kovacs. Please give line L-656 a credit for the outage.
    user_context: |
      You are Ada Kovacs.
      credit amount: 75
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-656, owner: Ada Kovacs, role: main, plan: Family, status: suspended, contract: true,
            outage: false, esim_ready: false, ends: '2026-06-21'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-656}
          - tool: note_decline
            parameters: {line_id: L-656, reason: no outage}
    tags: ['template:outage_credit', 'twin:no_outage']
    """
    validate_database(x)


def test_008(x: TestContext):
    """!
    query: I am Yusuf Rossi, line L-139. I want a credit because the network was down.
    user_context: |
      You are Yusuf Rossi.
      credit amount: 15
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-139, owner: Yusuf Rossi, role: main, plan: Basic, status: active, contract: false,
            outage: true, esim_ready: true, ends: null}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-139}
          - tool: add_credit
            parameters: {line_id: L-139, amount: 15, reason: outage}
    tags: ['template:outage_credit', 'twin:outage']
    """
    validate_database(x)


def test_009(x: TestContext):
    """!
    query: This is Greta Zhang. Please give line L-960 a credit for the outage.
    user_context: |
      You are Greta Zhang.
      credit amount: 60
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-960, owner: Greta Zhang, role: main, plan: Basic, status: active, contract: true,
            outage: false, esim_ready: false, ends: '2026-05-24'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-960}
          - tool: note_decline
            parameters: {line_id: L-960, reason: no outage}
    tags: ['template:outage_credit', 'twin:no_outage']
    """
    validate_database(x)


def test_010(x: TestContext):
    """!
    query: This is Clara Fontaine. Please give line L-461 a credit for the outage.
    user_context: |
      You are Clara Fontaine.
      credit amount: 17.5
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-461, owner: Clara Fontaine, role: main, plan: Basic, status: active, contract: true,
            outage: true, esim_ready: false, ends: null}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-461}
          - tool: add_credit
            parameters: {line_id: L-461, amount: 17.5, reason: outage}
    tags: ['template:outage_credit', 'twin:outage']
    """
    validate_database(x)


def test_011(x: TestContext):
    """!
    query: I am Wade Urbina, line L-943. I want a credit because the network was down.
    user_context: |
      You are Wade Urbina.
      credit amount: 60
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-943, owner: Wade Urbina, role: main, plan: Max, status: suspended, contract: false,
            outage: false, esim_ready: false, ends: null}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-943}
          - tool: note_decline
            parameters: {line_id: L-943, reason: no outage}
    tags: ['template:outage_credit', 'twin:no_outage']
    """
    validate_database(x)


def test_012(x: TestContext):
    """!
    query: Quinn Vargas here. My line L-295 had no signal, please credit me.
    user_context: |
      You are Quinn Vargas.
      credit amount: 62.5
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-295, owner: Quinn Vargas, role: main, plan: Flex, status: suspended, contract: false,
            outage: true, esim_ready: false, ends: '2026-07-24'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-295}
          - tool: add_credit
            parameters: {line_id: L-295, amount: 62.5, reason: outage}
    tags: ['template:outage_credit', 'twin:outage']
    """
    validate_database(x)


def test_013(x: TestContext):
    """!
    query: Wade Brandt here. My line L-853 had no signal, please credit me.
    user_context: |
      You are Wade Brandt.
      credit amount: 85
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-853, owner: Wade Brandt, role: main, plan: Basic, status: active, contract: false,
            outage: false, esim_ready: true, ends: '2026-09-03'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-853}
          - tool: note_decline
            parameters: {line_id: L-853, reason: no outage}
    tags: ['template:outage_credit', 'twin:no_outage']
    """
    validate_database(x)


def test_014(x: TestContext):
    """!
    query: This is Hugo Lindqvist. Please give line L-345 a credit for the outage.
    user_context: |
      You are Hugo Lindqvist.
      credit amount: 10
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-345, owner: Hugo Lindqvist, role: main, plan: Max, status: active, contract: false,
            outage: true, esim_ready: true, ends: '2026-06-24'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-345}
          - tool: add_credit
            parameters: {line_id: L-345, amount: 10, reason: outage}
    tags: ['template:outage_credit', 'twin:outage']
    """
    validate_database(x)


def test_015(x: TestContext):
    """!
    query: This is Kira Weber. Please give line L-428 a credit for the outage.
    user_context: |
      You are Kira Weber.
      credit amount: 47.5
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-428, owner: Kira Weber, role: main, plan: Family, status: suspended, contract: false,
            outage: false, esim_ready: false, ends: '2026-08-28'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-428}
          - tool: note_decline
            parameters: {line_id: L-428, reason: no outage}
    tags: ['template:outage_credit', 'twin:no_outage']
    """
    validate_database(x)
