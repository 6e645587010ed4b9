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
    query: Quinn Quist here, patient P-943. I need a urology visit on 2026-07-28.
    user_context: |
      You are Quinn Quist.
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-943, name: Quinn Quist, insurance: public, medication: free, referral: true,
            diabetic: false}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-943}
          - tool: book_specialist
            parameters: {patient_id: P-943, date: '2026-07-28', specialty: urology}
    tags: ['template:specialist', 'twin:referred']
    """
    validate_database(x)


def test_001(x: TestContext):
    """!
    query: Mona Weber here, patient P-943. I need a urology visit on 2026-07-24.
    user_context: |
      You are Mona Weber.
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-943, name: Mona Weber, insurance: public, medication: controlled, referral: false,
            diabetic: false}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-943}
          - tool: ask_doctor
            parameters: {patient_id: P-943, topic: specialist}
          - tool: book_specialist
            parameters: {patient_id: P-943, date: '2026-07-24', specialty: urology}
    tags: ['template:specialist', 'twin:not_referred']
    """
    validate_database(x)


def test_002(x: TestContext):
    """!
    query: This is Greta Jansen, patient P-933. Can I see neurology on 2026-09-11?
    user_context: |
      You are Greta Jansen.
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-933, name: Greta Jansen, insurance: public, medication: free, referral: true,
            diabetic: true}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-933}
          - tool: book_specialist
            parameters: {patient_id: P-933, date: '2026-09-11', specialty: neurology}
    tags: ['template:specialist', 'twin:referred']
    """
    validate_database(x)


def test_003(x: TestContext):
    """!
    query: Ada Pereira here, patient P-362. I need a neurology visit on 2026-06-03.
    user_context: |
      You are Ada Pereira.
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-362, name: Ada Pereira, insurance: public, medication: free, referral: false,
            diabetic: true}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-362}
          - tool: ask_doctor
            parameters: {patient_id: P-362, topic: specialist}
          - tool: book_specialist
            parameters: {patient_id: P-362, date: '2026-06-03', specialty: neurology}
    tags: ['template:specialist', 'twin:not_referred']
    """
    validate_database(x)


def test_004(x: TestContext):
    """!
    query: This is Clara Okafor, patient P-948. Can I see dermatology on 2026-08-07?
    user_context: |
      You are Clara Okafor.
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-948, name: Clara Okafor, insurance: public, medication: free, referral: true,
            diabetic: false}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-948}
          - tool: book_specialist
            parameters: {patient_id: P-948, date: '2026-08-07', specialty: dermatology}
    tags: ['template:specialist', 'twin:referred']
    """
    validate_database(x)


def test_005(x: TestContext):
    """!
    query: I am Kira Iversen, patient P-789. Please book me into dermatology on 2026-06-21.
    user_context: |
      You are Kira Iversen.
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-789, name: Kira Iversen, insurance: private, medication: controlled, referral: false,
            diabetic: true}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-789}
          - tool: ask_doctor
            parameters: {patient_id: P-789, topic: specialist}
          - tool: book_specialist
            parameters: {patient_id: P-789, date: '2026-06-21', specialty: dermatology}
    tags: ['template:specialist', 'twin:not_referred']
    """
    validate_database(x)


def test_006(x: TestContext):
    """!
    query: I am Clara Okafor, patient P-510. Please book me into dermatology on 2026-04-11.
    user_context: |
      You are Clara Okafor.
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-510, name: Clara Okafor, insurance: public, medication: free, referral: true,
            diabetic: true}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-510}
          - tool: book_specialist
            parameters: {patient_id: P-510, date: '2026-04-11', specialty: dermatology}
    tags: ['template:specialist', 'twin:referred']
    """
    validate_database(x)


def test_007(x: TestContext):
    """!
    query: Ben Rossi here, patient P-552. I need a urology visit on 2026-09-03.
    user_context: |
      You are Ben Rossi.
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-552, name: Ben Rossi, insurance: public, medication: free, referral: false,
            diabetic: false}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-552}
          - tool: ask_doctor
            parameters: {patient_id: P-552, topic: specialist}
          - tool: book_specialist
            parameters: {patient_id: P-552, date: '2026-09-03', specialty: urology}
    tags: ['template:specialist', 'twin:not_referred']
    """
    validate_database(x)


def test_008(x: TestContext):
    """!
    query: I am Jonas Pereira, patient P-561. Please book me into cardiology on 2026-04-18.
    user_context: |
      You are Jonas Pereira.
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-561, name: Jonas Pereira, insurance: private, medication: free, referral: true,
            diabetic: true}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-561}
          - tool: book_specialist
            parameters: {patient_id: P-561, date: '2026-04-18', specialty: cardiology}
    tags: ['template:specialist', 'twin:referred']
    """
    validate_database(x)


def test_009(x: TestContext):
    """!
    query: I am Hugo Quist, patient P-953. Please book me into dermatology on 2026-06-14.
    user_context: |
      You are Hugo Quist.
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-953, name: Hugo Quist, insurance: public, medication: free, referral: false,
            diabetic: true}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-953}
          - tool: ask_doctor
            parameters: {patient_id: P-953, topic: specialist}
          - tool: book_specialist
            parameters: {patient_id: P-953, date: '2026-06-14', specialty: dermatology}
    tags: ['template:specialist', 'twin:not_referred']
    """
    validate_database(x)


def test_010(x: TestContext):
    """!
    query: This is Wade Pereira, patient P-367. Can I see dermatology on 2026-04-24?
    user_context: |
      You are Wade Pereira.
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-367, name: Wade Pereira, insurance: public, medication: controlled, referral: true,
            diabetic: false}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-367}
          - tool: book_specialist
            parameters: {patient_id: P-367, date: '2026-04-24', specialty: dermatology}
    tags: ['template:specialist', 'twin:referred']
    """
    validate_database(x)


def test_011(x: TestContext):
    """!
    query: This is Dmitri Moreau, patient P-746. Can I see urology on 2026-06-11?
    user_context: |
      You are Dmitri Moreau.
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-746, name: Dmitri Moreau, insurance: private, medication: free, referral: false,
            diabetic: false}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-746}
          - tool: ask_doctor
            parameters: {patient_id: P-746, topic: specialist}
          - tool: book_specialist
            parameters: {patient_id: P-746, date: '2026-06-11', specialty: urology}
    tags: ['template:specialist', 'twin:not_referred']
    """
    validate_database(x)


def test_012(x: TestContext):
    """!
    query: Vera Iversen here, patient P-518. I need a urology visit on 2026-06-03.
    user_context: |
      You are Vera Iversen.
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-518, name: Vera Iversen, insurance: private, medication: controlled, referral: true,
            diabetic: false}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-518}
          - tool: book_specialist
            parameters: {patient_id: P-518, date: '2026-06-03', specialty: urology}
    tags: ['template:specialist', 'twin:referred']
    """
    validate_database(x)


def test_013(x: TestContext):
    """!
    query: I am Umut Brandt, patient P-688. Please book me into urology on 2026-05-03.
    user_context: |
      You are Umut Brandt.
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-688, name: Umut Brandt, insurance: private, medication: free, referral: false,
            diabetic: false}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-688}
          - tool: ask_doctor
            parameters: {patient_id: P-688, topic: specialist}
          - tool: book_specialist
            parameters: {patient_id: P-688, date: '2026-05-03', specialty: urology}
    tags: ['template:specialist', 'twin:not_referred']
    """
    validate_database(x)


def test_014(x: TestContext):
    """!
    query: Stefan Grant here, patient P-625. I need a cardiology visit on 2026-08-18.
    user_context: |
      You are Stefan Grant.
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-625, name: Stefan Grant, insurance: public, medication: free, referral: true,
            diabetic: true}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-625}
          - tool: book_specialist
            parameters: {patient_id: P-625, date: '2026-08-18', specialty: cardiology}
    tags: ['template:specialist', 'twin:referred']
    """
    validate_database(x)


def test_015(x: TestContext):
    """!
    query: Farid Quist here, patient P-511. I need a urology visit on 2026-04-24.
    user_context: |
      You are Farid Quist.
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-511, name: Farid Quist, insurance: public, medication: free, referral: false,
            diabetic: false}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-511}
          - tool: ask_doctor
            parameters: {patient_id: P-511, topic: specialist}
          - tool: book_specialist
            parameters: {patient_id: P-511, date: '2026-04-24', specialty: urology}
    tags: ['template:specialist', 'twin:not_referred']
    """
    validate_database(x)
