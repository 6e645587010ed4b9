"""`tbstudy new-domain`: a small working dataset to start one's own tasks from."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_parser(subparsers: argparse._SubParsersAction) -> argparse.ArgumentParser:
    """Add the `new-domain` command; its `run` default takes the parsed arguments and returns the exit code."""
    parser = subparsers.add_parser(
        "new-domain", help="write a small working dataset: tool server, scenario, tasks, checks, tests",
        description="Write a dataset in ThinkingBox's layout that works as it is (a desk that lends things): "
                    "a tool server, a scenario, 12 tasks with golden calls and checks, a study configuration and "
                    "tests. docs/own-tasks.md says how to make it yours.")
    parser.add_argument("name", help="name of the domain, e.g. library (lower-case letters, digits, underscores)")
    parser.add_argument("--out", type=Path, help="folder to write (default: ./NAME); it must not exist or be empty")
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Write the dataset and print what to do next; StudyError when the folder is in use."""
    from tbstudy.scaffold.dataset import write_domain

    out = args.out or Path(args.name)
    files = write_domain(args.name, out)
    print(f"{len(files) - 1} files in {out}, and {files[-1]}")
    print(f"next: tbstudy replay {out}")
    return 0
