"""A finished study as a small folder to commit: records packed, what can be rebuilt left out."""

from __future__ import annotations

import gzip
from pathlib import Path

from tbstudy.campaign import SEARCH
from tbstudy.config import Study
from tbstudy.disk import whole_folder, write_atomic
from tbstudy.errors import StudyError
from tbstudy.sandbox.server_code import SERVERS
from tbstudy.stages import BANDS, EVALUATION, POOL, PROBE, train_folder


def record(study: Study, out: Path) -> Path:
    """Write `study`'s records, pool, training tables and trained checkpoints to `out`, which must not exist.

    Raises:
        StudyError: the study is not finished, or `out` exists.
    """
    if out.exists():
        raise StudyError(f"{out}: exists; remove it or name another folder")
    with whole_folder(out) as scratch:
        _pack(study, scratch)
    return out


def _pack(study: Study, out: Path) -> None:
    for name in (PROBE, *EVALUATION.values()):
        source = study.folder / name
        if not source.is_file():
            raise StudyError(f"{source}: not there; run the study to its end first")
        # No time stamp: the same records give the same bytes.
        write_atomic(out / f"{name}.gz", gzip.compress(source.read_bytes(), compresslevel=9, mtime=0))
    files = [study.folder / BANDS, study.folder / POOL]
    files += [f for f in (study.folder / SERVERS, study.folder / SEARCH) if f.exists()]
    for arm in study.config.train.arms:
        folder = train_folder(study, arm)
        files += [folder / "training.jsonl", *(folder / "checkpoint").iterdir()]
    for file in files:
        write_atomic(out / file.relative_to(study.folder), file.read_bytes())
