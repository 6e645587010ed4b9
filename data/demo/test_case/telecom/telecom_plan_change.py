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
    query: This is Quinn Castillo. I would like the Student plan from now on.
    user_context: |
      You are Quinn Castillo.
      line number: L-941
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-941, owner: Quinn Castillo, role: main, plan: Basic, status: suspended, contract: true,
            outage: false, esim_ready: false, ends: '2026-05-18'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-941}
          - tool: request_approval
            parameters: {line_id: L-941, action: plan change}
          - tool: change_plan
            parameters: {line_id: L-941, plan: Student}
    tags: ['template:plan_change', 'twin:in_contract']
    """
    validate_database(x)


def test_001(x: TestContext):
    """!
    query: My name is Rosa Okafor. Can you put me on the Basic plan?
    user_context: |
      You are Rosa Okafor.
      line number: L-787
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-787, owner: Rosa Okafor, role: main, plan: Student, status: suspended, contract: false,
            outage: true, esim_ready: false, ends: '2026-09-28'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-787}
          - tool: change_plan
            parameters: {line_id: L-787, plan: Basic}
    tags: ['template:plan_change', 'twin:no_contract']
    """
    validate_database(x)


def test_002(x: TestContext):
    """!
    query: Hi, I am Ben Rossi. Please move my line to the Family plan.
    user_context: |
      You are Ben Rossi.
      line number: L-686
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-686, owner: Ben Rossi, role: main, plan: Student, status: active, contract: true,
            outage: true, esim_ready: false, ends: '2026-04-28'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-686}
          - tool: request_approval
            parameters: {line_id: L-686, action: plan change}
          - tool: change_plan
            parameters: {line_id: L-686, plan: Family}
    tags: ['template:plan_change', 'twin:in_contract']
    """
    validate_database(x)


def test_003(x: TestContext):
    """!
    query: Hi, I am Ada Abbott. Please move my line to the Flex plan.
    user_context: |
      You are Ada Abbott.
      line number: L-960
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-960, owner: Ada Abbott, role: main, plan: Student, status: suspended, contract: false,
            outage: false, esim_ready: false, ends: '2026-08-21'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-960}
          - tool: change_plan
            parameters: {line_id: L-960, plan: Flex}
    tags: ['template:plan_change', 'twin:no_contract']
    """
    validate_database(x)


def test_004(x: TestContext):
    """!
    query: My name is Greta Zhang. Can you put me on the Family plan?
    user_context: |
      You are Greta Zhang.
      line number: L-135
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-135, owner: Greta Zhang, role: main, plan: Max, status: suspended, contract: true,
            outage: true, esim_ready: true, ends: '2026-08-07'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-135}
          - tool: request_approval
            parameters: {line_id: L-135, action: plan change}
          - tool: change_plan
            parameters: {line_id: L-135, plan: Family}
    tags: ['template:plan_change', 'twin:in_contract']
    """
    validate_database(x)


def test_005(x: TestContext):
    """!
    query: I am Kira Novak and I want to switch to the Max plan.
    user_context: |
      You are Kira Novak.
      line number: L-135
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-135, owner: Kira Novak, role: main, plan: Student, status: active, contract: false,
            outage: false, esim_ready: false, ends: '2026-09-07'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-135}
          - tool: change_plan
            parameters: {line_id: L-135, plan: Max}
    tags: ['template:plan_change', 'twin:no_contract']
    """
    validate_database(x)


def test_006(x: TestContext):
    """!
    query: Hi, I am Vera Duarte. Please move my line to the Basic plan.
    user_context: |
      You are Vera Duarte.
      line number: L-495
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-495, owner: Vera Duarte, role: main, plan: Flex, status: suspended, contract: true,
            outage: true, esim_ready: true, ends: '2026-05-11'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-495}
          - tool: request_approval
            parameters: {line_id: L-495, action: plan change}
          - tool: change_plan
            parameters: {line_id: L-495, plan: Basic}
    tags: ['template:plan_change', 'twin:in_contract']
    """
    validate_database(x)


def test_007(x: TestContext):
    """!
    query: My name is Vera Novak. Can you put me on the Basic plan?
    user_context: |
      You are Vera Novak.
      line number: L-250
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-250, owner: Vera Novak, role: main, plan: Family, status: active, contract: false,
            outage: false, esim_ready: false, ends: '2026-07-18'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-250}
          - tool: change_plan
            parameters: {line_id: L-250, plan: Basic}
    tags: ['template:plan_change', 'twin:no_contract']
    """
    validate_database(x)


def test_008(x: TestContext):
    """!
    query: This is Ben Hoffman. I would like the Student plan from now on.
    user_context: |
      You are Ben Hoffman.
      line number: L-738
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-738, owner: Ben Hoffman, role: main, plan: Family, status: active, contract: true,
            outage: false, esim_ready: true, ends: '2026-05-14'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-738}
          - tool: request_approval
            parameters: {line_id: L-738, action: plan change}
          - tool: change_plan
            parameters: {line_id: L-738, plan: Student}
    tags: ['template:plan_change', 'twin:in_contract']
    """
    validate_database(x)


def test_009(x: TestContext):
    """!
    query: I am Ines Iversen and I want to switch to the Max plan.
    user_context: |
      You are Ines Iversen.
      line number: L-265
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-265, owner: Ines Iversen, role: main, plan: Family, status: active, contract: false,
            outage: false, esim_ready: true, ends: '2026-09-07'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-265}
          - tool: change_plan
            parameters: {line_id: L-265, plan: Max}
    tags: ['template:plan_change', 'twin:no_contract']
    """
    validate_database(x)


def test_010(x: TestContext):
    """!
    query: I am Kira Novak and I want to switch to the Student plan.
    user_context: |
      You are Kira Novak.
      line number: L-176
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-176, owner: Kira Novak, role: main, plan: Basic, status: active, contract: true,
            outage: false, esim_ready: true, ends: '2026-04-18'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-176}
          - tool: request_approval
            parameters: {line_id: L-176, action: plan change}
          - tool: change_plan
            parameters: {line_id: L-176, plan: Student}
    tags: ['template:plan_change', 'twin:in_contract']
    """
    validate_database(x)


def test_011(x: TestContext):
    """!
    query: This is Wade Pereira. I would like the Basic plan from now on.
    user_context: |
      You are Wade Pereira.
      line number: L-655
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-655, owner: Wade Pereira, role: main, plan: Flex, status: suspended, contract: false,
            outage: true, esim_ready: true, ends: '2026-05-14'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-655}
          - tool: change_plan
            parameters: {line_id: L-655, plan: Basic}
    tags: ['template:plan_change', 'twin:no_contract']
    """
    validate_database(x)


def test_012(x: TestContext):
    """!
    query: I am Vera Santos and I want to switch to the Family plan.
    user_context: |
      You are Vera Santos.
      line number: L-918
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-918, owner: Vera Santos, role: main, plan: Student, status: suspended, contract: true,
            outage: true, esim_ready: true, ends: '2026-09-11'}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-918}
          - tool: request_approval
            parameters: {line_id: L-918, action: plan change}
          - tool: change_plan
            parameters: {line_id: L-918, plan: Family}
    tags: ['template:plan_change', 'twin:in_contract']
    """
    validate_database(x)


def test_013(x: TestContext):
    """!
    query: Hi, I am Farid Vargas. Please move my line to the Basic plan.
    user_context: |
      You are Farid Vargas.
      line number: L-176
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-176, owner: Farid Vargas, role: main, plan: Student, status: active, contract: false,
            outage: false, esim_ready: true, ends: null}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-176}
          - tool: change_plan
            parameters: {line_id: L-176, plan: Basic}
    tags: ['template:plan_change', 'twin:no_contract']
    """
    validate_database(x)


def test_014(x: TestContext):
    """!
    query: I am Liam Pereira and I want to switch to the Student plan.
    user_context: |
      You are Liam Pereira.
      line number: L-392
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-392, owner: Liam Pereira, role: main, plan: Family, status: suspended, contract: true,
            outage: true, esim_ready: true, ends: null}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-392}
          - tool: request_approval
            parameters: {line_id: L-392, action: plan change}
          - tool: change_plan
            parameters: {line_id: L-392, plan: Student}
    tags: ['template:plan_change', 'twin:in_contract']
    """
    validate_database(x)


def test_015(x: TestContext):
    """!
    query: Hi, I am Quinn Castillo. Please move my line to the Basic plan.
    user_context: |
      You are Quinn Castillo.
      line number: L-686
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-686, owner: Quinn Castillo, role: main, plan: Student, status: active, contract: false,
            outage: true, esim_ready: true, ends: null}
        golden_test_case:
          tool_interactions:
          - tool: get_line
            parameters: {line_id: L-686}
          - tool: change_plan
            parameters: {line_id: L-686, plan: Basic}
    tags: ['template:plan_change', 'twin:no_contract']
    """
    validate_database(x)
