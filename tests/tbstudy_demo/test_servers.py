"""The bundled servers as MCP servers over stdio, and many sessions of one server side by side."""

import asyncio
import json
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from tbstudy.sandbox.sqlite import RESERVED, dump, open_database
from tbstudy_demo.generate import items
from tbstudy_demo.registry import DOMAINS, POOL, load


def text(result):
    return result.content[0].text


async def replay_over_stdio(name):
    item = next(items(name))
    config = {"data": item.domain.data, "data_patch": item.case.rows,
              "golden_test_case": {"tool_interactions": item.case.golden}}
    parameters = StdioServerParameters(command=sys.executable, args=["-m", f"tbstudy_demo.{name}"])
    async with stdio_client(parameters) as streams, ClientSession(*streams) as client:
        await client.initialize()
        listed = [t.name for t in (await client.list_tools()).tools]
        await client.call_tool(RESERVED + "init", {"config": config})
        before = json.loads(text(await client.call_tool(RESERVED + "geteffects", {})))
        # The same answers as in process.
        db = open_database(item.domain.server.prepare(config))
        for call in item.case.golden:
            answer = text(await client.call_tool(call["tool"], call["parameters"]))
            assert answer == item.domain.server.invoke(db, call["tool"], call["parameters"])
        after = json.loads(text(await client.call_tool(RESERVED + "geteffects", {})))
        await client.call_tool(RESERVED + "teardown", {})
    assert {RESERVED + s for s in ("init", "geteffects", "teardown")} <= set(listed)
    assert [t for t in listed if not t.startswith(RESERVED)] == [
        t["function"]["name"] for t in item.domain.server.tool_schemas()]
    assert before["result_db_hash"] != before["golden_db_hash"] and before["diff"]
    assert after["result_db_hash"] == after["golden_db_hash"] and after["diff"] == []


def test_a_task_of_every_domain_over_stdio():
    async def all_at_once():
        # Most of a server's life is Python's start, so the eight start together.
        return await asyncio.gather(*map(replay_over_stdio, DOMAINS), return_exceptions=True)

    failed = {name: error for name, error in zip(DOMAINS, asyncio.run(all_at_once()), strict=True) if error}
    assert not failed


def config_of(item):
    return {"data": item.domain.data, "data_patch": item.case.rows,
            "golden_test_case": {"tool_interactions": item.case.golden}}


def test_200_sessions_in_threads_never_share_a_row():
    item = next(i for i in items("telecom") if i.template.name == "more_data")
    server, line = item.domain.server, item.case.rows["lines"][0]["line_id"]
    snapshot = server.prepare(config_of(item))
    sessions = [open_database(snapshot) for _ in range(200)]
    work = [(i, step) for i in range(200) for step in range(4)]
    random.Random(7).shuffle(work)

    def write(job):
        i, _ = job
        assert server.invoke(sessions[i], "add_data", {"line_id": line, "gigabytes": i}) == '{"added": true}'
        server.invoke(sessions[i], "end_line", {"line_id": line, "date": f"day {i}"})
        return json.loads(server.invoke(sessions[i], "get_line", {"line_id": line}))["ends"] == f"day {i}"

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(write, work))
    for i, db in enumerate(sessions):
        assert dump(db, server.keys)["data_packs"] == [{"line_id": line, "gigabytes": i}] * 4
    fresh = dump(open_database(snapshot), server.keys)
    assert fresh["data_packs"] == []


def test_200_interleaved_sessions_end_as_if_alone():
    tasks = [item for name in POOL for item in items(name)][:200]
    prepared = [(i.domain.server, i.domain.server.prepare(config_of(i)), i.domain.server.golden_state(config_of(i)))
                for i in tasks]

    async def episode(item, server, snapshot):
        db = open_database(snapshot)
        for call in item.case.golden:
            await asyncio.sleep(0)
            assert not server.invoke(db, call["tool"], call["parameters"]).startswith("Error")
        await asyncio.sleep(0)
        return dump(db, server.keys)

    async def all_at_once():
        return await asyncio.gather(*(episode(i, s, b) for i, (s, b, _) in zip(tasks, prepared, strict=True)))

    assert asyncio.run(all_at_once()) == [golden for _, _, golden in prepared]


def test_a_refused_call_changes_nothing():
    domain = load("telecom")
    db = open_database(domain.server.prepare({"data": domain.data}))
    before = dump(db, domain.server.keys)
    for tool, arguments in (("change_plan", {"line_id": "L-1001", "plan": "Gold"}),
                            ("change_plan", {"line_id": "L-9", "plan": "Max"}),
                            ("send_sim", {"line_id": "L-1001", "kind": "nano"}),
                            ("add_data", {"line_id": "L-1001"}), ("no_such_tool", {})):
        assert domain.server.invoke(db, tool, arguments).startswith("Error: ")
    assert dump(db, domain.server.keys) == before


def test_importing_the_registry_loads_no_domain():
    code = "import sys, tbstudy_demo.registry; print([m for m in sys.modules if m.startswith('mcp')])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
