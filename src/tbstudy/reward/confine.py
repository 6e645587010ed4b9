"""What keeps check code in: namespaces where the kernel has them, limits, and a watch over all that a check starts.

Standard library only, Linux first. Elsewhere the limits of the system and the audit hook are all there is.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import select
import signal
import sys
from collections.abc import Iterator

LINUX = sys.platform == "linux"
_NEWNS, _NEWUSER, _NEWPID, _NEWNET = 0x00020000, 0x10000000, 0x20000000, 0x40000000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REC, _MS_PRIVATE = 2, 4, 8, 0x4000, 0x40000
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_CAP_SYS_ADMIN, _CAP_SYS_RESOURCE, _CAPABILITY_VERSION = 21, 24, 0x20080522
_FIRST_UID = 40_000
_libc = ctypes.CDLL(None, use_errno=True) if LINUX else None
#: How many processes a check may have at once, and how often they are counted, in milliseconds.
MAX_PROCESSES, _EVERY = 64, 10
_NETWORK = frozenset({"socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo",
                      "socket.gethostbyname", "socket.gethostbyaddr"})


def leave(connection: int) -> dict[str, bool]:
    """Leave the machine's network and processes behind, as far as the kernel lets us; what was left, by name.

    With a process namespace this returns in a new process, the grandchild of the caller, which ends with it.
    `connection` stays open in that process only.
    """
    own = {"network": False, "processes": False, "proc": False, "user": False}
    if LINUX:
        uid, gid = os.getuid(), os.getgid()
        for user, rest in ((0, _NEWNET | _NEWPID | _NEWNS), (_NEWUSER, _NEWNET | _NEWPID | _NEWNS), (0, _NEWNET),
                           (_NEWUSER, _NEWNET)):
            if _libc.unshare(user | rest) == 0:
                own.update(network=True, processes=bool(rest & _NEWPID), user=bool(user))
                break
        if own["user"]:
            _keep_identity(uid, gid)
        if own["processes"]:
            own["proc"] = _settle(connection)
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)
    sys.addaudithook(_no_network)
    return own


def _keep_identity(uid: int, gid: int) -> None:
    """The user and group stay what they are in a user namespace; without, no file could be made."""
    with contextlib.suppress(OSError):
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)


def _settle(connection: int) -> bool:
    """Go on as the second process of the new namespace; whether /proc shows that namespace.

    The first is its init, which the kernel protects from signals of the others: with it, everything ends.
    """
    if (init := os.fork()) != 0:
        _outlive(init, connection)
    die_with_parent()
    mounted = (_libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None) == 0
               and _libc.mount(b"proc", b"/proc", b"proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, None) == 0)
    if (server := os.fork()) != 0:
        _outlive(server, connection)
    return mounted


def _outlive(pid: int, connection: int) -> None:
    """Wait for a process, reaping others that end meanwhile, and end as it did."""
    os.close(connection)
    while True:
        ended, status = os.wait()
        if ended == pid:
            os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def die_with_parent() -> None:
    """The kernel kills this process when its parent ends."""
    if LINUX:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def limit(memory: int) -> None:
    """Limits that hold for this process and what it starts: address space, size of a file, no core files."""
    for what, value in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_FSIZE, 1 << 24), (resource.RLIMIT_CORE, 0)):
        with contextlib.suppress(ValueError, OSError):  # systems other than Linux do not know every limit
            resource.setrlimit(what, (value, value))


def limit_processes(others: int) -> None:
    """Bound how many processes this one and all below it can be, beside `others` of the same user.

    The kernel counts by real user and lets root pass, so root's check takes a real user of its own, for counting only
    (what it may do goes by the effective one), and gives the right to ignore limits away.
    """
    if not LINUX:
        return
    if os.getuid() == 0 and _without(_CAP_SYS_ADMIN, _CAP_SYS_RESOURCE):
        with contextlib.suppress(OSError):
            os.setresuid(_FIRST_UID + int.from_bytes(os.urandom(2), "little") % 20_000, 0, 0)
            others = 0
    room = MAX_PROCESSES + 8 + others
    with contextlib.suppress(ValueError, OSError):
        hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
        room = min(room, hard) if hard >= 0 else room
        resource.setrlimit(resource.RLIMIT_NPROC, (room, room))


def _without(*capabilities: int) -> bool:
    """Give capabilities away; whether that went well."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    data = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable; low halves, then high ones
    if _libc.capget(header, data) != 0:
        return False
    for capability in capabilities:
        for field in range(3):
            data[3 * (capability // 32) + field] &= ~(1 << capability % 32) & 0xFFFFFFFF
    return _libc.capset(header, data) == 0


def threads_of_user() -> int:
    """Threads of this process' user, which the kernel's limit counts."""
    count, uid = 0, os.getuid()
    for entry in os.listdir("/proc") if LINUX else ():
        with contextlib.suppress(OSError):
            if entry.isdigit() and os.stat(f"/proc/{entry}").st_uid == uid:
                count += len(os.listdir(f"/proc/{entry}/task"))
    return count


def watch(pid: int, memory: int, own: dict[str, bool]) -> str:
    """Wait for a check's process and end whatever it leaves; how it ended. Too many processes, or too much memory in
    all of them, end it."""
    why = ""
    if hasattr(os, "pidfd_open"):
        with contextlib.suppress(OSError), _first_in_line():
            handle = os.pidfd_open(pid)
            try:
                poll = select.poll()
                poll.register(handle, select.POLLIN)
                while not why and not poll.poll(_EVERY):
                    why = _excess(memory)
                if why:
                    end_all(own)
            finally:
                os.close(handle)
    if why:
        return why
    _, status = os.waitpid(pid, 0)
    end_all(own)
    code = os.waitstatus_to_exitcode(status)
    return f"exit status {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"


@contextlib.contextmanager
def _first_in_line() -> Iterator[None]:
    """Run before all ordinary processes, where that is allowed (root, whom no limit on processes binds).

    On a busy machine the watch would otherwise wait its turn behind the processes that it is to count.
    """
    before, raised = os.sched_getscheduler(0) if LINUX else None, False
    if LINUX:
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
            raised = True
    try:
        yield
    finally:
        if raised:
            os.sched_setscheduler(0, before, os.sched_param(0))


def _excess(memory: int) -> str:
    found = list(descendants(MAX_PROCESSES + 1))
    if len(found) > MAX_PROCESSES:
        return f"it had more than {MAX_PROCESSES} processes"
    if len(found) > 1:
        # What all share with this process is not theirs.
        shared, page = _resident("self"), resource.getpagesize()
        if sum(max(0, _resident(p) - shared) for p in found) * page > memory:
            return f"its processes took more than {memory >> 20} MB"
    return ""


def _resident(pid: str) -> int:
    try:
        with open(f"/proc/{pid}/statm") as file:
            return int(file.read().split()[1])
    except (OSError, IndexError):
        return 0


def descendants(most: int, pid: str = "self") -> Iterator[str]:
    """The processes below one, at most so many, as /proc numbers them."""
    waiting = [pid]
    while waiting and most > 0:
        at = waiting.pop()
        try:
            tasks = os.listdir(f"/proc/{at}/task")
        except OSError:
            continue
        for task in tasks:
            with contextlib.suppress(OSError), open(f"/proc/{at}/task/{task}/children") as file:
                for child in file.read().split():
                    if most > 0:
                        most -= 1
                        yield child
                        waiting.append(child)


def end_all(own: dict[str, bool]) -> None:
    """Kill and reap everything that this process has below it."""
    if own["processes"]:
        # Everybody in the namespace but its init and us, at one blow: nobody forks away under it.
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
    else:
        end_tree("self")
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return
        if not own["processes"]:
            end_tree("self")


def end_tree(pid: str) -> None:
    """Kill all processes below one. They are stopped first: what is stopped does not fork meanwhile."""
    stopped: set[str] = set()
    while True:
        new = [p for p in descendants(1 << 20, pid) if p not in stopped]
        for signum, group in ((signal.SIGSTOP, new), (signal.SIGKILL, () if new else stopped)):
            for p in group:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(int(p), signum)
        if not new:
            return
        stopped |= set(new)


def _no_network(event: str, _: object) -> None:
    if event in _NETWORK:
        raise PermissionError("a check has no network")
