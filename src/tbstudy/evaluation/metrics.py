"""Estimators over per-task counts (k passes of n attempts), their intervals, and comparisons of two policies.

Everything above the counts treats tasks as the sampled unit: attempts of one task are not independent evidence about
other tasks (arXiv 2411.00640), so intervals resample tasks, or whole task files as a sensitivity check.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import comb, sqrt
from typing import Literal

import numpy as np
import pandas as pd
from scipy import stats

from tbstudy.errors import StudyError

SystemErrors = Literal["exclude", "fail"]


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with the bounds of its interval, all in the unit of the estimate."""

    value: float
    low: float
    high: float


# --------------------------------------------------------------------------------------------------- counts per task


def task_counts(attempts: pd.DataFrame, system_errors: SystemErrors = "exclude") -> pd.DataFrame:
    """One row a task: uid, domain, file, n, k, system_errors, attempts; sorted by uid, tasks without an attempt in n left in.

    `exclude`: n counts clean attempts only. `fail`: n counts every attempt and a system error is an unsuccessful one,
    as the published benchmark counts.
    """
    if system_errors not in ("exclude", "fail"):
        raise StudyError(f"system_errors is {system_errors!r}; expected 'exclude' or 'fail'")
    broken = attempts.system_error.to_numpy(bool)
    frame = pd.DataFrame(
        {
            "uid": attempts.uid.astype(str),
            "domain": attempts.domain.astype(str),
            "file": attempts.file.astype(str) if "file" in attempts else attempts.uid.astype(str).str.partition(":")[0],
            "n": (~broken if system_errors == "exclude" else np.ones(len(attempts), bool)).astype(int),
            "k": (attempts.passed.to_numpy(bool) & ~broken).astype(int),
            "system_errors": broken.astype(int),
        }
    )
    grouped = frame.groupby("uid", sort=True)
    counts = grouped.agg({"domain": "first", "file": "first", "n": "sum", "k": "sum", "system_errors": "sum"})
    return counts.assign(attempts=grouped.size()).reset_index()


# -------------------------------------------------------------------------------------------- pass@k, pass^k, exact


@lru_cache(maxsize=None)
def _pass_at(n: int, c: int, k: int) -> float:
    return 1.0 - comb(n - c, k) / comb(n, k)


@lru_cache(maxsize=None)
def _pass_hat(n: int, c: int, k: int) -> float:
    return comb(c, k) / comb(n, k)


def _per_task(estimator: Callable[[int, int, int], float], n: np.ndarray, c: np.ndarray, k: int) -> np.ndarray:
    n, c = np.asarray(n, dtype=int), np.asarray(c, dtype=int)
    if k < 1 or (c > n).any() or (c < 0).any():
        raise StudyError(f"need k >= 1 and 0 <= passes <= attempts; got k = {k}")
    pairs, inverse = np.unique(np.stack([n, c]), axis=1, return_inverse=True)
    values = [estimator(a, b, k) if a >= k else np.nan for a, b in pairs.T.tolist()]
    return np.array(values, dtype=float)[inverse.reshape(-1)]


def pass_at_k(n: np.ndarray, c: np.ndarray, k: int) -> np.ndarray:
    """Unbiased pass@k per task, 1 - C(n - c, k) / C(n, k) (arXiv 2107.03374); NaN where n < k. Arrays of shape (T,)."""
    return _per_task(_pass_at, n, c, k)


def pass_hat_k(n: np.ndarray, c: np.ndarray, k: int) -> np.ndarray:
    """Unbiased pass^k per task, C(c, k) / C(n, k) (arXiv 2406.12045); NaN where n < k. Arrays of shape (T,)."""
    return _per_task(_pass_hat, n, c, k)


def observed_all(n: np.ndarray, c: np.ndarray, k: int | None = None) -> np.ndarray:
    """Which tasks passed all of their recorded attempts, of which there must be at least `k` (default 1). Shape (T,).

    A literal count, no estimator: a task with fewer than `k` clean attempts has not shown k of k.
    """
    n, c = np.asarray(n), np.asarray(c)
    return (c == n) & (n >= (k or 1))


# -------------------------------------------------------------------------------------------------------- intervals


def wilson(k: int, n: int, level: float = 0.95) -> Interval:
    """Wilson score interval of a proportion k / n (Wilson 1927); NaN when n is 0."""
    if n == 0:
        return Interval(np.nan, np.nan, np.nan)
    z = stats.norm.ppf(0.5 + level / 2)
    share = k / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return Interval(share, max(0.0, centre - half), min(1.0, centre + half))


def newcombe(k1: int, n1: int, k0: int, n0: int, level: float = 0.95) -> Interval:
    """Difference k1/n1 - k0/n0 of two independent proportions, Newcombe's hybrid score interval (1998, method 10).

    For published aggregates, where the pairing by task is not known: it ignores pairing and is wider for it.
    """
    one, zero = wilson(k1, n1, level), wilson(k0, n0, level)
    value = one.value - zero.value
    low = value - sqrt((one.value - one.low) ** 2 + (zero.high - zero.value) ** 2)
    high = value + sqrt((one.high - one.value) ** 2 + (zero.value - zero.low) ** 2)
    return Interval(value, low, high)


def clopper_pearson(k: int, n: int, level: float = 0.95) -> Interval:
    """Exact binomial interval of k / n: 20 of 20 supports p >= 0.832 at two-sided 95 %."""
    tail = (1 - level) / 2
    low = 0.0 if k == 0 else float(stats.beta.ppf(tail, k, n - k + 1))
    high = 1.0 if k == n else float(stats.beta.ppf(1 - tail, k + 1, n - k))
    return Interval(k / n, low, high)


def resample_weights(units: int, resamples: int, seed: int) -> np.ndarray:
    """How often each of `units` is drawn in each bootstrap resample: float32 array (resamples, units), rows sum to units."""
    rng = np.random.default_rng(seed)
    draws = rng.integers(0, units, size=(resamples, units), dtype=np.int32)
    draws += np.arange(resamples, dtype=np.int32)[:, None] * units
    return np.bincount(draws.ravel(), minlength=resamples * units).reshape(resamples, units).astype(np.float32)


def percentile(samples: np.ndarray, units: int, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of the expanded percentile interval over axis 0 of `samples` (resamples, ...), NaN samples left out.

    The plain percentile interval is too short by about sqrt((T - 1) / T) and by using normal for t quantiles; its
    tail is therefore widened to Phi(-sqrt(T / (T - 1)) t_{T - 1}) (Hesterberg 2015, arXiv 1411.5279, section 5.3).
    """
    tail = (1 - level) / 2
    if units > 1:
        tail = float(stats.norm.cdf(sqrt(units / (units - 1)) * stats.t.ppf(tail, units - 1)))
    if np.isnan(samples).any():
        low, high = np.nanquantile(samples, [tail, 1 - tail], axis=0)
    else:
        low, high = np.quantile(samples, [tail, 1 - tail], axis=0)
    return low, high


def bootstrap_mean(
    values: np.ndarray,
    *,
    clusters: np.ndarray | None = None,
    resamples: int = 2000,
    seed: int = 0,
    level: float = 0.95,
) -> list[Interval]:
    """Mean over tasks of each column of `values` (T, M) with its task-bootstrap interval; NaN rows of a column left out.

    With `clusters` (T labels, such as the task's file) whole clusters are resampled instead, and the mean is that of
    the tasks in them.
    """
    values = np.asarray(values, dtype=float)
    values = values[:, None] if values.ndim == 1 else values
    if len(values) == 0:
        return [Interval(np.nan, np.nan, np.nan)] * values.shape[1]
    known = ~np.isnan(values)
    filled, mask = np.where(known, values, 0.0), known.astype(float)
    if clusters is not None:
        codes = np.unique(np.asarray(clusters).astype(str), return_inverse=True)[1]
        filled = np.stack([np.bincount(codes, column) for column in filled.T], axis=1)
        mask = np.stack([np.bincount(codes, column) for column in mask.T], axis=1)
    weights = resample_weights(len(filled), resamples, seed)
    with np.errstate(invalid="ignore", divide="ignore"):
        samples = (weights @ filled.astype(np.float32)) / (weights @ mask.astype(np.float32))
        centre = filled.sum(0) / mask.sum(0)
    low, high = percentile(samples.astype(float), len(filled), level)
    return [Interval(float(v), float(a), float(b)) for v, a, b in zip(centre, low, high, strict=True)]


def bootstrap_ratio(
    numerator: np.ndarray,
    denominator: np.ndarray,
    *,
    resamples: int = 2000,
    seed: int = 0,
    level: float = 0.95,
) -> Interval:
    """sum(numerator) / sum(denominator) over tasks, both (T,), resampled together by task; inf where a resample has none."""
    numerator, denominator = np.asarray(numerator, float), np.asarray(denominator, float)
    if denominator.sum() == 0:
        return Interval(np.inf, np.nan, np.nan)
    weights = resample_weights(len(numerator), resamples, seed)
    with np.errstate(divide="ignore", invalid="ignore"):
        samples = (weights @ numerator) / (weights @ denominator)
    low, high = percentile(samples, len(numerator), level)
    return Interval(float(numerator.sum() / denominator.sum()), float(low), float(high))


# ----------------------------------------------------------------------------------------------------------- tables


def summary_row(counts: pd.DataFrame, k: int, *, resamples: int = 2000, seed: int = 0) -> dict[str, float]:
    """The metrics of one set of tasks (rows of `task_counts`), as fractions.

    pass@1 is the mean over tasks of k/n, which is the mean over attempts when every task has the same n; pass@k and
    pass^k at the campaign's `k` are unbiased; observed k/k is a count of tasks with a Wilson interval.
    """
    n, c = counts.n.to_numpy(int), counts.k.to_numpy(int)
    columns = np.stack([pass_at_k(n, c, 1), pass_at_k(n, c, k), pass_hat_k(n, c, k)], axis=1)
    one, at, hat = bootstrap_mean(columns, resamples=resamples, seed=seed)
    reliable = int(observed_all(n, c, k).sum())
    share = wilson(reliable, len(counts))
    return {
        "tasks": len(counts),
        "attempts": int(counts.attempts.sum()),
        "system_errors": int(counts.system_errors.sum()),
        "k": k,
        "pass_1": one.value,
        "pass_1_low": one.low,
        "pass_1_high": one.high,
        "pass_at_k": at.value,
        "pass_at_k_low": at.low,
        "pass_at_k_high": at.high,
        "pass_hat_k": hat.value,
        "pass_hat_k_low": hat.low,
        "pass_hat_k_high": hat.high,
        "observed_k_k": reliable,
        "observed_share": share.value,
        "observed_low": share.low,
        "observed_high": share.high,
    }


def summary(counts: pd.DataFrame, k: int | None = None, *, resamples: int = 2000, seed: int = 0) -> pd.DataFrame:
    """`summary_row` per domain, sorted, and last for all tasks (domain "all"). `k` defaults to the most attempts a task has."""
    k = k or int(counts.n.max())
    parts = [(domain, rows) for domain, rows in counts.groupby("domain", sort=True)] + [("all", counts)]
    return pd.DataFrame(
        [{"domain": name} | summary_row(rows, k, resamples=resamples, seed=seed) for name, rows in parts]
    )


def curves(counts: pd.DataFrame, *, resamples: int = 2000, seed: int = 0) -> pd.DataFrame:
    """pass@k and pass^k for k = 1 .. the fewest attempts a task has: columns k, metric, value, low, high."""
    n, c = counts.n.to_numpy(int), counts.k.to_numpy(int)
    ks = range(1, int(n.min()) + 1) if len(n) else range(0)
    rows = []
    for metric, estimator in (("pass@k", pass_at_k), ("pass^k", pass_hat_k)):
        if not ks:
            continue
        values = np.stack([estimator(n, c, k) for k in ks], axis=1)
        found = bootstrap_mean(values, resamples=resamples, seed=seed)
        rows += [(k, metric, i.value, i.low, i.high) for k, i in zip(ks, found, strict=True)]
    return pd.DataFrame(rows, columns=["k", "metric", "value", "low", "high"])


# --------------------------------------------------------------------------------------------- two policies, paired


def paired_counts(base: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
    """Inner join of two `task_counts` tables: uid, domain, file, n0, k0, n1, k1. Raises `StudyError` unless both hold
    the same tasks."""
    missing, extra = set(base.uid) - set(other.uid), set(other.uid) - set(base.uid)
    if missing or extra:
        named = ", ".join(sorted(missing or extra)[:5])
        raise StudyError(
            f"the two campaigns hold different tasks ({len(missing)} only in the first, {len(extra)} only in the second, "
            f"such as {named}); compare the same task list"
        )
    left = base[["uid", "domain", "file", "n", "k"]].rename(columns={"n": "n0", "k": "k0"})
    return left.merge(other[["uid", "n", "k"]].rename(columns={"n": "n1", "k": "k1"}), on="uid", validate="1:1")


def paired_differences(pairs: pd.DataFrame, k: int, *, resamples: int = 2000, seed: int = 0) -> pd.DataFrame:
    """Second policy minus first, per metric: metric, base, other, difference, low, high, file_low, file_high, mde.

    Intervals resample tasks (and task files) with both policies' outcomes kept together. `mde` is the minimum
    detectable effect of this design for the metric (`minimum_detectable_effect`).
    """
    n0, k0, n1, k1 = (pairs[name].to_numpy(int) for name in ("n0", "k0", "n1", "k1"))
    metrics = {
        "pass@1": (pass_at_k(n0, k0, 1), pass_at_k(n1, k1, 1)),
        f"pass@{k}": (pass_at_k(n0, k0, k), pass_at_k(n1, k1, k)),
        f"pass^{k}": (pass_hat_k(n0, k0, k), pass_hat_k(n1, k1, k)),
        f"observed {k}/{k}": (observed_all(n0, k0, k).astype(float), observed_all(n1, k1, k).astype(float)),
    }
    change = np.stack([after - before for before, after in metrics.values()], axis=1)
    by_task = bootstrap_mean(change, resamples=resamples, seed=seed)
    by_file = bootstrap_mean(change, clusters=pairs.file.to_numpy(), resamples=resamples, seed=seed)
    rows = []
    for (name, (before, after)), column, task, file in zip(metrics.items(), change.T, by_task, by_file, strict=True):
        rows.append(
            {
                "metric": name,
                "base": float(np.nanmean(before)),
                "other": float(np.nanmean(after)),
                "difference": task.value,
                "low": task.low,
                "high": task.high,
                "file_low": file.low,
                "file_high": file.high,
                "mde": minimum_detectable_effect(column),
            }
        )
    return pd.DataFrame(rows)


def minimum_detectable_effect(differences: np.ndarray, *, alpha: float = 0.05, power: float = 0.8) -> float:
    """The true mean difference that a two-sided test at `alpha` over these tasks finds with probability `power`.

    (z_{1 - alpha/2} + z_{power}) * SE, SE from the task-level differences (T,), which holds both the spread between
    tasks and the noise of finitely many attempts.
    """
    differences = np.asarray(differences, float)
    differences = differences[~np.isnan(differences)]
    if len(differences) < 2:
        return np.nan
    error = differences.std(ddof=1) / sqrt(len(differences))
    return float((stats.norm.ppf(1 - alpha / 2) + stats.norm.ppf(power)) * error)


@dataclass(frozen=True, slots=True)
class McNemar:
    """Tasks reliable for one policy only, and the exact two-sided p of their split under "no difference"."""

    gained: int
    lost: int
    both: int
    neither: int
    p_value: float


def mcnemar(before: np.ndarray, after: np.ndarray) -> McNemar:
    """Exact McNemar test on paired booleans (T,), such as `observed_all` of two policies: binomial test of the discordant."""
    before, after = np.asarray(before, bool), np.asarray(after, bool)
    gained, lost = int((~before & after).sum()), int((before & ~after).sum())
    p = 1.0 if gained + lost == 0 else min(1.0, float(2 * stats.binom.cdf(min(gained, lost), gained + lost, 0.5)))
    return McNemar(gained, lost, int((before & after).sum()), int((~before & ~after).sum()), p)


@lru_cache(maxsize=None)
def fisher_p(k0: int, n0: int, k1: int, n1: int) -> float:
    """Two-sided Fisher exact p of k0 of n0 against k1 of n1; 1 when a side has no attempt."""
    if n0 == 0 or n1 == 0:
        return 1.0
    return float(stats.fisher_exact([[k0, n0 - k0], [k1, n1 - k1]]).pvalue)


def benjamini_hochberg(p: np.ndarray) -> np.ndarray:
    """Adjusted p-values (q-values) of Benjamini and Hochberg 1995, in the order given. Shape (T,)."""
    p = np.asarray(p, float)
    order = np.argsort(p, kind="stable")
    scaled = p[order] * len(p) / np.arange(1, len(p) + 1)
    adjusted = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    out = np.empty_like(adjusted)
    out[order] = adjusted
    return out


def ledger(pairs: pd.DataFrame, *, fdr: float = 0.05) -> pd.DataFrame:
    """Each task gained, lost or unchanged at false-discovery rate `fdr`: `paired_counts` columns and difference, p, q, verdict.

    Sorted by q, then by uid. Unchanged means "not shown to have changed".
    """
    p = np.array([fisher_p(*key) for key in pairs[["k0", "n0", "k1", "n1"]].to_numpy(int).tolist()])
    with np.errstate(invalid="ignore", divide="ignore"):
        difference = (pairs.k1 / pairs.n1 - pairs.k0 / pairs.n0).to_numpy(float)
    q = benjamini_hochberg(p)
    verdict = np.where(q > fdr, "unchanged", np.where(difference > 0, "gained", "lost"))
    table = pairs.assign(difference=difference, p=p, q=q, verdict=verdict)
    return table.sort_values(["q", "uid"], kind="stable").reset_index(drop=True)


def halves(attempts: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A campaign split into its even and its odd repetitions: two smaller campaigns of the same policy."""
    even = attempts.repetition.to_numpy(int) % 2 == 0
    return attempts[even], attempts[~even]


def ledger_against_null(
    base: pd.DataFrame,
    other: pd.DataFrame,
    second_base: pd.DataFrame | None = None,
    *,
    system_errors: SystemErrors = "exclude",
    fdr: float = 0.05,
) -> pd.DataFrame:
    """How many tasks the ledger calls gained and lost, beside what it says about a policy that did not change.

    Takes attempts. Rows: base -> other; with a second campaign of the base policy, base -> second base at the same
    size; always base half -> other base half beside base half -> other's half, so that null and change are compared at
    equal attempts per task (arXiv 2608.20290: an unchanged model also "improves" on some tasks). Columns comparison,
    null, attempts_per_task, gained, lost, up, down: up and down count tasks whose pass count moved at all.
    """
    first, second = halves(base)
    _, other_half = halves(other)
    rows = [("base -> trained", False, base, other)]
    if second_base is not None:
        rows.append(("base -> base again", True, base, second_base))
    rows += [("base half -> trained half", False, first, other_half), ("base half -> other base half", True, first, second)]
    table = []
    for name, null, left, right in rows:
        pairs = paired_counts(task_counts(left, system_errors), task_counts(right, system_errors))
        found = ledger(pairs, fdr=fdr)
        table.append(
            {
                "comparison": name,
                "null": null,
                "attempts_per_task": int(pairs.n0.median()),
                "gained": int((found.verdict == "gained").sum()),
                "lost": int((found.verdict == "lost").sum()),
                "up": int((found.difference > 0).sum()),
                "down": int((found.difference < 0).sum()),
            }
        )
    return pd.DataFrame(table)


def transition_table(pairs: pd.DataFrame, k: int) -> pd.DataFrame:
    """Tasks by pass-count class before (rows) and after (columns): 0, 1-(k-1), k. Tasks without k attempts are left out.

    Sharpening moves tasks from the middle class to k; a loss of breadth moves them to 0.
    """
    whole = pairs[(pairs.n0 == k) & (pairs.n1 == k)]
    labels = ["0", f"1-{k - 1}", str(k)]

    def classes(count: pd.Series) -> pd.Categorical:
        code = np.where(count == 0, 0, np.where(count == k, 2, 1))
        return pd.Categorical.from_codes(code, labels)

    table = pd.crosstab(classes(whole.k0), classes(whole.k1), dropna=False)
    table = table.reindex(index=labels, columns=labels, fill_value=0)
    table.index.name, table.columns.name = "before", "after"
    return table


def count_matrix(pairs: pd.DataFrame, k: int) -> np.ndarray:
    """Tasks by exact pass count: integer array (k + 1, k + 1), [before, after]; tasks without k attempts left out."""
    whole = pairs[(pairs.n0 == k) & (pairs.n1 == k)]
    matrix = np.zeros((k + 1, k + 1), dtype=int)
    np.add.at(matrix, (whole.k0.to_numpy(int), whole.k1.to_numpy(int)), 1)
    return matrix


def domain_differences(pairs: pd.DataFrame, k: int, *, resamples: int = 2000, seed: int = 0) -> pd.DataFrame:
    """`paired_differences` per domain and for all tasks, with the domain and its number of tasks as first columns."""
    parts: Sequence[tuple[str, pd.DataFrame]] = [*pairs.groupby("domain", sort=True), ("all", pairs)]
    tables = []
    for domain, rows in parts:
        table = paired_differences(rows, k, resamples=resamples, seed=seed)
        table.insert(0, "tasks", len(rows))
        table.insert(0, "domain", domain)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)
