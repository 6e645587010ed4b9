"""The probe explorer: a plain call, the static part, and the controls driven without a browser."""

from __future__ import annotations

import builtins
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tbstudy import stages
from tbstudy.config import load_study
from tbstudy.difficulty import Band
from tbstudy.errors import StudyError
from tbstudy.report.explorer import Explorer, explore, moved, probe_view

ROOT = Path(__file__).parents[2]
PASSES = {"a": (0, 1, 3, 4, 8), "b": (2, 6, 7, 8)}


@pytest.fixture
def attempts() -> pd.DataFrame:
    rows = [(f"{domain}.py:test_{k}", domain, repetition, repetition < k, False, "base")
            for domain, passes in PASSES.items() for k in passes for repetition in range(8)]
    return pd.DataFrame(rows, columns=["uid", "domain", "repetition", "passed", "system_error", "policy"])


def test_counts_pool_and_forecast_add_up(attempts):
    view = probe_view(attempts)
    assert view.counts.tasks.tolist() == [1, 3, 1, 2, 2] and view.counts.kept.tolist() == [0, 3, 1, 2, 0]
    assert sorted(view.pool.uid) == sorted(["a.py:test_1", "a.py:test_3", "a.py:test_4", "b.py:test_2", "b.py:test_6",
                                            "b.py:test_7"])
    assert view.headline().startswith("6 of 9 tasks kept; ")
    assert view.forecast.rollouts_per_useful_group == pytest.approx(8 / (1 - view.forecast.zero_variance_share))
    assert view.headline() in repr(view) and view._repr_html_() == probe_view(attempts)._repr_html_()


def test_rules_change_what_is_kept(attempts):
    assert probe_view(attempts, keep=["hard"]).counts.kept.tolist() == [0, 3, 0, 0, 0]
    assert probe_view(attempts, domain="b").counts.tasks.sum() == 4
    assert probe_view(attempts, solvable={"a.py:test_3", "b.py:test_8"}).pool.uid.tolist() == ["a.py:test_3"]
    assert probe_view(attempts, edges=[0.08, 0.2, 0.6, 0.9]).counts.kept.tolist() == [0, 1, 3, 2, 0]
    fewer = probe_view(attempts, n=2)
    assert fewer.table.n.unique().tolist() == [2] and set(fewer.table.k) == {0, 1, 2}
    empty = probe_view(attempts, keep=[])
    assert empty.forecast is None and "no group to draw" in empty.headline()
    attempts.loc[(attempts.uid == "a.py:test_3") & (attempts.repetition > 2), "system_error"] = True
    assert "(1 with too few clean attempts)" in probe_view(attempts).headline()


def test_tasks_that_the_selection_never_takes_are_left_out_and_named(attempts):
    view = probe_view(attempts, exclude=["a.py:test_3", "b.py:test_8"], benchmark=["b.py:test_6"])
    assert sorted(view.pool.uid) == ["a.py:test_1", "a.py:test_4", "b.py:test_2", "b.py:test_7"]
    assert view.headline().startswith("4 of 9 tasks kept (2 excluded, 1 of the benchmark); ")
    assert view.counts.kept.sum() == 4 and view.with_edges(0.08, 0.2, 0.6, 0.9).counts.kept.sum() == 4
    one = probe_view(attempts, domain="b", exclude=["a.py:test_3"])
    assert one.headline().startswith("3 of 4 tasks kept; "), "what is not shown is not counted"


def test_the_view_of_a_study_keeps_what_its_selection_keeps(tmp_path):
    shutil.copy(ROOT / "data" / "recorded" / "laptop" / "probe.jsonl.gz", tmp_path)
    kept = probe_view(load_study(ROOT / "configs" / "laptop.yaml", tmp_path)).pool.uid.tolist()
    benchmark = tmp_path / "benchmark.yaml"
    benchmark.write_text(f"- {kept[1]}\n- {kept[2]}\n")
    study = load_study(ROOT / "configs" / "laptop.yaml", tmp_path, select__exclude=kept[:2], benchmark=str(benchmark))
    view, pool = probe_view(study), stages.select(study)
    assert view.pool.uid.tolist() == sorted(task.uid for task in pool.tasks) == kept[3:]
    told = f"{len(kept) - 3} of {len(view.table)} tasks kept (2 excluded, 1 of the benchmark)"
    assert view.headline().startswith(told)


@pytest.mark.parametrize("rules, told", [
    ({"edges": [0.1, 0.2]}, "5 bands have 4 inner edges, these are 2"),
    ({"edges": [0.5, 0.4, 0.6, 0.9]}, "must start at 0.5 and end above it"),
    ({"keep": ["medum"]}, "no band 'medum'; bands are rarely, hard"),
    ({"domain": "c"}, "domain 'c' has no attempts; domains are a, b")])
def test_impossible_rules_are_named(attempts, rules, told):
    with pytest.raises(StudyError, match=told):
        repr(probe_view(attempts, **rules))


def test_edges_keep_names_and_choice():
    bands = moved((Band("low", 0.0, 0.5, True), Band("high", 0.5, 1.0)), [0.3])
    assert bands == (Band("low", 0.0, 0.3, True), Band("high", 0.3, 1.0))


def test_figures(attempts):
    view = probe_view(attempts)
    heights = [bar.get_height() for bar in view.figure().axes[0].patches]
    assert heights == [1, 1, 1, 1, 1, 0, 1, 1, 2]
    axes = view.posterior("a.py:test_3").axes[0]
    assert "3 of 8: hard, 54.0% of the mass" in axes.get_title(loc="left")
    with pytest.raises(StudyError, match="not among the 9 tasks"):
        view.posterior("nobody")


def test_moving_a_control_moves_the_counts(attempts):
    pytest.importorskip("ipywidgets")
    shown = explore(attempts, reference={"a.py:test_1", "a.py:test_3"})
    assert shown.controls["gate"].value is False and shown.view.counts.kept.sum() == 6
    before = shown._counts.value, shown._bars.value
    shown.controls["edge_2"].value = 0.2
    assert shown.view.counts.kept.tolist() == [0, 1, 3, 2, 0]
    assert shown._counts.value != before[0] and shown._bars.value != before[1]
    shown.controls["keep"].value = ["medium"]
    assert shown.view.counts.kept.sum() == 3 and "3 of 9 tasks kept" in shown._counts.value
    shown.controls["gate"].value = True
    assert shown.view.pool.uid.tolist() == ["a.py:test_3"]
    shown.controls["domain"].value = "b"
    assert len(shown.view.table) == 4 and len(shown.controls["task"].options) == 4
    shown.controls["n"].value = 4
    assert shown.view.table.n.unique().tolist() == [4]
    curve = bytes(shown._curve.value)
    shown.controls["task"].value = "b.py:test_2"
    assert bytes(shown._curve.value) != curve and curve.startswith(b"\x89PNG")


def test_an_edge_stops_before_its_neighbours(attempts):
    pytest.importorskip("ipywidgets")
    shown = explore(attempts)
    shown.controls["edge_2"].value = 0.05
    assert shown.controls["edge_2"].value == 0.09 and shown.view.bands[1].high == 0.09
    shown.controls["edge_3"].value = 0.99
    assert shown.controls["edge_3"].value == 0.89 and shown.view.bands[2].high == 0.89
    shown.controls["edge_4"].value = 0.99
    assert shown.view.bands[3].high == 0.99 and "tasks kept" in shown._counts.value


def test_the_static_part_comes_first_and_the_widget_leaves_no_text(attempts, monkeypatch):
    IPython = pytest.importorskip("IPython")
    seen = []
    monkeypatch.setattr(IPython.display, "display", lambda value, **options: seen.append((value, options)))
    explore(attempts)._ipython_display_()
    kinds = [type(value).__name__ for value, _ in seen]
    assert kinds[:2] == ["Image", "HTML"]
    if len(seen) > 2:
        assert list(seen[2][0]) == ["application/vnd.jupyter.widget-view+json"] and seen[2][1] == {"raw": True}


def test_without_ipywidgets_the_static_part_is_left(attempts, monkeypatch):
    real = builtins.__import__

    def no_widgets(name, *rest, **options):
        if name == "ipywidgets":
            raise ImportError(name)
        return real(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", no_widgets)
    shown = Explorer(probe_view(attempts))
    assert shown.controls == {} and shown.widget is None and "tasks kept" in repr(shown)


def test_the_first_n_attempts_are_used(attempts):
    # Passes come first in these attempts, so fewer attempts can only raise the rate.
    rates = [probe_view(attempts, n=n).table.set_index("uid").k / n for n in (2, 4, 8)]
    assert np.all(rates[0] >= rates[1]) and np.all(rates[1] >= rates[2])
