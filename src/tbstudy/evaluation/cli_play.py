"""`tbstudy play`: one policy on one task list, into a records file that `evaluate` and `analyse` read."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from tbstudy.errors import StudyError

if TYPE_CHECKING:
    from tbstudy.config import Study
    from tbstudy.tasks.model import Task


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Add the `play` command; its handler is in the `run` default and returns an exit code."""
    play = subparsers.add_parser(
        "play", help="play a policy on a task list",
        description="Play every attempt that is missing and append it to a records file, which `tbstudy evaluate` and "
        "`tbstudy analyse` read. Stopped at any point, the same command continues. Exits with 1 when attempts ended in "
        "a system error, which are never failures: --repair plays them again.")
    play.add_argument("config", help="configuration of a study: dataset, tool servers, policy, user, judge")
    play.add_argument("--name", required=True, help="the policy's name in the records, such as base or trained")
    play.add_argument("--list", default="benchmark", dest="which", metavar="LIST",
                      help="benchmark (default), candidates, test (held out of the study's pool), or a YAML file of "
                      "uids")
    play.add_argument("--attempts", type=int, metavar="N", help="attempts a task (default: evaluate.attempts)")
    play.add_argument("--out", type=Path, metavar="JSONL",
                      help="records file (default: play_<list>.jsonl in the study's folder)")
    play.add_argument("--repair", action="store_true", help="play attempts again that ended in a system error")
    play.add_argument("--checkpoint", type=Path, metavar="FOLDER",
                      help="another local checkpoint than the configuration's, such as "
                      "runs/laptop/train/selected/checkpoint")
    play.add_argument("--study", metavar="FOLDER", help="the study's folder (default: runs/<study>)")
    play.add_argument("--set", action="append", default=[], metavar="section.key=value", dest="changes",
                      help="change the configuration (value in YAML), such as policy.endpoint.model=trained")
    play.set_defaults(run=run_play)


def run_play(options: argparse.Namespace) -> int:
    """Play what is missing and say what there is now.

    Raises:
        StudyError: the configuration, the list or the records do not fit, or the policy cannot be played.
    """
    from tbstudy.campaign import run_campaign
    from tbstudy.config import load_study, parse_changes
    from tbstudy.progress import Progress

    if not options.name.strip():
        raise StudyError("--name is empty: records are told apart by the policy's name")
    changes = {key.replace(".", "__"): value for key, value in parse_changes(options.changes).items()}
    study = load_study(options.config, options.study, **changes)
    attempts = study.config.evaluate.attempts if options.attempts is None else options.attempts
    if attempts < 1:
        raise StudyError(f"--attempts {attempts}: must be at least 1")
    if options.checkpoint is not None and study.config.policy.kind != "local":
        raise StudyError(f"--checkpoint: {study.file} has policy.kind {study.config.policy.kind!r}, whose model is the "
                         "server's; leave it out, or set policy.kind=local")
    tasks = _tasks(study, options.which)
    out = options.out or study.folder / f"play_{Path(options.which).stem}.jsonl"
    if out.is_dir():
        raise StudyError(f"--out {out}: is a folder; name the records file in it, such as {out / 'records.jsonl'}")
    with Progress(f"play {options.name}", len(tasks) * attempts) as progress:
        # The stage of the random numbers is that of the evaluation: the same policy plays the same attempts there.
        result = run_campaign(study, tasks, attempts, out, name=options.name, checkpoint=options.checkpoint,
                              stage="evaluate", repair=options.repair, progress=progress.campaign())
    print(f"{out}: {result.wanted} attempts by {options.name!r} at {len(tasks)} tasks; {result.stored} were there, "
          f"{result.played} played now, {result.system_errors} system errors")
    if result.torn_bytes:
        print(f"{result.torn_bytes} bytes of a line that was not finished were cut; its attempt was played again")
    if result.system_errors:
        print(f"the last one: {_last_error(out, options.name)}\nput that right, then the same command with --repair "
              "plays them again")
        return 1
    command = ["tbstudy", "evaluate", str(out), "--policy", options.name, "--repeats", str(attempts)]
    if options.which != "test":
        listed = options.which in ("benchmark", "candidates")
        command += ["--tasks", str(study.existing(options.which) if listed else options.which)]
    print(f"score: {shlex.join(command)}")
    return 0


def _tasks(study: Study, which: str) -> list[Task]:
    from tbstudy.campaign import load_tasks
    from tbstudy.stages import evaluation_tasks
    from tbstudy.tasks.loader import load_dataset, load_list

    if which in ("benchmark", "candidates"):
        return load_tasks(study, which)
    if which == "test":
        return evaluation_tasks(study, "test")
    if not Path(which).is_file():
        raise StudyError(f"--list {which!r}: neither benchmark, candidates or test nor a file")
    uids = load_list(which)
    tasks = load_dataset(study.existing("dataset"), uids).tasks
    return [tasks[uid] for uid in uids]


def _last_error(path: Path, policy: str) -> str:
    from tbstudy.store import is_system_error, read_lines, told_error

    said = "without a message"
    for _, record in read_lines(path):
        if record["metadata"]["policy"] == policy and is_system_error(record):
            said = told_error(record)
    return said
