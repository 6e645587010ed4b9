"""The Ray cluster of a run: starting a node with what the run needs, and waiting until all are there.

A node proves itself before it joins: pinned packages, GPUs, the variables with URLs and keys (Ray's processes inherit
the environment of `ray start`), and a mark in the checkpoint folder, which shows later that the folder is shared.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tbstudy.errors import StudyError
from tbstudy.training.verl import preflight
from tbstudy.training.verl.config import Run
from tbstudy.training.verl.overrides import environment

PORT = 6379
MARKS = ".nodes"


def start_command(run: Run, role: str, address: str | None = None, node_ip: str | None = None) -> list[str]:
    """`ray start` for this node. `role` is head or worker; a worker needs the head's `address` (host or host:port).

    Raises:
        StudyError: a worker without the head's address, or another role.
    """
    ray = Path(sys.executable).with_name("ray")
    command = [str(ray) if ray.is_file() else "ray", "start"]
    if role == "head":
        command += ["--head", f"--port={PORT}", "--include-dashboard=false"]
    elif role == "worker":
        if not address:
            raise StudyError("a worker needs the head's address: `tbstudy ray worker CONFIG --address HOST[:PORT]`")
        command.append(f"--address={address if ':' in address else f'{address}:{PORT}'}")
    else:
        raise StudyError(f"role must be head or worker, it is {role!r}")
    if node_ip:
        command.append(f"--node-ip-address={node_ip}")
    return [*command, f"--num-gpus={run.config.cluster.gpus_per_node}", "--disable-usage-stats"]


def local_gpus() -> int:
    """GPUs of this machine, by nvidia-smi, so that no process here holds one open."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return 0
    done = subprocess.run([tool, "--list-gpus"], capture_output=True, text=True)
    return done.stdout.count("GPU ") if done.returncode == 0 else 0


def verify_node(run: Run, world: preflight.World | None = None, gpus: Callable[[], int] = local_gpus
                ) -> list[preflight.Finding]:
    """What this node must have before it joins."""
    world = world or preflight.World()
    findings = [preflight.Finding("versions are pinned", preflight.versions_are_pinned(run, world)),
                preflight.Finding("secrets are set", preflight.secrets_are_set(run, world))]
    found, wanted = gpus(), run.config.cluster.gpus_per_node
    short = run.config.cluster.platform == "cuda" and found < wanted
    findings.append(preflight.Finding("gpus match", (
        f"{found} GPUs here, cluster.gpus_per_node says {wanted}; free or repair them, or change the number")
        if short else ""))
    try:
        leave_mark(run)
        problem = ""
    except OSError as error:
        problem = f"checkpoints.folder {run.checkpoints}: cannot be written from this node ({error.strerror}); mount it"
    return [*findings, preflight.Finding("checkpoint folder is usable", problem)]


def leave_mark(run: Run, name: str | None = None) -> Path:
    """Write this node's mark into the checkpoint folder."""
    folder = run.checkpoints / MARKS
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name or socket.gethostname()}.json"
    path.write_text(json.dumps({"at": time.time(), "pid": os.getpid()}) + "\n", encoding="utf-8")
    return path


def marks(run: Run) -> list[str]:
    """Names of the nodes that left a mark, sorted."""
    return sorted(path.stem for path in (run.checkpoints / MARKS).glob("*.json"))


def clear_marks(run: Run) -> None:
    """Forget the nodes of an earlier cluster."""
    for path in (run.checkpoints / MARKS).glob("*.json"):
        path.unlink()


def start(run: Run, role: str, address: str | None = None, node_ip: str | None = None, dry_run: bool = False) -> int:
    """Verify this node and start Ray on it; Ray's exit code. A new head forgets the marks of an earlier cluster.

    Raises:
        StudyError: the node lacks something, with all that it lacks; nothing was started.
    """
    command = start_command(run, role, address, node_ip)
    variables = environment(run)
    if dry_run:
        print(" ".join([*(f"{name}={value}" for name, value in variables.items()), *command]))
        return 0
    if role == "head":
        clear_marks(run)
    findings = verify_node(run)
    print(preflight.text(findings))
    preflight.refuse(findings)
    return subprocess.run(command, env={**os.environ, **variables}).returncode


def cluster_gpus(address: str) -> list[int]:
    """GPUs of each living node of the cluster.

    Raises:
        StudyError: no cluster answers there, or Ray is not installed.
    """
    try:
        import ray
    except ImportError:
        raise StudyError("Ray is not installed here (pip install 'tbstudy[verl]')") from None
    connected = ray.is_initialized()
    try:
        if not connected:
            ray.init(address=address, logging_level="ERROR", log_to_driver=False)
        nodes = ray.nodes()
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise StudyError(f"no Ray cluster answers at {address!r} ({error}); start it with `tbstudy ray head`") from None
    finally:
        if not connected and ray.is_initialized():
            ray.shutdown()  # the trainer connects by itself, as a job of its own
    return [int(node["Resources"].get("GPU", 0)) for node in nodes if node["Alive"]]


def wait(run: Run, seconds: float, counts: Callable[[str], list[int]] = cluster_gpus,
         sleep: Callable[[float], Any] = time.sleep) -> list[int]:
    """Wait until the cluster has the run's GPUs; the GPUs of each node.

    Raises:
        StudyError: it has not after `seconds`.
    """
    cluster, deadline = run.config.cluster, time.monotonic() + seconds
    while True:
        found = counts(cluster.ray_address or "auto")
        if sum(count >= cluster.gpus_per_node for count in found) >= cluster.nodes:
            return found
        if time.monotonic() >= deadline:
            raise StudyError(f"after {seconds:g} s the cluster has {sum(found)} GPUs on {len(found)} nodes "
                             f"({', '.join(map(str, found))}), the run needs {cluster.world} on {cluster.nodes}; see "
                             "`ray status` and start the missing nodes with `tbstudy ray worker`")
        sleep(min(5.0, seconds))
