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
    query: I am Tara Novak. My SIM is broken, please send a new one.
    user_context: |
      You are Tara Novak.
      line number: L-265
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-265, owner: Tara Novak, role: main, plan: Max, status: active, contract: false,
            outage: false, esim_ready: true, ends: '2026-06-24'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-265}
          - tool: send_sim
            parameters: {line_id: L-265, kind: esim, block_old: false}
    tags: ['template:new_sim', 'twin:esim_ready']
    """
    validate_database(x)


def test_001(x: TestContext):
    """!
    query: This is Nadia Kovacs. The SIM of my phone is broken. Can I get another?
    user_context: |
      You are Nadia Kovacs.
      line number: L-471
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-471, owner: Nadia Kovacs, role: main, plan: Family, status: active, contract: true,
            outage: true, esim_ready: false, ends: '2026-07-14'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-471}
          - tool: send_sim
            parameters: {line_id: L-471, kind: plastic, block_old: false}
    tags: ['template:new_sim', 'twin:not_ready']
    """
    validate_database(x)


def test_002(x: TestContext):
    """!
    query: Greta Eriksen here. I need a new SIM, the old one is broken.
    user_context: |
      You are Greta Eriksen.
      line number: L-714
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-714, owner: Greta Eriksen, role: main, plan: Flex, status: suspended, contract: false,
            outage: true, esim_ready: true, ends: '2026-07-11'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-714}
          - tool: send_sim
            parameters: {line_id: L-714, kind: esim, block_old: false}
    tags: ['template:new_sim', 'twin:esim_ready']
    """
    validate_database(x)


def test_003(x: TestContext):
    """!
    query: This is Kira Iversen. The SIM of my phone is broken. Can I get another?
    user_context: |
      You are Kira Iversen.
      line number: L-148
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-148, owner: Kira Iversen, role: main, plan: Flex, status: active, contract: false,
            outage: true, esim_ready: false, ends: null}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-148}
          - tool: send_sim
            parameters: {line_id: L-148, kind: plastic, block_old: false}
    tags: ['template:new_sim', 'twin:not_ready']
    """
    validate_database(x)


def test_004(x: TestContext):
    """!
    query: Petra Abbott here. I need a new SIM, the old one was lost.
    user_context: |
      You are Petra Abbott.
      line number: L-787
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-787, owner: Petra Abbott, role: main, plan: Max, status: suspended, contract: true,
            outage: false, esim_ready: true, ends: null}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-787}
          - tool: send_sim
            parameters: {line_id: L-787, kind: esim, block_old: true}
    tags: ['template:new_sim', 'twin:esim_ready']
    """
    validate_database(x)


def test_005(x: TestContext):
    """!
    query: Tara Zhang here. I need a new SIM, the old one was lost.
    user_context: |
      You are Tara Zhang.
      line number: L-859
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-859, owner: Tara Zhang, role: main, plan: Basic, status: suspended, contract: true,
            outage: false, esim_ready: false, ends: '2026-08-18'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-859}
          - tool: send_sim
            parameters: {line_id: L-859, kind: plastic, block_old: true}
    tags: ['template:new_sim', 'twin:not_ready']
    """
    validate_database(x)


def test_006(x: TestContext):
    """!
    query: I am Vera Novak. My SIM was lost, please send a new one.
    user_context: |
      You are Vera Novak.
      line number: L-329
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-329, owner: Vera Novak, role: main, plan: Basic, status: suspended, contract: true,
            outage: false, esim_ready: true, ends: '2026-08-14'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-329}
          - tool: send_sim
            parameters: {line_id: L-329, kind: esim, block_old: true}
    tags: ['template:new_sim', 'twin:esim_ready']
    """
    validate_database(x)


def test_007(x: TestContext):
    """!
    query: This is Farid Castillo. The SIM of my phone is broken. Can I get another?
    user_context: |
      You are Farid Castillo.
      line number: L-473
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-473, owner: Farid Castillo, role: main, plan: Max, status: suspended, contract: false,
            outage: true, esim_ready: false, ends: null}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-473}
          - tool: send_sim
            parameters: {line_id: L-473, kind: plastic, block_old: false}
    tags: ['template:new_sim', 'twin:not_ready']
    """
    validate_database(x)


def test_008(x: TestContext):
    """!
    query: This is Greta Jansen. The SIM of my phone was lost. Can I get another?
    user_context: |
      You are Greta Jansen.
      line number: L-789
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-789, owner: Greta Jansen, role: main, plan: Basic, status: active, contract: false,
            outage: false, esim_ready: true, ends: null}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-789}
          - tool: send_sim
            parameters: {line_id: L-789, kind: esim, block_old: true}
    tags: ['template:new_sim', 'twin:esim_ready']
    """
    validate_database(x)


def test_009(x: TestContext):
    """!
    query: This is Greta Zhang. The SIM of my phone is broken. Can I get another?
    user_context: |
      You are Greta Zhang.
      line number: L-282
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-282, owner: Greta Zhang, role: main, plan: Flex, status: suspended, contract: true,
            outage: true, esim_ready: false, ends: null}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-282}
          - tool: send_sim
            parameters: {line_id: L-282, kind: plastic, block_old: false}
    tags: ['template:new_sim', 'twin:not_ready']
    """
    validate_database(x)


def test_010(x: TestContext):
    """!
    query: Yusuf Duarte here. I need a new SIM, the old one is broken.
    user_context: |
      You are Yusuf Duarte.
      line number: L-625
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-625, owner: Yusuf Duarte, role: main, plan: Family, status: suspended, contract: true,
            outage: true, esim_ready: true, ends: '2026-07-11'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-625}
          - tool: send_sim
            parameters: {line_id: L-625, kind: esim, block_old: false}
    tags: ['template:new_sim', 'twin:esim_ready']
    """
    validate_database(x)


def test_011(x: TestContext):
    """!
    query: Omar Hoffman here. I need a new SIM, the old one is broken.
    user_context: |
      You are Omar Hoffman.
      line number: L-444
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-444, owner: Omar Hoffman, role: main, plan: Flex, status: suspended, contract: true,
            outage: true, esim_ready: false, ends: '2026-07-24'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-444}
          - tool: send_sim
            parameters: {line_id: L-444, kind: plastic, block_old: false}
    tags: ['template:new_sim', 'twin:not_ready']
    """
    validate_database(x)


def test_012(x: TestContext):
    """!
    query: Clara Fontaine here. I need a new SIM, the old one is broken.
    user_context: |
      You are Clara Fontaine.
      line number: L-908
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-908, owner: Clara Fontaine, role: main, plan: Student, status: suspended, contract: true,
            outage: false, esim_ready: true, ends: '2026-04-14'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-908}
          - tool: send_sim
            parameters: {line_id: L-908, kind: esim, block_old: false}
    tags: ['template:new_sim', 'twin:esim_ready']
    """
    validate_database(x)


def test_013(x: TestContext):
    """!
    query: I am Umut Brandt. My SIM was lost, please send a new one.
    user_context: |
      You are Umut Brandt.
      line number: L-853
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-853, owner: Umut Brandt, role: main, plan: Max, status: suspended, contract: false,
            outage: true, esim_ready: false, ends: null}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-853}
          - tool: send_sim
            parameters: {line_id: L-853, kind: plastic, block_old: true}
    tags: ['template:new_sim', 'twin:not_ready']
    """
    validate_database(x)
