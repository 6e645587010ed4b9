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
    query: This is Petra Okafor. Can my parcel go to locker K-383? Now it goes to K-201.
    user_context: |
      You are Petra Okafor.
      parcel number: T-329
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-329, recipient: Petra Okafor, kind: letter, status: in_transit, insured: true,
            heavy: false, perishable: true, customs: cleared, locker: K-201}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-329}
          - tool: ask_depot
            parameters: {parcel_id: T-329, step: redirect}
          - tool: redirect_parcel
            parameters: {parcel_id: T-329, locker: K-383}
    tags: ['template:other_locker', 'twin:insured']
    """
    validate_database(x)


def test_001(x: TestContext):
    """!
    query: Ines Iversen here. I want my parcel in locker K-720 and not in K-640.
    user_context: |
      You are Ines Iversen.
      parcel number: T-518
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-518, recipient: Ines Iversen, kind: box, status: in_transit, insured: false,
            heavy: true, perishable: true, customs: held, locker: K-640}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-518}
          - tool: redirect_parcel
            parameters: {parcel_id: T-518, locker: K-720}
    tags: ['template:other_locker', 'twin:uninsured']
    """
    validate_database(x)


def test_002(x: TestContext):
    """!
    query: I am Ines Iversen. Please send my parcel to locker K-150 instead of K-878.
    user_context: |
      You are Ines Iversen.
      parcel number: T-970
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-970, recipient: Ines Iversen, kind: box, status: delivered, insured: true, heavy: false,
            perishable: true, customs: held, locker: K-878}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-970}
          - tool: ask_depot
            parameters: {parcel_id: T-970, step: redirect}
          - tool: redirect_parcel
            parameters: {parcel_id: T-970, locker: K-150}
    tags: ['template:other_locker', 'twin:insured']
    """
    validate_database(x)


def test_003(x: TestContext):
    """!
    query: I am Umut Brandt. Please send my parcel to locker K-297 instead of K-118.
    user_context: |
      You are Umut Brandt.
      parcel number: T-676
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-676, recipient: Umut Brandt, kind: box, status: delivered, insured: false, heavy: false,
            perishable: false, customs: held, locker: K-118}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-676}
          - tool: redirect_parcel
            parameters: {parcel_id: T-676, locker: K-297}
    tags: ['template:other_locker', 'twin:uninsured']
    """
    validate_database(x)


def test_004(x: TestContext):
    """!
    query: Greta Eriksen here. I want my parcel in locker K-329 and not in K-787.
    user_context: |
      You are Greta Eriksen.
      parcel number: T-139
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-139, recipient: Greta Eriksen, kind: letter, status: delivered, insured: true,
            heavy: false, perishable: false, customs: held, locker: K-787}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-139}
          - tool: ask_depot
            parameters: {parcel_id: T-139, step: redirect}
          - tool: redirect_parcel
            parameters: {parcel_id: T-139, locker: K-329}
    tags: ['template:other_locker', 'twin:insured']
    """
    validate_database(x)


def test_005(x: TestContext):
    """!
    query: I am Ben Moreau. Please send my parcel to locker K-237 instead of K-205.
    user_context: |
      You are Ben Moreau.
      parcel number: T-444
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-444, recipient: Ben Moreau, kind: box, status: delivered, insured: false, heavy: false,
            perishable: true, customs: held, locker: K-205}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-444}
          - tool: redirect_parcel
            parameters: {parcel_id: T-444, locker: K-237}
    tags: ['template:other_locker', 'twin:uninsured']
    """
    validate_database(x)


def test_006(x: TestContext):
    """!
    query: This is Farid Vargas. Can my parcel go to locker K-924? Now it goes to K-139.
    user_context: |
      You are Farid Vargas.
      parcel number: T-918
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-918, recipient: Farid Vargas, kind: box, status: delivered, insured: true, heavy: false,
            perishable: false, customs: held, locker: K-139}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-918}
          - tool: ask_depot
            parameters: {parcel_id: T-918, step: redirect}
          - tool: redirect_parcel
            parameters: {parcel_id: T-918, locker: K-924}
    tags: ['template:other_locker', 'twin:insured']
    """
    validate_database(x)


def test_007(x: TestContext):
    """!
    query: I am Elena Okafor. Please send my parcel to locker K-986 instead of K-664.
    user_context: |
      You are Elena Okafor.
      parcel number: T-792
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-792, recipient: Elena Okafor, kind: box, status: delivered, insured: false,
            heavy: false, perishable: false, customs: held, locker: K-664}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-792}
          - tool: redirect_parcel
            parameters: {parcel_id: T-792, locker: K-986}
    tags: ['template:other_locker', 'twin:uninsured']
    """
    validate_database(x)


def test_008(x: TestContext):
    """!
    query: This is Jonas Urbina. Can my parcel go to locker K-475? Now it goes to K-634.
    user_context: |
      You are Jonas Urbina.
      parcel number: T-845
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-845, recipient: Jonas Urbina, kind: box, status: in_transit, insured: true,
            heavy: true, perishable: true, customs: cleared, locker: K-634}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-845}
          - tool: ask_depot
            parameters: {parcel_id: T-845, step: redirect}
          - tool: redirect_parcel
            parameters: {parcel_id: T-845, locker: K-475}
    tags: ['template:other_locker', 'twin:insured']
    """
    validate_database(x)


def test_009(x: TestContext):
    """!
    query: I am Tara Eriksen. Please send my parcel to locker K-598 instead of K-984.
    user_context: |
      You are Tara Eriksen.
      parcel number: T-788
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-788, recipient: Tara Eriksen, kind: box, status: in_transit, insured: false,
            heavy: true, perishable: true, customs: cleared, locker: K-984}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-788}
          - tool: redirect_parcel
            parameters: {parcel_id: T-788, locker: K-598}
    tags: ['template:other_locker', 'twin:uninsured']
    """
    validate_database(x)


def test_010(x: TestContext):
    """!
    query: This is Stefan Quist. Can my parcel go to locker K-211? Now it goes to K-746.
    user_context: |
      You are Stefan Quist.
      parcel number: T-855
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-855, recipient: Stefan Quist, kind: letter, status: delivered, insured: true,
            heavy: false, perishable: false, customs: cleared, locker: K-746}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-855}
          - tool: ask_depot
            parameters: {parcel_id: T-855, step: redirect}
          - tool: redirect_parcel
            parameters: {parcel_id: T-855, locker: K-211}
    tags: ['template:other_locker', 'twin:insured']
    """
    validate_database(x)


def test_011(x: TestContext):
    """!
    query: This is Quinn Vargas. Can my parcel go to locker K-237? Now it goes to K-403.
    user_context: |
      You are Quinn Vargas.
      parcel number: T-891
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-891, recipient: Quinn Vargas, kind: box, status: in_transit, insured: false,
            heavy: true, perishable: true, customs: held, locker: K-403}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-891}
          - tool: redirect_parcel
            parameters: {parcel_id: T-891, locker: K-237}
    tags: ['template:other_locker', 'twin:uninsured']
    """
    validate_database(x)


def test_012(x: TestContext):
    """!
    query: This is Ben Rossi. Can my parcel go to locker K-679? Now it goes to K-178.
    user_context: |
      You are Ben Rossi.
      parcel number: T-989
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-989, recipient: Ben Rossi, kind: letter, status: in_transit, insured: true,
            heavy: true, perishable: true, customs: cleared, locker: K-178}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-989}
          - tool: ask_depot
            parameters: {parcel_id: T-989, step: redirect}
          - tool: redirect_parcel
            parameters: {parcel_id: T-989, locker: K-679}
    tags: ['template:other_locker', 'twin:insured']
    """
    validate_database(x)


def test_013(x: TestContext):
    """!
    query: I am Rosa Zhang. Please send my parcel to locker K-879 instead of K-292.
    user_context: |
      You are Rosa Zhang.
      parcel number: T-980
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-980, recipient: Rosa Zhang, kind: letter, status: delivered, insured: false,
            heavy: false, perishable: false, customs: held, locker: K-292}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-980}
          - tool: redirect_parcel
            parameters: {parcel_id: T-980, locker: K-879}
    tags: ['template:other_locker', 'twin:uninsured']
    """
    validate_database(x)


def test_014(x: TestContext):
    """!
    query: This is Farid Castillo. Can my parcel go to locker K-778? Now it goes to K-204.
    user_context: |
      You are Farid Castillo.
      parcel number: T-479
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-479, recipient: Farid Castillo, kind: box, status: in_transit, insured: true,
            heavy: true, perishable: true, customs: held, locker: K-204}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-479}
          - tool: ask_depot
            parameters: {parcel_id: T-479, step: redirect}
          - tool: redirect_parcel
            parameters: {parcel_id: T-479, locker: K-778}
    tags: ['template:other_locker', 'twin:insured']
    """
    validate_database(x)


def test_015(x: TestContext):
    """!
    query: This is Umut Urbina. Can my parcel go to locker K-554? Now it goes to K-655.
    user_context: |
      You are Umut Urbina.
      parcel number: T-455
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-455, recipient: Umut Urbina, kind: box, status: in_transit, insured: false,
            heavy: true, perishable: false, customs: held, locker: K-655}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-455}
          - tool: redirect_parcel
            parameters: {parcel_id: T-455, locker: K-554}
    tags: ['template:other_locker', 'twin:uninsured']
    """
    validate_database(x)
