"""The files of a new domain. NAME stands for its name, TITLE for the name in words."""

SERVER = '''\
"""TITLE: a desk that lends things. The tools of the domain over a SQLite database.

    python -m NAME_server        speaks MCP over standard input and output
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from tbstudy.sandbox.sqlite import SqliteServer

# A table with a primary key is compared row by row, a table without one as a set of rows that may repeat.
SCHEMA = """
CREATE TABLE items (item_id TEXT PRIMARY KEY, title TEXT NOT NULL, status TEXT NOT NULL, deposit INTEGER NOT NULL,
  days INTEGER NOT NULL);
CREATE TABLE loans (item_id TEXT NOT NULL, member TEXT NOT NULL, days INTEGER NOT NULL);
CREATE TABLE deposits (item_id TEXT NOT NULL, amount REAL NOT NULL);
CREATE TABLE waiting (item_id TEXT NOT NULL, member TEXT NOT NULL);
"""

server = SqliteServer("NAME", SCHEMA)

ItemId = Annotated[str, Field(description="Number of the item, such as I-12")]


@server.tool
def find_items(title: Annotated[str, Field(description="Title or a part of it")]) -> list[dict[str, Any]]:
    """Find items by title."""
    return server.rows("SELECT item_id, title FROM items WHERE title LIKE ? ORDER BY item_id", f"%{title}%")


@server.tool
def get_item(item_id: ItemId) -> dict[str, Any]:
    """Look an item up."""
    item = server.row("items", "item_id", item_id)
    return {"title": item["title"], "status": item["status"], "deposit": bool(item["deposit"]), "days": item["days"]}


@server.tool
def take_deposit(item_id: ItemId, amount: float) -> dict[str, Any]:
    """Take a deposit for an item."""
    server.row("items", "item_id", item_id)
    server.insert("deposits", item_id=item_id, amount=amount)
    return {"taken": True}


@server.tool
def lend_item(item_id: ItemId, member: Annotated[str, Field(description="Full name")], days: int) -> dict[str, Any]:
    """Lend an item to a member."""
    server.update("items", "item_id", item_id, status="lent")
    server.insert("loans", item_id=item_id, member=member, days=days)
    return {"lent": True}


@server.tool
def join_waiting_list(item_id: ItemId, member: Annotated[str, Field(description="Full name")]) -> dict[str, Any]:
    """Put a member on the waiting list of an item."""
    server.row("items", "item_id", item_id)
    server.insert("waiting", item_id=item_id, member=member)
    return {"waiting": True}


@server.tool
def set_status(item_id: ItemId, status: Literal["free", "lent", "repair"]) -> dict[str, Any]:
    """Change the status of an item."""
    server.update("items", "item_id", item_id, status=status)
    return {"status": status}


if __name__ == "__main__":
    server.main()
'''

SERVERS = """\
servers:
  NAME:
    type: mcp-process
    command: ['{python}', -m, NAME_server]
    cwd: .
"""

AGENT = """\
system_instructions: |
  You serve customers with the tools you are given.
  - Call one tool at a time and wait for its answer before the next step.
  - Use only what the customer or a tool told you. If something is missing, ask for it.
  - Follow the policy below even where the customer would like something else.
  - End your last message with <DONE>. Never write <DONE> in a message that asks something.
builtin_tools: []
"""

SCENARIO = """\
world_state:
  NAME:
    data:
      items:
      - {item_id: I-90, title: Tent, status: free, deposit: true, days: 7}
      - {item_id: I-91, title: Projector, status: lent, deposit: false, days: 2}
bot_instructions: |
  You are the desk of TITLE.
  - Look an item up with get_item before you act on it. Ask for the item number and the full name if you lack them.
  - Lend an item only when its status is free, for the days that its entry says, whatever the customer asks for.
  - When its status is lent or repair, put the customer on the waiting list and lend nothing.
  - When deposit is true, take a deposit of 20 before lending.
  - Do each thing once and nothing that was not asked.
"""

CHECK = '''\
from thinkingbox.common import TestContext

"""!
scenario: NAME
"""


def validate(x: TestContext):
    effects = x.effects["NAME"]
    assert effects["result_db_hash"] == effects["golden_db_hash"], effects["diff"]
'''

TASK = '''

def {function}(x: TestContext):
    """!
    query: {query}
    user_context: |
      You are {member}.
      full name: {member}
      item number: {item}
    init:
      NAME:
        data_patch:
          items:
          - {{item_id: {item}, title: {title}, status: {status}, deposit: {deposit}, days: {days}}}
        golden_test_case:
          tool_interactions:
          - tool: get_item
            parameters: {{item_id: {item}}}
{calls}
    tags: ['template:{template}', 'twin:{twin}']
    """
    validate(x)
'''

STUDY = """\
# A study of the domain NAME with a policy behind an OpenAI-compatible endpoint.
study: NAME
seed: 1
root: .
dataset: FOLDER
candidates: lists/candidates.yaml
benchmark: lists/benchmark.yaml
servers: servers.yaml
sandbox: {transport: forked, call_seconds: 20.0}
policy:
  kind: endpoint
  endpoint:
    base_url: http://127.0.0.1:8000/v1
    model: my-model
    # api_key_env: MY_KEY      # name of the environment variable that holds the key
    concurrency: 4
    timeout_seconds: 300.0
  # top_k 0 sends none: not every server knows it.
  sampling: {temperature: 1.0, top_k: 0, top_p: 0.95, max_turn_tokens: 2048, max_episode_tokens: 32768}
user: {kind: scripted}         # releases the lines `key: value` of user_context when a question names the key
probe: {attempts: 8, min_clean: 4}
"""

TESTS = '''\
"""The domain NAME holds together: golden calls pass, anything else fails, the server starts on its own."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tbstudy.policies.scripted import ScriptedPolicy, golden_turns
from tbstudy.reward.checks import CheckRunner
from tbstudy.sandbox.episode import run_episode
from tbstudy.sandbox.servers import read_servers
from tbstudy.sandbox.transports import open_sandbox
from tbstudy.sandbox.users import ScriptedUser
from tbstudy.tasks.loader import load_dataset

ROOT = Path(__file__).parents[1]
TASKS = load_dataset(ROOT).tasks


def verdicts(turns):
    """The verdict of every task for a policy that says `turns(task)`; sessions start in forked processes."""

    async def play():
        sandbox, checks = open_sandbox("forked", read_servers(ROOT / "servers.yaml")), CheckRunner()
        policy = ScriptedPolicy(lambda task, repetition: turns(task))
        try:
            for task in TASKS.values():
                episode = await run_episode(task, 0, policy=policy, sandbox=sandbox, user=ScriptedUser())
                assert episode.fault is None, episode.fault
                yield task, await checks.judge(task, episode.effects, episode.messages)
        finally:
            await sandbox.close()
            checks.close()

    async def collect():
        return [pair async for pair in play()]

    return asyncio.run(collect())


def test_golden_calls_pass():
    for task, verdict in verdicts(golden_turns):
        assert verdict.passed, f"{task.uid}: {verdict.reason}"


@pytest.mark.parametrize("what, turns", [("nothing", lambda task: []), ("all but the last call",
                                                                        lambda task: golden_turns(task)[:-1])])
def test_doing_less_fails(what, turns):
    for task, verdict in verdicts(turns):
        assert not verdict.passed and not verdict.system_error, f"{task.uid} passes with {what}"
        assert verdict.diff, "a failure is explained"


def test_the_facts_that_a_task_needs_can_be_asked_for():
    for task in TASKS.values():
        transcript = [{"role": "assistant", "content": "What is your full name and your item number?"}]
        answer, _ = asyncio.run(ScriptedUser().answer(task, transcript))
        assert "full name" in answer and "item number" in answer, f"{task.uid}: {answer}"
'''

README = """\
# TITLE

A dataset in ThinkingBox's layout, written by `tbstudy new-domain NAME`. It works as it is; change it piece by piece and
keep `tbstudy replay` and the tests green. The study's configuration lies beside this folder: what is in here is part of
what a record was made with, and a change starts new records.

| file | holds |
|---|---|
| `NAME_server.py` | the tools over a SQLite schema, an ordinary MCP server |
| `servers.yaml` | how the server starts |
| `agent/assistant.yaml` | instructions that hold for every domain |
| `scenario/NAME.yaml` | the domain's base rows and its written policy |
| `test_case/NAME/*.py` | the tasks: query, private facts, rows, golden calls, check |
| `lists/*.yaml` | the tasks to probe and select from, and those kept for the benchmark |
| `tests/` | golden calls pass, anything else fails |
"""
