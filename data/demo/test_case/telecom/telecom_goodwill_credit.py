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
    query: Ben Hoffman here. Please book the goodwill credit of 55 that I was promised.
    user_context: |
      You are Ben Hoffman.
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-901, owner: Ben Hoffman, role: main, plan: Basic, status: suspended, contract: true,
            outage: true, esim_ready: false, ends: '2026-06-14'}
        golden_test_case:
          tool_interactions:
          - tool: find_lines
            parameters: {owner: Ben Hoffman}
          - tool: add_credit
            parameters: {line_id: L-901, amount: 55, reason: goodwill}
    tags: ['template:goodwill_credit', 'twin:main']
    """
    validate_database(x)


def test_001(x: TestContext):
    """!
    query: Petra Abbott here. Please book the goodwill credit of 45 that I was promised.
    user_context: |
      You are Petra Abbott.
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-909, owner: Petra Abbott, role: extra, plan: Family, status: active, contract: true,
            outage: true, esim_ready: true, ends: null}
        golden_test_case:
          tool_interactions:
          - tool: find_lines
            parameters: {owner: Petra Abbott}
          - tool: note_decline
            parameters: {line_id: L-909, reason: extra line}
    tags: ['template:goodwill_credit', 'twin:extra']
    """
    validate_database(x)


def test_002(x: TestContext):
    """!
    query: Omar Castillo here. Please book the goodwill credit of 95 that I was promised.
    user_context: |
      You are Omar Castillo.
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-168, owner: Omar Castillo, role: main, plan: Basic, status: suspended, contract: false,
            outage: true, esim_ready: false, ends: null}
        golden_test_case:
          tool_interactions:
          - tool: find_lines
            parameters: {owner: Omar Castillo}
          - tool: add_credit
            parameters: {line_id: L-168, amount: 95, reason: goodwill}
    tags: ['template:goodwill_credit', 'twin:main']
    """
    validate_database(x)


def test_003(x: TestContext):
    """!
    query: This is Vera Santos. I am still waiting for 65 as a goodwill credit.
    user_context: |
      You are Vera Santos.
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-571, owner: Vera Santos, role: extra, plan: Student, status: active, contract: false,
            outage: true, esim_ready: false, ends: null}
        golden_test_case:
          tool_interactions:
          - tool: find_lines
            parameters: {owner: Vera Santos}
          - tool: note_decline
            parameters: {line_id: L-571, reason: extra line}
    tags: ['template:goodwill_credit', 'twin:extra']
    """
    validate_database(x)


def test_004(x: TestContext):
    """!
    query: I am Petra Okafor. Your colleague promised me a goodwill credit of 47.5.
    user_context: |
      You are Petra Okafor.
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-188, owner: Petra Okafor, role: main, plan: Max, status: suspended, contract: false,
            outage: true, esim_ready: true, ends: null}
        golden_test_case:
          tool_interactions:
          - tool: find_lines
            parameters: {owner: Petra Okafor}
          - tool: add_credit
            parameters: {line_id: L-188, amount: 47.5, reason: goodwill}
    tags: ['template:goodwill_credit', 'twin:main']
    """
    validate_database(x)


def test_005(x: TestContext):
    """!
    query: Yusuf Duarte here. Please book the goodwill credit of 67.5 that I was promised.
    user_context: |
      You are Yusuf Duarte.
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-297, owner: Yusuf Duarte, role: extra, plan: Student, status: suspended, contract: true,
            outage: false, esim_ready: true, ends: null}
        golden_test_case:
          tool_interactions:
          - tool: find_lines
            parameters: {owner: Yusuf Duarte}
          - tool: note_decline
            parameters: {line_id: L-297, reason: extra line}
    tags: ['template:goodwill_credit', 'twin:extra']
    """
    validate_database(x)


def test_006(x: TestContext):
    """!
    query: I am Umut Grant. Your colleague promised me a goodwill credit of 60.
    user_context: |
      You are Umut Grant.
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-625, owner: Umut Grant, role: main, plan: Family, status: suspended, contract: true,
            outage: false, esim_ready: false, ends: null}
        golden_test_case:
          tool_interactions:
          - tool: find_lines
            parameters: {owner: Umut Grant}
          - tool: add_credit
            parameters: {line_id: L-625, amount: 60, reason: goodwill}
    tags: ['template:goodwill_credit', 'twin:main']
    """
    validate_database(x)


def test_007(x: TestContext):
    """!
    query: Stefan Quist here. Please book the goodwill credit of 55 that I was promised.
    user_context: |
      You are Stefan Quist.
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-926, owner: Stefan Quist, role: extra, plan: Basic, status: suspended, contract: true,
            outage: false, esim_ready: true, ends: '2026-05-14'}
        golden_test_case:
          tool_interactions:
          - tool: find_lines
            parameters: {owner: Stefan Quist}
          - tool: note_decline
            parameters: {line_id: L-926, reason: extra line}
    tags: ['template:goodwill_credit', 'twin:extra']
    """
    validate_database(x)


def test_008(x: TestContext):
    """!
    query: This is Petra Jansen. I am still waiting for 50 as a goodwill credit.
    user_context: |
      You are Petra Jansen.
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-297, owner: Petra Jansen, role: main, plan: Family, status: suspended, contract: true,
            outage: true, esim_ready: false, ends: null}
        golden_test_case:
          tool_interactions:
          - tool: find_lines
            parameters: {owner: Petra Jansen}
          - tool: add_credit
            parameters: {line_id: L-297, amount: 50, reason: goodwill}
    tags: ['template:goodwill_credit', 'twin:main']
    """
    validate_database(x)


def test_009(x: TestContext):
    """!
    query: I am Quinn Quist. Your colleague promised me a goodwill credit of 20.
    user_context: |
      You are Quinn Quist.
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-739, owner: Quinn Quist, role: extra, plan: Flex, status: suspended, contract: true,
            outage: true, esim_ready: false, ends: null}
        golden_test_case:
          tool_interactions:
          - tool: find_lines
            parameters: {owner: Quinn Quist}
          - tool: note_decline
            parameters: {line_id: L-739, reason: extra line}
    tags: ['template:goodwill_credit', 'twin:extra']
    """
    validate_database(x)


def test_010(x: TestContext):
    """!
    query: This is Wade Urbina. I am still waiting for 47.5 as a goodwill credit.
    user_context: |
      You are Wade Urbina.
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-773, owner: Wade Urbina, role: main, plan: Max, status: suspended, contract: false,
            outage: true, esim_ready: false, ends: null}
        golden_test_case:
          tool_interactions:
          - tool: find_lines
            parameters: {owner: Wade Urbina}
          - tool: add_credit
            parameters: {line_id: L-773, amount: 47.5, reason: goodwill}
    tags: ['template:goodwill_credit', 'twin:main']
    """
    validate_database(x)


def test_011(x: TestContext):
    """!
    query: This is Hugo Quist. I am still waiting for 17.5 as a goodwill credit.
    user_context: |
      You are Hugo Quist.
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-865, owner: Hugo Quist, role: extra, plan: Basic, status: active, contract: false,
            outage: true, esim_ready: true, ends: null}
        golden_test_case:
          tool_interactions:
          - tool: find_lines
            parameters: {owner: Hugo Quist}
          - tool: note_decline
            parameters: {line_id: L-865, reason: extra line}
    tags: ['template:goodwill_credit', 'twin:extra']
    """
    validate_database(x)


def test_012(x: TestContext):
    """!
    query: This is Wade Urbina. I am still waiting for 70 as a goodwill credit.
    user_context: |
      You are Wade Urbina.
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-950, owner: Wade Urbina, role: main, plan: Flex, status: suspended, contract: false,
            outage: true, esim_ready: true, ends: '2026-09-28'}
        golden_test_case:
          tool_interactions:
          - tool: find_lines
            parameters: {owner: Wade Urbina}
          - tool: add_credit
            parameters: {line_id: L-950, amount: 70, reason: goodwill}
    tags: ['template:goodwill_credit', 'twin:main']
    """
    validate_database(x)


def test_013(x: TestContext):
    """!
    query: I am Farid Lindqvist. Your colleague promised me a goodwill credit of 52.5.
    user_context: |
      You are Farid Lindqvist.
    init:
      telecom:
        data_patch:
          lines:
          - {line_id: L-168, owner: Farid Lindqvist, role: extra, plan: Flex, status: active, contract: true,
            outage: false, esim_ready: false, ends: null}
        golden_test_case:
          tool_interactions:
          - tool: find_lines
            parameters: {owner: Farid Lindqvist}
          - tool: note_decline
            parameters: {line_id: L-168, reason: extra line}
    tags: ['template:goodwill_credit', 'twin:extra']
    """
    validate_database(x)
