"""SQLite servers: one behaviour in process and over the protocol, and what the state comparison sees."""

import asyncio
import sys
from pathlib import Path

from tbstudy.sandbox.servers import ServerSpec
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
