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
    query: This is Yusuf Iversen. I am still waiting for 10 as a goodwill credit.
    user_context: |
      You are Yusuf Iversen.
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-943, owner: Yusuf Iversen, role: main, plan: Family, status: active, contract: false,
            outage: true, esim_ready: true, ends: '2026-08-11'}
          - {line_id: L-960, owner: Yusuf Iversen, role: extra, plan: Family, status: active, contract: true,
            outage: false, esim_ready: true, ends: null}
        golden_test_case:
          tool_interactions:
          - tool: find_lines
            parameters: {owner: Yusuf Iversen}
          - tool: add_credit
            parameters: {line_id: L-943, amount: 10, reason: goodwill}
    tags: ['template:goodwill_credit', 'twin:main_first']
    """
    validate_database(x)


def test_001(x: TestContext):
    """!
    query: Liam Urbina here. Please book the goodwill credit of 32.5 that I was promised.
    user_context: |
      You are Liam Urbina.
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-254, owner: Liam Urbina, role: extra, plan: Max, status: suspended, contract: true,
            outage: true, esim_ready: false, ends: null}
          - {line_id: L-655, owner: Liam Urbina, role: main, plan: Max, status: suspended, contract: false,
            outage: true, esim_ready: true, ends: '2026-04-14'}
        golden_test_case:
          tool_interactions:
          - tool: find_lines
            parameters: {owner: Liam Urbina}
          - tool: add_credit
            parameters: {line_id: L-655, amount: 32.5, reason: goodwill}
    tags: ['template:goodwill_credit', 'twin:main_second']
    """
    validate_database(x)


def test_002(x: TestContext):
    """!
    query: I am Liam Fontaine. Your colleague promised me a goodwill credit of 67.5.
    user_context: |
      You are Liam Fontaine.
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-640, owner: Liam Fontaine, role: main, plan: Basic, status: suspended, contract: true,
            outage: false, esim_ready: false, ends: '2026-04-21'}
          - {line_id: L-725, owner: Liam Fontaine, role: extra, plan: Student, status: suspended, contract: true,
            outage: true, esim_ready: true, ends: null}
        golden_test_case:
          tool_interactions:
          - tool: find_lines
            parameters: {owner: Liam Fontaine}
          - tool: add_credit
            parameters: {line_id: L-640, amount: 67.5, reason: goodwill}
    tags: ['template:goodwill_credit', 'twin:main_first']
    """
    validate_database(x)


def test_003(x: TestContext):
    """!
    query: This is Clara Tanaka. I am still waiting for 52.5 as a goodwill credit.
    user_context: |
      You are Clara Tanaka.
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-176, owner: Clara Tanaka, role: extra, plan: Basic, status: active, contract: true,
            outage: true, esim_ready: true, ends: '2026-05-28'}
          - {line_id: L-773, owner: Clara Tanaka, role: main, plan: Student, status: active, contract: true,
            outage: false, esim_ready: false, ends: '2026-09-24'}
        golden_test_case:
          tool_interactions:
          - tool: find_lines
            parameters: {owner: Clara Tanaka}
          - tool: add_credit
            parameters: {line_id: L-773, amount: 52.5, reason: goodwill}
    tags: ['template:goodwill_credit', 'twin:main_second']
    """
    validate_database(x)


def test_004(x: TestContext):
    """!
    query: I am Ada Fontaine. Your colleague promised me a goodwill credit of 37.5.
    user_context: |
      You are Ada Fontaine.
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-295, owner: Ada Fontaine, role: main, plan: Basic, status: active, contract: false,
            outage: false, esim_ready: false, ends: '2026-08-24'}
          - {line_id: L-414, owner: Ada Fontaine, role: extra, plan: Max, status: suspended, contract: false,
            outage: true, esim_ready: true, ends: null}
        golden_test_case:
          tool_interactions:
          - tool: find_lines
            parameters: {owner: Ada Fontaine}
          - tool: add_credit
            parameters: {line_id: L-295, amount: 37.5, reason: goodwill}
    tags: ['template:goodwill_credit', 'twin:main_first']
    """
    validate_database(x)


def test_005(x: TestContext):
    """!
    query: I am Quinn Quist. Your colleague promised me a goodwill credit of 57.5.
    user_context: |
      You are Quinn Quist.
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-211, owner: Quinn Quist, role: extra, plan: Student, status: suspended, contract: true,
            outage: true, esim_ready: true, ends: '2026-04-28'}
          - {line_id: L-924, owner: Quinn Quist, role: main, plan: Student, status: suspended, contract: false,
            outage: true, esim_ready: true, ends: null}
        golden_test_case:
          tool_interactions:
          - tool: find_lines
            parameters: {owner: Quinn Quist}
          - tool: add_credit
            parameters: {line_id: L-924, amount: 57.5, reason: goodwill}
    tags: ['template:goodwill_credit', 'twin:main_second']
    """
    validate_database(x)


def test_006(x: TestContext):
    """!
    query: This is Rosa Jansen. I am still waiting for 52.5 as a goodwill credit.
    user_context: |
      You are Rosa Jansen.
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-306, owner: Rosa Jansen, role: main, plan: Flex, status: suspended, contract: true,
            outage: false, esim_ready: false, ends: null}
          - {line_id: L-918, owner: Rosa Jansen, role: extra, plan: Family, status: suspended, contract: false,
            outage: true, esim_ready: true, ends: '2026-09-28'}
        golden_test_case:
          tool_interactions:
          - tool: find_lines
            parameters: {owner: Rosa Jansen}
          - tool: add_credit
            parameters: {line_id: L-306, amount: 52.5, reason: goodwill}
    tags: ['template:goodwill_credit', 'twin:main_first']
    """
    validate_database(x)


def test_007(x: TestContext):
    """!
    query: I am Omar Castillo. Your colleague promised me a goodwill credit of 35.
    user_context: |
      You are Omar Castillo.
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-367, owner: Omar Castillo, role: extra, plan: Basic, status: suspended, contract: true,
            outage: false, esim_ready: true, ends: '2026-09-18'}
          - {line_id: L-571, owner: Omar Castillo, role: main, plan: Max, status: suspended, contract: true,
            outage: true, esim_ready: true, ends: null}
        golden_test_case:
          tool_interactions:
          - tool: find_lines
            parameters: {owner: Omar Castillo}
          - tool: add_credit
            parameters: {line_id: L-571, amount: 35, reason: goodwill}
    tags: ['template:goodwill_credit', 'twin:main_second']
    """
    validate_database(x)


def test_008(x: TestContext):
    """!
    query: Clara Fontaine here. Please book the goodwill credit of 15 that I was promised.
    user_context: |
      You are Clara Fontaine.
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-178, owner: Clara Fontaine, role: main, plan: Student, status: active, contract: true,
            outage: false, esim_ready: false, ends: '2026-07-11'}
          - {line_id: L-309, owner: Clara Fontaine, role: extra, plan: Basic, status: suspended, contract: false,
            outage: true, esim_ready: true, ends: '2026-09-24'}
        golden_test_case:
          tool_interactions:
          - tool: find_lines
            parameters: {owner: Clara Fontaine}
          - tool: add_credit
            parameters: {line_id: L-178, amount: 15, reason: goodwill}
    tags: ['template:goodwill_credit', 'twin:main_first']
    """
    validate_database(x)


def test_009(x: TestContext):
    """!
    query: Stefan Vargas here. Please book the goodwill credit of 12.5 that I was promised.
    user_context: |
      You are Stefan Vargas.
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-375, owner: Stefan Vargas, role: extra, plan: Student, status: active, contract: true,
            outage: true, esim_ready: true, ends: '2026-09-11'}
          - {line_id: L-970, owner: Stefan Vargas, role: main, plan: Max, status: suspended, contract: false,
            outage: false, esim_ready: true, ends: '2026-07-07'}
        golden_test_case:
          tool_interactions:
          - tool: find_lines
            parameters: {owner: Stefan Vargas}
          - tool: add_credit
            parameters: {line_id: L-970, amount: 12.5, reason: goodwill}
    tags: ['template:goodwill_credit', 'twin:main_second']
    """
    validate_database(x)


def test_010(x: TestContext):
    """!
    query: This is Wade Brandt. I am still waiting for 65 as a goodwill credit.
    user_context: |
      You are Wade Brandt.
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-359, owner: Wade Brandt, role: main, plan: Max, status: active, contract: false,
            outage: true, esim_ready: true, ends: '2026-08-28'}
          - {line_id: L-438, owner: Wade Brandt, role: extra, plan: Flex, status: suspended, contract: false,
            outage: true, esim_ready: true, ends: '2026-04-14'}
        golden_test_case:
          tool_interactions:
          - tool: find_lines
            parameters: {owner: Wade Brandt}
          - tool: add_credit
            parameters: {line_id: L-359, amount: 65, reason: goodwill}
    tags: ['template:goodwill_credit', 'twin:main_first']
    """
    validate_database(x)


def test_011(x: TestContext):
    """!
    query: Umut Urbina here. Please book the goodwill credit of 60 that I was promised.
    user_context: |
      You are Umut Urbina.
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-518, owner: Umut Urbina, role: extra, plan: Student, status: suspended, contract: false,
            outage: false, esim_ready: false, ends: null}
          - {line_id: L-519, owner: Umut Urbina, role: main, plan: Family, status: active, contract: false,
            outage: false, esim_ready: true, ends: null}
        golden_test_case:
          tool_interactions:
          - tool: find_lines
            parameters: {owner: Umut Urbina}
          - tool: add_credit
            parameters: {line_id: L-519, amount: 60, reason: goodwill}
    tags: ['template:goodwill_credit', 'twin:main_second']
    """
    validate_database(x)


def test_012(x: TestContext):
    """!
    query: I am Mona Duarte. Your colleague promised me a goodwill credit of 80.
    user_context: |
      You are Mona Duarte.
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-813, owner: Mona Duarte, role: main, plan: Family, status: active, contract: true,
            outage: true, esim_ready: false, ends: '2026-04-03'}
          - {line_id: L-970, owner: Mona Duarte, role: extra, plan: Flex, status: suspended, contract: false,
            outage: false, esim_ready: true, ends: '2026-05-07'}
        golden_test_case:
          tool_interactions:
          - tool: find_lines
            parameters: {owner: Mona Duarte}
          - tool: add_credit
            parameters: {line_id: L-813, amount: 80, reason: goodwill}
    tags: ['template:goodwill_credit', 'twin:main_first']
    """
    validate_database(x)


def test_013(x: TestContext):
    """!
    query: Stefan Quist here. Please book the goodwill credit of 52.5 that I was promised.
    user_context: |
      You are Stefan Quist.
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-235, owner: Stefan Quist, role: extra, plan: Student, status: suspended, contract: true,
            outage: true, esim_ready: true, ends: null}
          - {line_id: L-245, owner: Stefan Quist, role: main, plan: Basic, status: active, contract: true,
            outage: false, esim_ready: false, ends: null}
        golden_test_case:
          tool_interactions:
          - tool: find_lines
            parameters: {owner: Stefan Quist}
          - tool: add_credit
            parameters: {line_id: L-245, amount: 52.5, reason: goodwill}
    tags: ['template:goodwill_credit', 'twin:main_second']
    """
    validate_database(x)
