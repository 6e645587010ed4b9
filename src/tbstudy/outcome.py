"""What training did: the study's comparisons, their tables and figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from tbstudy.campaign import search_note, search_services
from tbstudy.config import Study
from tbstudy.evaluation.anatomy import anatomy
from tbstudy.evaluation.api import Campaign, Comparison, compare, compare_arms, training_summary
from tbstudy.report.study import StudyReport
from tbstudy.report.tables import Table, percent
from tbstudy.sandbox.server_code import SERVERS, noted_servers
from tbstudy.stages import (
    EVALUATION,
    NULL,
    band,
    bands_of,
    campaign_of,
    forecasts,
    pool_of,
    stored,
    training_table,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tbstudy.report.viewer import EpisodeComparison


#: How groups of rollouts are printed.
_GROUP_LABELS = {"groups_rolled_out": "Groups rolled out", "groups_learned_from": "Groups learned from",
                 "zero_variance_share": "Zero variance (%)", "all_pass_share": "All pass (%)",
                 "all_fail_share": "All fail (%)", "rollouts_per_useful_group": "Rollouts per useful group",
                 "reward_first_fifth": "Reward, first fifth", "reward_last_fifth": "Reward, last fifth"}
_GROUP_FORMATS = {**dict.fromkeys(("zero_variance_share", "all_pass_share", "all_fail_share"), percent()),
                  **dict.fromkeys(("rollouts_per_useful_group",), ".1f"),
                  **dict.fromkeys(("reward_first_fifth", "reward_last_fifth"), ".3f"), "seconds": ".0f"}


@dataclass(frozen=True, slots=True)
class Example:
    """An attempt to read: of `tasks` tasks with one that base ended in a wrong state and the trained policy in the
    right one under the same repetition, the first by uid, and its first such repetition."""

    uid: str
    repetition: int
    tasks: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything that the analyse stage shows.

    `test` and `benchmark` compare base with the first arm; `arms` compares every arm with base, and the first arm
    with the others; `training` is one row an arm, `updates` one row an update; `failures` is the anatomy of failed
    attempts by policy on the test split; `forecasts` what the probe promised about zero-variance groups; `warnings`
    how often serving read a generation otherwise than a person would (`interpreter.surprises`); `example` the attempt
    that the report shows, None where there is none.
    """

    test: Comparison
    benchmark: Comparison
    arms: pd.DataFrame
    training: pd.DataFrame
    updates: pd.DataFrame
    failures: pd.DataFrame
    forecasts: pd.DataFrame
    warnings: pd.DataFrame
    example: Example | None


def outcome(study: Study) -> Outcome:
    """Compare the policies; every score has exact coverage, or a StudyError says what is missing."""
    options = {"resamples": study.config.analyse.resamples, "seed": study.config.seed}
    arms, k = study.config.train.arms, study.config.evaluate.attempts
    base, again = campaign_of(study, "base", "test"), campaign_of(study, NULL, "test")
    trained: dict[str, Campaign] = {arm: campaign_of(study, arm, "test") for arm in arms}
    updates = pd.concat([training_table(study, arm) for arm in arms], ignore_index=True)
    return Outcome(
        test=compare(base, trained[arms[0]], second_base=again, names=("base", "trained"), k=k, **options),
        benchmark=compare(campaign_of(study, "base", "benchmark"), campaign_of(study, arms[0], "benchmark"),
                          names=("base", "trained"), k=k, **options),
        arms=compare_arms(base, trained, k=k, **options),
        training=training_summary(updates), updates=updates,
        failures=pd.concat([anatomy(c.attempts).assign(policy=name) for name, c in
                            (("base", base), ("trained", trained[arms[0]]))], ignore_index=True),
        forecasts=forecasts(study, pool_of(study)),
        warnings=warning_counts({"base": base, "trained": trained[arms[0]]}),
        example=example_of(base.attempts, trained[arms[0]].attempts))


def example_of(base: pd.DataFrame, trained: pd.DataFrame) -> Example | None:
    """The attempt that shows best what changed, chosen by a rule and not by eye (see `Example`), from two policies'
    attempts tables."""
    wrong = (base.wrong + base.missing + base.extra > 0) & ~base.passed & ~base.system_error
    sides = [rows[["uid", "repetition"]].astype({"uid": str})
             for rows in (base[wrong], trained[trained.passed & ~trained.system_error])]
    both = sides[0].merge(sides[1]).sort_values(["uid", "repetition"])
    if both.empty:
        return None
    return Example(str(both.uid.iloc[0]), int(both.repetition.iloc[0]), int(both.uid.nunique()))


def warning_counts(campaigns: dict[str, Campaign]) -> pd.DataFrame:
    """Per policy: attempts, those with an interpretation warning, and the pass rate with and without one."""
    rows = []
    for name, campaign in campaigns.items():
        odd, passed = campaign.attempts.warnings.to_numpy(int) > 0, campaign.attempts.passed.to_numpy(bool)
        rows.append({"policy": name, "attempts": len(odd), "with_warnings": int(odd.sum()),
                     "pass_rate_with": passed[odd].mean() if odd.any() else float("nan"),
                     "pass_rate_without": passed[~odd].mean() if (~odd).any() else float("nan")})
    return pd.DataFrame(rows)


def tables(found: Outcome) -> dict[str, Table]:
    """The study's tables by name, in the order of the report."""
    from tbstudy.report.analysis import (
        anatomy_as_table,
        differences_as_table,
        ledger_as_table,
        summary_as_table,
        transition_as_table,
    )

    return {
        "test_summary": summary_as_table(found.test.summary, caption="Held-out test split, base and trained"),
        "test_differences": differences_as_table(found.test.differences, "Change on the held-out test split"),
        "benchmark_summary": summary_as_table(found.benchmark.summary, caption="Benchmark, base and trained"),
        "benchmark_differences": differences_as_table(found.benchmark.differences, "Change on the benchmark"),
        "benchmark_domains": differences_as_table(found.benchmark.domains, "Change on the benchmark by domain"),
        "transition": transition_as_table(found.test),
        "ledger": ledger_as_table(found.test),
        "arms": differences_as_table(found.arms, "Selected pool and whole pool, test split"),
        "training": Table(found.training, "What training saw",
                          note="Shares are of the groups rolled out; a useful group has rewards that differ and no "
                               "system error. An update learns from at most so many groups as the configuration says.",
                          labels=_GROUP_LABELS, formats=_GROUP_FORMATS),
        "forecast": Table(found.forecasts, "Zero-variance groups as the probe forecast them",
                          labels=_GROUP_LABELS, formats=_GROUP_FORMATS),
        "failures": anatomy_as_table(found.failures),
        "warnings": Table(found.warnings, "Generations that serving reads otherwise than a person would",
                          formats={"pass_rate_with": ".3f", "pass_rate_without": ".3f"}, missing="none"),
    }


def figures(study: Study, found: Outcome) -> dict[str, tuple[Figure, str]]:
    """The study's figures by name with their captions, in the order of the report."""
    from tbstudy.report import figures as draw

    banded, bands = band(study), bands_of(study)
    return {
        "probe_histogram": (draw.probe_histogram(banded, bands), "How often the base policy passes each candidate."),
        "training_curves": (draw.training_curves(found.updates), "Training, one point an update."),
        "test_domains": (draw.dumbbell(found.test.summary, "base", "trained"),
                         "pass@1 by domain, held-out test split, 95 % intervals over tasks."),
        "benchmark_domains": (draw.dumbbell(found.benchmark.summary, "base", "trained"),
                              "pass@1 by domain, benchmark, 95 % intervals over tasks."),
        "transition": (draw.transition_heatmap(found.test.matrix, "base", "trained"),
                       "Tasks of the test split by passes before and after training."),
        "pass_curves": (draw.pass_curves(found.test.curves), "pass@k and pass^k, held-out test split."),
        "failures": (draw.failure_bars(found.failures), "How attempts on the test split fail."),
    }


def example(study: Study, chosen: Example) -> EpisodeComparison:
    """The chosen attempt by base and by the first arm, side by side."""
    from tbstudy.report.viewer import compare_episodes

    return compare_episodes(stored(study, EVALUATION["test"]), chosen.uid, chosen.repetition,
                            ("base", study.config.train.arms[0]))


def write_report(study: Study, found: Outcome) -> StudyReport:
    """Write tables, figures and the example under the study's folder and index them for `tbstudy report`."""
    config = study.config
    pool = pool_of(study)
    report = StudyReport(
        study.folder, title=f"Study {config.study}, seed {config.seed}",
        intro=f"{len(pool.tasks)} tasks selected from {len(band(study))} candidates by the base policy's own pass "
              f"rate; {config.train.updates} GRPO updates of at most {config.train.groups} x {config.train.rollouts} "
              f"episodes; {config.evaluate.attempts} episodes per task and policy."
              + (f" {note}" if (note := search_note(search_services(study.folder))) else ""))
    with report:
        _fill(report, study, found)
    return report


def _fill(report: StudyReport, study: Study, found: Outcome) -> None:
    config, pool = study.config, pool_of(study)
    for name, table in tables(found).items():
        report.table(name, table)
    for name, (figure, caption) in figures(study, found).items():
        report.figure(name, figure, caption)
    if found.example is not None:
        report.section(
            "One task before and after",
            f"Chosen by a rule: of the {found.example.tasks} tasks of the held-out test split that have an attempt "
            "which base ended with a wrong database and the trained policy with the right one, the first by name, and "
            "its first such attempt.")
        report.view("example", example(study, found.example),
                    f"{found.example.uid}, attempt {found.example.repetition}, by the base policy and by the trained "
                    f"one (arm {config.train.arms[0]}): the verdict, what decided it, the conversation.")
    report.facts(
        config_hash=study.rollout_hash(), seeds={"study": config.seed},
        model={"base": config.policy.checkpoint or config.policy.endpoint.model},
        counts={"candidates": len(band(study)), "pool": len(pool.tasks), "test": len(pool.uids("test"))})
    if servers := noted_servers(study.folder / SERVERS):
        report.facts(servers=servers)
    if found_search := search_services(study.folder):
        report.facts(search=found_search, canonical=all(service["canonical"] for service in found_search))
