"""`tbstudy show`: read one attempt, or two side by side, on the terminal; without a task, what there is."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from tbstudy.errors import StudyError

#: With no more rows than this the tasks are listed unasked.
FEW = 20


def add_parser(subparsers: argparse._SubParsersAction) -> argparse.ArgumentParser:
    """Add the `show` command; its `run` default takes the parsed arguments and returns the exit code."""
    parser = subparsers.add_parser(
        "show", help="read one recorded attempt: conversation, tool calls, what decided the verdict",
        description="Show one attempt from record files. Without a task: what there is, and with --list every task.")
    parser.add_argument("records", nargs="+", type=Path, metavar="RECORDS",
                        help="JSONL files (ours or `tb infer`) or a folder that holds some")
    parser.add_argument("--task", metavar="UID", help="a uid, or any part of one that fits a single task")
    parser.add_argument("--list", action="store_true", help="list every task and how often it was passed")
    parser.add_argument("--repetition", "-r", type=int, metavar="N",
                        help="which attempt (default: the first failed one, else the first)")
    parser.add_argument("--policy", help="whose attempt, where several policies are recorded")
    parser.add_argument("--against", metavar="POLICY", help="show this policy's attempt beside it")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page instead of printing")
    parser.add_argument("--system", action="store_true", help="print system messages in full")
    parser.add_argument("--no-reasoning", action="store_true", help="fold the reasoning")
    parser.add_argument("--width", type=int, help="columns (default: the terminal's)")
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Print or write the view; StudyError for bad input."""
    from tbstudy.report import frames, viewer

    table = frames.tasks(frames.attempts(args.records))
    if not len(table):
        raise StudyError(f"{', '.join(map(str, args.records))}: no attempt recorded")
    if args.policy:
        table = _of_policy(table, args.policy)
    if args.task is None:
        few = len(table) <= FEW
        print(_listing(table) if args.list or few else _overview(table))
        print(_hint(args.records, table, listed=args.list or few))
        return 0
    uid = _uid(table, args.task)
    policies = sorted(set(table[table.uid == uid].policy))
    policy = args.policy or (policies[0] if len(policies) == 1 else None)
    if policy is None and args.against in policies and len(policies) == 2:
        policy = next(p for p in policies if p != args.against)
    if policy is None:
        raise StudyError(f"{uid} was played by {', '.join(policies)}; say which with --policy")
    repetition = args.repetition
    if repetition is None:
        rows = frames.attempts(args.records)
        rows = rows[(rows.uid == uid) & (rows.policy == policy)].sort_values("repetition")
        failed = rows[~rows.passed.astype(bool) & ~rows.system_error.astype(bool)]
        repetition = int((failed if len(failed) else rows).repetition.iloc[0])
    view: viewer.EpisodeView | viewer.EpisodeComparison
    if args.against:
        view = viewer.compare_episodes(args.records, uid, repetition, (policy, args.against))
    else:
        view = viewer.show_episode(args.records, uid, repetition, policy)
    if args.html:
        print(viewer.write_page(view, args.html))
        return 0
    width = args.width or shutil.get_terminal_size((100, 40)).columns
    print(view.text(width, color=sys.stdout.isatty(), system=args.system, reasoning=not args.no_reasoning))
    return 0


def _of_policy(table, policy: str):
    names = sorted(set(table.policy))
    if policy not in names:
        raise StudyError(f"no attempt of policy {policy!r}; recorded are {', '.join(names)}")
    return table[table.policy == policy]


def _uid(table, wanted: str) -> str:
    uids = sorted(set(table.uid))
    if wanted in uids:
        return wanted
    found = [uid for uid in uids if wanted in uid]
    if len(found) != 1:
        near = f"; it fits {', '.join(found[:5])}{', ...' if len(found) > 5 else ''}" if found else ""
        raise StudyError(f"--task {wanted!r} names {'no' if not found else 'more than one'} recorded task{near}")
    return found[0]


def _listing(table) -> str:
    lines = []
    for (source, policy), rows in table.groupby(["source", "policy"]):
        total, passed = int(rows.n.sum()), int(rows.k.sum())
        lines.append(f"{source}, {policy}: {len(rows)} tasks, {passed} of {total} clean attempts passed, "
                     f"{int(rows.system_errors.sum())} system errors")
        width = max(map(len, rows.uid))
        for row in rows.itertuples():
            errors = f"  {row.system_errors} system errors" if row.system_errors else ""
            lines.append(f"  {row.uid:<{width}}  {row.k:>3} of {row.n}{errors}")
    return "\n".join(lines)


def _overview(table) -> str:
    """One row a file and policy: tasks by whether they were always, sometimes or never passed."""
    import pandas as pd

    rows = []
    for (source, policy), of in table.groupby(["source", "policy"], sort=False):
        clean, passed = of.n.sum(), of.k.sum()
        rows.append((source, policy, len(of), int(of.n.sum()), f"{100 * passed / clean:.1f} %" if clean else "-",
                     int(((of.k == of.n) & (of.n > 0)).sum()), int(((of.k > 0) & (of.k < of.n)).sum()),
                     int(((of.k == 0) & (of.n > 0)).sum()), int(of.system_errors.sum())))
    columns = ["records", "policy", "tasks", "clean attempts", "passed", "always", "sometimes", "never",
               "system errors"]
    return pd.DataFrame(rows, columns=columns).to_string(index=False)


def _hint(records, table, listed: bool) -> str:
    """The next command, with a task that was passed sometimes where there is one."""
    mixed = table[(table.k > 0) & (table.k < table.n)]
    row = (mixed if len(mixed) else table).iloc[0]
    several = table[table.uid == row.uid].policy.nunique() > 1
    command = f"tbstudy show {' '.join(map(str, records))}"
    lines = [f"one attempt: {command} --task {row.uid}{f' --policy {row.policy}' if several else ''}"]
    return "\n".join(lines if listed else [*lines, f"every task:  {command} --list"])
