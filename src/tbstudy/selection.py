"""From a band table to a fixed training pool: gates, exclusions, a stratified split, and the manifest that
records it.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from tbstudy.difficulty import DEFAULT_BANDS, Band, check_bands
from tbstudy.disk import write_atomic
from tbstudy.errors import StudyError


class Gate(BaseModel):
    """One step of the funnel: `entered` tasks came in, `dropped` were stopped here, `left` go on."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: str
    entered: int = Field(ge=0)
    dropped: int = Field(ge=0)
    left: int = Field(ge=0)


class PoolTask(BaseModel):
    """One task with the probe counts that put it into its band. `split` is outside for a band that is not
    kept.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    uid: str
    domain: str
    band: str
    k: int = Field(ge=0)
    n: int = Field(ge=0)
    split: Literal["train", "test", "outside"]


class PoolManifest(BaseModel):
    """The fixed pool and how it came about.

    `tasks` is the pool (train and test); `outside` holds the tasks that passed every gate but the band gate:
    together with the train tasks they are the whole pool that an unselected training run draws from. `inputs`
    maps the name of each input to the SHA-256 of its file.
    """

    model_config = ConfigDict(extra="forbid")
    format: Literal["tbstudy-pool-1"] = "tbstudy-pool-1"
    tasks: list[PoolTask]
    outside: list[PoolTask] = []
    funnel: list[Gate]
    kept_bands: list[str]
    seed: int
    test_fraction: float = Field(ge=0, lt=1)
    config_hash: str
    inputs: dict[str, str] = {}

    @model_validator(mode="after")
    def _adds_up(self) -> PoolManifest:
        uids = Counter(task.uid for task in (*self.tasks, *self.outside))
        twice = sorted(uid for uid, count in uids.items() if count > 1)
        if twice:
            raise ValueError(f"task listed twice: {', '.join(twice[:5])}")
        for task in self.tasks:
            if task.split == "outside" or task.band not in self.kept_bands:
                raise ValueError(f"{task.uid}: band {task.band!r}, split {task.split!r} cannot be in the pool")
            if task.k > task.n:
                raise ValueError(f"{task.uid}: {task.k} passes of {task.n} attempts")
        wrong = [task.uid for task in self.outside if task.split != "outside"]
        if wrong:
            raise ValueError(f"listed outside the pool but split otherwise: {', '.join(wrong[:5])}")
        for before, gate in zip([None, *self.funnel], self.funnel, strict=False):
            if gate.entered != gate.dropped + gate.left or (before and before.left != gate.entered):
                raise ValueError(f"funnel does not add up at gate {gate.name!r}")
        if self.funnel and self.funnel[-1].left != len(self.tasks):
            raise ValueError(f"funnel ends with {self.funnel[-1].left} tasks, the pool has {len(self.tasks)}")
        return self

    def uids(self, split: Literal["train", "test", "whole"]) -> list[str]:
        """Sorted uids of a split; "whole" is the unselected training set: the train tasks and those outside."""
        if split == "whole":
            return sorted(
                [task.uid for task in self.tasks if task.split == "train"] + [task.uid for task in self.outside]
            )
        return sorted(task.uid for task in self.tasks if task.split == split)

    def table(self) -> pd.DataFrame:
        """The pool as a DataFrame with columns uid, domain, band, k, n, split (outside tasks included, last)."""
        columns = list(PoolTask.model_fields)
        return pd.DataFrame([task.model_dump() for task in (*self.tasks, *self.outside)], columns=columns)

    def funnel_table(self) -> pd.DataFrame:
        """The funnel as a DataFrame with columns name, entered, dropped, left."""
        return pd.DataFrame([gate.model_dump() for gate in self.funnel], columns=list(Gate.model_fields))

    def write(self, path: str | Path) -> Path:
        """Write as JSON, atomically: a reader sees the old file or the new one, never a part."""
        path = Path(path)
        write_atomic(path, f"{self.model_dump_json(indent=1)}\n".encode())
        return path


def load_pool(path: str | Path) -> PoolManifest:
    """Read a manifest back. Raises `StudyError` naming the file and the field when it is missing, torn or
    wrong.
    """
    path = Path(path)
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise StudyError(
            f"{path}: cannot read the pool manifest ({error.strerror}); run the select stage first"
        ) from None
    except ValueError as error:
        raise StudyError(f"{path}: not JSON ({error}); write it again with the select stage") from None
    try:
        return PoolManifest.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "manifest"
        raise StudyError(f"{path}: field {field}: {first['msg']}") from None


def file_hash(path: str | Path) -> str:
    """SHA-256 of a file, in hex. Raises `StudyError` when it cannot be read."""
    try:
        with open(path, "rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()
    except OSError as error:
        raise StudyError(f"{path}: cannot be read ({error.strerror})") from None


def solvable_uids(attempts: pd.DataFrame, *, min_clean: int = 4, min_successes: int = 1) -> set[str]:
    """Tasks that a reference policy's campaign shows to be solvable: enough clean runs, enough of them
    passed.
    """
    clean = attempts[~attempts.system_error.astype(bool)]
    counts = clean.groupby(clean.uid.astype(str)).passed.agg(["size", "sum"])
    return set(counts.index[(counts["size"] >= min_clean) & (counts["sum"] >= min_successes)])


def split_stratified(tasks: pd.DataFrame, *, test_fraction: float, seed: int) -> pd.Series:
    """ "train" or "test" per row of `tasks` (columns uid, domain, band), drawn within each (domain, band)
    stratum.

    round(test_fraction * len(tasks)) tasks are held out, shared over the strata by largest remainder. Depends
    on the uids and the seed, not on the order of the rows.
    """
    if not 0 <= test_fraction < 1:
        raise StudyError(f"test_fraction is {test_fraction}; expected 0 <= test_fraction < 1")
    rng = np.random.default_rng(seed)
    strata = [sorted(uids) for _, uids in sorted(tasks.groupby(["domain", "band"]).uid)]
    exact = np.array([test_fraction * len(uids) for uids in strata])
    take = np.floor(exact).astype(int)
    short = int(np.floor(test_fraction * len(tasks) + 0.5)) - int(take.sum())
    # Equal remainders are shared in a random order, so that no domain is favoured by its name.
    order = np.lexsort((rng.permutation(len(strata)), -(exact - take)))
    take[order[:short]] += 1
    held_out: set[str] = set()
    for uids, count in zip(strata, take, strict=True):
        held_out.update(uids[index] for index in rng.permutation(len(uids))[:count])
    return tasks.uid.map(lambda uid: "test" if uid in held_out else "train")


def pass_gates(
    table: pd.DataFrame,
    kept: Sequence[str],
    *,
    min_clean: int,
    solvable: Iterable[str] | None = None,
    exclude: Iterable[str] = (),
    benchmark: Iterable[str] = (),
) -> tuple[list[Gate], pd.Series, pd.Series]:
    """The gates of `select_pool` over a band table: the funnel, which rows are left, which were before the band gate.

    `kept` names the bands that are kept. Both masks are booleans by the table's index.
    """
    gates: list[tuple[str, pd.Series]] = [(f"at least {min_clean} clean probe runs", table.n >= min_clean)]
    if solvable is not None:
        gates.append(("solved by the reference policy", table.uid.isin(set(solvable))))
    gates.append(("not excluded", ~table.uid.isin(set(exclude))))
    gates.append(("not a benchmark task", ~table.uid.isin(set(benchmark))))
    gates.append((f"band kept ({', '.join(kept)})", table.band.isin(kept)))

    funnel, alive = [], pd.Series(True, index=table.index)
    before_bands = alive
    for name, passes in gates:
        before_bands, after = alive, alive & passes
        funnel.append(
            Gate(name=name, entered=int(alive.sum()), dropped=int((alive & ~passes).sum()), left=int(after.sum()))
        )
        alive = after
    return funnel, alive, before_bands


def select_pool(
    table: pd.DataFrame,
    *,
    bands: Sequence[Band] = DEFAULT_BANDS,
    min_clean: int = 4,
    solvable: Iterable[str] | None = None,
    exclude: Iterable[str] = (),
    benchmark: Iterable[str] = (),
    test_fraction: float = 0.25,
    seed: int = 42,
    config_hash: str = "",
    inputs: Mapping[str, str | Path] | None = None,
) -> PoolManifest:
    """Pass the tasks of a band table (`difficulty.band_table`) through the gates and split what is left.

    Gates in order: at least `min_clean` clean probe runs; in `solvable` when given (`solvable_uids` of a
    reference campaign); not in `exclude`; not in `benchmark`, so that the pool and the benchmark are
    disjoint; in a kept band. `inputs` maps names to files whose SHA-256 goes into the manifest. Raises
    `StudyError` when an excluded uid is not among the candidates (a mistyped exclusion would otherwise pass
    silently) or nothing is left.
    """
    check_bands(bands)
    kept = [band.name for band in bands if band.keep]
    exclude = set(exclude)
    unknown = sorted(exclude - set(table.uid))
    if unknown:
        raise StudyError(f"exclude: {', '.join(unknown[:5])} not among the {len(table)} candidates; correct or remove")
    funnel, alive, before_bands = pass_gates(
        table, kept, min_clean=min_clean, solvable=solvable, exclude=exclude, benchmark=benchmark
    )
    if not alive.any():
        steps = "; ".join(f"{gate.name}: {gate.left} of {gate.entered}" for gate in funnel)
        raise StudyError(f"no task is left for the pool ({steps}); relax a gate or probe other tasks")

    chosen = table[alive].sort_values("uid")
    splits = split_stratified(chosen, test_fraction=test_fraction, seed=seed)
    outside = table[before_bands & ~alive].sort_values("uid")
    return PoolManifest(
        tasks=_tasks(chosen, splits),
        outside=_tasks(outside, pd.Series("outside", index=outside.index)),
        funnel=funnel,
        kept_bands=kept,
        seed=seed,
        test_fraction=test_fraction,
        config_hash=config_hash,
        inputs={name: file_hash(path) for name, path in (inputs or {}).items()},
    )


def _tasks(rows: pd.DataFrame, splits: pd.Series) -> list[PoolTask]:
    return [
        PoolTask(uid=row.uid, domain=row.domain, band=row.band, k=int(row.k), n=int(row.n), split=split)
        for row, split in zip(rows.itertuples(), splits, strict=True)
    ]
