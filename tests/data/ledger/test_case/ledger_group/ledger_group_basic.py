from thinkingbox.common import Judge, TestContext

"""!
scenario: ledger
tags: [shared]
"""

LIMIT = 100


def same_state(x: TestContext):
    effects = x.effects["ledger"]
    assert effects["result_db_hash"] == effects["golden_db_hash"], f"{len(effects['diff'])} differences"


def test_transfer(x: TestContext, judge: Judge):
    """!
    query: Please send 25 from A-1 to A-2.
    user_context: |
      You are Ada.
    tags: ["category:User", own]
    init:
      ledger:
        accounts:
        - {id: A-3, owner: Cleo, balance: 7, flag: null}
        golden_test_case:
          tool_interactions:
          - {tool: get_account, parameters: {account: A-1}}
          - {tool: transfer, parameters: {source: A-1, target: A-2, amount: 25}}
          - {tool: add_note, parameters: {account: A-1, text: Sent as asked for.}}
    """
    same_state(x)
    assert LIMIT == 100


def test_blind(x):
    """!
    query: Mark A-2 as late and note why.
    init:
      ledger:
        golden_test_case:
          tool_interactions:
          - {tool: set_flag, parameters: {account: A-2, flag: late}}
          - {tool: add_note, parameters: {account: A-2, text: The payment is late.}}
    """
    assert x.effects["ledger"]["result_db_state"]["accounts"][1]["flag"] == "late"


def test_nothing_to_do(x):
    """!
    query: What is the balance of A-1?
    init:
      ledger:
        golden_test_case:
          tool_interactions:
          - {tool: get_account, parameters: {account: A-1}}
    """
    same_state(x)


def test_rubric(x, rubric_judge):
    """!
    query: Explain the fees.
    """
    make = rubric_judge.Config
    rubrics = [make(criterion="polite", weight=1), make(criterion="rude", weight=0.5, is_penalty=True)]
    return rubric_judge.evaluate(x.response, rubrics, global_threshold=0.4).reward


def test_fixtures(x, answers, folder, counter):
    """!
    query: Where are the fees listed?
    """
    import os

    assert os.path.isdir(folder) and counter == {"a": 2}
    assert answers.evaluate("in the price list", ref_doc="prices.pdf", ref_loc="p3+p8")


def test_skipped(x):
    """!
    query: Never.
    tags: [SKIP]
    """
