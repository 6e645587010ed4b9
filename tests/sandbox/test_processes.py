"""The process keeper when it falls behind, and when descriptors run out: no session pays for another's start."""

import asyncio
import errno
import os
import resource
import signal
import socket

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


def test_a_system_that_is_short_of_memory_is_asked_again_in_a_while():
    class Short:
        """A socket that has no room at first, and then a system that has no memory."""

        def __init__(self, real):
            self.real, self.tries = real, 0

        def fileno(self):
            return self.real.fileno()

        def send(self, data):
            self.tries += 1
            if self.tries == 1:
                raise BlockingIOError
            if self.tries < 4:
                raise OSError(errno.ENOBUFS, "No buffer space available")
            return self.real.send(data)

    async def run():
        ours, theirs = socket.socketpair()
        with ours, theirs:
            keeper = Keeper()
            keeper._control, keeper._loop = Short(ours), asyncio.get_running_loop()
            keeper.send({"op": "kill", "id": 1})
            await asyncio.sleep(0.15)
            assert keeper._control.tries <= 3
            theirs.settimeout(5)
            assert b"kill" in await asyncio.to_thread(theirs.recv, 100)
            assert keeper._control.tries == 4
            keeper._control = None

    asyncio.run(run())
