"""The study's figures: each function takes DataFrames and returns a matplotlib Figure at paper width.

The published study and a run of one's own are drawn by the same functions; values that a source does not state are
drawn as "not stated", never as zero.
"""

from tbstudy.report.figures.cases import TaskJourney, case_strips, task_journey
from tbstudy.report.figures.common import pretty
from tbstudy.report.figures.comparison import dumbbell, failure_bars, pass_curves, transition_heatmap
from tbstudy.report.figures.diagrams import loop_diagram, stage_diagram
from tbstudy.report.figures.models import cost_frontier, domain_heatmap
from tbstudy.report.figures.probing import band_posteriors, probe_histogram, task_posteriors
from tbstudy.report.figures.training import pool_comparison, training_curves

__all__ = [
    "TaskJourney",
    "band_posteriors",
    "case_strips",
    "cost_frontier",
    "domain_heatmap",
    "dumbbell",
    "failure_bars",
    "loop_diagram",
    "pass_curves",
    "pool_comparison",
    "pretty",
    "probe_histogram",
    "stage_diagram",
    "task_journey",
    "task_posteriors",
    "training_curves",
    "transition_heatmap",
]
