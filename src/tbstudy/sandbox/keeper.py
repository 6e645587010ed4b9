"""Starts tool-server processes, keeps track of them and lets none survive.

Runs as its own small process, in whatever interpreter the servers need, so it uses the standard library only (3.10 or
newer) and is started from its source text. It speaks JSON packets over a socket pair with the sandbox:

    -> {"op": "start", "id": 1, "command": [...], "env": {...}, "cwd": ..., "memory": bytes}  with fds 0, 1, 2
    -> {"op": "kill", "id": 1}
    -> {"op": "learn", "id": 1}
    <- {"op": "ready"} or {"op": "unfit", "why": ...}
    <- {"op": "started", "id": 1, "pid": ...}, {"op": "ended", "id": 1, "how": ...}

Given a module, it imports that once and a start without command forks: the fork runs what stands under the module's
`if __name__ == "__main__":`, as `python -m` would. To learn from a fork is to import what it has imported since, and
to prepare the TLS contexts that it made (reading the certificates takes longer than most inits), so that later forks
find them there. When the socket closes, all processes are killed and it ends.
"""

import ast
import ctypes
import gc
import importlib
import importlib.util
import json
import os
import random
import resource
import select
import signal
import socket
import sys
import traceback

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
LIBC = ctypes.CDLL(None, use_errno=True)


class Unfit(Exception):
    """The module cannot be forked safely."""


class Image:
    """A server module, imported and ready to be forked."""

    def __init__(self, module, arguments, clock):
        self.name, self.arguments = module, arguments
        self.contexts = []
        spec = importlib.util.find_spec(module)
        if spec is None or not spec.origin or not spec.origin.endswith(".py"):
            raise Unfit(f"{module} has no Python source")
        if spec.submodule_search_locations is not None:
            raise Unfit(f"{module} is a package")
        self.path = spec.origin
        with open(self.path, encoding="utf-8") as file:
            tree = ast.parse(file.read())
        body = [s for node in tree.body if is_main_guard(node) for s in node.body]
        if not body:
            raise Unfit(f"{module} has no code under if __name__ == '__main__'")
        self.code = compile(ast.Module(body=body, type_ignores=[]), self.path, "exec")
        sys.argv = [self.path, *arguments]
        self.sockets = open_sockets()
        self.namespace = importlib.import_module(module).__dict__
        self.check_fit()
        if clock:
            freeze_clock(module.partition(".")[0], clock)

    def check_fit(self):
        """A fork has neither its parent's threads nor connections of its own."""
        if len(os.listdir("/proc/self/task")) > 1:
            raise Unfit(f"importing {self.name} starts threads")
        if open_sockets() - self.sockets:
            raise Unfit(f"importing {self.name} opens connections")

    def learn(self, names, contexts):
        """Import and prepare what a fork had to, if a trial in another fork shows that it leaves this process fit."""
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                signal.alarm(30)
                import_all(names)
                self.check_fit()
                code = 0
            finally:
                os._exit(code)
        if os.waitpid(pid, 0)[1] == 0:
            import_all(names)
            if contexts and not self.contexts:
                import ssl
                self.contexts = [(wanted, ssl.create_default_context(**wanted)) for wanted in contexts]

    def lend_contexts(self):
        """In a fork: hand out each prepared client context once, where one like it would be made; note other ones."""
        asked = []
        ssl = sys.modules.get("ssl")
        if ssl is None:
            return asked
        make, ready = ssl.create_default_context, self.contexts

        def create_default_context(*args, **kwargs):
            for i, (wanted, context) in enumerate(ready):
                if not args and wanted == kwargs:
                    del ready[i]
                    return context
            if not args and all(isinstance(v, str) for v in kwargs.values()):
                asked.append(kwargs)
            return make(*args, **kwargs)

        ssl.create_default_context = create_default_context
        return asked

    def run(self):
        random.seed()
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed()
        exec(self.code, self.namespace)


def import_all(names):
    for name in names:
        try:
            importlib.import_module(name)
        except BaseException:
            pass  # it was there in a fork, here it may not go; later forks are no worse off


def open_sockets():
    found = set()
    for fd in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{fd}")
        except OSError:
            continue
        if target.startswith("socket:"):
            found.add(target)
    return found


def is_main_guard(node):
    if not isinstance(node, ast.If) or not isinstance(node.test, ast.Compare):
        return False
    test = node.test
    sides = [test.left, *test.comparators]
    return (len(sides) == 2 and isinstance(test.ops[0], ast.Eq)
            and any(isinstance(s, ast.Name) and s.id == "__name__" for s in sides)
            and any(isinstance(s, ast.Constant) and s.value == "__main__" for s in sides))


def freeze_clock(package, instant):
    """Make `now`, `utcnow` and `today` of the package's modules answer `instant` (ISO 8601, UTC if it says nothing)."""
    import datetime as real
    import types

    utc = real.timezone(real.timedelta(0))
    moment = real.datetime.fromisoformat(instant.replace("Z", "+00:00"))
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=utc)

    class LooksReal(type):
        def __instancecheck__(cls, value):
            return isinstance(value, cls.__mro__[1])

        def __subclasscheck__(cls, other):
            return issubclass(other, cls.__mro__[1])

    class datetime(real.datetime, metaclass=LooksReal):
        def __new__(cls, *args, **kwargs):
            return real.datetime(*args, **kwargs)

        @classmethod
        def now(cls, tz=None):
            return moment.astimezone(tz) if tz is not None else moment.astimezone().replace(tzinfo=None)

        @classmethod
        def utcnow(cls):
            return moment.astimezone(utc).replace(tzinfo=None)

        @classmethod
        def today(cls):
            return cls.now()

    class date(real.date, metaclass=LooksReal):
        def __new__(cls, *args, **kwargs):
            return real.date(*args, **kwargs)

        @classmethod
        def today(cls):
            return datetime.now().date()

    frozen = types.ModuleType("datetime")
    frozen.__dict__.update({**real.__dict__, "datetime": datetime, "date": date})
    swap = {id(real.datetime): datetime, id(real.date): date, id(real): frozen}
    for name, module in list(sys.modules.items()):
        if name == package or name.startswith(package + "."):
            for key, value in list(vars(module).items()):
                if id(value) in swap:
                    setattr(module, key, swap[id(value)])


class Keeper:
    def __init__(self, control, image):
        self.control, self.image = control, image
        self.ids, self.pids = {}, {}
        self.wake, wake_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.wake_end = wake_end
        # Forks write module names here when told to. Larger than a pipe's atomic write is not needed: one at a time.
        self.lesson, self.lesson_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake_end, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        # Orphans of the servers become our children, so that they can be found.
        LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1)

    def serve(self):
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        poll.register(self.wake, select.POLLIN)
        poll.register(self.lesson, select.POLLIN)
        try:
            while True:
                for fd, _ in poll.poll():
                    if fd == self.wake:
                        os.read(self.wake, 4096)
                        self.reap()
                    elif fd == self.lesson:
                        try:
                            self.image.learn(**json.loads(os.read(self.lesson, 1 << 16)))
                            gc.freeze()
                        except (ValueError, TypeError, OSError):
                            pass  # no fork to be had, or one wrote something else: the others must not suffer for it
                        self.send({"op": "learnt"})
                    elif not self.request():
                        return
        finally:
            for pid in list(self.ids):
                self.kill(pid)
            self.sweep()

    def request(self):
        try:
            data, fds, _, _ = socket.recv_fds(self.control, 1 << 20, 3, socket.MSG_CMSG_CLOEXEC)
        except ConnectionError:
            return False
        if not data:
            return False
        message = json.loads(data)
        if message["op"] == "kill":
            pid = self.pids.get(message["id"])
            if pid is not None:
                self.kill(pid)
            return True
        if message["op"] == "learn":
            pid = self.pids.get(message["id"])
            if pid is not None:
                os.kill(pid, signal.SIGUSR2)
            return True
        try:
            pid = os.fork()
        except OSError as error:
            # No process or memory to be had: that is this server's end, not everybody's.
            for fd in fds:
                os.close(fd)
            self.send({"op": "ended", "id": message["id"], "how": f"not started: {error}"})
            return True
        if pid == 0:
            code = 1
            try:
                self.become(message, fds)
                self.image.run()
                code = 0
            except SystemExit as stop:
                code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
            except BaseException:
                traceback.print_exc()
            finally:
                for stream in (sys.stdout, sys.stderr):
                    try:
                        stream.flush()
                    except Exception:
                        pass
                os._exit(code)
        for fd in fds:
            os.close(fd)
        self.ids[pid], self.pids[message["id"]] = message["id"], pid
        self.send({"op": "started", "id": message["id"], "pid": pid})
        return True

    def become(self, message, fds):
        """Turn a fork into the server process; only returns where the server is the imported module."""
        os.setsid()
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        LIBC.prctl(PR_SET_CHILD_SUBREAPER, 0)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for target, fd in enumerate(fds):
            os.dup2(fd, target)
        for fd in (*fds, self.wake, self.wake_end, self.lesson, self.control.fileno()):
            os.close(fd)
        # The streams were made for /dev/null and remember what that can do. The old ones must live on, since they
        # would close their descriptors, and logging may hold them.
        self.streams = sys.stdin, sys.stdout, sys.stderr
        sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)
        sys.stdout = sys.__stdout__ = open(1, "w", encoding="utf-8", closefd=False)
        sys.stderr = sys.__stderr__ = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1,
                                           closefd=False)
        if message.get("memory"):
            resource.setrlimit(resource.RLIMIT_AS, (message["memory"], message["memory"]))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if message.get("command"):
            if message.get("cwd"):
                os.chdir(message["cwd"])
            os.environ.update(message.get("env") or {})
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            os.execvp(message["command"][0], message["command"])
        known, asked = set(sys.modules), self.image.lend_contexts()

        def tell(*_):
            names = [n for n in list(sys.modules) if n not in known and n != "__main__"]
            os.write(self.lesson_end, json.dumps({"names": names[:1000], "contexts": asked[:5]}).encode())

        signal.signal(signal.SIGUSR2, tell)

    def kill(self, pid):
        """Kill a server and its process group. It has not been reaped, so the id is still its own."""
        for kill in (os.killpg, os.kill):
            try:
                kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def reap(self):
        while True:
            try:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if found is None:
                return
            self.kill(found.si_pid)
            _, status = os.waitpid(found.si_pid, 0)
            number = self.ids.pop(found.si_pid, None)
            if number is None:
                continue
            del self.pids[number]
            self.sweep()
            how = (f"exit status {os.WEXITSTATUS(status)}" if os.WIFEXITED(status)
                   else f"signal {signal.Signals(os.WTERMSIG(status)).name}")
            self.send({"op": "ended", "id": number, "how": how})

    def sweep(self):
        """Kill orphans: our children that belong to no server that still runs."""
        try:
            with open(f"/proc/self/task/{os.getpid()}/children") as file:
                children = [int(p) for p in file.read().split()]
        except OSError:
            return
        for pid in children:
            try:
                if pid not in self.ids and os.getsid(pid) not in self.ids:
                    os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def send(self, message):
        try:
            self.control.send(json.dumps(message).encode())
        except OSError:
            pass  # the sandbox is gone; the next read says so


def main(fd, module=None, arguments=(), clock=None):
    control = socket.socket(fileno=fd)
    control.set_inheritable(False)
    try:
        image = Image(module, arguments, clock) if module else None
    except BaseException as error:
        why = str(error) if isinstance(error, Unfit) else (
            f"importing {module} failed: {type(error).__name__}: {error}\n{traceback.format_exc(limit=-3)}")
        control.send(json.dumps({"op": "unfit", "why": why, "broken": not isinstance(error, Unfit)}).encode())
        return
    keeper = Keeper(control, image)
    gc.collect()
    gc.freeze()
    keeper.send({"op": "ready"})
    keeper.serve()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[3] if len(sys.argv) > 3 else None, sys.argv[4:], sys.argv[2] or None)
