"""The reference run in miniature, end to end on a CPU: train, resume, merge, evaluate.

    python -m tbstudy.training.verl.cpu.rehearsal --out runs/rehearsal

Everything goes through what the reference run goes through: the configuration and its preflight, verl's `main_ppo` on
Ray, the agent loop, dataset, reward and filters, checkpoints and their verification, verl's merger. Then the merged
checkpoint plays the pool's test tasks through the study's own campaign.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from tbstudy.campaign import run_campaign
from tbstudy.config import load_study
from tbstudy.errors import StudyError
from tbstudy.selection import load_pool
from tbstudy.store import is_system_error, read_lines
from tbstudy.tasks.loader import load_dataset
from tbstudy.training.verl import checkpoints, launch
from tbstudy.training.verl.config import Run, load_run
from tbstudy.training.verl.metrics import training_table
from tbstudy.training.verl.overrides import metrics_folder


def rehearse(config: Path, study: Path, out: Path, *, updates: int = 3, attempts: int = 4,
             changes: dict[str, Any] | None = None) -> dict[str, Any]:
    """Run `updates` updates, resume for one more, merge the last checkpoint and play the test tasks with it.

    `study` is the study configuration of the evaluation. Returns what was found: updates, the step resumed from, the
    merged folder, pass rates of base and trained policy on the test tasks, and the seconds of each part.

    Raises:
        StudyError: a part failed; what it left stays in `out`.
    """
    folder, seconds, found = out.resolve() / "checkpoints", {}, {}
    settings = {**(changes or {}), "checkpoints.folder": str(folder)}

    def timed(part: str, work: Any) -> Any:
        began = time.monotonic()
        result = work()
        seconds[part] = round(time.monotonic() - began, 1)
        return result

    first = load_run(config, {**settings, "update.updates": updates})
    point = checkpoints.resume_point(folder, first.config.cluster.world)
    if point is None or point.step < updates:  # a rehearsal that was cut goes on where it was
        _train(timed, "train", first)
    found["updates"] = training_table(first)["update"].tolist()
    if found["updates"][:updates] != list(range(1, updates + 1)):
        raise StudyError(f"the trainer recorded updates {found['updates']}, expected 1 to {updates}")

    second = load_run(config, {**settings, "update.updates": updates + 1})
    _train(timed, "resume", second)
    log = sorted(metrics_folder(second).glob("attempt-*.log"))[-1].read_text(encoding="utf-8", errors="replace")
    if f"setting global step to {updates}" not in log:
        raise StudyError(f"the second attempt did not resume from step {updates}; see {metrics_folder(second)}")
    table = training_table(second)
    found |= {"resumed_from": updates, "updates_in_all": table["update"].tolist(), "table": table}

    last = checkpoints.resume_point(folder, second.config.cluster.world)
    if last is None or last.step != updates + 1:
        raise StudyError(f"{folder}: expected a complete checkpoint of step {updates + 1}, found {last}")
    base = second.path(second.config.model.path)
    merged = timed("merge", lambda: checkpoints.merge(last.folder, out / "merged", base))
    found["merged"] = merged

    for name, checkpoint in (("base", base), ("trained", merged)):
        found[name] = timed(f"evaluate {name}",
                            lambda n=name, c=checkpoint: _pass_rate(second, study, out, n, c, attempts))
    return {**found, "seconds": seconds}


def _train(timed: Any, part: str, run: Run) -> None:
    code = timed(part, lambda: launch.launch(run))
    if code:
        raise StudyError(f"{part}: the trainer ended with exit code {code}; see {metrics_folder(run)}")


def _pass_rate(run: Run, study: Path, out: Path, name: str, checkpoint: Path, attempts: int) -> float:
    pool = load_pool(run.path(run.config.data.pool))
    tasks = load_dataset(run.path(run.config.data.dataset), pool.uids("test"), agent=run.config.data.agent).tasks
    store = out / f"evaluate_{name}.jsonl"
    run_campaign(load_study(study, out), list(tasks.values()), attempts, store, name=name, checkpoint=checkpoint,
                 stage="rehearsal")
    records = [record for _, record in read_lines(store)]
    clean = [record for record in records if not is_system_error(record)]
    if len(clean) < len(records):
        raise StudyError(f"{store}: {len(records) - len(clean)} of {len(records)} attempts are system errors")
    return sum(record["test_result"]["reward"] for record in clean) / len(clean)


def main(arguments: list[str] | None = None) -> int:
    """The command; prints the training table and a JSON summary."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--config", type=Path, default=Path("configs/reference-small-cpu.yaml"))
    parser.add_argument("--study", type=Path, default=Path("configs/laptop.yaml"))
    parser.add_argument("--out", type=Path, default=Path("runs/rehearsal"))
    parser.add_argument("--updates", type=int, default=3)
    parser.add_argument("--attempts", type=int, default=4, help="per test task in the evaluation")
    parser.add_argument("--pool", type=Path, help="instead of the configuration's")
    parser.add_argument("--model", type=Path, help="instead of the configuration's")
    options = parser.parse_args(arguments)
    changes = {key: str(path.resolve()) for key, path in (("data.pool", options.pool), ("model.path", options.model))
               if path is not None}
    try:
        found = rehearse(options.config, options.study, options.out, updates=options.updates,
                         attempts=options.attempts, changes=changes)
    except StudyError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(found.pop("table").dropna(axis=1).to_markdown(index=False, floatfmt=".3f"))
    print(json.dumps({**found, "merged": str(found["merged"])}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
