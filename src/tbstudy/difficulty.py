"""How hard is a task for a policy: posterior of its pass rate, bands, and what that means for GRPO groups.

With k passes in n clean attempts and the Jeffreys prior Beta(1/2, 1/2), the pass rate p of a task has the
posterior Beta(k + 1/2, n - k + 1/2). A task belongs to the band that holds most of that mass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import betainc, betaln

from tbstudy.errors import StudyError

BANDED = "banded"
TOO_FEW = "too few clean runs"
# Masses closer than this are equal: the incomplete beta function is only that exact, and a tie goes to the
# lower band.
TIE = 1e-12


@dataclass(frozen=True, slots=True)
class Band:
    """Pass rates in [low, high); the last band includes 1. `keep`: its tasks may enter the training pool."""

    name: str
    low: float
    high: float
    keep: bool = False


DEFAULT_BANDS: tuple[Band, ...] = (
    Band("rarely", 0.0, 0.08, False),
    Band("hard", 0.08, 0.40, True),
    Band("medium", 0.40, 0.60, True),
    Band("often", 0.60, 0.90, True),
    Band("nearly_always", 0.90, 1.0, False),
)


@dataclass(frozen=True, slots=True)
class BandAssignment:
    """The band of one task, its posterior mass there, and the mass in every band (by band name, sums to 1)."""

    band: str
    mass: float
    masses: dict[str, float]


def bands_from(items: Iterable[Band | Mapping]) -> tuple[Band, ...]:
    """Bands from a config: mappings with name, low, high, keep. Raises `StudyError` unless they tile [0, 1]."""
    bands = []
    for index, item in enumerate(items):
        if isinstance(item, Band):
            bands.append(item)
            continue
        try:
            bands.append(Band(**item))
        except TypeError as error:
            raise StudyError(f"bands[{index}]: {error}; a band has name, low, high and keep") from None
    check_bands(bands)
    return tuple(bands)


def check_bands(bands: Sequence[Band]) -> None:
    """Raise `StudyError` unless the bands are named once each and cover [0, 1] in order, without gap or
    overlap.
    """
    if not bands:
        raise StudyError("bands: none given; use difficulty.DEFAULT_BANDS or list name, low, high, keep")
    names = [band.name for band in bands]
    if len(set(names)) != len(names):
        raise StudyError(f"bands: a name occurs twice in {names}; give every band its own name")
    edge = 0.0
    for band in bands:
        if band.low != edge or not band.high > band.low:
            raise StudyError(
                f"bands: {band.name!r} spans {band.low} to {band.high} but must start at {edge} and end above it"
            )
        edge = band.high
    if edge != 1.0:
        raise StudyError(f"bands: {bands[-1].name!r} ends at {edge}; the last band must end at 1")


def posterior(k: int, n: int) -> tuple[float, float]:
    """(a, b) of the Jeffreys posterior Beta(k + 1/2, n - k + 1/2). Raises `StudyError` unless 0 <= k <= n."""
    if not 0 <= k <= n:
        raise StudyError(f"{k} passes of {n} attempts is impossible; expected 0 <= k <= n")
    return k + 0.5, n - k + 0.5


def band_masses(k: int, n: int, bands: Sequence[Band] = DEFAULT_BANDS) -> dict[str, float]:
    """Posterior probability that the pass rate lies in each band, by band name."""
    a, b = posterior(k, n)
    edges = np.array([bands[0].low, *(band.high for band in bands)])
    mass = np.diff(betainc(a, b, edges))
    return {band.name: float(value) for band, value in zip(bands, mass, strict=True)}


def assign(k: int, n: int, bands: Sequence[Band] = DEFAULT_BANDS) -> BandAssignment:
    """The band with most posterior mass; a tie goes to the lower band. 3 of 8 -> Beta(3.5, 5.5), hard, mass
    0.540.
    """
    masses = band_masses(k, n, bands)
    best = max(masses.values())
    name = next(name for name, mass in masses.items() if mass >= best - TIE)
    return BandAssignment(name, masses[name], masses)


def zero_variance_probability(k: int, n: int, group_size: int) -> float:
    """Posterior probability that a group of `group_size` fresh rollouts is all-pass or all-fail.

    E[p^G + (1 - p)^G] under Beta(a, b) = [B(a + G, b) + B(a, b + G)] / B(a, b): the two ends of the
    Beta-binomial. Such a group has no advantage to learn from. k = n = 0 gives the forecast for a task never
    probed.
    """
    if group_size < 1:
        raise StudyError(f"group_size is {group_size}; a group has at least 1 rollout")
    a, b = posterior(k, n)
    whole = betaln(a, b)
    ends = np.exp(betaln(a + group_size, b) - whole) + np.exp(betaln(a, b + group_size) - whole)
    return float(min(ends, 1.0))


@dataclass(frozen=True, slots=True)
class GroupForecast:
    """What drawing groups uniformly from a set of tasks will yield, before any training.

    `zero_variance_share`: expected share of groups without a learning signal. `rollouts_per_useful_group`:
    expected rollouts spent for one group with one, when a zero-variance group is replaced by a freshly drawn
    task's.
    """

    tasks: int
    group_size: int
    zero_variance_share: float
    rollouts_per_useful_group: float


def forecast(table: pd.DataFrame, group_size: int) -> GroupForecast:
    """`GroupForecast` over the rows of a band table (columns k, n). Raises `StudyError` on an empty table."""
    if table.empty:
        raise StudyError("no task to forecast groups for; the band table is empty")
    share = float(np.mean([zero_variance_probability(k, n, group_size) for k, n in zip(table.k, table.n, strict=True)]))
    return GroupForecast(len(table), group_size, share, group_size / (1.0 - share) if share < 1.0 else float("inf"))


def band_table(attempts: pd.DataFrame, bands: Sequence[Band] = DEFAULT_BANDS, *, min_clean: int = 4) -> pd.DataFrame:
    """One row per task of a probe campaign, sorted by uid.

    `attempts` has one row an attempt with columns uid, domain, passed, system_error
    (`evaluation.attempts.read_attempts`). Columns returned: uid, domain, n (clean attempts), k (passed among
    them), system_errors, a, b (posterior), mean (a / (a + b)), band, mass, one `mass_<band>` per band,
    status. A task with fewer than `min_clean` clean attempts has no band (empty string, NaN masses) and
    status "too few clean runs"; system errors never count as failures.
    """
    check_bands(bands)
    missing = {"uid", "domain", "passed", "system_error"} - set(attempts.columns)
    if missing:
        raise StudyError(
            f"attempts lack the columns {sorted(missing)}; read them with evaluation.attempts.read_attempts"
        )
    if attempts.empty:
        raise StudyError("no attempts to band; run the probe first")
    clean = ~attempts.system_error.to_numpy(bool)
    counts = (
        pd.DataFrame(
            {
                "uid": attempts.uid.astype(str),
                "domain": attempts.domain.astype(str),
                "n": clean.astype(int),
                "k": (attempts.passed.to_numpy(bool) & clean).astype(int),
                "system_errors": (~clean).astype(int),
            }
        )
        .groupby("uid", sort=True)
        .agg({"domain": "first", "n": "sum", "k": "sum", "system_errors": "sum"})
        .reset_index()
    )
    cache: dict[tuple[int, int], BandAssignment] = {}
    rows = []
    for k, n in zip(counts.k, counts.n, strict=True):
        a, b = posterior(k, n)
        row = {"a": a, "b": b, "mean": a / (a + b)}
        if n >= min_clean:
            found = cache.setdefault((k, n), assign(k, n, bands))
            row |= {"band": found.band, "mass": found.mass}
            row |= {f"mass_{name}": mass for name, mass in found.masses.items()} | {"status": BANDED}
        else:
            row |= {"band": "", "mass": np.nan}
            row |= {f"mass_{band.name}": np.nan for band in bands} | {"status": TOO_FEW}
        rows.append(row)
    return pd.concat([counts, pd.DataFrame(rows)], axis=1)


def band_summary(table: pd.DataFrame, bands: Sequence[Band] = DEFAULT_BANDS) -> pd.DataFrame:
    """Tasks per band: columns band, low, high, keep, tasks, share (of banded tasks), mean (of posterior
    means).
    """
    banded = table[table.status == BANDED]
    rows = []
    for band in bands:
        inside = banded[banded.band == band.name]
        rows.append(
            {
                "band": band.name,
                "low": band.low,
                "high": band.high,
                "keep": band.keep,
                "tasks": len(inside),
                "share": len(inside) / len(banded) if len(banded) else np.nan,
                "mean": inside["mean"].mean() if len(inside) else np.nan,
            }
        )
    return pd.DataFrame(rows)
