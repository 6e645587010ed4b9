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
    query: I am Ben Hoffman. Please pick up my robust parcel T-368.
    user_context: |
      You are Ben Hoffman.
      pickup date: 2026-07-18
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-368, recipient: Ben Hoffman, kind: box, status: delivered, insured: false, heavy: true,
            perishable: true, customs: held, locker: K-365}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-368}
          - tool: book_pickup
            parameters: {parcel_id: T-368, date: '2026-07-18', vehicle: van, fragile: false}
    tags: ['template:pickup', 'twin:heavy']
    """
    validate_database(x)


def test_001(x: TestContext):
    """!
    query: Ada Kovacs here. Parcel T-161 is robust and waits for a pickup.
    user_context: |
      You are Ada Kovacs.
      pickup date: 2026-07-18
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-161, recipient: Ada Kovacs, kind: letter, status: delivered, insured: false,
            heavy: false, perishable: false, customs: held, locker: K-725}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-161}
          - tool: book_pickup
            parameters: {parcel_id: T-161, date: '2026-07-18', vehicle: bike, fragile: false}
    tags: ['template:pickup', 'twin:light']
    """
    validate_database(x)


def test_002(x: TestContext):
    """!
    query: Elena Okafor here. Parcel T-518 is fragile and waits for a pickup.
    user_context: |
      You are Elena Okafor.
      pickup date: 2026-07-24
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-518, recipient: Elena Okafor, kind: letter, status: delivered, insured: false,
            heavy: true, perishable: false, customs: held, locker: K-857}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-518}
          - tool: book_pickup
            parameters: {parcel_id: T-518, date: '2026-07-24', vehicle: van, fragile: true}
    tags: ['template:pickup', 'twin:heavy']
    """
    validate_database(x)


def test_003(x: TestContext):
    """!
    query: Yusuf Rossi here. Parcel T-188 is fragile and waits for a pickup.
    user_context: |
      You are Yusuf Rossi.
      pickup date: 2026-04-24
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-188, recipient: Yusuf Rossi, kind: letter, status: in_transit, insured: false,
            heavy: false, perishable: true, customs: held, locker: K-969}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-188}
          - tool: book_pickup
            parameters: {parcel_id: T-188, date: '2026-04-24', vehicle: bike, fragile: true}
    tags: ['template:pickup', 'twin:light']
    """
    validate_database(x)


def test_004(x: TestContext):
    """!
    query: I am Ben Weber. Please pick up my robust parcel T-361.
    user_context: |
      You are Ben Weber.
      pickup date: 2026-09-07
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-361, recipient: Ben Weber, kind: letter, status: in_transit, insured: true,
            heavy: true, perishable: true, customs: held, locker: K-289}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-361}
          - tool: book_pickup
            parameters: {parcel_id: T-361, date: '2026-09-07', vehicle: van, fragile: false}
    tags: ['template:pickup', 'twin:heavy']
    """
    validate_database(x)


def test_005(x: TestContext):
    """!
    query: This is Ines Santos. Can someone fetch parcel T-330? It is robust.
    user_context: |
      You are Ines Santos.
      pickup date: 2026-09-21
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-330, recipient: Ines Santos, kind: box, status: in_transit, insured: false,
            heavy: false, perishable: true, customs: cleared, locker: K-906}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-330}
          - tool: book_pickup
            parameters: {parcel_id: T-330, date: '2026-09-21', vehicle: bike, fragile: false}
    tags: ['template:pickup', 'twin:light']
    """
    validate_database(x)


def test_006(x: TestContext):
    """!
    query: I am Quinn Castillo. Please pick up my fragile parcel T-918.
    user_context: |
      You are Quinn Castillo.
      pickup date: 2026-06-03
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-918, recipient: Quinn Castillo, kind: tube, status: in_transit, insured: true,
            heavy: true, perishable: false, customs: held, locker: K-118}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-918}
          - tool: book_pickup
            parameters: {parcel_id: T-918, date: '2026-06-03', vehicle: van, fragile: true}
    tags: ['template:pickup', 'twin:heavy']
    """
    validate_database(x)


def test_007(x: TestContext):
    """!
    query: I am Ben Hoffman. Please pick up my robust parcel T-139.
    user_context: |
      You are Ben Hoffman.
      pickup date: 2026-08-03
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-139, recipient: Ben Hoffman, kind: tube, status: delivered, insured: true, heavy: false,
            perishable: true, customs: held, locker: K-150}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-139}
          - tool: book_pickup
            parameters: {parcel_id: T-139, date: '2026-08-03', vehicle: bike, fragile: false}
    tags: ['template:pickup', 'twin:light']
    """
    validate_database(x)


def test_008(x: TestContext):
    """!
    query: I am Yusuf Iversen. Please pick up my fragile parcel T-966.
    user_context: |
      You are Yusuf Iversen.
      pickup date: 2026-05-18
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-966, recipient: Yusuf Iversen, kind: letter, status: delivered, insured: true,
            heavy: true, perishable: false, customs: held, locker: K-647}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-966}
          - tool: book_pickup
            parameters: {parcel_id: T-966, date: '2026-05-18', vehicle: van, fragile: true}
    tags: ['template:pickup', 'twin:heavy']
    """
    validate_database(x)


def test_009(x: TestContext):
    """!
    query: I am Clara Fontaine. Please pick up my fragile parcel T-449.
    user_context: |
      You are Clara Fontaine.
      pickup date: 2026-04-03
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-449, recipient: Clara Fontaine, kind: letter, status: delivered, insured: true,
            heavy: false, perishable: true, customs: held, locker: K-934}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-449}
          - tool: book_pickup
            parameters: {parcel_id: T-449, date: '2026-04-03', vehicle: bike, fragile: true}
    tags: ['template:pickup', 'twin:light']
    """
    validate_database(x)


def test_010(x: TestContext):
    """!
    query: This is Hugo Brandt. Can someone fetch parcel T-150? It is robust.
    user_context: |
      You are Hugo Brandt.
      pickup date: 2026-08-21
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-150, recipient: Hugo Brandt, kind: letter, status: delivered, insured: true,
            heavy: true, perishable: true, customs: held, locker: K-139}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-150}
          - tool: book_pickup
            parameters: {parcel_id: T-150, date: '2026-08-21', vehicle: van, fragile: false}
    tags: ['template:pickup', 'twin:heavy']
    """
    validate_database(x)


def test_011(x: TestContext):
    """!
    query: I am Greta Jansen. Please pick up my fragile parcel T-943.
    user_context: |
      You are Greta Jansen.
      pickup date: 2026-05-03
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-943, recipient: Greta Jansen, kind: box, status: delivered, insured: false,
            heavy: false, perishable: false, customs: held, locker: K-265}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-943}
          - tool: book_pickup
            parameters: {parcel_id: T-943, date: '2026-05-03', vehicle: bike, fragile: true}
    tags: ['template:pickup', 'twin:light']
    """
    validate_database(x)


def test_012(x: TestContext):
    """!
    query: Tara Zhang here. Parcel T-769 is robust and waits for a pickup.
    user_context: |
      You are Tara Zhang.
      pickup date: 2026-04-14
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-769, recipient: Tara Zhang, kind: box, status: delivered, insured: false, heavy: true,
            perishable: true, customs: cleared, locker: K-475}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-769}
          - tool: book_pickup
            parameters: {parcel_id: T-769, date: '2026-04-14', vehicle: van, fragile: false}
    tags: ['template:pickup', 'twin:heavy']
    """
    validate_database(x)


def test_013(x: TestContext):
    """!
    query: I am Tara Eriksen. Please pick up my fragile parcel T-339.
    user_context: |
      You are Tara Eriksen.
      pickup date: 2026-08-14
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-339, recipient: Tara Eriksen, kind: tube, status: delivered, insured: false,
            heavy: false, perishable: false, customs: held, locker: K-182}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-339}
          - tool: book_pickup
            parameters: {parcel_id: T-339, date: '2026-08-14', vehicle: bike, fragile: true}
    tags: ['template:pickup', 'twin:light']
    """
    validate_database(x)
