"""`tbstudy serve` with programs in vLLM's place: model server and proxy end together, whichever ends first."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tbstudy.evaluation import serve
from tbstudy.training.verl.config import load_run

ROOT = Path(__file__).parents[2]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextmanager
def serving(tmp_path: Path, body: str, port: int | None = None):
    """`tbstudy serve` of the recorded policy with a shell script as the server; the process and the proxy's port."""
    script, port = tmp_path / "server", port or free_port()
    script.write_text(f"#!/bin/sh\n{body}\n")
    script.chmod(0o755)
    process = subprocess.Popen(
        [sys.executable, "-m", "tbstudy.cli", "serve", "configs/reference-small-cpu.yaml", "--model",
         "data/recorded/base_policy", "--vllm", str(script), "--set", f"serving.proxy_port={port}"],
        cwd=ROOT, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        yield process, port
    finally:
        process.kill()
        process.communicate()


def reached(port: int, process: subprocess.Popen) -> None:
    while process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise AssertionError(f"ended before it listened: {process.communicate()[1]}")


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize(("body", "code", "said"), [
    ("exit 1", 1, "exit code 1"), ("sleep 1; exit 7", 7, "exit code 7"), ("kill -KILL $$", 137, "SIGKILL")])
def test_a_model_server_that_ends_ends_the_proxy_with_its_code(tmp_path, body, code, said):
    with serving(tmp_path, body) as (process, _):
        _, errors = process.communicate(timeout=120)
    assert process.returncode == code and f"the model server ended ({said})" in errors


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_whoever_ends_the_command_ends_the_model_server(tmp_path, number):
    with serving(tmp_path, f"echo $$ > {tmp_path}/pid; exec sleep 600 2>/dev/null") as (process, port):
        reached(port, process)
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
            time.sleep(0.05)
        server = int((tmp_path / "pid").read_text())
        assert alive(server)
        process.send_signal(number)
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert not alive(server) and "Traceback" not in errors


def test_a_taken_port_is_said_and_leaves_no_model_server(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with serving(tmp_path, f"echo $$ > {tmp_path}/pid; exec sleep 600 2>/dev/null", port) as (process, _):
            _, errors = process.communicate(timeout=120)
    assert process.returncode == 2 and f"the proxy cannot listen on 127.0.0.1:{port}" in errors
    begun = (tmp_path / "pid").read_text().strip() if (tmp_path / "pid").exists() else ""
    assert not begun or not alive(int(begun)), "it may have been ended before its first line"


def test_an_interrupt_while_the_model_server_starts_ends_it(monkeypatch):
    start, started = subprocess.Popen, []

    def interrupted(command, **options):
        started.append(start([sys.executable, "-c", "import time; time.sleep(600)"], **options))
        signal.raise_signal(signal.SIGINT)
        return started[0]

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    run = load_run(ROOT / "configs" / "reference-small-cpu.yaml", {"serving.proxy_port": free_port()})
    try:
        assert serve.serve(run, ROOT / "data" / "recorded" / "base_policy") == 0
        assert started[0].poll() is not None
    except KeyboardInterrupt:
        pytest.fail("nobody was left to end the model server")
    finally:
        started[0].kill()


def test_what_a_dead_model_server_has_left_is_ended_too(monkeypatch):
    monkeypatch.setattr(serve, "_REST_ENDS", 0.3)
    script = "(trap '' TERM; echo up; while :; do sleep 0.1; done) & sleep 0.5; exit 3"
    server = subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert server.wait() == 3 and server.stdout.readline() == b"up\n"
        serve._end(server)
        # Whoever lives still holds the other end.
        assert select.select([server.stdout], [], [], 10)[0] and server.stdout.read() == b""
    finally:
        with suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.stdout.close()
