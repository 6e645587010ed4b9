from thinkingbox.common import TestContext

"""!
scenario: parcel
"""


def validate_database(x: TestContext):
    effects = x.effects["parcel"]
    found = ["The final state differs."]
    for d in effects["diff"]:
        place = " ".join(str(part) for part in (d["table"], d["row"], d["field"]) if part is not None)
        found.append(f"{d['kind']} {place}: expected {d['expected']!r}, found {d['actual']!r}")
    assert effects["result_db_hash"] == effects["golden_db_hash"], "\n".join(found)


def test_000(x: TestContext):
    """!
    query: This is Ben Weber. Can my box be in locker K-182?
    user_context: |
      You are Ben Weber.
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-201, recipient: Ben Weber, kind: box, status: in_transit, insured: false, heavy: true,
            perishable: false, customs: cleared, locker: K-941}
          - {parcel_id: T-646, recipient: Ben Weber, kind: letter, status: delivered, insured: false,
            heavy: true, perishable: false, customs: cleared, locker: K-534}
        golden_test_case:
          tool_interactions:
          - tool: find_parcels
            parameters: {recipient: Ben Weber}
          - tool: redirect_parcel
            parameters: {parcel_id: T-201, locker: K-182}
    tags: ['template:redirect_kind', 'twin:named_first']
    """
    validate_database(x)


def test_001(x: TestContext):
    """!
    query: This is Dmitri Moreau. Can my box be in locker K-175?
    user_context: |
      You are Dmitri Moreau.
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-657, recipient: Dmitri Moreau, kind: letter, status: in_transit, insured: false,
            heavy: false, perishable: true, customs: held, locker: K-379}
          - {parcel_id: T-676, recipient: Dmitri Moreau, kind: box, status: in_transit, insured: false,
            heavy: false, perishable: true, customs: held, locker: K-198}
        golden_test_case:
          tool_interactions:
          - tool: find_parcels
            parameters: {recipient: Dmitri Moreau}
          - tool: redirect_parcel
            parameters: {parcel_id: T-676, locker: K-175}
    tags: ['template:redirect_kind', 'twin:named_second']
    """
    validate_database(x)


def test_002(x: TestContext):
    """!
    query: Liam Fontaine here. The box should go to locker K-803 instead.
    user_context: |
      You are Liam Fontaine.
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-150, recipient: Liam Fontaine, kind: box, status: in_transit, insured: false,
            heavy: true, perishable: true, customs: cleared, locker: K-795}
          - {parcel_id: T-717, recipient: Liam Fontaine, kind: tube, status: in_transit, insured: false,
            heavy: false, perishable: true, customs: held, locker: K-926}
        golden_test_case:
          tool_interactions:
          - tool: find_parcels
            parameters: {recipient: Liam Fontaine}
          - tool: redirect_parcel
            parameters: {parcel_id: T-150, locker: K-803}
    tags: ['template:redirect_kind', 'twin:named_first']
    """
    validate_database(x)


def test_003(x: TestContext):
    """!
    query: Wade Urbina here. The tube should go to locker K-655 instead.
    user_context: |
      You are Wade Urbina.
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-316, recipient: Wade Urbina, kind: box, status: in_transit, insured: false,
            heavy: true, perishable: true, customs: held, locker: K-178}
          - {parcel_id: T-933, recipient: Wade Urbina, kind: tube, status: in_transit, insured: false,
            heavy: false, perishable: true, customs: held, locker: K-208}
        golden_test_case:
          tool_interactions:
          - tool: find_parcels
            parameters: {recipient: Wade Urbina}
          - tool: redirect_parcel
            parameters: {parcel_id: T-933, locker: K-655}
    tags: ['template:redirect_kind', 'twin:named_second']
    """
    validate_database(x)


def test_004(x: TestContext):
    """!
    query: Quinn Vargas here. The tube should go to locker K-120 instead.
    user_context: |
      You are Quinn Vargas.
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-129, recipient: Quinn Vargas, kind: tube, status: in_transit, insured: false,
            heavy: true, perishable: true, customs: cleared, locker: K-133}
          - {parcel_id: T-270, recipient: Quinn Vargas, kind: box, status: delivered, insured: false,
            heavy: true, perishable: false, customs: held, locker: K-191}
        golden_test_case:
          tool_interactions:
          - tool: find_parcels
            parameters: {recipient: Quinn Vargas}
          - tool: redirect_parcel
            parameters: {parcel_id: T-129, locker: K-120}
    tags: ['template:redirect_kind', 'twin:named_first']
    """
    validate_database(x)


def test_005(x: TestContext):
    """!
    query: I am Petra Tanaka. Please send my letter to locker K-510.
    user_context: |
      You are Petra Tanaka.
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-534, recipient: Petra Tanaka, kind: tube, status: delivered, insured: false,
            heavy: true, perishable: true, customs: held, locker: K-396}
          - {parcel_id: T-891, recipient: Petra Tanaka, kind: letter, status: delivered, insured: false,
            heavy: true, perishable: false, customs: cleared, locker: K-813}
        golden_test_case:
          tool_interactions:
          - tool: find_parcels
            parameters: {recipient: Petra Tanaka}
          - tool: redirect_parcel
            parameters: {parcel_id: T-891, locker: K-510}
    tags: ['template:redirect_kind', 'twin:named_second']
    """
    validate_database(x)


def test_006(x: TestContext):
    """!
    query: Omar Hoffman here. The tube should go to locker K-295 instead.
    user_context: |
      You are Omar Hoffman.
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-449, recipient: Omar Hoffman, kind: tube, status: in_transit, insured: false,
            heavy: false, perishable: true, customs: cleared, locker: K-574}
          - {parcel_id: T-626, recipient: Omar Hoffman, kind: box, status: delivered, insured: false,
            heavy: true, perishable: false, customs: cleared, locker: K-830}
        golden_test_case:
          tool_interactions:
          - tool: find_parcels
            parameters: {recipient: Omar Hoffman}
          - tool: redirect_parcel
            parameters: {parcel_id: T-449, locker: K-295}
    tags: ['template:redirect_kind', 'twin:named_first']
    """
    validate_database(x)


def test_007(x: TestContext):
    """!
    query: This is Clara Okafor. Can my tube be in locker K-538?
    user_context: |
      You are Clara Okafor.
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-646, recipient: Clara Okafor, kind: box, status: delivered, insured: false,
            heavy: false, perishable: true, customs: cleared, locker: K-178}
          - {parcel_id: T-880, recipient: Clara Okafor, kind: tube, status: in_transit, insured: false,
            heavy: true, perishable: false, customs: cleared, locker: K-789}
        golden_test_case:
          tool_interactions:
          - tool: find_parcels
            parameters: {recipient: Clara Okafor}
          - tool: redirect_parcel
            parameters: {parcel_id: T-880, locker: K-538}
    tags: ['template:redirect_kind', 'twin:named_second']
    """
    validate_database(x)


def test_008(x: TestContext):
    """!
    query: Jonas Grant here. The letter should go to locker K-518 instead.
    user_context: |
      You are Jonas Grant.
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-444, recipient: Jonas Grant, kind: letter, status: in_transit, insured: false,
            heavy: false, perishable: false, customs: held, locker: K-753}
          - {parcel_id: T-521, recipient: Jonas Grant, kind: box, status: in_transit, insured: false,
            heavy: false, perishable: false, customs: cleared, locker: K-790}
        golden_test_case:
          tool_interactions:
          - tool: find_parcels
            parameters: {recipient: Jonas Grant}
          - tool: redirect_parcel
            parameters: {parcel_id: T-444, locker: K-518}
    tags: ['template:redirect_kind', 'twin:named_first']
    """
    validate_database(x)


def test_009(x: TestContext):
    """!
    query: Liam Urbina here. The tube should go to locker K-130 instead.
    user_context: |
      You are Liam Urbina.
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-150, recipient: Liam Urbina, kind: box, status: in_transit, insured: false,
            heavy: true, perishable: false, customs: cleared, locker: K-880}
          - {parcel_id: T-788, recipient: Liam Urbina, kind: tube, status: in_transit, insured: false,
            heavy: false, perishable: false, customs: held, locker: K-148}
        golden_test_case:
          tool_interactions:
          - tool: find_parcels
            parameters: {recipient: Liam Urbina}
          - tool: redirect_parcel
            parameters: {parcel_id: T-788, locker: K-130}
    tags: ['template:redirect_kind', 'twin:named_second']
    """
    validate_database(x)


def test_010(x: TestContext):
    """!
    query: Mona Duarte here. The box should go to locker K-449 instead.
    user_context: |
      You are Mona Duarte.
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-686, recipient: Mona Duarte, kind: box, status: delivered, insured: false, heavy: false,
            perishable: true, customs: held, locker: K-966}
          - {parcel_id: T-716, recipient: Mona Duarte, kind: tube, status: delivered, insured: false,
            heavy: false, perishable: false, customs: cleared, locker: K-455}
        golden_test_case:
          tool_interactions:
          - tool: find_parcels
            parameters: {recipient: Mona Duarte}
          - tool: redirect_parcel
            parameters: {parcel_id: T-686, locker: K-449}
    tags: ['template:redirect_kind', 'twin:named_first']
    """
    validate_database(x)


def test_011(x: TestContext):
    """!
    query: Umut Lindqvist here. The tube should go to locker K-984 instead.
    user_context: |
      You are Umut Lindqvist.
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-211, recipient: Umut Lindqvist, kind: letter, status: in_transit, insured: false,
            heavy: true, perishable: false, customs: held, locker: K-120}
          - {parcel_id: T-428, recipient: Umut Lindqvist, kind: tube, status: in_transit, insured: false,
            heavy: true, perishable: false, customs: cleared, locker: K-657}
        golden_test_case:
          tool_interactions:
          - tool: find_parcels
            parameters: {recipient: Umut Lindqvist}
          - tool: redirect_parcel
            parameters: {parcel_id: T-428, locker: K-984}
    tags: ['template:redirect_kind', 'twin:named_second']
    """
    validate_database(x)


def test_012(x: TestContext):
    """!
    query: This is Liam Urbina. Can my letter be in locker K-289?
    user_context: |
      You are Liam Urbina.
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-679, recipient: Liam Urbina, kind: letter, status: in_transit, insured: false,
            heavy: true, perishable: false, customs: held, locker: K-383}
          - {parcel_id: T-717, recipient: Liam Urbina, kind: tube, status: delivered, insured: false,
            heavy: true, perishable: false, customs: cleared, locker: K-525}
        golden_test_case:
          tool_interactions:
          - tool: find_parcels
            parameters: {recipient: Liam Urbina}
          - tool: redirect_parcel
            parameters: {parcel_id: T-679, locker: K-289}
    tags: ['template:redirect_kind', 'twin:named_first']
    """
    validate_database(x)


def test_013(x: TestContext):
    """!
    query: Ines Santos here. The tube should go to locker K-439 instead.
    user_context: |
      You are Ines Santos.
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-403, recipient: Ines Santos, kind: box, status: delivered, insured: false, heavy: true,
            perishable: true, customs: held, locker: K-731}
          - {parcel_id: T-803, recipient: Ines Santos, kind: tube, status: in_transit, insured: false,
            heavy: true, perishable: false, customs: cleared, locker: K-329}
        golden_test_case:
          tool_interactions:
          - tool: find_parcels
            parameters: {recipient: Ines Santos}
          - tool: redirect_parcel
            parameters: {parcel_id: T-803, locker: K-439}
    tags: ['template:redirect_kind', 'twin:named_second']
    """
    validate_database(x)
