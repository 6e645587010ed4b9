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
    query: This is Hugo Quist. Can my blood be tested for calcium and iron?
    user_context: |
      You are Hugo Quist.
      patient number: P-414
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-414, name: Hugo Quist, insurance: private, medication: controlled, referral: false,
            diabetic: true}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-414}
          - tool: order_tests
            parameters:
              patient_id: P-414
              tests: [calcium, iron]
              fasting: false
    tags: ['template:blood_tests', 'twin:diabetic']
    """
    validate_database(x)


def test_001(x: TestContext):
    """!
    query: I am Rosa Zhang. Please order blood tests for lipids and glucose.
    user_context: |
      You are Rosa Zhang.
      patient number: P-858
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-858, name: Rosa Zhang, insurance: public, medication: free, referral: true,
            diabetic: false}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-858}
          - tool: order_tests
            parameters:
              patient_id: P-858
              tests: [lipids, glucose]
              fasting: true
    tags: ['template:blood_tests', 'twin:not_diabetic']
    """
    validate_database(x)


def test_002(x: TestContext):
    """!
    query: This is Stefan Vargas. Can my blood be tested for iron and calcium?
    user_context: |
      You are Stefan Vargas.
      patient number: P-362
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-362, name: Stefan Vargas, insurance: private, medication: free, referral: false,
            diabetic: true}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-362}
          - tool: order_tests
            parameters:
              patient_id: P-362
              tests: [iron, calcium]
              fasting: false
    tags: ['template:blood_tests', 'twin:diabetic']
    """
    validate_database(x)


def test_003(x: TestContext):
    """!
    query: Dmitri Hoffman here. I want my glucose and calcium tested.
    user_context: |
      You are Dmitri Hoffman.
      patient number: P-168
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-168, name: Dmitri Hoffman, insurance: private, medication: controlled, referral: false,
            diabetic: false}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-168}
          - tool: order_tests
            parameters:
              patient_id: P-168
              tests: [glucose, calcium]
              fasting: true
    tags: ['template:blood_tests', 'twin:not_diabetic']
    """
    validate_database(x)


def test_004(x: TestContext):
    """!
    query: Vera Iversen here. I want my lipids and glucose tested.
    user_context: |
      You are Vera Iversen.
      patient number: P-647
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-647, name: Vera Iversen, insurance: public, medication: controlled, referral: true,
            diabetic: true}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-647}
          - tool: order_tests
            parameters:
              patient_id: P-647
              tests: [lipids, glucose]
              fasting: false
    tags: ['template:blood_tests', 'twin:diabetic']
    """
    validate_database(x)


def test_005(x: TestContext):
    """!
    query: This is Wade Urbina. Can my blood be tested for lipids and thyroid?
    user_context: |
      You are Wade Urbina.
      patient number: P-657
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-657, name: Wade Urbina, insurance: private, medication: controlled, referral: false,
            diabetic: false}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-657}
          - tool: order_tests
            parameters:
              patient_id: P-657
              tests: [lipids, thyroid]
              fasting: true
    tags: ['template:blood_tests', 'twin:not_diabetic']
    """
    validate_database(x)


def test_006(x: TestContext):
    """!
    query: This is Elena Jansen. Can my blood be tested for iron and thyroid?
    user_context: |
      You are Elena Jansen.
      patient number: P-205
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-205, name: Elena Jansen, insurance: private, medication: controlled, referral: false,
            diabetic: true}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-205}
          - tool: order_tests
            parameters:
              patient_id: P-205
              tests: [iron, thyroid]
              fasting: false
    tags: ['template:blood_tests', 'twin:diabetic']
    """
    validate_database(x)


def test_007(x: TestContext):
    """!
    query: I am Wade Pereira. Please order blood tests for lipids and thyroid.
    user_context: |
      You are Wade Pereira.
      patient number: P-906
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-906, name: Wade Pereira, insurance: public, medication: controlled, referral: false,
            diabetic: false}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-906}
          - tool: order_tests
            parameters:
              patient_id: P-906
              tests: [lipids, thyroid]
              fasting: true
    tags: ['template:blood_tests', 'twin:not_diabetic']
    """
    validate_database(x)


def test_008(x: TestContext):
    """!
    query: I am Ben Weber. Please order blood tests for thyroid and lipids.
    user_context: |
      You are Ben Weber.
      patient number: P-642
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-642, name: Ben Weber, insurance: private, medication: free, referral: false,
            diabetic: true}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-642}
          - tool: order_tests
            parameters:
              patient_id: P-642
              tests: [thyroid, lipids]
              fasting: false
    tags: ['template:blood_tests', 'twin:diabetic']
    """
    validate_database(x)


def test_009(x: TestContext):
    """!
    query: Vera Novak here. I want my lipids and iron tested.
    user_context: |
      You are Vera Novak.
      patient number: P-971
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-971, name: Vera Novak, insurance: public, medication: free, referral: true,
            diabetic: false}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-971}
          - tool: order_tests
            parameters:
              patient_id: P-971
              tests: [lipids, iron]
              fasting: true
    tags: ['template:blood_tests', 'twin:not_diabetic']
    """
    validate_database(x)


def test_010(x: TestContext):
    """!
    query: Nadia Tanaka here. I want my glucose and thyroid tested.
    user_context: |
      You are Nadia Tanaka.
      patient number: P-679
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-679, name: Nadia Tanaka, insurance: private, medication: free, referral: false,
            diabetic: true}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-679}
          - tool: order_tests
            parameters:
              patient_id: P-679
              tests: [glucose, thyroid]
              fasting: false
    tags: ['template:blood_tests', 'twin:diabetic']
    """
    validate_database(x)


def test_011(x: TestContext):
    """!
    query: I am Wade Pereira. Please order blood tests for iron and lipids.
    user_context: |
      You are Wade Pereira.
      patient number: P-176
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-176, name: Wade Pereira, insurance: private, medication: controlled, referral: false,
            diabetic: false}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-176}
          - tool: order_tests
            parameters:
              patient_id: P-176
              tests: [iron, lipids]
              fasting: true
    tags: ['template:blood_tests', 'twin:not_diabetic']
    """
    validate_database(x)


def test_012(x: TestContext):
    """!
    query: Nadia Fontaine here. I want my calcium and glucose tested.
    user_context: |
      You are Nadia Fontaine.
      patient number: P-657
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-657, name: Nadia Fontaine, insurance: public, medication: free, referral: false,
            diabetic: true}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-657}
          - tool: order_tests
            parameters:
              patient_id: P-657
              tests: [calcium, glucose]
              fasting: false
    tags: ['template:blood_tests', 'twin:diabetic']
    """
    validate_database(x)


def test_013(x: TestContext):
    """!
    query: Vera Santos here. I want my lipids and glucose tested.
    user_context: |
      You are Vera Santos.
      patient number: P-786
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-786, name: Vera Santos, insurance: public, medication: free, referral: false,
            diabetic: false}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-786}
          - tool: order_tests
            parameters:
              patient_id: P-786
              tests: [lipids, glucose]
              fasting: true
    tags: ['template:blood_tests', 'twin:not_diabetic']
    """
    validate_database(x)
