"""A merged checkpoint behind vLLM's CPU build and the proxy, evaluated as the reference checkpoint is.

    python -m tbstudy.training.verl.cpu.serving --model runs/rehearsal/merged --vllm VLLM_VENV/bin/vllm

vLLM runs with the published flags in an environment of its own. Every reply is read twice, by the server's parsers and
by our interpreter from the returned token ids; the pass rate is set against the local evaluation's.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tbstudy.campaign import play, to_record
from tbstudy.errors import StudyError
from tbstudy.evaluation.metrics import wilson
from tbstudy.evaluation.serve import proxy, serve_command
from tbstudy.policies.client import Endpoint
from tbstudy.policies.endpoint import DIFFERS, RETOKENISED, EndpointPolicy
from tbstudy.selection import load_pool
from tbstudy.store import is_system_error, read_lines
from tbstudy.training.verl.config import Run, load_run
from tbstudy.training.verl.workplace import Workplace


@contextmanager
def served(run: Run, model: Path, vllm: Path, log: Path, seconds: float = 600.0) -> Iterator[str]:
    """vLLM and the proxy, ready; yields the proxy's URL.

    Raises:
        StudyError: the server ended or was not ready in time; the message holds the end of its log.
    """
    import uvicorn

    serving = run.config.serving
    environment = {**os.environ, "VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1",
                   "PATH": f"{vllm.parent}{os.pathsep}{os.environ['PATH']}"}
    with open(log, "wb") as out:
        server = subprocess.Popen(serve_command(serving, model, str(vllm)), env=environment, stdout=out, stderr=out,
                                  start_new_session=True)
    front = uvicorn.Server(uvicorn.Config(proxy(serving), host="127.0.0.1", port=serving.proxy_port,
                                          log_level="warning"))
    thread = threading.Thread(target=front.run, daemon=True)
    thread.start()
    try:
        _wait(f"http://127.0.0.1:{serving.proxy_port}/readyz", server, log, seconds)
        yield f"http://127.0.0.1:{serving.proxy_port}"
    finally:
        front.should_exit = True
        thread.join(10)
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGTERM)
            try:
                server.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(server.pid, signal.SIGKILL)
                server.wait()


def _wait(url: str, server: subprocess.Popen, log: Path, seconds: float) -> None:
    import httpx2 as httpx

    end, said = time.monotonic() + seconds, ""
    while time.monotonic() < end:
        if server.poll() is not None:
            break
        try:
            answer = httpx.get(url, timeout=10, trust_env=False)
            if answer.status_code == 200:
                return
            said = answer.text
        except httpx.HTTPError as error:
            said = type(error).__name__
        time.sleep(1)
    tail = log.read_text(encoding="utf-8", errors="replace")[-2000:]
    raise StudyError(f"the model server is not ready ({said}); the end of {log}:\n{tail}")


def evaluate(run: Run, url: str, model: Path, out: Path, attempts: int) -> list[dict[str, Any]]:
    """Play the pool's test tasks against the server; the records, which also go to `out`."""
    serving = run.config.serving
    # Greedy or not, the server samples as each request says; the proxy fills in the sampling parameters.
    endpoint = Endpoint.of({"base_url": f"{url}/v1", "model": serving.served_name, "tokenizer": str(model),
                            "concurrency": 16, "extra_body": {"return_token_ids": True}})
    lengths = run.config.lengths

    async def all_of_them() -> list[dict[str, Any]]:
        place = Workplace(run)
        policy = EndpointPolicy(endpoint, name="served", max_turn_tokens=serving.max_completion_tokens,
                                max_tokens=lengths.model, seed=run.config.seed)
        uids = load_pool(run.path(run.config.data.pool)).uids("test")

        async def once(uid: str, repetition: int) -> dict[str, Any]:
            async with place.free:
                episode, verdict = await play(place.task(uid), repetition, policy=policy, sandbox=place.sandbox,
                                              user=place.user, checks=place.checks)
            return to_record(episode, verdict, policy.name, "served")

        try:
            return list(await asyncio.gather(*(once(uid, r) for uid in uids for r in range(attempts))))
        finally:
            await policy.close()
            await place.close()

    records = asyncio.run(all_of_them())
    out.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), encoding="utf-8")
    return records


def compare(records: list[dict[str, Any]], local: Path | None) -> dict[str, Any]:
    """Replies read differently, pass rate with its 95 % Wilson interval, and the local pass rate."""
    replies = [message for record in records for message in record["messages"]
               if message["role"] == "assistant" and message.get("raw_text") is not None]
    warnings = Counter(w for record in records for w in record["metadata"].get("warnings", ()))
    clean = [record for record in records if not is_system_error(record)]
    passed = sum(record["test_result"]["reward"] > 0 for record in clean)
    found = {"attempts": len(records), "system_errors": len(records) - len(clean), "replies_read_twice": len(replies),
             "replies_with_calls": sum(bool(message.get("tool_calls")) for message in replies),
             "read_otherwise": warnings[DIFFERS], "without_token_ids": warnings[RETOKENISED],
             "passed": passed, "pass_rate": passed / max(1, len(clean))}
    interval = wilson(passed, len(clean))
    found["interval"] = [interval.low, interval.high]
    if local is not None:
        theirs = [r["test_result"]["reward"] > 0 for _, r in read_lines(local) if not is_system_error(r)]
        found["local_pass_rate"] = sum(theirs) / len(theirs)
        other = wilson(sum(theirs), len(theirs))
        found["local_interval"] = [other.low, other.high]
    return found


def main(arguments: list[str] | None = None) -> int:
    """The command; 0 when every reply was read alike and the intervals overlap."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--config", type=Path, default=Path("configs/reference-small-cpu.yaml"))
    parser.add_argument("--model", type=Path, required=True, help="the merged checkpoint")
    parser.add_argument("--vllm", type=Path, required=True, help="the vllm executable")
    parser.add_argument("--pool", type=Path, help="instead of the configuration's")
    parser.add_argument("--local", type=Path, help="records of the local evaluation to compare with")
    parser.add_argument("--out", type=Path, default=Path("runs/rehearsal"))
    parser.add_argument("--attempts", type=int, default=4)
    options = parser.parse_args(arguments)
    run = load_run(options.config, {"data.pool": str(options.pool.resolve())} if options.pool else None)
    options.out.mkdir(parents=True, exist_ok=True)
    try:
        with served(run, options.model.resolve(), options.vllm, options.out / "vllm.log") as url:
            records = evaluate(run, url, options.model, options.out / "evaluate_served.jsonl", options.attempts)
    except StudyError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    found = compare(records, options.local)
    print(json.dumps(found, indent=1))
    alike = not found["read_otherwise"] and not found["system_errors"] and found["replies_read_twice"] > 0
    if options.local is not None:
        (low, high), (other_low, other_high) = found["interval"], found["local_interval"]
        alike = alike and low <= other_high and other_low <= high
    return 0 if alike else 1


if __name__ == "__main__":
    sys.exit(main())
