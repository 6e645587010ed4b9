"""Runs the six notebooks in order with papermill, skips what is unchanged, and freezes the report."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tbstudy.config import Study
from tbstudy.errors import StudyError
from tbstudy.processes import exclusive
from tbstudy.progress import MODE
from tbstudy.stages import check_belongs, planned, results_of
from tbstudy.store import write_atomic

STAGES = ("probe", "band", "select", "train", "evaluate", "analyse")
#: Configuration sections that a stage reads, beside everything that its predecessors read.
SECTIONS = {"probe": ("probe",), "band": ("bands",), "select": ("select",), "train": ("train", "verl_run"),
            "evaluate": ("evaluate",), "analyse": ("analyse",)}


@dataclass(frozen=True, slots=True)
class StageResult:
    """What happened to a stage: executed or unchanged, its notebook, and the seconds it took."""

    stage: str
    executed: bool
    notebook: Path
    seconds: float


def notebook_of(study: Study, stage: str) -> Path:
    """The stage's notebook in the project.

    Raises:
        StudyError: the configuration's root has no notebooks.
    """
    path = study.root / "notebooks" / f"{STAGES.index(stage) + 1:02d}_{stage}.ipynb"
    if not path.is_file():
        raise StudyError(f"{path}: no such notebook; set `root` in {study.file.name} to the folder that holds "
                         "notebooks/ (a checkout of tbstudy), relative to the configuration file")
    return path


def fingerprint(study: Study, stage: str) -> str:
    """Changes when anything that a stage depends on does: its notebook, the code, its part of the configuration, and
    the same of every stage before it."""
    before = STAGES[:STAGES.index(stage) + 1]
    digest = hashlib.sha256(study.rollout_hash().encode())
    for name in before:
        digest.update(notebook_of(study, name).read_bytes())
        digest.update(study.section_hash(*SECTIONS[name]).encode())
    # The bundled dataset's tool servers are code that lies beside, not in, the dataset.
    for package in ("tbstudy", "tbstudy_demo"):
        for file in sorted((Path(__file__).parents[1] / package).rglob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


#: Held by a whole `run_study`, so that a second one of the same study is refused before it starts a notebook.
_RUN_LOCK = ".run.lock"
#: Stages whose notebook has the parameter REPAIR.
REPAIRABLE = ("probe", "evaluate")


def run_study(study: Study, stages: Sequence[str] = STAGES, *, force: bool = False, repair: bool = False,
              show: bool = True) -> list[StageResult]:
    """Execute the notebooks of `stages` in order into `study.folder`/notebooks.

    A stage whose fingerprint is that of its last complete execution is skipped unless `force`, or `repair`, which
    plays the system errors of probe and evaluation again.

    Raises:
        StudyError: a notebook failed, with its cell's message, or another process runs this study.
        KeyboardInterrupt: Ctrl-C; what is finished is stored, the notebook so far lies beside as `.failed.ipynb`.
    """
    unknown = [s for s in stages if s not in STAGES]
    if unknown:
        raise StudyError(f"unknown stage {unknown[0]!r}; stages are {', '.join(STAGES)}")
    with exclusive(study.folder, wait_seconds=1.0, name=_RUN_LOCK):
        return _run_stages(study, stages, force, repair, show)


def _run_stages(study: Study, stages: Sequence[str], force: bool, repair: bool, show: bool) -> list[StageResult]:
    results = []
    check_belongs(study)  # before config.yaml says something else than what made the records
    config = _write_config(study)
    for stage in (s for s in STAGES if s in stages):
        out = study.folder / "notebooks" / notebook_of(study, stage).name
        mark, done = fingerprint(study, stage), _finished(study)
        started = time.monotonic()
        again = force or (repair and stage not in ("train",))
        fresh = again or done.get(stage) != mark or not all(f.exists() for f in (out, *results_of(study, stage)))
        if fresh:
            # What came after it stands on its earlier result; also when this execution is cut.
            kept = {name: found for name, found in done.items() if STAGES.index(name) < STAGES.index(stage)}
            if kept != done:
                _note_finished(study, kept)
                done = kept
            flags = {"REPAIR": True} if repair and stage in REPAIRABLE else {}
            paths = {"CONFIG": _relative(study, config), "STUDY": _relative(study, study.folder)}
            _execute(study, stage, paths | flags, out, show)
            _note_finished(study, done | {stage: mark})
        elif show:
            print(f"{stage}: unchanged, {out}", file=sys.stderr)
        results.append(StageResult(stage, fresh, out, time.monotonic() - started))
    return results


def _relative(study: Study, path: Path) -> str:
    """A path as the notebooks name it: from the project's root where it lies below, so that they can be shared."""
    return str(path.relative_to(study.root) if path.is_relative_to(study.root) else path)


def _write_config(study: Study) -> Path:
    """The configuration as it runs, command-line changes included, beside what it produces."""
    raw = study.config.model_dump(mode="json") | {"root": os.path.relpath(study.root, study.folder)}
    file = study.folder / "config.yaml"
    write_atomic(file, yaml.safe_dump(raw, sort_keys=False).encode())
    return file


def freeze_report(study: Study, out: str | Path | None = None, version: str | None = None) -> Path:
    """A new version of the study's report under `out` (default: reports/ of the project)."""
    from tbstudy.report.build import freeze

    return freeze(study.folder, Path(out) if out else study.root / "reports", study.config.study, version)


def _marks(study: Study) -> Path:
    return study.folder / "stages.json"


def _note_finished(study: Study, done: dict[str, str]) -> None:
    write_atomic(_marks(study), (json.dumps(done, indent=1) + "\n").encode())


def _finished(study: Study) -> dict[str, str]:
    try:
        return json.loads(_marks(study).read_text())
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise StudyError(f"{_marks(study)}: not JSON ({error}); remove it to run every stage again") from None


def _execute(study: Study, stage: str, parameters: dict[str, Any], out: Path, show: bool) -> None:
    from papermill.exceptions import PapermillExecutionError

    from tbstudy.execution import execute

    out.parent.mkdir(parents=True, exist_ok=True)
    scratch, failed = out.with_name(f".running.{out.name}"), out.with_suffix(".failed.ipynb")
    os.environ[MODE] = "lines"
    with _bar(study, stage, show) as finished:
        try:
            execute(notebook_of(study, stage), scratch, parameters, study.root)
        except PapermillExecutionError as error:
            os.replace(scratch, failed)
            raise StudyError(f"stage {stage} stopped: {error.ename}: {error.evalue} (see {failed})") from None
        except KeyboardInterrupt:
            if scratch.exists():
                os.replace(scratch, failed)
            raise
        finally:
            os.environ.pop(MODE, None)
        finished.set()
    failed.unlink(missing_ok=True)
    # papermill notes where it ran; the parameters are in the notebook itself.
    notebook = json.loads(scratch.read_text(encoding="utf-8"))
    notebook["metadata"].pop("papermill", None)
    write_atomic(out, (json.dumps(notebook, indent=1, ensure_ascii=False) + "\n").encode())
    scratch.unlink()


@contextlib.contextmanager
def _bar(study: Study, stage: str, show: bool) -> Iterator[threading.Event]:
    """The stage's bar while the context is open; the event, once set, says that everything was done."""
    finished, stop = threading.Event(), threading.Event()
    if not show:
        yield finished
        return
    bar = threading.Thread(target=_show_bar, daemon=True, args=(
        study.folder / ".progress.json", stage, planned(study, stage), stop, finished))
    bar.start()
    try:
        yield finished
    finally:
        stop.set()
        bar.join()


def _show_bar(file: Path, stage: str, total: int | None, stop: threading.Event, finished: threading.Event) -> None:
    from tqdm import tqdm

    # Where nobody watches, a line per tenth is enough.
    quiet = {} if sys.stderr.isatty() else {"mininterval": 30.0, "maxinterval": 60.0, "ncols": 80}
    shape = "{desc}: {percentage:3.0f}%|{bar}| {n}/{total} [{elapsed}<{remaining}]" if total else "{desc}: {elapsed}"
    bar = tqdm(total=total, desc=stage, file=sys.stderr, bar_format=shape, **quiet)
    with bar:
        while not stop.wait(0.5):
            with contextlib.suppress(OSError, ValueError):
                state = json.loads(file.read_text())
                bar.total, bar.n = state["total"], state["count"]
            bar.refresh() if sys.stderr.isatty() else bar.update(0)
        if finished.is_set() and total:
            bar.n = bar.total
