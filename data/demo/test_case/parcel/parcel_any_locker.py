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
    query: I am Mona Moreau. Whatever is on its way to me should go to locker K-647.
    user_context: |
      You are Mona Moreau.
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-439, recipient: Mona Moreau, kind: box, status: in_transit, insured: false,
            heavy: false, perishable: true, customs: held, locker: K-182}
        golden_test_case:
          tool_interactions:
          - tool: find_parcels
            parameters: {recipient: Mona Moreau}
          - tool: redirect_parcel
            parameters: {parcel_id: T-439, locker: K-647}
    tags: ['template:any_locker', 'twin:box']
    """
    validate_database(x)


def test_001(x: TestContext):
    """!
    query: I am Umut Grant. Whatever is on its way to me should go to locker K-924.
    user_context: |
      You are Umut Grant.
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-986, recipient: Umut Grant, kind: tube, status: in_transit, insured: false,
            heavy: false, perishable: false, customs: cleared, locker: K-788}
        golden_test_case:
          tool_interactions:
          - tool: find_parcels
            parameters: {recipient: Umut Grant}
          - tool: log_rejection
            parameters: {parcel_id: T-986, reason: too long}
    tags: ['template:any_locker', 'twin:tube']
    """
    validate_database(x)


def test_002(x: TestContext):
    """!
    query: I am Rosa Jansen. Whatever is on its way to me should go to locker K-647.
    user_context: |
      You are Rosa Jansen.
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-375, recipient: Rosa Jansen, kind: box, status: delivered, insured: false, heavy: true,
            perishable: true, customs: cleared, locker: K-679}
        golden_test_case:
          tool_interactions:
          - tool: find_parcels
            parameters: {recipient: Rosa Jansen}
          - tool: redirect_parcel
            parameters: {parcel_id: T-375, locker: K-647}
    tags: ['template:any_locker', 'twin:box']
    """
    validate_database(x)


def test_003(x: TestContext):
    """!
    query: I am Tara Eriksen. Whatever is on its way to me should go to locker K-375.
    user_context: |
      You are Tara Eriksen.
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-723, recipient: Tara Eriksen, kind: tube, status: in_transit, insured: false,
            heavy: false, perishable: false, customs: cleared, locker: K-558}
        golden_test_case:
          tool_interactions:
          - tool: find_parcels
            parameters: {recipient: Tara Eriksen}
          - tool: log_rejection
            parameters: {parcel_id: T-723, reason: too long}
    tags: ['template:any_locker', 'twin:tube']
    """
    validate_database(x)


def test_004(x: TestContext):
    """!
    query: This is Kira Duarte. Can my delivery be in locker K-853? I have no number.
    user_context: |
      You are Kira Duarte.
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-237, recipient: Kira Duarte, kind: box, status: in_transit, insured: false,
            heavy: true, perishable: false, customs: held, locker: K-518}
        golden_test_case:
          tool_interactions:
          - tool: find_parcels
            parameters: {recipient: Kira Duarte}
          - tool: redirect_parcel
            parameters: {parcel_id: T-237, locker: K-853}
    tags: ['template:any_locker', 'twin:box']
    """
    validate_database(x)


def test_005(x: TestContext):
    """!
    query: This is Nadia Kovacs. Can my delivery be in locker K-552? I have no number.
    user_context: |
      You are Nadia Kovacs.
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-725, recipient: Nadia Kovacs, kind: tube, status: in_transit, insured: false,
            heavy: true, perishable: true, customs: held, locker: K-289}
        golden_test_case:
          tool_interactions:
          - tool: find_parcels
            parameters: {recipient: Nadia Kovacs}
          - tool: log_rejection
            parameters: {parcel_id: T-725, reason: too long}
    tags: ['template:any_locker', 'twin:tube']
    """
    validate_database(x)


def test_006(x: TestContext):
    """!
    query: I am Jonas Pereira. Whatever is on its way to me should go to locker K-806.
    user_context: |
      You are Jonas Pereira.
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-725, recipient: Jonas Pereira, kind: box, status: in_transit, insured: false,
            heavy: true, perishable: false, customs: held, locker: K-688}
        golden_test_case:
          tool_interactions:
          - tool: find_parcels
            parameters: {recipient: Jonas Pereira}
          - tool: redirect_parcel
            parameters: {parcel_id: T-725, locker: K-806}
    tags: ['template:any_locker', 'twin:box']
    """
    validate_database(x)


def test_007(x: TestContext):
    """!
    query: This is Liam Kovacs. Can my delivery be in locker K-950? I have no number.
    user_context: |
      You are Liam Kovacs.
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-890, recipient: Liam Kovacs, kind: tube, status: delivered, insured: false,
            heavy: false, perishable: true, customs: cleared, locker: K-134}
        golden_test_case:
          tool_interactions:
          - tool: find_parcels
            parameters: {recipient: Liam Kovacs}
          - tool: log_rejection
            parameters: {parcel_id: T-890, reason: too long}
    tags: ['template:any_locker', 'twin:tube']
    """
    validate_database(x)


def test_008(x: TestContext):
    """!
    query: This is Dmitri Hoffman. Can my delivery be in locker K-392? I have no number.
    user_context: |
      You are Dmitri Hoffman.
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-625, recipient: Dmitri Hoffman, kind: box, status: in_transit, insured: false,
            heavy: false, perishable: true, customs: held, locker: K-295}
        golden_test_case:
          tool_interactions:
          - tool: find_parcels
            parameters: {recipient: Dmitri Hoffman}
          - tool: redirect_parcel
            parameters: {parcel_id: T-625, locker: K-392}
    tags: ['template:any_locker', 'twin:box']
    """
    validate_database(x)


def test_009(x: TestContext):
    """!
    query: This is Nadia Abbott. Can my delivery be in locker K-778? I have no number.
    user_context: |
      You are Nadia Abbott.
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-245, recipient: Nadia Abbott, kind: tube, status: in_transit, insured: false,
            heavy: true, perishable: false, customs: cleared, locker: K-438}
        golden_test_case:
          tool_interactions:
          - tool: find_parcels
            parameters: {recipient: Nadia Abbott}
          - tool: log_rejection
            parameters: {parcel_id: T-245, reason: too long}
    tags: ['template:any_locker', 'twin:tube']
    """
    validate_database(x)


def test_010(x: TestContext):
    """!
    query: Jonas Urbina here. I moved, please use locker K-521 for what you have for me.
    user_context: |
      You are Jonas Urbina.
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-362, recipient: Jonas Urbina, kind: box, status: delivered, insured: false,
            heavy: false, perishable: true, customs: cleared, locker: K-316}
        golden_test_case:
          tool_interactions:
          - tool: find_parcels
            parameters: {recipient: Jonas Urbina}
          - tool: redirect_parcel
            parameters: {parcel_id: T-362, locker: K-521}
    tags: ['template:any_locker', 'twin:box']
    """
    validate_database(x)


def test_011(x: TestContext):
    """!
    query: Yusuf Rossi here. I moved, please use locker K-642 for what you have for me.
    user_context: |
      You are Yusuf Rossi.
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-857, recipient: Yusuf Rossi, kind: tube, status: in_transit, insured: false,
            heavy: false, perishable: false, customs: cleared, locker: K-679}
        golden_test_case:
          tool_interactions:
          - tool: find_parcels
            parameters: {recipient: Yusuf Rossi}
          - tool: log_rejection
            parameters: {parcel_id: T-857, reason: too long}
    tags: ['template:any_locker', 'twin:tube']
    """
    validate_database(x)


def test_012(x: TestContext):
    """!
    query: Liam Pereira here. I moved, please use locker K-669 for what you have for me.
    user_context: |
      You are Liam Pereira.
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-855, recipient: Liam Pereira, kind: box, status: in_transit, insured: false,
            heavy: false, perishable: true, customs: cleared, locker: K-773}
        golden_test_case:
          tool_interactions:
          - tool: find_parcels
            parameters: {recipient: Liam Pereira}
          - tool: redirect_parcel
            parameters: {parcel_id: T-855, locker: K-669}
    tags: ['template:any_locker', 'twin:box']
    """
    validate_database(x)


def test_013(x: TestContext):
    """!
    query: I am Vera Novak. Whatever is on its way to me should go to locker K-853.
    user_context: |
      You are Vera Novak.
    init:
      parcel:
        data_patch:
          parcels:
          - {parcel_id: T-989, recipient: Vera Novak, kind: tube, status: delivered, insured: false, heavy: false,
            perishable: false, customs: cleared, locker: K-720}
        golden_test_case:
          tool_interactions:
          - tool: find_parcels
            parameters: {recipient: Vera Novak}
          - tool: log_rejection
            parameters: {parcel_id: T-989, reason: too long}
    tags: ['template:any_locker', 'twin:tube']
    """
    validate_database(x)
