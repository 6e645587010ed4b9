"""Whatever a server or a client does, the fault is named, and nothing is left behind."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from ledgers import GOLDEN, LEDGER, TRANSFER, descendants, gone, in_sandbox, open_files, open_ledger, with_state

from tbstudy.errors import SystemFault
from tbstudy.sandbox.servers import ServerSpec

KINDS = ("forked", "process")


async def misbehave(sandbox, how, then=("get_account", {"account": "A-1"})):
    """The faults of a call that misbehaves and of the one after it."""
    faults = []
    async with sandbox.session(TRANSFER) as session:
        for name, arguments in (("misbehave", {"how": how}), then):
            try:
                faults.append(await session.call(name, arguments))
            except SystemFault as fault:
                faults.append(fault)
    return faults


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("how", "words"), [
    ("exit", "tool misbehave: it ended (exit status 7)\nits log ends:\ngiving up"),
    ("hang", "tool misbehave: no answer within 0.5 s"),
    ("flood", "it floods its output: 4 MB that answer nothing"),
    ("garbage", "it answered"),
    ("internal", "tool misbehave: internal")])
def test_a_server_that_misbehaves_is_a_system_error(kind, how, words):
    async def work(sandbox):
        if how == "hang":
            sandbox.call_seconds = 0.5
        first, second = await misbehave(sandbox, how)
        sandbox.call_seconds = 10
        assert isinstance(first, SystemFault) and first.cause == "backend"
        assert "server ledger, " in str(first) and words in str(first)
        # The session is of no more use: a call that got no answer may have run.
        assert isinstance(second, SystemFault)
        # The sandbox is: the next session starts afresh.
        async with sandbox.session(TRANSFER) as session:
            assert "balance" in await session.call("get_account", {"account": "A-1"})

    in_sandbox(work, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_noise_is_no_fault(kind):
    async def work(sandbox):
        return await misbehave(sandbox, "chatter") + await misbehave(sandbox, "stderr")

    chatter, after, stderr, last = in_sandbox(work, kind)
    assert '"result": {}' in chatter and "-32601" in chatter  # a ping is answered, other requests are declined
    assert "balance" in after and "stderr" in stderr and "balance" in last


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("fail", "words"), [
    ("error", "__reserved__init failed: no ledger today"),
    ("exit", "__reserved__init: it ended (exit status 3)\nits log ends:\nthe ledger cannot be opened")])
def test_an_init_that_fails(kind, fail, words):
    async def work(sandbox):
        async with sandbox.session(with_state(fail=fail)):
            raise AssertionError("not reached")

    with pytest.raises(SystemFault) as fault:
        in_sandbox(work, kind)
    assert words in str(fault.value)


def test_a_start_is_tried_again_but_no_call_is(tmp_path):
    async def work(sandbox):
        async with sandbox.session(with_state(fail=f"once:{tmp_path / 'mark'}")) as session:
            return await session.call("get_account", {"account": "A-1"})

    assert "balance" in in_sandbox(work)

    calls = tmp_path / "calls"
    server = tmp_path / "slow_server.py"
    server.write_text(f"import sys, time\nsys.path.insert(0, {str(LEDGER / 'servers')!r})\nimport ledger_server\n"
                      f"def slow(state, name, arguments):\n    open({str(calls)!r}, 'a').write('called\\n')\n"
                      "    time.sleep(0.7)\n    return 'late'\nledger_server.run = slow\n"
                      "if __name__ == '__main__':\n    ledger_server.main()\n")
    spec = ServerSpec("ledger", command=(sys.executable, "-m", "slow_server"), cwd=str(tmp_path))
    task = with_state(golden_test_case={})

    async def once(sandbox):
        async with sandbox.session(task) as session:
            with pytest.raises(SystemFault, match="no answer within 0.3 s"):
                await session.call("get_account", {"account": "A-1"})
            with pytest.raises(SystemFault):
                await session.call("get_account", {"account": "A-1"})

    in_sandbox(once, servers={"ledger": spec}, call_seconds=0.3)
    assert calls.read_text() == "called\n"


def test_effects_that_fail():
    async def work(sandbox):
        async with sandbox.session(with_state(fail="effects")) as session:
            await session.effects()

    with pytest.raises(SystemFault, match="__reserved__geteffects failed: the ledger is on fire"):
        in_sandbox(work)


def test_a_session_has_a_limit_of_its_own():
    async def work(sandbox):
        async with sandbox.session(TRANSFER) as session:
            await session.call("get_account", {"account": "A-1"})
            await asyncio.sleep(0.5)
            await session.call("get_account", {"account": "A-1"})

    with pytest.raises(SystemFault, match="tool get_account: no answer within 0 s"):
        in_sandbox(work, session_seconds=0.4)


def test_a_memory_limit():
    async def work(sandbox):
        async with sandbox.session(TRANSFER):
            pass

    with pytest.raises(SystemFault):
        in_sandbox(work, "process", memory_mb=4)
    in_sandbox(work, "process", memory_mb=2048)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_survives_a_session(kind):
    """Neither processes that a server started, in its group or outside, nor file descriptors."""
    async def work(sandbox):
        async with sandbox.session(TRANSFER):
            pass
        idle, files = descendants(), open_files()
        async with sandbox.session(TRANSFER) as session:
            await session.call("misbehave", {"how": "children"})
            inside = descendants()
            assert len(inside) >= len(idle) + 3  # the server, its child, its orphan
        assert gone(inside - idle)
        for how in ("exit", "flood", "hang"):
            if how == "hang":
                sandbox.call_seconds = 0.4
            with pytest.raises(SystemFault):
                async with sandbox.session(TRANSFER) as session:
                    await session.call("misbehave", {"how": how})
        sandbox.call_seconds = 10
        with pytest.raises(RuntimeError, match="ours"):
            async with sandbox.session(TRANSFER):
                raise RuntimeError("ours")
        assert gone(descendants() - idle)
        assert open_files().keys() == files.keys()

    before, files = descendants(), open_files()
    in_sandbox(work, kind)
    assert gone(descendants() - before)
    assert open_files().keys() == files.keys()


@pytest.mark.parametrize("kind", KINDS)
def test_cancelling_a_client_anywhere(kind, tmp_path):
    """Cancelled while a session starts, in a call, while it ends: the server goes, its teardown was called."""
    ended = tmp_path / "ended"
    task = with_state(teardown_file=str(ended))

    async def attempt(sandbox, started, how):
        async with sandbox.session(task) as session:
            started.append(session)
            await session.call("misbehave", {"how": how})

    async def work(sandbox):
        async with sandbox.session(task):
            pass
        idle, files = descendants(), open_files()
        for delay in (0, 0.001, 0.003, 0.01, 0.03, 0.1):
            started = []
            job = asyncio.create_task(attempt(sandbox, started, "hang"))
            await asyncio.sleep(delay)
            job.cancel()
            with pytest.raises(asyncio.CancelledError):
                await job
        await asyncio.gather(*sandbox._ending)
        assert gone(descendants() - idle)
        assert open_files().keys() == files.keys()
        async with sandbox.session(task):
            pass

    before, files = descendants(), open_files()
    in_sandbox(work, kind, call_seconds=1)
    assert gone(descendants() - before)
    assert open_files().keys() == files.keys()
    assert len(ended.read_text().split()) >= 2


def test_a_keeper_that_is_killed_takes_its_servers_along():
    async def work(sandbox):
        async with sandbox.session(TRANSFER) as session:
            keeper = sandbox._images["ledger"].process.pid
            servers = descendants(keeper)
            os.kill(keeper, signal.SIGKILL)
            assert servers and gone(servers)
            with pytest.raises(SystemFault, match="it ended|it closed its output"):
                await session.call("get_account", {"account": "A-1"})
        async with sandbox.session(TRANSFER) as session:
            assert "balance" in await session.call("get_account", {"account": "A-1"})

    in_sandbox(work)


def test_a_fork_that_fails_is_the_end_of_that_session_only(tmp_path):
    full = tmp_path / "full"
    (tmp_path / "crowded_server.py").write_text(
        f"import os, sys\nsys.path.insert(0, {str(LEDGER / 'servers')!r})\nfrom ledger_server import main\n"
        f"fork = os.fork\ndef crowded():\n    if os.path.exists({str(full)!r}):\n"
        "        raise BlockingIOError(11, 'Resource temporarily unavailable')\n    return fork()\n"
        "os.fork = crowded\nif __name__ == '__main__':\n    main()\n")
    spec = ServerSpec("ledger", command=(sys.executable, "-m", "crowded_server"), cwd=str(tmp_path))

    async def work(sandbox):
        async with sandbox.session(TRANSFER) as session:
            keeper, files = sandbox._images["ledger"].process.pid, open_files()
            full.touch()
            with pytest.raises(SystemFault, match="not started: .*Resource temporarily unavailable"):
                async with sandbox.session(TRANSFER):
                    pass
            assert "balance" in await session.call("get_account", {"account": "A-1"})
            assert open_files().keys() == files.keys()
        full.unlink()
        async with sandbox.session(TRANSFER) as session:
            assert "balance" in await session.call("get_account", {"account": "A-1"})
        assert sandbox._images["ledger"].process.pid == keeper

    in_sandbox(work, servers={"ledger": spec})


@pytest.mark.parametrize("kind", KINDS)
def test_our_own_sudden_death_leaves_no_server(kind):
    script = (f"import asyncio, sys\nsys.path.insert(0, {str(Path(__file__).parent)!r})\n"
              f"from ledgers import TRANSFER, open_ledger, descendants\nasync def main():\n"
              f"    async with open_ledger({kind!r}).session(TRANSFER) as session:\n"
              "        await session.call('misbehave', {'how': 'children'})\n"
              "        print(*descendants(), flush=True)\n        await asyncio.sleep(60)\nasyncio.run(main())\n")
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    pids = [int(p) for p in process.stdout.readline().split()]
    assert len(pids) >= 3
    process.kill()
    process.wait()
    process.stdout.close()
    assert gone(pids)


def test_many_sessions_at_once_and_one_after_another():
    async def one(sandbox):
        async with sandbox.session(TRANSFER) as session:
            for call in GOLDEN:
                await session.call(call["tool"], call["parameters"])
            return (await session.effects())["ledger"]

    async def work(sandbox):
        await one(sandbox)
        idle, files = descendants(), open_files()
        limit = asyncio.Semaphore(16)

        async def limited():
            async with limit:
                return await one(sandbox)

        effects = await asyncio.gather(*(limited() for _ in range(150)))
        assert all(e["result_db_hash"] == e["golden_db_hash"] for e in effects)
        assert descendants() == idle and open_files().keys() == files.keys()

    in_sandbox(work)


def test_two_sandboxes_do_not_touch_each_other():
    async def work(first):
        second = open_ledger()
        async with first.session(TRANSFER) as one:
            async with second.session(TRANSFER):
                pass
            await second.close()
            assert "balance" in await one.call("get_account", {"account": "A-1"})

    in_sandbox(work)
