"""From records to numbers: coverage, metrics with intervals, comparisons, failure anatomy, cost."""

from tbstudy.evaluation.anatomy import anatomy, finish_reasons
from tbstudy.evaluation.api import (
    Campaign,
    Comparison,
    both_treatments,
    case_table,
    compare,
    compare_arms,
    curve_table,
    load_campaign,
    load_campaigns,
    summary_table,
    training_summary,
)
from tbstudy.evaluation.attempts import read_attempts
from tbstudy.evaluation.coverage import Coverage, check_coverage

__all__ = [
    "Campaign",
    "Comparison",
    "Coverage",
    "anatomy",
    "both_treatments",
    "case_table",
    "check_coverage",
    "compare",
    "compare_arms",
    "curve_table",
    "finish_reasons",
    "load_campaign",
    "load_campaigns",
    "read_attempts",
    "summary_table",
    "training_summary",
]
