"""The process keeper when it falls behind, and when descriptors run out: no session pays for another's start."""

import asyncio
import os
import resource
import signal

import pytest

from tbstudy.errors import SystemFault
from tbstudy.sandbox.processes import Keeper

CAT = ("cat",)


async def echo(process):
    """What a `cat` answers."""
    os.write(process.stdin, b"hello\n")
    for _ in range(500):
        try:
            return os.read(process.stdout, 100)
        except BlockingIOError:
            await asyncio.sleep(0.01)


def test_a_keeper_that_is_behind_is_waited_for_and_ends_nobody():
    async def run():
        keeper = Keeper()
        try:
            bystander, unwanted = [await keeper.launch(20, CAT) for _ in range(2)]
            assert await echo(bystander) == await echo(unwanted) == b"hello\n"
            os.kill(keeper.process.pid, signal.SIGSTOP)
            for _ in range(2000):  # more than the socket between us holds
                unwanted.kill()
            with pytest.raises(SystemFault, match="too far behind"):
                await keeper.launch(0.05, CAT)
            waiting = asyncio.gather(*(keeper.launch(20, CAT) for _ in range(20)))
            await asyncio.sleep(0.05)
            assert bystander.how is None and not waiting.done()
            os.kill(keeper.process.pid, signal.SIGCONT)
            started = await waiting
            assert [await echo(p) for p in started] == [b"hello\n"] * 20
            assert await unwanted.wait(20) and unwanted.how == "signal SIGKILL"
            assert bystander.how is None and await echo(bystander) == b"hello\n"
            for process in (bystander, unwanted, *started):
                process.close()
        finally:
            keeper.close()

    asyncio.run(run())


def test_without_descriptors_only_the_start_fails():
    async def run():
        keeper = Keeper()
        try:
            bystander = await keeper.launch(20, CAT)
            before = resource.getrlimit(resource.RLIMIT_NOFILE)
            # One pipe fits and the next does not.
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 3, before[1]))
            held = []
            try:
                while True:
                    held.append(os.dup(0))
            except OSError:
                os.close(held.pop())
                os.close(held.pop())
            try:
                with pytest.raises(SystemFault, match="a server cannot be started: .*open files"):
                    await keeper.launch(20, CAT)
            finally:
                for fd in held:
                    os.close(fd)
                resource.setrlimit(resource.RLIMIT_NOFILE, before)
            assert bystander.how is None and await echo(bystander) == b"hello\n"
            bystander.close()
        finally:
            keeper.close()

    asyncio.run(run())
