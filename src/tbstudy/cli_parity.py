"""`tbstudy parity`: read recorded generations twice and show where the readings differ."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tbstudy.errors import StudyError


def add_parser(subparsers: argparse._SubParsersAction) -> argparse.ArgumentParser:
    """Add the `parity` command; its `run` default takes the parsed arguments and returns the exit code."""
    parser = subparsers.add_parser(
        "parity", help="compare two readings of recorded generations",
        description="Read the raw text of recorded generations (our records or `tb infer` output) with our interpreter "
                    "and with another reading, and print agreement by kind. Exit code 1 when readings differ.")
    parser.add_argument("records", type=Path, metavar="RECORDED.jsonl")
    parser.add_argument("--against", choices=("auto", "vllm", "recorded"), default="auto",
                        help="vllm: the installed vLLM's own parsers; recorded: the server's reading in the record; "
                             "auto: vllm when it is installed, else recorded")
    parser.add_argument("--dataset", type=Path, metavar="ROOT",
                        help="for records without tool schemas: the dataset they were made on, whose servers are asked")
    parser.add_argument("--transport", default="inprocess", help="how --dataset's servers start (default: inprocess)")
    parser.add_argument("--tools", type=Path, metavar="TOOLS.json",
                        help="instead of --dataset: a JSON list of OpenAI tools, or an object from uid, scenario or "
                             "domain to such a list")
    parser.add_argument("--enable-thinking", choices=("true", "false"),
                        help="what the requests sent (default: nothing)")
    parser.add_argument("--special-tokens", type=Path, metavar="TOKENIZER",
                        help="folder of the tokenizer whose special tokens the server deleted")
    parser.add_argument("--examples", type=int, default=5, metavar="N", help="differing generations to show")
    parser.add_argument("--json", type=Path, metavar="OUT.json", help="write the report as JSON as well")
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Print the report; 0 when the readings agree on every generation, 1 otherwise. StudyError for bad input."""
    from tbstudy.interpreter import parity
    from tbstudy.interpreter.profile import DEFAULT

    if not args.records.is_file():
        raise StudyError(f"{args.records}: no such file")
    tools = None
    if args.tools is not None:
        try:
            tools = json.loads(args.tools.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise StudyError(f"--tools {args.tools}: {error}") from None
    elif args.dataset is not None:
        tools = asyncio.run(dataset_tools(args.dataset, parity.record_uids(args.records), args.transport))
    options: dict = {"special_tokens": DEFAULT}
    if args.special_tokens is not None:
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(args.special_tokens, local_files_only=True)
        options["special_tokens"] = tuple(tokenizer.all_special_tokens)
    if args.enable_thinking is not None:
        options["enable_thinking"] = args.enable_thinking == "true"
    against = args.against
    if against == "auto":
        against = "vllm" if parity.vllm_installed() else "recorded"
    other = parity.vllm(**options) if against == "vllm" else parity.recorded
    report = parity.compare(
        parity.load_generations(args.records, tools), parity.ours(**options), other,
        names=("tbstudy", "vllm" if against == "vllm" else "the server (as recorded)"), examples=args.examples)
    print(report.text())
    if args.json is not None:
        args.json.write_text(json.dumps(report.to_dict(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return 1 if report.differing else 0


async def dataset_tools(root: Path, uids: Iterable[str], transport: str) -> dict[str, list[dict[str, Any]]]:
    """The tools that each task of a dataset offers, by uid; one session is started for each scenario.

    StudyError when a uid or a server cannot be found, SystemFault when a server does not start.
    """
    from tbstudy.sandbox.servers import read_servers
    from tbstudy.sandbox.transports import open_sandbox
    from tbstudy.tasks.loader import load_dataset

    tasks = load_dataset(root, list(uids), include_skipped=True).tasks
    sandbox = open_sandbox(transport, read_servers(root / "servers.yaml"))
    by_scenario: dict[str, list[dict[str, Any]]] = {}
    try:
        for task in tasks.values():
            if task.scenario not in by_scenario:
                async with sandbox.session(task) as session:
                    by_scenario[task.scenario] = await session.tools()
    finally:
        await sandbox.close()
    return {uid: by_scenario[task.scenario] for uid, task in tasks.items()}
