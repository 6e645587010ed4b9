import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from tbstudy.difficulty import band_table
from tbstudy.errors import StudyError
from tbstudy.evaluation import metrics
from tbstudy.report import figures
from tbstudy.report.style import PAPER_WIDTH, save_figure


def probe(counts):
    rows = [(f"f.py:t{i}", "d", r < k, False) for i, (k, n) in enumerate(counts) for r in range(n)]
    return band_table(pd.DataFrame(rows, columns=["uid", "domain", "passed", "system_error"]))


def training():
    shares = dict.fromkeys(("zero_variance_share", "all_pass_share", "all_fail_share", "system_error_share"), 0.1)
    counts = {"rollouts": 64, "groups": 8, "entropy": 1.0}
    return pd.DataFrame(
        {"arm": arm, "update": update, "mean_reward": 0.4 + 0.05 * update} | shares | counts
        for arm in ("selected pool", "whole pool")
        for update in range(6)
    )


def summary():
    rows = [
        {"policy": policy, "domain": domain, "tasks": 10, "pass_1": v, "pass_1_low": v - 0.1, "pass_1_high": v + 0.1}
        for policy, v in (("base", 0.4), ("trained", 0.6)) for domain in ("clinic", "parcel", "all")
    ]  # fmt: skip
    return pd.DataFrame(rows)


def texts(figure):
    return " | ".join(text.get_text() for text in figure.findobj(Text))


def effects():
    rows = [
        (f"base -> {arm}", m, 0.1, 0.0, 0.2) for arm in ("selected pool", "whole pool") for m in ("pass@1", "pass@20")
    ]
    return pd.DataFrame(rows, columns=["comparison", "metric", "difference", "low", "high"])


def curves():
    rows = [(p, k, m, 0.5, 0.4, 0.6) for p in ("base", "trained") for m in ("pass@k", "pass^k") for k in (1, 2, 3)]
    return pd.DataFrame(rows, columns=["policy", "k", "metric", "value", "low", "high"])


def strips():
    rows = [("base", i, "pass" if i % 2 else "fail") for i in range(4)]
    return pd.DataFrame(rows, columns=["policy", "attempt", "outcome"])


SHARES = ("terminated_cleanly", "wrong_field", "extra_effect", "missing_effect", "tool_usage", "wrong_update")
SHARES += ("incomplete", "no_state_change")
DRAWINGS = {
    "probe_histogram": lambda: figures.probe_histogram(probe([(k, 8) for k in range(9)])),
    "task_posteriors": lambda: figures.task_posteriors(probe([(k, 8) for k in range(9)])),
    "band_posteriors": lambda: figures.band_posteriors(8, highlight=3),
    "training_curves": lambda: figures.training_curves(training()),
    "pool_comparison": lambda: figures.pool_comparison(training(), effects()),
    "transition_heatmap": lambda: figures.transition_heatmap(np.eye(6, dtype=int) * 3),
    "dumbbell": lambda: figures.dumbbell(summary(), "base", "trained"),
    "pass_curves": lambda: figures.pass_curves(curves()),
    "loop_diagram": figures.loop_diagram,
    "stage_diagram": lambda: figures.stage_diagram({"probe": "8 attempts"}),
    "case_strips": lambda: figures.case_strips(strips(), outcomes=("fail", "pass")),
    "task_journey": lambda: figures.task_journey(figures.TaskJourney("t", [True, False], "kept", [True, False])),
    "cost_frontier": lambda: figures.cost_frontier(
        pd.DataFrame({"policy": list("abc"), "cost": [1.0, 2.0, np.nan], "pass_1": [50.0, 60.0, 70.0]}),
        arrow=("a", "b"),
    ),
    "domain_heatmap": lambda: figures.domain_heatmap(
        pd.DataFrame({"x": [50.0, np.nan], "y": [20.0, 90.0]}, index=["a", "b"]),
        pd.DataFrame({"x": [3.0], "y": ["fell"]}, index=["change"], dtype=object),
    ),
    "failure_bars": lambda: figures.failure_bars(pd.DataFrame([dict.fromkeys(SHARES, 0.25) | {"policy": "base"}])),
}


@pytest.mark.parametrize("name", DRAWINGS)
def test_redrawing_gives_the_same_bytes(name, tmp_path):
    first, second = (
        [path.read_bytes() for path in save_figure(DRAWINGS[name](), tmp_path / folder / name)]
        for folder in ("one", "two")
    )
    assert first == second
    assert b"<dc:date>" not in first[1] and b"CreationDate" not in first[0]


@pytest.mark.parametrize("name", DRAWINGS)
def test_figures_fit_the_paper_and_nothing_sticks_out(name):
    figure = DRAWINGS[name]()
    assert figure.get_figwidth() <= PAPER_WIDTH
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    width, height = figure.bbox.width, figure.bbox.height
    for text in figure.findobj(Text):
        hidden = text.axes is not None and not text.axes.get_visible()
        if hidden or not text.get_visible() or not text.get_text().strip():
            continue
        box = text.get_window_extent(renderer)
        inside = box.x0 > -2 and box.y0 > -2 and box.x1 < width + 2 and box.y1 < height + 2
        # Tick labels beyond the limits exist but are not drawn.
        number = text.get_text().replace("−", "-").lstrip("-").replace(".", "").isdigit()
        assert inside or number, text.get_text()


def test_every_public_figure_is_covered():
    drawn = set(figures.__all__) - {"TaskJourney", "pretty"}
    assert drawn == set(DRAWINGS)


def test_histogram_counts_and_says_what_it_leaves_out():
    figure = figures.probe_histogram(probe([(0, 8), (3, 8), (3, 8), (2, 5)]))
    heights = [patch.get_height() for patch in figure.axes[0].patches]
    assert heights[:4] == [1, 0, 0, 2] and "1 with fewer clean attempts" in texts(figure)


def test_highlighted_posterior_states_band_and_mass():
    assert "54.0 % of the mass in hard" in texts(figures.band_posteriors(8, highlight=3))


def test_unstated_values_are_said_to_be_so():
    assert "n.s." in texts(DRAWINGS["domain_heatmap"]()) and "▼ fell" in texts(DRAWINGS["domain_heatmap"]())
    assert "Cost not stated: c" in texts(DRAWINGS["cost_frontier"]())
    assert "not stated for this task" in texts(DRAWINGS["task_journey"]())


def test_journey_with_evaluation_computes_its_analysis():
    shown = texts(
        figures.task_journey(figures.TaskJourney("t", [True, False], "kept", [True] * 4, [False] * 20, [True] * 20))
    )
    assert "pass@1 +100 pp" in shown and "zero variance" in shown
    assert f"p = {metrics.fisher_p(0, 20, 20, 20):.2g}" in shown


def test_transition_counts_in_the_title():
    matrix = np.zeros((4, 4), int)
    matrix[0, 3], matrix[2, 1], matrix[1, 1] = 5, 2, 7
    assert "5 tasks pass more often, 2 less often,\n7 as often" in texts(figures.transition_heatmap(matrix))


def test_system_errors_are_a_share_of_groups_and_truncation_one_of_rollouts():
    figure = figures.training_curves(training().assign(system_error_share=0.25, truncated_share=0.5))
    shown = {axis.get_title(loc="left") or axis.get_title(): axis for axis in figure.axes if axis.get_visible()}
    for title, unit, value in (
        ("Groups lost to system errors", "share of groups", 0.25),
        ("Rollouts truncated", "share of rollouts", 0.5),
    ):
        assert shown[title].get_ylabel() == unit
        assert {y for line in shown[title].lines for y in line.get_ydata()} == {value}


def test_training_that_has_not_begun_says_so():
    figure = figures.training_curves(training().head(0))
    assert [text.get_text() for text in figure.axes[0].texts] == ["No update recorded yet."]


@pytest.mark.parametrize(
    ("draw", "says"),
    [
        (lambda: figures.probe_histogram(pd.DataFrame({"k": [1]})), "lacks the columns"),
        (lambda: figures.training_curves(training().drop(columns="mean_reward")), "lacks the columns"),
        (lambda: figures.dumbbell(summary(), "base", "other"), "no rows for policy 'other'"),
        (lambda: figures.case_strips(strips(), outcomes=("pass",)), "list every outcome"),
    ],
)
def test_bad_tables_are_refused(draw, says):
    with pytest.raises(StudyError, match=says):
        draw()


def test_a_notebook_shows_the_figure_by_itself():
    assert figures.loop_diagram()._repr_png_().startswith(b"\x89PNG")


def test_style_does_not_leak():
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    figures.loop_diagram()
    assert dict(mpl.rcParams) == before
