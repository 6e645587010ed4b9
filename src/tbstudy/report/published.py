"""The published study from `data/published`: its tables and figures, by the functions that draw any other study.

Facts are read as stated; what is computed from them is marked derived, and what the authors do not state stays empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from tbstudy.difficulty import Band, assign, bands_from
from tbstudy.errors import StudyError
from tbstudy.evaluation.cost import pareto_frontier
from tbstudy.evaluation.metrics import newcombe, wilson
from tbstudy.report import figures
from tbstudy.report.study import StudyReport
from tbstudy.report.tables import NOT_STATED, Table

BASE, TRAINED = "Qwen3.8-27B", "Qwen3.8-27B RLFT"
GROUPS = ("proprietary", "open-weight", "open-weight fine-tuned")


@dataclass(frozen=True, slots=True)
class Published:
    """The files of `data/published` as tables; percentages and USD as stated, NaN where not stated."""

    pass_1: pd.DataFrame
    domains: pd.DataFrame
    reliability: pd.DataFrame
    changes: pd.DataFrame
    in_text: pd.DataFrame
    setup: dict[str, Any]

    @property
    def tasks(self) -> int:
        """Benchmark tasks: the sum over domains, 507."""
        return int(self.domains.tasks.sum())

    @property
    def attempts(self) -> int:
        """Attempts of a full campaign: tasks x 20 = 10,140."""
        return self.tasks * int(self.setup["evaluation"]["repeats"])

    @property
    def bands(self) -> tuple[Band, ...]:
        return bands_from(self.setup["bands"])


def load_published(folder: str | Path) -> Published:
    """Read `data/published`. Raises `StudyError` naming the file that is missing."""
    folder = Path(folder)
    names = ["bench_pass1_by_domain", "domains", "reliability_and_cost", "stated_changes", "stated_in_text"]
    for file in [*(f"{name}.csv" for name in names), "training_setup.yaml"]:
        if not (folder / file).is_file():
            raise StudyError(f"{folder / file}: missing; point at the folder data/published of the project")
    tables = [pd.read_csv(folder / f"{name}.csv") for name in names]
    return Published(*tables, setup=yaml.safe_load((folder / "training_setup.yaml").read_text(encoding="utf-8")))


def pass_1_table(published: Published) -> Table:
    """First post, Table 2: pass@1 by domain, and the fine-tuned model's stated overall value."""
    sizes = published.domains.set_index("domain")
    labels = {name: f"{row.label} ({row.tasks})" for name, row in sizes.iterrows()}
    numbers = [*sizes.index, "overall"]
    return Table(
        published.pass_1[["model", "group", *numbers]],
        "pass@1 (percent) by domain, 20 attempts a task",
        formats=dict.fromkeys(numbers, ".2f"),
        labels=labels | {"model": "Model", "group": "Group", "overall": f"Overall ({published.tasks})"},
        note="First post, Table 2; last row: training post. Per-domain values of the fine-tuned model are not stated.",
        missing=NOT_STATED,
    )


def reliable_cost_table(published: Published) -> Table:
    """First post, Table 3: cost per reliable task, lowest first, with the implied values marked derived."""
    table = published.reliability[published.reliability.model != TRAINED].copy()
    table = table.sort_values("cost_per_reliable_task_usd").reset_index(drop=True)
    table["share_pct"] = 100 * table.tasks_20_of_20 / published.tasks
    table["recomputed"] = table.campaign_cost_usd / table.tasks_20_of_20
    columns = ["model", "tasks_20_of_20", "share_pct", "campaign_cost_usd", "cost_per_reliable_task_usd", "recomputed"]
    return Table(
        table[columns],
        "Cost per reliable task (tasks passing 20 of 20), lowest first",
        formats={
            "share_pct": ".2f",
            "campaign_cost_usd": ",.2f",
            "cost_per_reliable_task_usd": ".2f",
            "recomputed": ".2f",
        },
        labels={
            "model": "Model",
            "tasks_20_of_20": "Tasks passing 20/20",
            "share_pct": "Share (%)",
            "campaign_cost_usd": "Cost of 20 runs (USD)",
            "cost_per_reliable_task_usd": "Cost per reliable task (USD)",
            "recomputed": "Cost / tasks (USD)",
        },
        derived=frozenset({"share_pct", "recomputed"}),
        note="First post, Table 3. Estimated list prices of September 2026, not bills.",
        missing=NOT_STATED,
    )


def outcome_table(published: Published) -> Table:
    """Training post: base and fine-tuned model on three metrics, with derived intervals."""
    tasks, overall = published.tasks, published.pass_1.set_index("model").overall
    repeated = published.reliability.set_index("model")
    always = [int(repeated.tasks_20_of_20[model]) for model in (BASE, TRAINED)]
    share = [repeated.pass_at_20_pct[model] for model in (BASE, TRAINED)]
    once = [round(tasks * value / 100) for value in share]

    def counted(metric: str, digits: int, values: list[float], counts: list[int]) -> tuple[str, ...]:
        """One metric that is a share of tasks: values in percent, and intervals from the counts behind them."""
        intervals = [wilson(count, tasks) for count in counts]
        intervals.append(newcombe(counts[1], tasks, counts[0], tasks))
        bounds = [f"[{100 * interval.low:.1f}, {100 * interval.high:.1f}]" for interval in intervals]
        return (metric, *(f"{value:.{digits}f}" for value in values), f"{values[1] - values[0]:+.{digits}f}", *bounds)

    pass_1 = (overall[BASE], overall[TRAINED])
    rows = [
        ("pass@1 (%)", *(f"{value:.2f}" for value in pass_1), f"{pass_1[1] - pass_1[0]:+.2f}", "", "", ""),
        ("observed 20/20 (tasks)", *(str(count) for count in always), f"{always[1] - always[0]:+d}", "", "", ""),
        counted("observed 20/20 (%)", 1, [100 * count / tasks for count in always], always),
        counted("pass@20 (%)", 2, share, once),
    ]
    derived = ("Change", "Base 95 %", "RLFT 95 %", "Change 95 %")
    return Table(
        pd.DataFrame(rows, columns=["Metric", BASE, TRAINED, *derived]),
        "Base and fine-tuned model on the benchmark",
        derived=frozenset(derived),
        note=(
            "Values of the training post. Intervals: Wilson for shares of 507 tasks, Newcombe for the change, without "
            "the pairing by task; pass@1 has none, since the results by task are not public."
        ),
    )


def cost_table(published: Published) -> Table:
    """Training post: what a success and a reliable task cost, with implied campaign costs marked derived."""
    table = cost_points(published)
    table["frontier"] = np.where(table.frontier, "yes", "")
    table["campaign"] = [
        f"{value:,.2f}" + (" (derived)" if implied else "") if pd.notna(value) else NOT_STATED
        for value, implied in zip(table.campaign_cost, table.campaign_derived, strict=True)
    ]
    table["success"] = [
        f"{value:.3f}" + (" (derived)" if implied else "") if pd.notna(value) else NOT_STATED
        for value, implied in zip(table.cost, table.derived, strict=True)
    ]
    columns = ["policy", "pass_1", "tasks_20_of_20", "campaign", "success", "cost_per_reliable_task_usd", "frontier"]
    return Table(
        table[columns],
        "Cost per success and per reliable task",
        formats={"pass_1": ".2f", "cost_per_reliable_task_usd": ".2f"},
        labels={
            "policy": "Model",
            "pass_1": "pass@1 (%)",
            "tasks_20_of_20": "Tasks passing 20/20",
            "campaign": "Campaign cost (USD)",
            "success": "Cost per success (USD)",
            "cost_per_reliable_task_usd": "Cost per reliable task (USD)",
            "frontier": "On the frontier",
        },
        note=(
            "Values of the training post, with the first post's models. Derived campaign cost: cost per reliable task "
            "x tasks; derived cost per success: campaign cost / (10,140 x pass@1). On the frontier no other model "
            "costs no more per success and scores at least as much."
        ),
        missing=NOT_STATED,
    )


def cost_points(published: Published) -> pd.DataFrame:
    """Cost per success by model: policy, pass_1, group, cost, derived, campaign_cost, campaign_derived, frontier."""
    table = published.reliability.merge(published.pass_1[["model", "group", "overall"]], on="model", validate="1:1")
    implied = table.cost_per_reliable_task_usd * table.tasks_20_of_20
    table["campaign_derived"] = table.campaign_cost_usd.isna() & implied.notna()
    table["campaign_cost"] = table.campaign_cost_usd.fillna(implied)
    per_success = table.campaign_cost / (published.attempts * table.overall / 100)
    table["derived"] = table.cost_per_success_usd.isna() & per_success.notna()
    table["cost"] = table.cost_per_success_usd.fillna(per_success)
    table = table.rename(columns={"model": "policy", "overall": "pass_1"})
    table["frontier"] = pareto_frontier(table.cost, table.pass_1)
    return table.sort_values(["cost", "policy"]).reset_index(drop=True)


def setup_table(published: Published) -> Table:
    """Training post: the reference run."""
    setup = published.setup
    gpus, sampling, lengths = setup["gpus"], setup["sampling"], setup["lengths"]
    rows = [
        ("Model", setup["model"]),
        ("Training", setup["paradigm"]),
        ("Pool", f"{setup['training_pool_tasks']} tasks"),
        ("Bands kept", ", ".join(band.name for band in published.bands if band.keep)),
        ("Prior", setup["prior"]),
        ("Groups x rollouts", f"{setup['groups_per_update']} x {setup['rollouts_per_group']}"),
        ("Episodes an update", str(setup["groups_per_update"] * setup["rollouts_per_group"])),
        ("Updates", f"{setup['updates']} (checkpoint {setup['selected_checkpoint']})"),
        ("GPUs", f"{gpus['nodes']} x {gpus['per_node']} {gpus['kind']}"),
        ("Parallelism", ", ".join(f"{key} {value}" for key, value in setup["parallelism"].items())),
        ("Optimiser", f"AdamW, lr {setup['optimizer']['lr']:.0e}, weight decay {setup['optimizer']['weight_decay']:g}"),
        ("KL", setup["kl"]),
        ("Sampling", f"temperature {sampling['temperature']}, top-k {sampling['top_k']}, top-p {sampling['top_p']}"),
        ("Lengths (tokens)", f"prompt {lengths['max_prompt']:,}, response {lengths['max_response']:,}"),
        ("Zero-variance groups", setup["zero_variance_groups"]),
        ("System errors", setup["system_errors"]),
        ("Seed", str(setup["seed"])),
        ("Evaluation", f"{setup['evaluation']['tasks']} tasks x {setup['evaluation']['repeats']} attempts"),
    ]
    return Table(
        pd.DataFrame(rows, columns=["Setting", "Value"]),
        "The published reference run",
        note="Values of the training post and of the training repository.",
    )


def failure_table(published: Published) -> Table:
    """First post, failure ablation and signatures."""
    ablation, signatures = published.setup["failure_ablation"], published.setup["failure_signatures_pct"]
    clean = ablation["of_clean_failures"]
    rows = [
        ("Valid trials (12 models)", f"{ablation['valid_trials']:,}"),
        ("Failed", f"{ablation['failed']:,}"),
        ("Terminated cleanly (% of failed)", f"{ablation['terminated_cleanly_pct']:.2f}"),
        ("Wrong field (% of those)", f"{clean['wrong_field_pct']:.2f}"),
        ("Extra effect (% of those)", f"{clean['extra_effect_pct']:.2f}"),
        ("Missing effect (% of those)", f"{clean['missing_effect_pct']:.2f}"),
        *((f"Signature: {name.replace('_', ' ')} (%)", f"{value:.1f}") for name, value in signatures.items()),
    ]
    return Table(
        pd.DataFrame(rows, columns=["Quantity", "Value"]), "How attempts fail", note="First post; findings overlap."
    )


def change_matrix(published: Published) -> pd.DataFrame:
    """Stated changes from base to fine-tuned by domain: a number (pp), "rose", "fell", or missing when not stated."""
    domains = list(published.domains.domain)
    rows = {"pass@1": "pass_at_1", "observed 20/20": "observed_20_of_20", "pass@20": "pass_at_20"}
    matrix = pd.DataFrame(None, index=list(rows), columns=domains, dtype=object)
    # Directions first, so that a stated number replaces the direction of its domain.
    stated = published.changes.sort_values("change_pp", na_position="first")
    for row in stated.itertuples():
        label = next((label for label, metric in rows.items() if metric == row.metric), None)
        if label is None:
            raise StudyError(f"stated_changes.csv: unknown metric {row.metric!r}; expected {sorted(rows.values())}")
        scope = domains if row.scope == "all five domains" else [part.strip() for part in row.scope.split(" and ")]
        for domain in scope:
            if pd.notna(row.change_pp):
                matrix.loc[label, domain] = float(row.change_pp)
            elif row.statement.startswith("rose") or row.statement.startswith("fell"):
                matrix.loc[label, domain] = row.statement[:4]
    overall = published.pass_1.set_index("model").overall
    repeated = published.reliability.set_index("model")
    share = 100 * repeated.tasks_20_of_20 / published.tasks
    matrix["overall"] = [
        overall[TRAINED] - overall[BASE],
        share[TRAINED] - share[BASE],
        repeated.pass_at_20_pct[TRAINED] - repeated.pass_at_20_pct[BASE],
    ]
    return matrix


def hotel_case(published: Published) -> pd.DataFrame:
    """The hotel case as attempts: policy, attempt, outcome; only counts are stated, so attempts are sorted by
    outcome.
    """
    case = published.setup["hotel_case"]
    n = case["attempts"]
    changed, matched = case["base_changed_without_approval"], case["rlft_all_records_match"]
    outcomes = {
        BASE: [HOTEL_OUTCOMES[0]] * changed + [HOTEL_OUTCOMES[1]] * (n - changed),
        TRAINED: [HOTEL_OUTCOMES[2]] * (case["rlft_preserved"] - matched) + [HOTEL_OUTCOMES[3]] * matched,
    }
    return pd.DataFrame(
        [(policy, index, name) for policy, names in outcomes.items() for index, name in enumerate(names)],
        columns=["policy", "attempt", "outcome"],
    )


HOTEL_OUTCOMES = (
    "room changed without approval",
    "not changed without approval, other records not stated",
    "room preserved, another record differs",
    "all records match",
)


def build_published(folder: str | Path, out: str | Path) -> StudyReport:
    """Write every table and figure of the published study into the study folder `out`."""
    published = load_published(folder)
    report = StudyReport(out, title="The published ThinkingBox study", intro=INTRO)
    example = published.setup["probe_example"]
    report.figure("figure_1_loop", figures.loop_diagram(), "One episode: from task to database verdict.")
    report.table("training_table_1_outcome", outcome_table(published))
    hotel = "A hotel wants a room downgrade; a manager must approve it first. Twenty attempts of each policy."
    strips = figures.case_strips(hotel_case(published), outcomes=HOTEL_OUTCOMES, order_stated=False)
    report.figure("figure_2_hotel_case", strips, hotel)
    values = published.pass_1.set_index("model")
    heat = values.drop(columns="group")
    labels = dict(zip(published.domains.domain, published.domains.label.str.replace(" ", "\n", n=1), strict=True))
    heatmap = figures.domain_heatmap(heat, change_matrix(published), labels=labels, groups=values.group.to_dict())
    report.figure(
        "figure_3_domains",
        heatmap,
        "pass@1 by domain, and below it what is stated about the change from the base model to the fine-tuned one "
        "(overall column derived; n.s.: not stated).",
    )
    report.table("training_table_2_cost", cost_table(published))
    points = cost_points(published)
    rest = published.pass_1[~published.pass_1.model.isin(points.policy)]
    rest = pd.DataFrame({"policy": rest.model, "pass_1": rest.overall, "group": rest.group, "cost": np.nan})
    everything = pd.concat([points, rest], ignore_index=True)
    report.figure(
        "figure_4_cost",
        figures.cost_frontier(everything, arrow=(BASE, TRAINED)),
        "Cost per success against pass@1; the arrow is what training changed.",
    )
    repeats = published.setup["evaluation"]["repeats"]
    counts = {
        "probe": f"n = {example['n']}",
        "band": f"{len(published.bands)} bands",
        "select": f"{published.setup['training_pool_tasks']} tasks",
        "train": f"{published.setup['updates']} updates of\n{published.setup['episodes_per_update']} episodes",
        "evaluate": f"{published.tasks} tasks x {repeats}\n= {published.attempts:,} attempts",
        "analyse": "tables and figures",
    }
    report.figure("figure_5_stages", figures.stage_diagram(counts), "The six stages.")
    report.figure(
        "figure_6_bands",
        figures.band_posteriors(example["n"], bands=published.bands, highlight=example["k"]),
        "Posterior of a task's pass rate for k of 8 probe passes, over the difficulty bands.",
    )
    report.figure(
        "figure_7_one_task", figures.task_journey(journey(published), published.bands), "One task, all six stages."
    )
    report.table("training_table_3_setup", setup_table(published))
    report.table("first_table_2_pass1", pass_1_table(published))
    report.table("first_table_3_reliable_cost", reliable_cost_table(published))
    report.table("first_failures", failure_table(published))
    return report


def journey(published: Published) -> figures.TaskJourney:
    """The probe example through the stages, as far as the authors state them."""
    example = published.setup["probe_example"]
    n, k = example["n"], example["k"]
    found = assign(k, n, published.bands)
    outcomes = [True] * k + [False] * (n - k)
    return figures.TaskJourney(
        uid=f"The published probe example, {k} of {n}",
        probe=outcomes,
        pool=f"band {found.band} is kept:\none of {published.setup['training_pool_tasks']} pool tasks",
        group=outcomes,
        note=(
            "Order of the probe attempts not stated. Train (derived): a group that repeats the probe's counts. "
            "Evaluation of this task is not stated."
        ),
    )


INTRO = (
    "Every number here is stated by the study's authors and read from data/published, or computed from those numbers "
    "and then marked derived. A value that the authors do not state in text is shown as not stated."
)
