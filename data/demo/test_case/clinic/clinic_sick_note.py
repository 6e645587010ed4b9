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
    query: I am Yusuf Rossi. Please get me a sick note for my employer.
    user_context: |
      You are Yusuf Rossi.
      patient number: P-669
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-669, name: Yusuf Rossi, insurance: public, medication: free, referral: false,
            diabetic: true}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-669}
          - tool: ask_doctor
            parameters: {patient_id: P-669, topic: form}
    tags: ['template:sick_note', 'twin:public']
    """
    validate_database(x)


def test_001(x: TestContext):
    """!
    query: I am Liam Kovacs. Please get me a sick note for my employer.
    user_context: |
      You are Liam Kovacs.
      patient number: P-901
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-901, name: Liam Kovacs, insurance: private, medication: free, referral: false,
            diabetic: true}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-901}
          - tool: ask_doctor
            parameters: {patient_id: P-901, topic: certificate}
    tags: ['template:sick_note', 'twin:private']
    """
    validate_database(x)


def test_002(x: TestContext):
    """!
    query: I am Ben Hoffman. Please get me a sick note for my employer.
    user_context: |
      You are Ben Hoffman.
      patient number: P-428
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-428, name: Ben Hoffman, insurance: public, medication: free, referral: false,
            diabetic: false}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-428}
          - tool: ask_doctor
            parameters: {patient_id: P-428, topic: form}
    tags: ['template:sick_note', 'twin:public']
    """
    validate_database(x)


def test_003(x: TestContext):
    """!
    query: This is Nadia Kovacs. Can the doctor write that I am ill?
    user_context: |
      You are Nadia Kovacs.
      patient number: P-948
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-948, name: Nadia Kovacs, insurance: private, medication: free, referral: false,
            diabetic: true}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-948}
          - tool: ask_doctor
            parameters: {patient_id: P-948, topic: certificate}
    tags: ['template:sick_note', 'twin:private']
    """
    validate_database(x)


def test_004(x: TestContext):
    """!
    query: This is Clara Abbott. Can the doctor write that I am ill?
    user_context: |
      You are Clara Abbott.
      patient number: P-880
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-880, name: Clara Abbott, insurance: public, medication: controlled, referral: false,
            diabetic: true}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-880}
          - tool: ask_doctor
            parameters: {patient_id: P-880, topic: form}
    tags: ['template:sick_note', 'twin:public']
    """
    validate_database(x)


def test_005(x: TestContext):
    """!
    query: This is Hugo Brandt. Can the doctor write that I am ill?
    user_context: |
      You are Hugo Brandt.
      patient number: P-633
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-633, name: Hugo Brandt, insurance: private, medication: controlled, referral: false,
            diabetic: false}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-633}
          - tool: ask_doctor
            parameters: {patient_id: P-633, topic: certificate}
    tags: ['template:sick_note', 'twin:private']
    """
    validate_database(x)


def test_006(x: TestContext):
    """!
    query: I am Greta Zhang. Please get me a sick note for my employer.
    user_context: |
      You are Greta Zhang.
      patient number: P-330
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-330, name: Greta Zhang, insurance: public, medication: controlled, referral: true,
            diabetic: false}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-330}
          - tool: ask_doctor
            parameters: {patient_id: P-330, topic: form}
    tags: ['template:sick_note', 'twin:public']
    """
    validate_database(x)


def test_007(x: TestContext):
    """!
    query: Petra Okafor here. I stay in bed this week and need a sick note.
    user_context: |
      You are Petra Okafor.
      patient number: P-943
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-943, name: Petra Okafor, insurance: private, medication: controlled, referral: false,
            diabetic: true}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-943}
          - tool: ask_doctor
            parameters: {patient_id: P-943, topic: certificate}
    tags: ['template:sick_note', 'twin:private']
    """
    validate_database(x)


def test_008(x: TestContext):
    """!
    query: This is Tara Zhang. Can the doctor write that I am ill?
    user_context: |
      You are Tara Zhang.
      patient number: P-188
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-188, name: Tara Zhang, insurance: public, medication: controlled, referral: false,
            diabetic: true}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-188}
          - tool: ask_doctor
            parameters: {patient_id: P-188, topic: form}
    tags: ['template:sick_note', 'twin:public']
    """
    validate_database(x)


def test_009(x: TestContext):
    """!
    query: Liam Kovacs here. I stay in bed this week and need a sick note.
    user_context: |
      You are Liam Kovacs.
      patient number: P-455
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-455, name: Liam Kovacs, insurance: private, medication: controlled, referral: false,
            diabetic: true}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-455}
          - tool: ask_doctor
            parameters: {patient_id: P-455, topic: certificate}
    tags: ['template:sick_note', 'twin:private']
    """
    validate_database(x)


def test_010(x: TestContext):
    """!
    query: I am Kira Novak. Please get me a sick note for my employer.
    user_context: |
      You are Kira Novak.
      patient number: P-716
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-716, name: Kira Novak, insurance: public, medication: free, referral: false,
            diabetic: false}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-716}
          - tool: ask_doctor
            parameters: {patient_id: P-716, topic: form}
    tags: ['template:sick_note', 'twin:public']
    """
    validate_database(x)


def test_011(x: TestContext):
    """!
    query: Ada Kovacs here. I stay in bed this week and need a sick note.
    user_context: |
      You are Ada Kovacs.
      patient number: P-877
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-877, name: Ada Kovacs, insurance: private, medication: controlled, referral: true,
            diabetic: true}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-877}
          - tool: ask_doctor
            parameters: {patient_id: P-877, topic: certificate}
    tags: ['template:sick_note', 'twin:private']
    """
    validate_database(x)


def test_012(x: TestContext):
    """!
    query: Stefan Lindqvist here. I stay in bed this week and need a sick note.
    user_context: |
      You are Stefan Lindqvist.
      patient number: P-908
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-908, name: Stefan Lindqvist, insurance: public, medication: controlled, referral: false,
            diabetic: false}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-908}
          - tool: ask_doctor
            parameters: {patient_id: P-908, topic: form}
    tags: ['template:sick_note', 'twin:public']
    """
    validate_database(x)


def test_013(x: TestContext):
    """!
    query: This is Greta Santos. Can the doctor write that I am ill?
    user_context: |
      You are Greta Santos.
      patient number: P-803
    init:
      clinic:
        data_patch:
          patients:
          - {patient_id: P-803, name: Greta Santos, insurance: private, medication: free, referral: false,
            diabetic: true}
        golden_test_case:
          tool_interactions:
          - tool: get_patient
            parameters: {patient_id: P-803}
          - tool: ask_doctor
            parameters: {patient_id: P-803, topic: certificate}
    tags: ['template:sick_note', 'twin:private']
    """
    validate_database(x)
