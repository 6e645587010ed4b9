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
    query: This is Ben Moreau. Can you pass licence and permit to customs for parcel T-878?
    user_context: |
      You are Ben Moreau.
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-878, recipient: Ben Moreau, kind: tube, status: delivered, insured: false, heavy: false,
            perishable: true, customs: held, locker: K-297}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-878}
          - tool: declare_documents
            parameters:
              parcel_id: T-878
              documents: [licence, permit]
    tags: ['template:customs', 'twin:held']
    """
    validate_database(x)


def test_001(x: TestContext):
    """!
    query: Nadia Tanaka here. Please declare invoice and licence for parcel T-558.
    user_context: |
      You are Nadia Tanaka.
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-558, recipient: Nadia Tanaka, kind: box, status: in_transit, insured: false,
            heavy: false, perishable: true, customs: cleared, locker: K-956}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-558}
    tags: ['template:customs', 'twin:cleared']
    """
    validate_database(x)


def test_002(x: TestContext):
    """!
    query: Umut Brandt here. Please declare invoice and licence for parcel T-657.
    user_context: |
      You are Umut Brandt.
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-657, recipient: Umut Brandt, kind: letter, status: delivered, insured: false,
            heavy: false, perishable: true, customs: held, locker: K-933}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-657}
          - tool: declare_documents
            parameters:
              parcel_id: T-657
              documents: [invoice, licence]
    tags: ['template:customs', 'twin:held']
    """
    validate_database(x)


def test_003(x: TestContext):
    """!
    query: I am Hugo Lindqvist. For the customs of parcel T-646 I have invoice and permit.
    user_context: |
      You are Hugo Lindqvist.
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-646, recipient: Hugo Lindqvist, kind: tube, status: delivered, insured: false,
            heavy: true, perishable: true, customs: cleared, locker: K-361}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-646}
    tags: ['template:customs', 'twin:cleared']
    """
    validate_database(x)


def test_004(x: TestContext):
    """!
    query: Umut Urbina here. Please declare permit and licence for parcel T-250.
    user_context: |
      You are Umut Urbina.
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-250, recipient: Umut Urbina, kind: letter, status: delivered, insured: false,
            heavy: false, perishable: true, customs: held, locker: K-631}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-250}
          - tool: declare_documents
            parameters:
              parcel_id: T-250
              documents: [permit, licence]
    tags: ['template:customs', 'twin:held']
    """
    validate_database(x)


def test_005(x: TestContext):
    """!
    query: This is Farid Castillo. Can you pass invoice and licence to customs for parcel T-186?
    user_context: |
      You are Farid Castillo.
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-186, recipient: Farid Castillo, kind: tube, status: delivered, insured: true,
            heavy: false, perishable: false, customs: cleared, locker: K-509}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-186}
    tags: ['template:customs', 'twin:cleared']
    """
    validate_database(x)


def test_006(x: TestContext):
    """!
    query: This is Ines Santos. Can you pass invoice and permit to customs for parcel T-134?
    user_context: |
      You are Ines Santos.
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-134, recipient: Ines Santos, kind: box, status: in_transit, insured: false,
            heavy: false, perishable: false, customs: held, locker: K-347}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-134}
          - tool: declare_documents
            parameters:
              parcel_id: T-134
              documents: [invoice, permit]
    tags: ['template:customs', 'twin:held']
    """
    validate_database(x)


def test_007(x: TestContext):
    """!
    query: This is Vera Iversen. Can you pass licence and invoice to customs for parcel T-120?
    user_context: |
      You are Vera Iversen.
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-120, recipient: Vera Iversen, kind: box, status: in_transit, insured: true,
            heavy: true, perishable: true, customs: cleared, locker: K-890}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-120}
    tags: ['template:customs', 'twin:cleared']
    """
    validate_database(x)


def test_008(x: TestContext):
    """!
    query: This is Hugo Quist. Can you pass invoice and certificate to customs for parcel T-414?
    user_context: |
      You are Hugo Quist.
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-414, recipient: Hugo Quist, kind: box, status: in_transit, insured: true, heavy: true,
            perishable: true, customs: held, locker: K-656}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-414}
          - tool: declare_documents
            parameters:
              parcel_id: T-414
              documents: [invoice, certificate]
    tags: ['template:customs', 'twin:held']
    """
    validate_database(x)


def test_009(x: TestContext):
    """!
    query: I am Jonas Urbina. For the customs of parcel T-906 I have certificate and invoice.
    user_context: |
      You are Jonas Urbina.
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-906, recipient: Jonas Urbina, kind: tube, status: delivered, insured: false,
            heavy: false, perishable: true, customs: cleared, locker: K-473}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-906}
    tags: ['template:customs', 'twin:cleared']
    """
    validate_database(x)


def test_010(x: TestContext):
    """!
    query: Liam Kovacs here. Please declare licence and permit for parcel T-270.
    user_context: |
      You are Liam Kovacs.
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-270, recipient: Liam Kovacs, kind: box, status: in_transit, insured: false,
            heavy: true, perishable: false, customs: held, locker: K-133}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-270}
          - tool: declare_documents
            parameters:
              parcel_id: T-270
              documents: [licence, permit]
    tags: ['template:customs', 'twin:held']
    """
    validate_database(x)


def test_011(x: TestContext):
    """!
    query: This is Jonas Urbina. Can you pass invoice and permit to customs for parcel T-519?
    user_context: |
      You are Jonas Urbina.
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-519, recipient: Jonas Urbina, kind: tube, status: delivered, insured: false,
            heavy: false, perishable: true, customs: cleared, locker: K-408}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-519}
    tags: ['template:customs', 'twin:cleared']
    """
    validate_database(x)


def test_012(x: TestContext):
    """!
    query: This is Farid Lindqvist. Can you pass licence and permit to customs for parcel T-984?
    user_context: |
      You are Farid Lindqvist.
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-984, recipient: Farid Lindqvist, kind: letter, status: in_transit, insured: true,
            heavy: false, perishable: false, customs: held, locker: K-855}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-984}
          - tool: declare_documents
            parameters:
              parcel_id: T-984
              documents: [licence, permit]
    tags: ['template:customs', 'twin:held']
    """
    validate_database(x)


def test_013(x: TestContext):
    """!
    query: Dmitri Moreau here. Please declare licence and certificate for parcel T-178.
    user_context: |
      You are Dmitri Moreau.
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-178, recipient: Dmitri Moreau, kind: letter, status: in_transit, insured: true,
            heavy: true, perishable: false, customs: cleared, locker: K-795}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-178}
    tags: ['template:customs', 'twin:cleared']
    """
    validate_database(x)
