"""Sessions over SQLite servers inside this process."""

import asyncio
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from shop_server import server

from tbstudy.errors import StudyError, SystemFault
from tbstudy.sandbox.inprocess import InProcessSandbox
from tbstudy.tasks.model import Task, ToolOverride


def task(uid="shop.py:a", **changes):
    state = {"data": {"items": [{"id": "pen", "left_over": 5}]},
             "golden_test_case": {"tool_interactions": [{"tool": "take", "parameters": {"item": "pen", "count": 2}}]}}
    return replace(Task(uid, Path("shop.py"), "a", "shop", ("s",), "q", None, {"shop": {**state, **changes}}))


def play(sandbox, item, *calls):
    async def run():
        async with sandbox.session(item) as session:
            answers = []
            for name, arguments in calls:
                try:
                    answers.append(await session.call(name, arguments))
                except SystemFault as fault:
                    answers.append(fault)
            return answers, await session.tools(), await session.effects()

    return asyncio.run(run())


def test_a_session():
    answers, tools, effects = play(InProcessSandbox({"shop": server}), task(), ("take", {"item": "pen", "count": 2}),
                                   ("take", {"item": "cup"}), ("take", {"item": "pen", "count": 9}), ("take", {}),
                                   ("nothing", {}), ("__reserved__geteffects", {}), ("stumble", {"item": "pen"}),
                                   ("put", {"item": "pen"}))
    assert answers[:3] == ['{"left": 3}', "Error: no items entry with id cup", "Error: not enough"]
    assert answers[3].startswith("Error: item:") and answers[4] == "Error: function 'nothing' does not exist"
    assert answers[5] == "Error: function '__reserved__geteffects' does not exist"
    assert answers[6] == "Error: oh" and "UNIQUE" in answers[7]
    assert [t["function"]["name"] for t in tools] == [
        "take", "move", "stumble", "drop", "put", "stock", "spin", "crunch"]
    # What was refused or went wrong changed nothing.
    assert effects["shop"]["result_db_hash"] == effects["shop"]["golden_db_hash"] and effects["shop"]["diff"] == []


def test_overrides_and_builtin_tools():
    item = replace(task(), tools=(ToolOverride("take", "Buy items.", argument_descriptions={"count": "How many"}),
                                  ToolOverride("put")),
                   builtin_tools=(ToolOverride("stop", "Stop.", {"type": "object"}, is_end_turn=True, builtin=True),))
    answers, tools, _ = play(InProcessSandbox({"shop": server}), item, ("stumble", {"item": "pen"}), ("stop", {}))
    assert answers == ["Error: function 'stumble' does not exist", "Error: function 'stop' does not exist"]
    assert [t["function"]["name"] for t in tools] == ["stop", "take", "put"]
    assert tools[1]["function"]["description"] == "Buy items."
    assert tools[1]["function"]["parameters"]["properties"]["count"]["description"] == "How many"
    plain = play(InProcessSandbox({"shop": server}), task())[1]
    assert plain[0]["function"]["description"] == "Take items."  # the server's own is untouched


def test_the_same_uid_in_two_worlds():
    sandbox = InProcessSandbox({"shop": server})
    for left in (5, 7, 5):
        item = task(data={"items": [{"id": "pen", "left_over": left}]})
        assert play(sandbox, item, ("take", {"item": "pen"}))[0] == [f'{{"left": {left - 1}}}']


def test_prepared_worlds_are_bounded():
    sandbox = InProcessSandbox({"shop": server}, cached=3)
    for n in range(6):
        play(sandbox, task(f"shop.py:t{n}"))
    assert [uid for uid, _ in sandbox._prepared] == [f"shop.py:t{n}" for n in (3, 4, 5)]


@pytest.mark.parametrize("name", ["spin", "crunch"])
def test_a_call_has_a_limit(name):
    answers = asyncio.run(_faults(name))
    assert all(isinstance(a, SystemFault) and a.cause == "backend" for a in answers)
    assert f"tool {name} of server shop ran longer than 0.1 s" in str(answers[0])


async def _faults(name):
    faults = []
    async with InProcessSandbox({"shop": server}, call_seconds=0.1).session(task()) as session:
        for call in (name, "take"):
            with pytest.raises(SystemFault) as fault:
                await session.call(call, {"item": "pen"} if call == "take" else {})
            faults.append(fault.value)
        with pytest.raises(SystemFault):
            await session.effects()
    return faults


def test_sql_is_limited_in_any_thread():
    found = []
    thread = threading.Thread(target=lambda: found.append(asyncio.run(_faults("crunch"))))
    thread.start()
    thread.join(20)
    assert "ran longer" in str(found[0][0])


def test_timers_of_others_go_on():
    rang = []
    before = signal.signal(signal.SIGALRM, lambda *_: rang.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        play(InProcessSandbox({"shop": server}), task(), ("take", {"item": "pen"}))
        time.sleep(0.5)
        assert rang == [1]
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_session_that_has_ended():
    async def run():
        session = InProcessSandbox({"shop": server}).session(task())
        async with session:
            pass
        with pytest.raises(SystemFault, match="has ended"):
            await session.call("take", {"item": "pen"})

    asyncio.run(run())


@pytest.mark.parametrize(("servers", "change", "words"), [
    ({}, {}, "names server 'shop'; known: none"), ({"shop": "no.such:server"}, {}, "cannot be loaded"),
    ({"shop": "json:dumps"}, {}, "is a function, not a SqliteServer"),
    ({"shop": server}, {"data": {"boxes": []}}, "no table 'boxes'"),
    ({"shop": server}, {"golden_test_case": {"tool_interactions": [{"tool": "take", "parameters": {"item": "x"}}]}},
     "golden call take.*refused")])
def test_broken_input_is_named(servers, change, words):
    with pytest.raises(StudyError, match=words):
        play(InProcessSandbox(servers), task(**change))
