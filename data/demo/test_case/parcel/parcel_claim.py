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
    query: This is Omar Rossi. I claim damage for parcel T-211.
    user_context: |
      You are Omar Rossi.
      claim amount: 12.5
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-211, recipient: Omar Rossi, kind: letter, status: delivered, insured: true,
            heavy: false, perishable: false, customs: cleared, locker: K-877}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-211}
          - tool: open_claim
            parameters: {parcel_id: T-211, amount: 12.5, cause: damage}
    tags: ['template:claim', 'twin:delivered']
    """
    validate_database(x)


def test_001(x: TestContext):
    """!
    query: This is Ben Hoffman. I claim loss for parcel T-989.
    user_context: |
      You are Ben Hoffman.
      claim amount: 55
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-989, recipient: Ben Hoffman, kind: letter, status: in_transit, insured: true,
            heavy: true, perishable: false, customs: cleared, locker: K-664}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-989}
          - tool: log_rejection
            parameters: {parcel_id: T-989, reason: not delivered}
    tags: ['template:claim', 'twin:in_transit']
    """
    validate_database(x)


def test_002(x: TestContext):
    """!
    query: I am Ines Zhang. Parcel T-538 is incomplete and I want money for the loss.
    user_context: |
      You are Ines Zhang.
      claim amount: 95
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-538, recipient: Ines Zhang, kind: letter, status: delivered, insured: false,
            heavy: false, perishable: true, customs: cleared, locker: K-576}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-538}
          - tool: open_claim
            parameters: {parcel_id: T-538, amount: 95, cause: loss}
    tags: ['template:claim', 'twin:delivered']
    """
    validate_database(x)


def test_003(x: TestContext):
    """!
    query: Jonas Brandt here. Please open a claim for loss on parcel T-175.
    user_context: |
      You are Jonas Brandt.
      claim amount: 42.5
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-175, recipient: Jonas Brandt, kind: box, status: in_transit, insured: true,
            heavy: false, perishable: true, customs: cleared, locker: K-933}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-175}
          - tool: log_rejection
            parameters: {parcel_id: T-175, reason: not delivered}
    tags: ['template:claim', 'twin:in_transit']
    """
    validate_database(x)


def test_004(x: TestContext):
    """!
    query: This is Ada Kovacs. I claim loss for parcel T-375.
    user_context: |
      You are Ada Kovacs.
      claim amount: 65
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-375, recipient: Ada Kovacs, kind: box, status: delivered, insured: true, heavy: false,
            perishable: true, customs: held, locker: K-631}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-375}
          - tool: open_claim
            parameters: {parcel_id: T-375, amount: 65, cause: loss}
    tags: ['template:claim', 'twin:delivered']
    """
    validate_database(x)


def test_005(x: TestContext):
    """!
    query: This is Nadia Tanaka. I claim loss for parcel T-657.
    user_context: |
      You are Nadia Tanaka.
      claim amount: 42.5
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-657, recipient: Nadia Tanaka, kind: letter, status: in_transit, insured: false,
            heavy: false, perishable: false, customs: cleared, locker: K-753}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-657}
          - tool: log_rejection
            parameters: {parcel_id: T-657, reason: not delivered}
    tags: ['template:claim', 'twin:in_transit']
    """
    validate_database(x)


def test_006(x: TestContext):
    """!
    query: This is Ines Iversen. I claim loss for parcel T-518.
    user_context: |
      You are Ines Iversen.
      claim amount: 32.5
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-518, recipient: Ines Iversen, kind: box, status: delivered, insured: false,
            heavy: true, perishable: false, customs: held, locker: K-552}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-518}
          - tool: open_claim
            parameters: {parcel_id: T-518, amount: 32.5, cause: loss}
    tags: ['template:claim', 'twin:delivered']
    """
    validate_database(x)


def test_007(x: TestContext):
    """!
    query: I am Ada Kovacs. Parcel T-449 is damaged and I want money for the damage.
    user_context: |
      You are Ada Kovacs.
      claim amount: 42.5
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-449, recipient: Ada Kovacs, kind: box, status: in_transit, insured: false, heavy: false,
            perishable: true, customs: cleared, locker: K-942}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-449}
          - tool: log_rejection
            parameters: {parcel_id: T-449, reason: not delivered}
    tags: ['template:claim', 'twin:in_transit']
    """
    validate_database(x)


def test_008(x: TestContext):
    """!
    query: Umut Lindqvist here. Please open a claim for damage on parcel T-717.
    user_context: |
      You are Umut Lindqvist.
      claim amount: 30
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-717, recipient: Umut Lindqvist, kind: tube, status: delivered, insured: false,
            heavy: true, perishable: false, customs: cleared, locker: K-716}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-717}
          - tool: open_claim
            parameters: {parcel_id: T-717, amount: 30, cause: damage}
    tags: ['template:claim', 'twin:delivered']
    """
    validate_database(x)


def test_009(x: TestContext):
    """!
    query: Yusuf Weber here. Please open a claim for damage on parcel T-574.
    user_context: |
      You are Yusuf Weber.
      claim amount: 15
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-574, recipient: Yusuf Weber, kind: letter, status: in_transit, insured: true,
            heavy: false, perishable: false, customs: cleared, locker: K-927}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-574}
          - tool: log_rejection
            parameters: {parcel_id: T-574, reason: not delivered}
    tags: ['template:claim', 'twin:in_transit']
    """
    validate_database(x)


def test_010(x: TestContext):
    """!
    query: Greta Zhang here. Please open a claim for damage on parcel T-970.
    user_context: |
      You are Greta Zhang.
      claim amount: 30
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-970, recipient: Greta Zhang, kind: box, status: delivered, insured: true, heavy: true,
            perishable: false, customs: cleared, locker: K-178}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-970}
          - tool: open_claim
            parameters: {parcel_id: T-970, amount: 30, cause: damage}
    tags: ['template:claim', 'twin:delivered']
    """
    validate_database(x)


def test_011(x: TestContext):
    """!
    query: I am Jonas Urbina. Parcel T-980 is incomplete and I want money for the loss.
    user_context: |
      You are Jonas Urbina.
      claim amount: 12.5
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-980, recipient: Jonas Urbina, kind: letter, status: in_transit, insured: true,
            heavy: true, perishable: false, customs: cleared, locker: K-265}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-980}
          - tool: log_rejection
            parameters: {parcel_id: T-980, reason: not delivered}
    tags: ['template:claim', 'twin:in_transit']
    """
    validate_database(x)


def test_012(x: TestContext):
    """!
    query: I am Quinn Vargas. Parcel T-790 is damaged and I want money for the damage.
    user_context: |
      You are Quinn Vargas.
      claim amount: 17.5
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-790, recipient: Quinn Vargas, kind: letter, status: delivered, insured: true,
            heavy: false, perishable: true, customs: cleared, locker: K-518}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-790}
          - tool: open_claim
            parameters: {parcel_id: T-790, amount: 17.5, cause: damage}
    tags: ['template:claim', 'twin:delivered']
    """
    validate_database(x)


def test_013(x: TestContext):
    """!
    query: I am Petra Jansen. Parcel T-471 is incomplete and I want money for the loss.
    user_context: |
      You are Petra Jansen.
      claim amount: 20
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-471, recipient: Petra Jansen, kind: tube, status: in_transit, insured: false,
            heavy: false, perishable: true, customs: cleared, locker: K-339}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-471}
          - tool: log_rejection
            parameters: {parcel_id: T-471, reason: not delivered}
    tags: ['template:claim', 'twin:in_transit']
    """
    validate_database(x)


def test_014(x: TestContext):
    """!
    query: Dmitri Vargas here. Please open a claim for loss on parcel T-786.
    user_context: |
      You are Dmitri Vargas.
      claim amount: 95
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-786, recipient: Dmitri Vargas, kind: tube, status: delivered, insured: false,
            heavy: false, perishable: true, customs: held, locker: K-626}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-786}
          - tool: open_claim
            parameters: {parcel_id: T-786, amount: 95, cause: loss}
    tags: ['template:claim', 'twin:delivered']
    """
    validate_database(x)


def test_015(x: TestContext):
    """!
    query: Nadia Kovacs here. Please open a claim for damage on parcel T-250.
    user_context: |
      You are Nadia Kovacs.
      claim amount: 37.5
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-250, recipient: Nadia Kovacs, kind: letter, status: in_transit, insured: true,
            heavy: true, perishable: false, customs: held, locker: K-700}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-250}
          - tool: log_rejection
            parameters: {parcel_id: T-250, reason: not delivered}
    tags: ['template:claim', 'twin:in_transit']
    """
    validate_database(x)
