"""!
scenario: ledger
max_user_sim_turns: 3
"""


def test_history(x):
    """!
    query: And 10 more.
    history: "money:1:the_end"
    init:
      ledger:
        golden_test_case:
          tool_interactions:
          - {tool: transfer, parameters: {source: A-1, target: A-2, amount: 5}}
          - {tool: transfer, parameters: {source: A-1, target: A-2, amount: 10}}
    """
    effects = x.effects["ledger"]
    assert effects["result_db_hash"] == effects["golden_db_hash"]


def test_ticket(x):
    """!
    query: "My ticket is {init[ledger][ticket]}."
    user_context: "Ticket {init[ledger][ticket]}"
    bot_instructions: "The ticket is {init[ledger][ticket]}."
    format_query: true
    max_agent_sim_turns: 4
    """
    assert x.init_result == {"ledger": {"ticket": "T-7"}}


def test_hours(x, judge):
    """!
    query: When are you open?
    """
    assert x.tool_direct_responses == ["On monday we are open 9 to 5."]
    assert judge.no_repeat(x.response, x.tool_direct_responses)
    assert x.tool_calls[0].tool_call.name == "opening_hours" and x.tool_calls[0].tool_response.content
