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
    query: I am Mona Moreau. Please hold my parcel until 2026-08-03.
    user_context: |
      You are Mona Moreau.
      parcel number: T-865
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-865, recipient: Mona Moreau, kind: tube, status: delivered, insured: true, heavy: true,
            perishable: true, customs: cleared, locker: K-633}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-865}
          - tool: log_rejection
            parameters: {parcel_id: T-865, reason: perishable}
    tags: ['template:hold', 'twin:perishable']
    """
    validate_database(x)


def test_001(x: TestContext):
    """!
    query: I am Ada Abbott. Please hold my parcel until 2026-04-07.
    user_context: |
      You are Ada Abbott.
      parcel number: T-877
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-877, recipient: Ada Abbott, kind: letter, status: delivered, insured: true,
            heavy: true, perishable: false, customs: held, locker: K-948}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-877}
          - tool: hold_parcel
            parameters: {parcel_id: T-877, until: '2026-04-07'}
    tags: ['template:hold', 'twin:durable']
    """
    validate_database(x)


def test_002(x: TestContext):
    """!
    query: Jonas Urbina here. I am away, keep my parcel at the depot until 2026-04-28.
    user_context: |
      You are Jonas Urbina.
      parcel number: T-858
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-858, recipient: Jonas Urbina, kind: letter, status: delivered, insured: false,
            heavy: false, perishable: true, customs: held, locker: K-538}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-858}
          - tool: log_rejection
            parameters: {parcel_id: T-858, reason: perishable}
    tags: ['template:hold', 'twin:perishable']
    """
    validate_database(x)


def test_003(x: TestContext):
    """!
    query: This is Elena Okafor. Can my parcel wait at the depot until further notice?
    user_context: |
      You are Elena Okafor.
      parcel number: T-931
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-931, recipient: Elena Okafor, kind: letter, status: delivered, insured: true,
            heavy: false, perishable: false, customs: cleared, locker: K-966}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-931}
          - tool: hold_parcel
            parameters: {parcel_id: T-931, until: null}
    tags: ['template:hold', 'twin:durable']
    """
    validate_database(x)


def test_004(x: TestContext):
    """!
    query: I am Rosa Jansen. Please hold my parcel until 2026-08-18.
    user_context: |
      You are Rosa Jansen.
      parcel number: T-347
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-347, recipient: Rosa Jansen, kind: box, status: in_transit, insured: true, heavy: false,
            perishable: true, customs: cleared, locker: K-135}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-347}
          - tool: log_rejection
            parameters: {parcel_id: T-347, reason: perishable}
    tags: ['template:hold', 'twin:perishable']
    """
    validate_database(x)


def test_005(x: TestContext):
    """!
    query: I am Omar Moreau. Please hold my parcel until 2026-08-11.
    user_context: |
      You are Omar Moreau.
      parcel number: T-329
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-329, recipient: Omar Moreau, kind: box, status: in_transit, insured: true, heavy: true,
            perishable: false, customs: held, locker: K-933}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-329}
          - tool: hold_parcel
            parameters: {parcel_id: T-329, until: '2026-08-11'}
    tags: ['template:hold', 'twin:durable']
    """
    validate_database(x)


def test_006(x: TestContext):
    """!
    query: This is Umut Grant. Can my parcel wait at the depot until 2026-06-11?
    user_context: |
      You are Umut Grant.
      parcel number: T-539
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-539, recipient: Umut Grant, kind: tube, status: in_transit, insured: false,
            heavy: false, perishable: true, customs: held, locker: K-245}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-539}
          - tool: log_rejection
            parameters: {parcel_id: T-539, reason: perishable}
    tags: ['template:hold', 'twin:perishable']
    """
    validate_database(x)


def test_007(x: TestContext):
    """!
    query: This is Clara Tanaka. Can my parcel wait at the depot until further notice?
    user_context: |
      You are Clara Tanaka.
      parcel number: T-211
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-211, recipient: Clara Tanaka, kind: letter, status: delivered, insured: true,
            heavy: false, perishable: false, customs: cleared, locker: K-725}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-211}
          - tool: hold_parcel
            parameters: {parcel_id: T-211, until: null}
    tags: ['template:hold', 'twin:durable']
    """
    validate_database(x)


def test_008(x: TestContext):
    """!
    query: This is Ben Moreau. Can my parcel wait at the depot until 2026-05-14?
    user_context: |
      You are Ben Moreau.
      parcel number: T-571
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-571, recipient: Ben Moreau, kind: box, status: delivered, insured: true, heavy: true,
            perishable: true, customs: cleared, locker: K-446}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-571}
          - tool: log_rejection
            parameters: {parcel_id: T-571, reason: perishable}
    tags: ['template:hold', 'twin:perishable']
    """
    validate_database(x)


def test_009(x: TestContext):
    """!
    query: This is Stefan Vargas. Can my parcel wait at the depot until 2026-04-21?
    user_context: |
      You are Stefan Vargas.
      parcel number: T-330
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-330, recipient: Stefan Vargas, kind: letter, status: in_transit, insured: false,
            heavy: true, perishable: false, customs: cleared, locker: K-878}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-330}
          - tool: hold_parcel
            parameters: {parcel_id: T-330, until: '2026-04-21'}
    tags: ['template:hold', 'twin:durable']
    """
    validate_database(x)


def test_010(x: TestContext):
    """!
    query: Ben Moreau here. I am away, keep my parcel at the depot until further notice.
    user_context: |
      You are Ben Moreau.
      parcel number: T-953
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-953, recipient: Ben Moreau, kind: tube, status: in_transit, insured: false,
            heavy: false, perishable: true, customs: held, locker: K-986}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-953}
          - tool: log_rejection
            parameters: {parcel_id: T-953, reason: perishable}
    tags: ['template:hold', 'twin:perishable']
    """
    validate_database(x)


def test_011(x: TestContext):
    """!
    query: I am Clara Tanaka. Please hold my parcel until 2026-04-18.
    user_context: |
      You are Clara Tanaka.
      parcel number: T-552
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-552, recipient: Clara Tanaka, kind: box, status: in_transit, insured: false,
            heavy: true, perishable: false, customs: held, locker: K-769}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-552}
          - tool: hold_parcel
            parameters: {parcel_id: T-552, until: '2026-04-18'}
    tags: ['template:hold', 'twin:durable']
    """
    validate_database(x)


def test_012(x: TestContext):
    """!
    query: Dmitri Hoffman here. I am away, keep my parcel at the depot until further notice.
    user_context: |
      You are Dmitri Hoffman.
      parcel number: T-738
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-738, recipient: Dmitri Hoffman, kind: tube, status: in_transit, insured: true,
            heavy: false, perishable: true, customs: cleared, locker: K-571}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-738}
          - tool: log_rejection
            parameters: {parcel_id: T-738, reason: perishable}
    tags: ['template:hold', 'twin:perishable']
    """
    validate_database(x)


def test_013(x: TestContext):
    """!
    query: This is Quinn Hoffman. Can my parcel wait at the depot until 2026-06-24?
    user_context: |
      You are Quinn Hoffman.
      parcel number: T-859
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-859, recipient: Quinn Hoffman, kind: letter, status: delivered, insured: true,
            heavy: true, perishable: false, customs: cleared, locker: K-788}
        golden_test_case:
          tool_interactions:
          - tool: track_parcel
            parameters: {parcel_id: T-859}
          - tool: hold_parcel
            parameters: {parcel_id: T-859, until: '2026-06-24'}
    tags: ['template:hold', 'twin:durable']
    """
    validate_database(x)
