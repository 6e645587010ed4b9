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
    query: I am Ines Novak. I need 8 packs of my medication again.
    user_context: |
      You are Ines Novak.
      patient number: P-714
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-714, name: Ines Novak, insurance: public, medication: controlled, referral: false,
            diabetic: false}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-714}
          - tool: ask_doctor
            parameters: {patient_id: P-714, topic: refill}
          - tool: refill_medication
            parameters: {patient_id: P-714, packs: 8}
    tags: ['template:refill', 'twin:controlled']
    """
    validate_database(x)


def test_001(x: TestContext):
    """!
    query: This is Wade Brandt. Can I get 4 more packs of my medication?
    user_context: |
      You are Wade Brandt.
      patient number: P-634
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-634, name: Wade Brandt, insurance: public, medication: free, referral: true,
            diabetic: false}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-634}
          - tool: refill_medication
            parameters: {patient_id: P-634, packs: 4}
    tags: ['template:refill', 'twin:free']
    """
    validate_database(x)


def test_002(x: TestContext):
    """!
    query: Wade Brandt here. Please refill my medication, 4 packs.
    user_context: |
      You are Wade Brandt.
      patient number: P-403
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-403, name: Wade Brandt, insurance: public, medication: controlled, referral: true,
            diabetic: false}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-403}
          - tool: ask_doctor
            parameters: {patient_id: P-403, topic: refill}
          - tool: refill_medication
            parameters: {patient_id: P-403, packs: 4}
    tags: ['template:refill', 'twin:controlled']
    """
    validate_database(x)


def test_003(x: TestContext):
    """!
    query: Nadia Tanaka here. Please refill my medication, 8 packs.
    user_context: |
      You are Nadia Tanaka.
      patient number: P-316
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-316, name: Nadia Tanaka, insurance: public, medication: free, referral: true,
            diabetic: true}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-316}
          - tool: refill_medication
            parameters: {patient_id: P-316, packs: 8}
    tags: ['template:refill', 'twin:free']
    """
    validate_database(x)


def test_004(x: TestContext):
    """!
    query: This is Petra Abbott. Can I get 2 more packs of my medication?
    user_context: |
      You are Petra Abbott.
      patient number: P-942
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-942, name: Petra Abbott, insurance: private, medication: controlled, referral: true,
            diabetic: false}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-942}
          - tool: ask_doctor
            parameters: {patient_id: P-942, topic: refill}
          - tool: refill_medication
            parameters: {patient_id: P-942, packs: 2}
    tags: ['template:refill', 'twin:controlled']
    """
    validate_database(x)


def test_005(x: TestContext):
    """!
    query: Mona Duarte here. Please refill my medication, 6 packs.
    user_context: |
      You are Mona Duarte.
      patient number: P-753
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-753, name: Mona Duarte, insurance: public, medication: free, referral: true,
            diabetic: true}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-753}
          - tool: refill_medication
            parameters: {patient_id: P-753, packs: 6}
    tags: ['template:refill', 'twin:free']
    """
    validate_database(x)


def test_006(x: TestContext):
    """!
    query: Wade Brandt here. Please refill my medication, 6 packs.
    user_context: |
      You are Wade Brandt.
      patient number: P-789
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-789, name: Wade Brandt, insurance: private, medication: controlled, referral: true,
            diabetic: true}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-789}
          - tool: ask_doctor
            parameters: {patient_id: P-789, topic: refill}
          - tool: refill_medication
            parameters: {patient_id: P-789, packs: 6}
    tags: ['template:refill', 'twin:controlled']
    """
    validate_database(x)


def test_007(x: TestContext):
    """!
    query: This is Stefan Vargas. Can I get 9 more packs of my medication?
    user_context: |
      You are Stefan Vargas.
      patient number: P-738
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-738, name: Stefan Vargas, insurance: private, medication: free, referral: false,
            diabetic: true}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-738}
          - tool: refill_medication
            parameters: {patient_id: P-738, packs: 9}
    tags: ['template:refill', 'twin:free']
    """
    validate_database(x)


def test_008(x: TestContext):
    """!
    query: My name is Wade Brandt and I would like 2 packs of my usual medication.
    user_context: |
      You are Wade Brandt.
      patient number: P-878
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-878, name: Wade Brandt, insurance: private, medication: controlled, referral: false,
            diabetic: true}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-878}
          - tool: ask_doctor
            parameters: {patient_id: P-878, topic: refill}
          - tool: refill_medication
            parameters: {patient_id: P-878, packs: 2}
    tags: ['template:refill', 'twin:controlled']
    """
    validate_database(x)


def test_009(x: TestContext):
    """!
    query: I am Kira Weber. I need 8 packs of my medication again.
    user_context: |
      You are Kira Weber.
      patient number: P-245
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-245, name: Kira Weber, insurance: private, medication: free, referral: false,
            diabetic: true}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-245}
          - tool: refill_medication
            parameters: {patient_id: P-245, packs: 8}
    tags: ['template:refill', 'twin:free']
    """
    validate_database(x)


def test_010(x: TestContext):
    """!
    query: This is Ines Iversen. Can I get 7 more packs of my medication?
    user_context: |
      You are Ines Iversen.
      patient number: P-205
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-205, name: Ines Iversen, insurance: private, medication: controlled, referral: false,
            diabetic: true}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-205}
          - tool: ask_doctor
            parameters: {patient_id: P-205, topic: refill}
          - tool: refill_medication
            parameters: {patient_id: P-205, packs: 7}
    tags: ['template:refill', 'twin:controlled']
    """
    validate_database(x)


def test_011(x: TestContext):
    """!
    query: Kira Weber here. Please refill my medication, 9 packs.
    user_context: |
      You are Kira Weber.
      patient number: P-787
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-787, name: Kira Weber, insurance: private, medication: free, referral: true,
            diabetic: false}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-787}
          - tool: refill_medication
            parameters: {patient_id: P-787, packs: 9}
    tags: ['template:refill', 'twin:free']
    """
    validate_database(x)


def test_012(x: TestContext):
    """!
    query: Ada Fontaine here. Please refill my medication, 8 packs.
    user_context: |
      You are Ada Fontaine.
      patient number: P-980
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-980, name: Ada Fontaine, insurance: public, medication: controlled, referral: false,
            diabetic: true}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-980}
          - tool: ask_doctor
            parameters: {patient_id: P-980, topic: refill}
          - tool: refill_medication
            parameters: {patient_id: P-980, packs: 8}
    tags: ['template:refill', 'twin:controlled']
    """
    validate_database(x)


def test_013(x: TestContext):
    """!
    query: This is Tara Eriksen. Can I get 6 more packs of my medication?
    user_context: |
      You are Tara Eriksen.
      patient number: P-830
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-830, name: Tara Eriksen, insurance: private, medication: free, referral: false,
            diabetic: false}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-830}
          - tool: refill_medication
            parameters: {patient_id: P-830, packs: 6}
    tags: ['template:refill', 'twin:free']
    """
    validate_database(x)


def test_014(x: TestContext):
    """!
    query: I am Nadia Abbott. I need 5 packs of my medication again.
    user_context: |
      You are Nadia Abbott.
      patient number: P-956
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-956, name: Nadia Abbott, insurance: private, medication: controlled, referral: true,
            diabetic: false}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-956}
          - tool: ask_doctor
            parameters: {patient_id: P-956, topic: refill}
          - tool: refill_medication
            parameters: {patient_id: P-956, packs: 5}
    tags: ['template:refill', 'twin:controlled']
    """
    validate_database(x)


def test_015(x: TestContext):
    """!
    query: This is Ines Novak. Can I get 7 more packs of my medication?
    user_context: |
      You are Ines Novak.
      patient number: P-289
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-289, name: Ines Novak, insurance: private, medication: free, referral: false,
            diabetic: true}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-289}
          - tool: refill_medication
            parameters: {patient_id: P-289, packs: 7}
    tags: ['template:refill', 'twin:free']
    """
    validate_database(x)
