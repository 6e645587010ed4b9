"""SQLite servers: one behaviour in process and over the protocol, and what the state comparison sees."""

import asyncio
import json
import sys
from pathlib import Path

import pytest
import shop_server

from tbstudy.errors import StudyError, SystemFault
from tbstudy.policies.scripted import ScriptedPolicy
from tbstudy.sandbox.episode import run_episode
from tbstudy.sandbox.servers import ServerSpec
from tbstudy.sandbox.sqlite import SqliteServer, canonical, digest, dump, open_database
from tbstudy.sandbox.transports import open_sandbox
from tbstudy.tasks.model import Task

HERE = str(Path(__file__).parent)
SHOP = {"shop": ServerSpec("shop", command=(sys.executable, "-m", "shop_server"), env={"PYTHONPATH": HERE},
                           in_process="shop_server:server")}
GOLDEN = [{"tool": "take", "parameters": {"item": "pen", "count": 2}}]


def play(transport, calls):
    """Answers to `calls` and the terminal effects of a shop with five pens."""
    task = Task("shop.py:a", Path("shop.py"), "a", "shop", ("s",), "q", None, {"shop": {
        "data": {"items": [{"id": "pen", "left_over": 5}]}, "golden_test_case": {"tool_interactions": GOLDEN}}})

    async def run():
        sandbox = open_sandbox(transport, SHOP)
        try:
            async with sandbox.session(task) as session:
                return [await session.call(*call) for call in calls], (await session.effects())["shop"]
        finally:
            await sandbox.close()

    return asyncio.run(run())


def test_failed_calls_read_the_same_and_change_nothing_whatever_the_transport():
    calls = [("take", {"item": "pen", "count": 2}), ("move", {"source": "pen", "target": "cup"}),
             ("take", {"item": "pen", "count": 9}), ("stumble", {"item": "pen"}), ("drop", {"item": "pen"}),
             ("put", {"item": "pen"}), ("take", {}), ("take", {"item": "pen", "count": "many"}), ("nothing", {})]
    expected, effects = play("inprocess", calls)
    assert expected[:4] == ['{"left": 3}', "Error: no items entry with id cup", "Error: not enough", "Error: oh"]
    assert expected[4].startswith("Error: Object of type set") and "UNIQUE" in expected[5]
    assert expected[6] == "Error: item: Field required" and expected[7].startswith("Error: count: ")
    for transport in ("inprocess", "forked", "process"):
        answers, effects = play(transport, calls)
        assert answers == expected
        assert effects["diff"] == [] and effects["result_db_hash"] == effects["golden_db_hash"]


def test_what_sqlite_keeps_for_itself_is_no_state():
    server = SqliteServer("notes", "CREATE TABLE log (id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT);"
                                   "CREATE VIRTUAL TABLE pages USING fts5(text); CREATE TABLE pages_seen (text TEXT);")
    assert server.keys == {"log": ("id",), "pages": (), "pages_seen": ()}
    snapshot = server.prepare({"data": {"pages": [{"text": "a"}, {"text": "b"}]}})
    before, after = open_database(snapshot), open_database(snapshot)
    # Written and taken back: the counter of `log` and the index of `pages` remember it, the world does not.
    after.execute("INSERT INTO log (text) VALUES ('hello')")
    after.execute("DELETE FROM log")
    after.execute("INSERT INTO pages (text) VALUES ('c')")
    after.execute("DELETE FROM pages WHERE text = 'c'")
    golden = dump(before, server.keys)
    assert server.effects(after, golden)["diff"] == [] and digest(dump(after, server.keys)) == digest(golden)
    after.execute("INSERT INTO pages (text) VALUES ('d')")
    assert [(d["kind"], d["table"], d["actual"]) for d in server.effects(after, golden)["diff"]] == [
        ("extra", "pages", {"text": "d"})]
    before.close()
    after.close()


@pytest.mark.parametrize("schema", ["CREATE TABLE files (id INTEGER PRIMARY KEY, data BLOB)",
                                    "CREATE TABLE files (id INTEGER, data BLOB)"])
def test_bytes_in_a_table_are_told_apart_in_an_effects_report_that_json_can_hold(schema):
    server = SqliteServer("files", schema)
    before, after = (open_database(server.prepare({"data": {"files": [{"id": 1}]}})) for _ in range(2))
    before.execute("UPDATE files SET data = x'00ff'")
    after.execute("UPDATE files SET data = x'00fe'")
    golden = dump(before, server.keys)
    assert server.effects(before, golden)["diff"] == []
    report = server.effects(after, golden)
    assert report["result_db_hash"] != report["golden_db_hash"]
    assert "x'00fe'" in json.dumps(report["diff"]) and "x'00ff'" in json.dumps(report["diff"])
    before.close()
    after.close()


@pytest.mark.parametrize(("one", "other", "same"), [
    ("[25]", "[25.0]", True), ('{"b": [{"x": -0.0}], "a": 1}', '{"a": 1.0, "b": [{"x": 0}]}', True),
    ("[25]", "[25.5]", False), ('["25"]', "[25]", False), ("[1e400]", "[1e308]", False), ("[25", "[25.0", False),
    (25, 25.0, True), ("25", "25.0", False), ("[" * 5000 + "1", "[" * 5000 + "1.0", False)])
def test_numbers_that_mean_the_same(one, other, same):
    assert (canonical(one) == canonical(other)) is same


def interactions(*calls):
    return {"golden_test_case": {"tool_interactions": list(calls)}}


@pytest.mark.parametrize(("state", "words"), [
    ({"data": {"items": [{"id": "pen", "left_over": 2 ** 70}]}}, r"shop.data.items\[0\]: .*too large"),
    ({"data": {"items": ["pen"]}}, r"shop.data.items\[0\] must be a mapping, it is 'pen'"),
    ({"data_patch": {"items": {"id": "pen"}}}, "shop.data_patch.items must be a list"),
    ({"data": [1]}, "shop.data must be a mapping"),
    ({"data": {"items": [{"id": "pen", "left_over": [{1}]}]}}, r"shop.data.items\[0\]: .*set"),
    (interactions({"tool": "put", "parameters": {"item": "cup"}}, {"tool": "put", "parameters": {"item": "cup"}}),
     r"shop: golden call put\(.*UNIQUE"),
    (interactions({"tool": "stock", "parameters": {"count": 2 ** 70}}), r"shop: golden call stock\(.*too large"),
    (interactions({"tool": "put"}), r"shop: golden call put\({}\) refused: Error: item: Field required"),
    (interactions({"tool": "put", "parameters": ["cup"]}), r"interactions\[0\].parameters must be a mapping"),
    (interactions("put"), r"shop.golden_test_case.tool_interactions\[0\] must be a mapping"),
    (interactions({}), r"tool_interactions\[0\]: field 'tool' must be the name")])
def test_a_broken_world_is_named_with_task_server_and_place(state, words):
    task = Task("shop.py:a", Path("shop.py"), "a", "shop", ("s",), "q", None, {"shop": state})
    with pytest.raises(StudyError, match=f"^shop.py:a: .*{words}"):
        asyncio.run(run_episode(task, 0, policy=ScriptedPolicy({"shop.py:a": []}),
                                sandbox=open_sandbox("inprocess", SHOP), user=None))


def test_a_golden_call_may_leave_its_parameters_out():
    assert shop_server.server.golden_state(interactions({"tool": "stock"}))["items"] == [{"id": "pen", "left_over": 1}]


def test_over_the_protocol_a_broken_world_is_named_too():
    async def run():
        sandbox = open_sandbox("forked", SHOP)
        try:
            task = Task("shop.py:a", Path("shop.py"), "a", "shop", ("s",), "q", None,
                        {"shop": interactions({"tool": "put"})})
            async with sandbox.session(task):
                pass
        finally:
            await sandbox.close()

    with pytest.raises(SystemFault, match=r"shop: golden call put\({}\) refused"):
        asyncio.run(run())
