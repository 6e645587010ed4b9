"""Reads and fully analyses a synthetic campaign of 18 policies x 507 tasks x 20 attempts: seconds and peak memory.

    python benchmarks/analysis.py                      # the acceptance measurement
    python benchmarks/analysis.py --tb path/to/tb      # also `tb agg` of ThinkingBox on one of the files

The files are in the format of `tb infer`, with about 3 kB of conversation an attempt, so that both programs read the
same bytes. They are written to --folder (default: a temporary folder, removed at the end), about 0.6 GB.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DOMAINS = {
    "sandbox_external_retail": 98,
    "sandbox_auto_insurance": 100,
    "external_booking_v1": 104,
    "sandbox_neobank_support_v1": 104,
    "sandbox_consulting": 101,
}
TB = (
    "AssertionError: Database hash after test execution does not match\n1. Path: tickets[3].status\n"
    '   Type: value mismatch\n   Result:  "solved"\n   Golden:  "hold"\n'
)


def conversation() -> list[dict]:
    """A conversation of ten messages, about 3 kB as JSON."""
    text = {"T": "Text", "metadata": {}}
    messages = [
        text | {"role": "user", "content": "My order has not arrived and I should like to know what happens now."}
    ]
    for step, name in enumerate(("get_order", "get_customer", "search_policy", "update_ticket")):
        call = {"T": "ToolCall", "metadata": {}, "id": f"call_{step}", "name": name, "arguments": {"id": "ORD-70020"}}
        messages.append({"T": "ParallelToolCall", "metadata": {}, "tool_calls": [call]})
        answer = json.dumps({"id": "ORD-70020", "status": "exception", "notes": "carrier exception " * 18})
        messages.append({"T": "ToolResponse", "metadata": {}, "id": f"call_{step}", "name": name, "content": answer})
    return [*messages, text | {"role": "assistant", "content": "Your ticket is on hold. <DONE>"}]


def write_campaign(path: Path, seed: int) -> None:
    """One policy's 10,140 attempts in the format of `tb infer`."""
    rng = random.Random(seed)
    usage = {"input_tokens": 9000, "input_tokens_details": {"cached_tokens": 6000}, "output_tokens": 700}
    talk, strength = json.dumps(conversation()), rng.uniform(0.3, 2.0)
    with open(path, "w", encoding="utf-8") as out:
        for scenario, tasks in DOMAINS.items():
            for task in range(tasks):
                rate = rng.betavariate(strength, 1.0)
                for repetition in range(20):
                    passed = rng.random() < rate
                    verdict = {
                        "result": passed,
                        "reward": float(passed),
                        "is_system_error": False,
                        "tb": "" if passed else TB,
                    }
                    record = {
                        "uid": f"{scenario}_group1.py:test_{task:03}",
                        "test_result": verdict,
                        "usage": [usage] * 5,
                        "metadata": {"repetition": repetition, "scenario": scenario, "execution_time": 41.5},
                        "is_system_error": False,
                        "finish_reason": "done",
                    }
                    out.write(json.dumps(record)[:-1] + f', "messages": {talk}}}\n')


def analyse(folder: Path) -> None:
    """Everything `tbstudy analyse` computes, for every file in `folder`; prints seconds, attempts and peak memory."""
    start = time.perf_counter()
    from tbstudy.evaluation import anatomy, both_treatments, compare, curve_table, load_campaign, summary_table
    from tbstudy.evaluation.cost import PriceTable, attempt_costs, cost_summary, pareto_frontier, token_table

    files = sorted(folder.glob("*.jsonl"))
    campaigns = [load_campaign(path, repeats=20) for path in files]
    loaded = time.perf_counter()
    names = {campaign.policy: {"input": 1.0, "output": 4.0, "cached_input": 0.1} for campaign in campaigns}
    prices = PriceTable.model_validate({"date": "2026-09-20", "source": "made up for this benchmark", "models": names})
    summary = summary_table(campaigns)
    curve_table(campaigns)
    both_treatments(campaigns)
    rows = []
    for campaign in campaigns:
        anatomy(campaign.attempts)
        token_table(campaign.attempts)
        rows.append(cost_summary(campaign.attempts, attempt_costs(campaign.attempts, prices).total, 20))
        compare(campaigns[0], campaign)
    overall = summary[summary.domain == "all"].reset_index(drop=True)
    pareto_frontier(overall.pass_1 * 0 + [row["campaign_cost"] for row in rows], overall.pass_1)
    end = time.perf_counter()
    attempts = sum(len(campaign.attempts) for campaign in campaigns)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{len(files)} policies, {attempts:,} attempts, {sum(f.stat().st_size for f in files) / 1e6:.0f} MB of JSONL")
    used = time.process_time()
    print(f"read {loaded - start:.1f} s, analysed {end - loaded:.1f} s, in all {end - start:.1f} s ({used:.1f} CPU-s)")
    print(f"peak memory {peak:.0f} MiB")


def ratio(path: Path, tb: str) -> None:
    """Seconds of `tb agg` and of our own reading and summary on one file, each in its own process."""
    ours = "import sys; from tbstudy.evaluation import *; print(summary_table(load_campaign(sys.argv[1], repeats=20)))"
    seconds = []
    for command in ([tb, "agg", str(path)], [sys.executable, "-c", ours, str(path)]):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        seconds.append(time.perf_counter() - start)
    print(f"one policy: tb agg {seconds[0]:.1f} s, tbstudy {seconds[1]:.1f} s, ratio {seconds[0] / seconds[1]:.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policies", type=int, default=18)
    parser.add_argument("--folder", type=Path, help="where the files are, or are to be written and kept")
    parser.add_argument("--tb", help="ThinkingBox's `tb` program, to compare with `tb agg`")
    parser.add_argument("--analyse-only", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.analyse_only:
        analyse(options.analyse_only)
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for index in range(options.policies):
            path = folder / f"model_{index:02}.jsonl"
            if not path.exists():
                write_campaign(path, index)
        # A fresh process, so that peak memory is the analysis alone.
        subprocess.run([sys.executable, __file__, "--analyse-only", str(folder)], check=True)
        if options.tb:
            ratio(folder / "model_00.jsonl", options.tb)


if __name__ == "__main__":
    main()
