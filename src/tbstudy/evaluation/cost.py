"""What a campaign cost by token prices, and what that means per success and per reliable task."""

from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tbstudy.errors import StudyError
from tbstudy.evaluation.metrics import Interval, bootstrap_ratio


class TokenPrice(BaseModel):
    """USD per million tokens; `cached_input` defaults to `input` where a provider states none."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cached_input: float | None = Field(default=None, ge=0)


class PriceTable(BaseModel):
    """Prices by model with their date and source, and which model plays the simulated user and the judge."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    date: datetime.date
    source: str = Field(min_length=1)
    models: dict[str, TokenPrice]
    user: str | None = None
    judge: str | None = None

    def price(self, model: str) -> TokenPrice:
        """The price of a model. Raises `StudyError` naming the model and what there is."""
        if model not in self.models:
            known = ", ".join(sorted(self.models))
            raise StudyError(f"no price for {model!r}; the table of {self.date} has {known}")
        return self.models[model]


def load_prices(path: str | Path) -> PriceTable:
    """Read a price table from YAML. Raises `StudyError` naming file and field."""
    path = Path(path)
    try:
        return PriceTable.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise StudyError(f"{path}: cannot read the price table ({error.strerror})") from None
    except yaml.YAMLError as error:
        raise StudyError(f"{path}: not YAML ({error})") from None
    except ValidationError as error:
        first = error.errors()[0]
        raise StudyError(f"{path}: field {'.'.join(str(p) for p in first['loc'])}: {first['msg']}") from None


def attempt_costs(attempts: pd.DataFrame, prices: PriceTable, model: str | None = None) -> pd.DataFrame:
    """USD per attempt by role: columns policy, user, judge, total; rows as `attempts`.

    `model` is the price entry of the policy; by default the policy's name. A role whose usage no record states is NaN
    in its column and left out of the total, so that an unrecorded judge never passes for a free one; an attempt
    without policy usage is refused (`StudyError`), since a cost would be a guess.
    """
    names = sorted(set(attempts.policy.astype(str)))
    unknown = attempts.policy_input_tokens.isna() & ~attempts.system_error.astype(bool)
    if unknown.any():
        first = attempts[unknown].iloc[0]
        raise StudyError(f"{int(unknown.sum())} attempts record no policy usage ({first.uid} #{first.repetition}, ...)")
    out = pd.DataFrame(index=attempts.index)
    policy = pd.Series(np.nan, index=attempts.index)
    for name in names:
        rows = attempts.policy.astype(str) == name
        price = prices.price(model or name)
        cached = attempts.policy_cached_tokens[rows].fillna(0)
        fresh = attempts.policy_input_tokens[rows] - cached
        cached_price = price.input if price.cached_input is None else price.cached_input
        policy[rows] = fresh * price.input + cached * cached_price + attempts.policy_output_tokens[rows] * price.output
    out["policy"] = policy / 1e6
    for role, entry in (("user", prices.user), ("judge", prices.judge)):
        used = attempts[f"{role}_input_tokens"]
        if entry is None or used.isna().all():
            out[role] = np.nan
        else:
            price = prices.price(entry)
            out[role] = (used * price.input + attempts[f"{role}_output_tokens"] * price.output) / 1e6
    out["total"] = out[["policy", "user", "judge"]].sum(axis=1, min_count=1)
    return out


def token_table(attempts: pd.DataFrame) -> pd.DataFrame:
    """Tokens: policy, role, attempts (those with usage), input, cached_input, output, per_attempt; a row a role."""
    rows = []
    for policy, group in attempts.groupby("policy", observed=True):
        for role in ("policy", "user", "judge"):
            known = group[f"{role}_input_tokens"].notna()
            if not known.any():
                continue
            into, out = group[f"{role}_input_tokens"].sum(), group[f"{role}_output_tokens"].sum()
            cached = group.policy_cached_tokens.sum() if role == "policy" else 0.0
            rows.append((policy, role, int(known.sum()), into, cached, out, (into + out) / known.sum()))
    columns = ["policy", "role", "attempts", "input", "cached_input", "output", "per_attempt"]
    return pd.DataFrame(rows, columns=columns)


def cost_summary(
    attempts: pd.DataFrame, costs: pd.Series, k: int, *, resamples: int = 2000, seed: int = 0
) -> dict[str, float | Interval]:
    """Campaign cost, cost per success (cost / passed attempts) and per reliable task (cost / tasks passing k of k).

    `costs` is USD per attempt, aligned with `attempts`; system-error attempts cost money as well and stay in. Both
    ratios come as `Interval` from a task bootstrap in which cost and outcome of a task stay together.
    """
    frame = pd.DataFrame(
        {
            "uid": attempts.uid.astype(str),
            "cost": costs.fillna(0.0),
            "passed": (attempts.passed & ~attempts.system_error).astype(int),
            "clean": (~attempts.system_error.astype(bool)).astype(int),
        }
    )
    by_task = frame.groupby("uid").sum()
    reliable = ((by_task.passed == by_task.clean) & (by_task.clean >= k)).astype(int)
    options = {"resamples": resamples, "seed": seed}
    return {
        "campaign_cost": float(by_task.cost.sum()),
        "passed": int(by_task.passed.sum()),
        "reliable_tasks": int(reliable.sum()),
        "cost_per_success": bootstrap_ratio(by_task.cost, by_task.passed, **options),
        "cost_per_reliable_task": bootstrap_ratio(by_task.cost, reliable, **options),
    }


def pareto_frontier(cost: pd.Series, score: pd.Series) -> pd.Series:
    """Which entries no other entry dominates: booleans on the index of `cost`; a NaN is never on the frontier.

    An entry is dominated when another costs no more and scores no less, and is better in one of the two.
    """
    c, s = cost.to_numpy(float), score.to_numpy(float)
    known = ~(np.isnan(c) | np.isnan(s))
    no_worse = (c[:, None] <= c) & (s[:, None] >= s)
    better = (c[:, None] < c) | (s[:, None] > s)
    dominated = (no_worse & better & known[:, None]).any(axis=0)
    return pd.Series(known & ~dominated, index=cost.index)
