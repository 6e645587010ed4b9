"""The evaluation host: `vllm serve` for a checkpoint, and the proxy in front of it."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from pathlib import Path
from typing import Any

from tbstudy.errors import StudyError
from tbstudy.evaluation.proxy import ChatProxy, ProxySettings
from tbstudy.training.verl.config import Run, ServingSection
from tbstudy.training.verl.preflight import folder_problem


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
    """Start the model server and the proxy; both end together. The server's exit code.

    Raises:
        StudyError: the checkpoint folder is incomplete, or the server cannot be started.
    """
    problem = folder_problem(model)
    if problem:
        raise StudyError(f"{model}: {problem}; merge the checkpoint first (`tbstudy checkpoint merge`)")
    environment = {**os.environ, **({"VLLM_CPU_KVCACHE_SPACE": "1"} if run.config.serving.cpu else {})}
    try:
        server = subprocess.Popen(serve_command(run.config.serving, model, executable), env=environment,
                                  start_new_session=True)
    except OSError as error:
        raise StudyError(f"{executable}: cannot be started ({error.strerror}); install vllm or give --vllm") from None
    try:
        run_proxy(run, host)
    finally:
        code = server.poll()
        if code is None:
            os.killpg(server.pid, signal.SIGTERM)
            code = server.wait()
    return max(code, 0)


def run_proxy(run: Run, host: str = "127.0.0.1", upstream: str | None = None) -> None:
    """Serve the proxy until it is interrupted."""
    import uvicorn

    uvicorn.run(proxy(run.config.serving, upstream), host=host, port=run.config.serving.proxy_port,
                log_level="warning")
