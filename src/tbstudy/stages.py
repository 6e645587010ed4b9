"""The six stages as functions: each reads what the one before wrote, does what is missing, and returns tables.

Every stage can be called again at any time: what is there is kept, what was cut is continued.
"""

from __future__ import annotations

import json
import multiprocessing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from tbstudy.campaign import CampaignResult, Workers, load_tasks, run_campaign
from tbstudy.config import Study
from tbstudy.difficulty import Band, band_summary, band_table, check_bands, forecast
from tbstudy.errors import StudyError
from tbstudy.evaluation.api import Campaign, load_campaign
from tbstudy.processes import die_with_parent, exclusive
from tbstudy.progress import Progress
from tbstudy.selection import PoolManifest, load_pool, select_pool
from tbstudy.store import named, read_lines, told_error, write_atomic
from tbstudy.tasks.loader import load_list
from tbstudy.training import identity

if TYPE_CHECKING:
    from tbstudy.training.verl.overview import Overview

PROBE, BANDS, POOL = "probe.jsonl", "bands.csv", "pool.json"
#: Records of the evaluation by what was played: the pool's held-out test split, the benchmark.
EVALUATION = {"test": "evaluate_test.jsonl", "benchmark": "evaluate_benchmark.jsonl"}
#: A second campaign of the base policy with other random numbers: what changes when nothing changes.
NULL = "base_again"


def stored(study: Study, name: str) -> Path:
    """A records file of the study, gzipped or not."""
    packed = study.folder / f"{name}.gz"
    return packed if packed.exists() else study.folder / name


def _made(path: Path, stage: str) -> Path:
    """`path`, which a stage before this one writes.

    Raises:
        StudyError: it is not there; naming the stage to run.
    """
    if not path.exists():
        raise StudyError(f"{path}: not there yet; run the stage {stage} first (`tbstudy run CONFIG` runs what is "
                         "missing, in order)")
    return path


def bands_of(study: Study) -> tuple[Band, ...]:
    """The configured difficulty bands.

    Raises:
        StudyError: they do not cover 0 to 1 in order, or `select.keep` names a band that there is not.
    """
    bands, keep = tuple(Band(**b.model_dump()) for b in study.config.bands), study.config.select.keep
    check_bands(bands)
    if keep is None:
        return bands
    unknown = sorted(set(keep) - {b.name for b in bands})
    if unknown:
        raise StudyError(f"select.keep: no band {unknown[0]!r}; bands are {', '.join(b.name for b in bands)}")
    return tuple(replace(b, keep=b.name in keep) for b in bands)


# probe, band, select ---------------------------------------------------------------------------------------------


def probe(study: Study, repair: bool = False) -> CampaignResult:
    """Play every candidate `probe.attempts` times with the base policy; `repair` plays system errors again."""
    bands_of(study)  # a mistake in the bands is told before the attempts are played that they are for
    tasks, attempts = load_tasks(study, "candidates"), study.config.probe.attempts
    with Progress("probe", len(tasks) * attempts, study.folder) as progress:
        return run_campaign(study, tasks, attempts, stored(study, PROBE), name="base", stage="probe",
                            repair=repair, progress=progress.campaign())


def probe_attempts(study: Study) -> pd.DataFrame:
    """The probe's attempts, one row each.

    Raises:
        StudyError: there is no probe, or it is not complete, with what is missing; its attempts were made under
            another configuration; or every one of them is a system error, with the first.
    """
    _made(stored(study, PROBE), "probe")
    uids = [t.uid for t in load_tasks(study, "candidates")]
    campaign = load_campaign(stored(study, PROBE), uids=uids, repeats=study.config.probe.attempts, policy="base",
                             allow_incomplete=True)
    # A system error costs a task one clean attempt; an attempt that was never made is a hole in the probe.
    if campaign.coverage.missing:
        raise StudyError(f"{stored(study, PROBE)}: {len(campaign.coverage.missing)} attempts were never made, first "
                         f"{named(('base', *campaign.coverage.missing[0]))}; run the probe stage to the end")
    check_belongs(study)
    attempts = campaign.attempts
    if len(attempts) and attempts.system_error.all():
        raise StudyError(f"{stored(study, PROBE)}: all {len(attempts)} attempts are system errors, no task was tried. "
                         f"The first: {_first_error(stored(study, PROBE))}. Put that right, then play them again: "
                         "tbstudy run ... --repair, or REPAIR = True in the notebook")
    return attempts


def check_belongs(study: Study) -> None:
    """The study's folder holds no probe of another configuration.

    Raises:
        StudyError: naming both configurations.
    """
    file, here = stored(study, PROBE), study.rollout_hash()
    _, first = next(iter(read_lines(file)), (0, None)) if file.exists() else (0, None)
    theirs = first and first["metadata"].get("config_hash")
    if theirs and theirs != here:
        raise StudyError(f"{file}: these attempts were made under configuration {theirs}, this study has {here} (seed, "
                         "sampling, dataset, sandbox, user and checkpoint count); use another study folder, or the "
                         "configuration that made them")


def _first_error(path: Path) -> str:
    for _, record in read_lines(path):
        if record["metadata"].get("error"):
            return told_error(record)
    return "without a message"


def task_to_read(table: pd.DataFrame) -> str:
    """The uid of the first task of a band table that was passed sometimes, or of the first where there is none."""
    some = table[(table.k > 0) & (table.k < table.n)]
    return str((some if len(some) else table).uid.iloc[0])


def band(study: Study) -> pd.DataFrame:
    """One row a candidate with its posterior and band; written to bands.csv.

    Raises:
        StudyError: as `probe_attempts`; or `probe.min_clean` asks for more clean attempts than there are.
    """
    probe = study.config.probe
    if probe.min_clean > probe.attempts:
        raise StudyError(f"probe.min_clean = {probe.min_clean} is more than probe.attempts = {probe.attempts}: no task "
                         "could be banded")
    table = band_table(probe_attempts(study), bands_of(study), min_clean=study.config.probe.min_clean)
    write_atomic(study.folder / BANDS, table.to_csv(index=False).encode())
    return table


def band_counts(study: Study, table: pd.DataFrame) -> pd.DataFrame:
    """Tasks per band, with the forecast of groups without a learning signal for each."""
    summary, size = band_summary(table, bands_of(study)), study.config.train.rollouts
    share = [forecast(rows, size).zero_variance_share if len(rows) else float("nan")
             for rows in (table[table.band == name] for name in summary.band)]
    return summary.assign(zero_variance_forecast=share)


def select(study: Study) -> PoolManifest:
    """Pass the banded candidates through the gates, split the pool, and write pool.json."""
    config = study.config
    pool = select_pool(
        band(study), bands=bands_of(study), min_clean=config.probe.min_clean, exclude=config.select.exclude,
        benchmark=[t.uid for t in load_tasks(study, "benchmark")], test_fraction=config.select.test_fraction,
        seed=config.seed, config_hash=study.section_hash("probe", "bands", "select"),
        inputs={"bands": study.folder / BANDS})
    pool.write(study.folder / POOL)
    return pool


def pool_of(study: Study) -> PoolManifest:
    """The selected pool."""
    return load_pool(_made(study.folder / POOL, "select"))


def arm_uids(pool: PoolManifest, arm: str) -> list[str]:
    """Tasks that an arm trains on: the pool's train split, or that plus all candidates outside the kept bands."""
    return pool.uids("train" if arm == "selected" else "whole")


def forecasts(study: Study, pool: PoolManifest) -> pd.DataFrame:
    """What groups drawn from the selected and from the whole pool will yield before any training."""
    table, rows = pool.table(), []
    for arm in ("selected", "whole"):
        members = table[table.uid.isin(arm_uids(pool, arm))]
        found = forecast(members, study.config.train.rollouts)
        rows.append({"pool": arm, "tasks": found.tasks, "zero_variance_share": found.zero_variance_share,
                     "rollouts_per_useful_group": found.rollouts_per_useful_group})
    return pd.DataFrame(rows)


# train -----------------------------------------------------------------------------------------------------------


def train_folder(study: Study, arm: str) -> Path:
    """Where an arm's training table, state and checkpoint lie."""
    return study.folder / "train" / arm


def training_plan(study: Study) -> pd.DataFrame | Overview:
    """What training will do: for the local trainer one row an arm, the episodes without those of replaced groups; for
    verl the dry run with topology, memory and rollout forecast for this study's pool."""
    config, pool = study.config.train, pool_of(study)
    if config.backend == "verl":
        from tbstudy.training.verl.overview import overview

        return overview(study.path(study.config.verl_run), pool=study.folder / POOL, arm=config.arms[0])
    return pd.DataFrame([{"arm": arm, "tasks": len(arm_uids(pool, arm)), "updates": config.updates,
                          "groups an update": config.groups, "episodes a group": config.rollouts,
                          "episodes to learn from, at most": config.updates * config.groups * config.rollouts}
                         for arm in config.arms])


def train(study: Study) -> pd.DataFrame:
    """Train every configured arm, side by side in processes; returns the training table, one row an update.

    With the backend verl nothing is started: `tbstudy launch` trains, and the table is what its metrics say so far.
    """
    config, pool = study.config.train, pool_of(study)
    if config.backend == "verl":
        return _verl_updates(study)
    identity.check_trainable(study)
    for arm in config.arms:
        identity.check(train_folder(study, arm), identity.identity(study, arm, arm_uids(pool, arm)))
    missing = [arm for arm in config.arms if len(training_table(study, arm)) < config.updates
               or not (train_folder(study, arm) / "checkpoint" / "model.safetensors").exists()]
    with Progress("train", config.updates * len(config.arms), study.folder, "updates") as progress:
        progress.found(sum(min(config.updates, len(training_table(study, arm))) for arm in config.arms))
        if missing:
            with exclusive(study.folder):
                _train_side_by_side(study, pool, missing, progress)
    return pd.concat([training_table(study, arm) for arm in config.arms], ignore_index=True)


def _verl_updates(study: Study) -> pd.DataFrame:
    from tbstudy.training.verl.config import load_run
    from tbstudy.training.verl.metrics import COLUMNS, training_table
    from tbstudy.training.verl.overrides import metrics_folder

    run = load_run(study.path(study.config.verl_run))
    if not any(metrics_folder(run).glob("attempt-*.jsonl")):
        return pd.DataFrame(columns=COLUMNS)
    return training_table(run, study.config.train.arms[0])


def training_table(study: Study, arm: str) -> pd.DataFrame:
    """The finished updates of an arm; loss, grad_norm, clip_fraction, kl and entropy are NaN where none of the groups
    taught anything."""
    path = train_folder(study, arm) / "training.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    # A column that is null in every update must be of numbers all the same.
    return pd.DataFrame([{k: float("nan") if v is None else v for k, v in row.items()} for row in rows])


def _train_side_by_side(study: Study, pool: PoolManifest, arms: list[str], progress: Progress) -> None:
    context = multiprocessing.get_context("spawn")
    messages = context.Queue()
    at_once = max(1, min(study.config.policy.workers, len(arms)))
    waiting, running = list(arms), {}
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                arm = waiting.pop(0)
                running[arm] = context.Process(target=_train_arm, daemon=True, args=(
                    study, arm, arm_uids(pool, arm), messages))
                running[arm].start()
            try:
                arm, text = messages.get(timeout=1.0)
            except Exception:  # queue.Empty: look whether somebody died
                dead = [a for a, p in running.items() if not p.is_alive() and p.exitcode]
                if dead:
                    raise StudyError(f"training of arm {dead[0]!r} died (exit code {running[dead[0]].exitcode}); "
                                     "start again to continue from its last update") from None
                continue
            if text == "done":
                running.pop(arm).join()
            elif text:
                raise StudyError(f"training of arm {arm!r}: {text}")
            else:
                progress.advance(1)
    finally:
        for process in running.values():
            process.terminate()
        for process in running.values():
            process.join()  # while it is not reaped, what it left half-written looks like somebody's work


def _train_arm(study: Study, arm: str, uids: list[str], messages) -> None:
    from tbstudy.training.local import Trainer

    die_with_parent()
    try:
        # Where the whole study was killed, its orphan may still be at work here for a moment.
        with exclusive(train_folder(study, arm)):
            Trainer(study, arm, uids, train_folder(study, arm)).run(lambda update, row: messages.put((arm, "")))
        messages.put((arm, "done"))
    except StudyError as error:
        messages.put((arm, str(error)))


# evaluate --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Plan:
    """One campaign of the evaluation: which policy on which tasks."""

    policy: str
    tasks: str
    checkpoint: Path | None


def evaluation_plan(study: Study) -> list[Plan]:
    """Base and trained policies on the pool's test split and on the benchmark.

    Every arm and a second base campaign play the test split; base and the first arm play the benchmark.
    """
    arms = study.config.train.arms
    checkpoints = {arm: train_folder(study, arm) / "checkpoint" for arm in arms}
    plan = [Plan("base", "test", None), Plan(NULL, "test", None)]
    plan += [Plan(arm, "test", checkpoints[arm]) for arm in arms]
    return plan + [Plan("base", "benchmark", None), Plan(arms[0], "benchmark", checkpoints[arms[0]])]


def evaluation_tasks(study: Study, which: str) -> list:
    """Tasks of the pool's test split or of the benchmark."""
    if which == "benchmark":
        return load_tasks(study, "benchmark")
    held_out = set(pool_of(study).uids("test"))
    return [t for t in load_tasks(study, "candidates") if t.uid in held_out]


def evaluate(study: Study, repair: bool = False) -> pd.DataFrame:
    """Play everything of the evaluation plan that is missing; one row per campaign with its counts.

    `repair` plays system errors again: a score needs a clean attempt for every key.
    """
    if study.config.train.backend == "verl":
        raise StudyError("train.backend 'verl': its checkpoints are served and evaluated as docs/reference-run.md says "
                         "(`tbstudy checkpoint merge`, `tbstudy serve`, `tbstudy play`)")
    if study.config.policy.kind != "local":
        raise StudyError(f"policy.kind {study.config.policy.kind!r}: the evaluation stage compares what the local "
                         "trainer made; `tbstudy play` plays a model behind an endpoint, `tbstudy analyse` compares "
                         "several (docs/endpoints.md)")
    plan, attempts = evaluation_plan(study), study.config.evaluate.attempts
    tasks = {which: evaluation_tasks(study, which) for which in ("test", "benchmark")}
    rows = []
    for p in plan:
        if p.checkpoint is not None:
            _made(p.checkpoint / "model.safetensors", "train")
    total = sum(len(tasks[p.tasks]) for p in plan) * attempts
    with Progress("evaluate", total, study.folder) as progress, Workers(study) as workers:
        for p in plan:
            result = run_campaign(study, tasks[p.tasks], attempts, stored(study, EVALUATION[p.tasks]), name=p.policy,
                                  checkpoint=p.checkpoint, stage="evaluate", repair=repair,
                                  progress=progress.campaign(), workers=workers)
            rows.append({"policy": p.policy, "tasks": p.tasks, "episodes": result.wanted,
                         "system_errors": result.system_errors})
    return pd.DataFrame(rows)


def results_of(study: Study, stage: str) -> list[Path]:
    """The files that a finished stage has written and later ones read; verl's, which may lie elsewhere, left out."""
    if stage == "train":
        local = study.config.train.backend == "local"
        return [train_folder(study, arm) / "checkpoint" for arm in study.config.train.arms] if local else []
    names = {"probe": [PROBE], "band": [BANDS], "select": [POOL], "evaluate": list(EVALUATION.values())}
    return [stored(study, name) for name in names.get(stage, [])]


def planned(study: Study, stage: str) -> int | None:
    """How many episodes or updates a stage is, those included that are there already; None for one without any, and
    where the stage before it has not been run."""
    config = study.config
    if stage == "probe":
        return len(load_list(study.existing("candidates"))) * config.probe.attempts
    if stage == "train":
        return config.train.updates * len(config.train.arms) if config.train.backend == "local" else None
    if stage == "evaluate" and (study.folder / POOL).is_file():
        sizes = {"test": len(pool_of(study).uids("test")),
                 "benchmark": len(load_list(study.existing("benchmark")))}
        return sum(sizes[p.tasks] for p in evaluation_plan(study)) * config.evaluate.attempts
    return None


def campaign_of(study: Study, policy: str, which: str) -> Campaign:
    """One policy's attempts on the test split or the benchmark, coverage checked."""
    uids = [t.uid for t in evaluation_tasks(study, which)]
    records = _made(stored(study, EVALUATION[which]), "evaluate")
    return load_campaign(records, uids=uids, repeats=study.config.evaluate.attempts,
                         policy=policy)

