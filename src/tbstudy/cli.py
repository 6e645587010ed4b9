"""`tbstudy`: run a study, or any part of it, from a terminal."""

from __future__ import annotations

import argparse
import importlib
import os
import sys

from tbstudy import __version__
from tbstudy.errors import StudyError

#: Commands that live beside what they run; each module has `add_parser(subparsers)`.
_PARTS = ("tbstudy.report.cli", "tbstudy.report.cli_show", "tbstudy.evaluation.cli", "tbstudy.evaluation.cli_play",
          "tbstudy.cli_parity", "tbstudy.sandbox.cli", "tbstudy.scaffold.cli", "tbstudy.training.verl.cli")


def main(argv: list[str] | None = None) -> int:
    """Entry point; returns the exit status. Bad input is one line on standard error and status 2."""
    parser = argparse.ArgumentParser(prog="tbstudy", description=__doc__)
    parser.add_argument("--version", action="version", version=f"tbstudy {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    run = commands.add_parser("run", help="run the study's notebooks and freeze its report")
    run.add_argument("config", help="configuration file, such as configs/laptop.yaml")
    run.add_argument("--study", metavar="FOLDER", help="where the run's files go (default: runs/<study>)")
    run.add_argument("--seed", type=int, help="another seed than the configuration's")
    run.add_argument("--stages", nargs="+", metavar="STAGE",
                     help="only these of probe, band, select, train, evaluate, analyse (default: all six, then the "
                     "report)")
    run.add_argument("--force", action="store_true", help="execute stages again that are unchanged")
    run.add_argument("--report-to", metavar="FOLDER", help="where the report's versions go (default: reports/)")
    run.add_argument("--repair", action="store_true", help="play attempts again that ended in a system error")
    run.set_defaults(run=_run)

    base = commands.add_parser("base-policy", help="build the bundled small policy from its seed")
    base.add_argument("--out", default="data/recorded/base_policy", metavar="FOLDER",
                      help="where the checkpoint is written (default: %(default)s)")
    base.add_argument("--dataset", default="data/demo", metavar="FOLDER",
                      help="the bundled dataset, whose demonstrators it learns from (default: %(default)s)")
    base.add_argument("--seed", type=int, help="another seed than the build plan's")
    base.set_defaults(run=_base_policy)

    keep = commands.add_parser("record", help="pack a finished study into a small folder, as data/recorded/laptop is")
    keep.add_argument("config", help="the study's configuration file")
    keep.add_argument("out", help="folder to write; must not exist")
    keep.add_argument("--study", metavar="FOLDER", help="the study's folder (default: runs/<study>)")
    keep.set_defaults(run=_record)

    for name in _PARTS:
        importlib.import_module(name).add_parser(commands)
    args = parser.parse_args(argv)
    try:
        code = args.run(args) or 0
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # `| head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except StudyError as error:
        print(f"tbstudy: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("tbstudy: stopped; the same command continues", file=sys.stderr)
        return 130


def _run(args: argparse.Namespace) -> int:
    from tbstudy.config import load_study
    from tbstudy.pipeline import STAGES, freeze_report, run_study

    changed = {} if args.seed is None else {"seed": args.seed}
    study = load_study(args.config, args.study, **changed)
    results = run_study(study, args.stages or STAGES, force=args.force, repair=args.repair)
    for result in results:
        print(f"{result.stage:9} {'executed' if result.executed else 'unchanged':9} {result.seconds:7.1f} s  "
              f"{result.notebook}")
    if not args.stages and any(r.executed for r in results):
        print(f"report: {freeze_report(study, args.report_to) / 'report.html'}")
    return 0


def _record(args: argparse.Namespace) -> int:
    from pathlib import Path

    from tbstudy.config import load_study
    from tbstudy.recorded import record

    print(record(load_study(args.config, args.study), Path(args.out)))
    return 0


def _base_policy(args: argparse.Namespace) -> int:
    from dataclasses import replace
    from pathlib import Path

    from tbstudy_demo.base_policy import BuildPlan, build
    from tbstudy_demo.gate import check_gate
    plan = BuildPlan() if args.seed is None else replace(BuildPlan(), seed=args.seed)

    def report(step: int, loss: float, copied: float) -> None:
        if (step + 1) % 50 == 0:
            print(f"step {step + 1} of {plan.steps}: loss {loss:.3f}, values copied {copied:.0%}", flush=True)

    build(Path(args.out), Path(args.dataset), plan, report)
    return check_gate(Path(args.out), Path(args.dataset), plan.seed)


if __name__ == "__main__":
    sys.exit(main())
