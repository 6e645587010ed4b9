"""`tbstudy evaluate` (coverage and summary of one records file) and `tbstudy analyse` (several campaigns, compared).

Command modules stand above the library: they print through `tbstudy.report`, which the rest of this package never uses.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from tbstudy.errors import StudyError


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Add the `evaluate` and `analyse` commands; their handlers are in the `run` default and return an exit code."""
    evaluate = subparsers.add_parser(
        "evaluate",
        help="coverage and scores of a records file",
        description="Check the exact coverage of a campaign (ours, `tb infer` or `thinkingbox-eval`) and score it by "
        "domain. Exits with 2 when coverage is not exact; no score is printed then, unless --allow-incomplete.",
    )
    evaluate.add_argument("records", type=Path, help="JSONL of attempts")
    _common(evaluate)
    evaluate.add_argument("--policy", help="which policy of the file, or the name of a file's only policy")
    evaluate.add_argument("--errors", type=Path, help="errors sidecar of `thinkingbox-eval`")
    evaluate.set_defaults(run=run_evaluate)

    analyse = subparsers.add_parser(
        "analyse",
        help="tables and figures of one or more campaigns",
        description="Score every campaign, compare each with the first, and write tables and figures. "
        "NAME=PATH renames a policy; --null is a second campaign of the first policy.",
    )
    analyse.add_argument("campaigns", nargs="+", metavar="CAMPAIGN", help="JSONL of attempts, or NAME=JSONL")
    _common(analyse)
    analyse.add_argument("--null", type=Path, help="second campaign of the first policy, for the ledger's null")
    analyse.add_argument("--prices", type=Path, help="price table (YAML) for the cost tables")
    analyse.add_argument("--out", type=Path, help="study folder to write tables and figures to (default: print only)")
    analyse.set_defaults(run=run_analyse)


def _common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tasks", type=Path, help="YAML list of uids that the campaign must cover")
    parser.add_argument("--repeats", type=int, help="attempts that every task must have")
    parser.add_argument("--allow-incomplete", action="store_true", help="score what there is, labelled as incomplete")
    parser.add_argument("--system-errors", choices=("exclude", "fail"), default="exclude", help="how they count")
    parser.add_argument("--seed", type=int, default=0, help="seed of the bootstrap (default: 0)")


def read_uids(path: Path | None) -> list[str] | None:
    """Uids of a YAML list file; None without one. Raises `StudyError` when it is no list of uids."""
    if path is None:
        return None
    import yaml

    try:
        uids = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise StudyError(f"{path}: cannot read the task list ({error})") from None
    if not isinstance(uids, list) or not all(isinstance(uid, str) for uid in uids):
        raise StudyError(f"{path}: expected a YAML list of uids, one a line")
    return uids


def run_evaluate(options: argparse.Namespace) -> int:
    """Print the coverage table, and the scores unless they are refused."""
    from tbstudy.evaluation import api
    from tbstudy.evaluation.attempts import read_attempts
    from tbstudy.evaluation.coverage import check_coverage
    from tbstudy.report.analysis import summary_as_table
    from tbstudy.report.tables import to_markdown

    uids = read_uids(options.tasks)
    torn: list[str] = []
    attempts = read_attempts(options.records, policy=options.policy, errors=options.errors, on_torn=torn.append)
    names = list(dict.fromkeys(attempts.policy.astype(str)))
    if options.policy is None and len(names) > 1:
        raise StudyError(f"{options.records}: attempts of {len(names)} policies; name one with --policy "
                         f"{'|'.join(names)}, or compare them with `tbstudy analyse`")
    if options.policy is not None:
        attempts = attempts[attempts.policy.astype(str) == options.policy]
    coverage = check_coverage(attempts, uids, options.repeats, torn=torn)
    print(coverage.table().to_markdown(index=False) + "\n")
    campaign = api.load_campaign(
        options.records,
        policy=options.policy,
        uids=uids,
        repeats=options.repeats,
        errors=options.errors,
        allow_incomplete=options.allow_incomplete,
    )
    summary = api.summary_table(campaign, k=campaign.k, system_errors=options.system_errors, seed=options.seed)
    print(to_markdown(summary_as_table(summary, campaign.label)))
    _say_canonical(options.records)
    return 0


def run_analyse(options: argparse.Namespace) -> int:
    """Write (or print) everything `report.analysis.analyse` makes of the campaigns."""
    from tbstudy.evaluation import api
    from tbstudy.report.analysis import analyse

    plan = {
        "uids": read_uids(options.tasks),
        "repeats": options.repeats,
        "allow_incomplete": options.allow_incomplete,
    }
    campaigns = _load(options.campaigns, plan)
    null = api.load_campaign(options.null, **plan) if options.null else None
    tables = analyse(
        campaigns,
        second_base=null,
        prices=options.prices,
        out=options.out,
        system_errors=options.system_errors,
        seed=options.seed,
    )
    from tbstudy.report.tables import to_markdown

    for table in tables.values():
        print(to_markdown(table))
    _say_canonical(*(Path(argument.rpartition("=")[2]) for argument in options.campaigns),
                   *([options.null] if options.null else []))
    return 0


def _say_canonical(*files: Path) -> None:
    """Say so where attempts found another search service than the one that results are compared by."""
    from tbstudy.campaign import search_note, search_services

    for folder in dict.fromkeys(file.parent for file in files):
        if note := search_note(search_services(folder)):
            print(f"{folder}: {note}")


def _load(arguments: Sequence[str], plan: dict):
    from tbstudy.evaluation import api

    found = {}
    for argument in arguments:
        name, _, path = argument.rpartition("=")
        for policy in [None] if name else _policies(Path(path)):
            campaign = api.load_campaign(path, policy=policy, **plan)
            key = name or campaign.policy
            if key in found:
                raise StudyError(f"{argument}: policy {key!r} was already given; rename one with NAME=PATH")
            found[key] = campaign
    return found


def _policies(path: Path) -> list[str | None]:
    """The policies recorded in a file, in order of appearance: one of our files may hold several."""
    from tbstudy.evaluation.attempts import read_attempts

    names = list(dict.fromkeys(read_attempts(path, on_torn=lambda text: None).policy.astype(str)))
    return names if len(names) > 1 else [None]
