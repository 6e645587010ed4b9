"""The evaluation host: `vllm serve` for a checkpoint, and the proxy in front of it."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tbstudy.errors import StudyError
from tbstudy.evaluation.proxy import ChatProxy, ProxySettings
from tbstudy.training.verl.config import Run, ServingSection
from tbstudy.training.verl.preflight import folder_problem

if TYPE_CHECKING:
    import uvicorn

#: Seconds that the model server has to end, and then those that it has started.
_SERVER_ENDS, _REST_ENDS = 60.0, 10.0


def serve_command(serving: ServingSection, model: str | Path, executable: str = "vllm") -> list[str]:
    """The model server's command line. The tool parser and the reasoning parser are those that the interpreter reads
    like."""
    command = [
        executable, "serve", str(model), "--served-model-name", serving.served_name, "--host", "127.0.0.1",
        "--port", str(serving.port), "--tensor-parallel-size", str(serving.tensor_parallel), "--dtype", serving.dtype,
        "--max-model-len", str(serving.max_model_len), "--max-num-seqs", str(serving.max_num_seqs),
        "--max-num-batched-tokens", str(serving.max_num_batched_tokens), "--gpu-memory-utilization",
        str(serving.gpu_memory_utilization), "--reasoning-parser", serving.reasoning_parser,
        "--enable-auto-tool-choice", "--tool-call-parser", serving.tool_call_parser,
        # Sampling comes with each request, not from the checkpoint's own defaults.
        "--generation-config", "vllm"]
    return [*command, "--enforce-eager"] if serving.cpu else command


def sampling(serving: ServingSection) -> dict[str, Any]:
    """The request fields that the proxy fills in."""
    return {"temperature": serving.temperature, "top_p": serving.top_p, "top_k": serving.top_k,
            "max_completion_tokens": serving.max_completion_tokens}


def proxy(serving: ServingSection, upstream: str | None = None) -> ChatProxy:
    """The proxy for a server of this configuration; `upstream` when it runs elsewhere (URL without /v1)."""
    return ChatProxy(ProxySettings(upstream or f"http://127.0.0.1:{serving.port}", serving.served_name,
                                   sampling(serving)))


def dry_run(run: Run, model: str | Path) -> str:
    """Both commands, ready to paste."""
    serving = run.config.serving
    return (f"{shlex.join(serve_command(serving, model))}\n\n"
            f"# proxy on port {serving.proxy_port}, fills in {sampling(serving)}\n"
            f"tbstudy serve {shlex.quote(str(run.file))} --proxy-only")


def serve(run: Run, model: Path, executable: str = "vllm", host: str = "127.0.0.1") -> int:
    """Start the model server and the proxy; when one ends, the other does.

    Returns 0 when this process was told to end (Ctrl-C, SIGTERM, SIGHUP), and else how the server ended: its exit code,
    or 128 + the signal that killed it.

    Raises:
        StudyError: the checkpoint folder is incomplete, the server cannot be started, or the proxy's port is taken.
    """
    problem = folder_problem(model)
    if problem:
        raise StudyError(f"{model}: {problem}; merge the checkpoint first (`tbstudy checkpoint merge`)")
    environment = {**os.environ, **({"VLLM_CPU_KVCACHE_SPACE": "1"} if run.config.serving.cpu else {})}
    front = _front(run, host)
    with _ended_by(front, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        try:
            server = subprocess.Popen(serve_command(run.config.serving, model, executable), env=environment,
                                      start_new_session=True)
        except OSError as error:
            raise StudyError(f"{executable}: cannot be started ({error.strerror}); install vllm or give --vllm"
                             ) from None

        def watch() -> None:
            server.wait()
            front.should_exit = True

        threading.Thread(target=watch, daemon=True).start()
        code = None
        try:
            _listen(front)
            code = server.poll()
        finally:
            _end(server)
    if code is None:
        return 0
    how = f"exit code {code}" if code >= 0 else signal.Signals(-code).name
    print(f"tbstudy: the model server ended ({how}); the proxy ended with it", file=sys.stderr)
    return code if code >= 0 else 128 - code


def run_proxy(run: Run, host: str = "127.0.0.1", upstream: str | None = None) -> None:
    """Serve the proxy until it is interrupted.

    Raises:
        StudyError: its port is taken.
    """
    _listen(_front(run, host, upstream))


def _front(run: Run, host: str, upstream: str | None = None) -> uvicorn.Server:
    import uvicorn

    return uvicorn.Server(uvicorn.Config(
        proxy(run.config.serving, upstream), host=host, port=run.config.serving.proxy_port, log_level="warning",
        timeout_graceful_shutdown=10))  # a stream whose reader is gone must not keep the model server alive


def _listen(front: uvicorn.Server) -> None:
    try:
        front.run()
    except KeyboardInterrupt:
        pass
    except SystemExit:  # uvicorn has said why
        raise StudyError(f"the proxy cannot listen on {front.config.host}:{front.config.port}; end what does, or give "
                         "serving.proxy_port another number (--set serving.proxy_port=N)") from None


@contextlib.contextmanager
def _ended_by(front: uvicorn.Server, *signals: signal.Signals) -> Iterator[None]:
    """Have these signals end the proxy: by default they end this process, and nobody is left to end the model server.

    Not by an exception, which would break into whatever this process is at: the server's start, its end.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(*_: object) -> None:
        front.should_exit = True

    before = {number: signal.signal(number, end) for number in signals}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(server: subprocess.Popen) -> None:
    """End the server and what it started, which may outlive it and hold the GPUs."""
    def signalled(number: int) -> bool:
        try:
            os.killpg(server.pid, number)
        except OSError:  # nobody is left
            return False
        return True

    signalled(signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        server.wait(_SERVER_ENDS)
        until = time.monotonic() + _REST_ENDS
        while signalled(0) and time.monotonic() < until:
            time.sleep(0.1)
    signalled(signal.SIGKILL)
    server.wait()
