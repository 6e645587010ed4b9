import numpy as np
import pandas as pd
import pytest

from tbstudy.report.tables import Table, percent, points, to_html, to_latex, to_markdown, with_interval, write_table

TABLE = Table(
    pd.DataFrame({"model": ["a_1 & b", "c|d"], "score": [0.517, np.nan], "tasks": [1234, 5]}),
    "Scores of 50 % <b>",
    formats={"score": percent()},
    labels={"model": "Model", "score": "pass@1 (%)"},
    derived=frozenset({"tasks"}),
    note="Note & more.",
    missing="not stated",
)


def test_cells_are_formatted_and_missing_values_say_so():
    cells = TABLE.cells()
    assert list(cells.columns) == ["Model", "pass@1 (%)", "tasks (derived)"]
    assert cells["pass@1 (%)"].tolist() == ["51.7", "not stated"]
    assert cells["tasks (derived)"].tolist() == ["1,234", "5"]


def test_markdown_escapes_pipes_and_aligns_numbers_right():
    lines = to_markdown(TABLE).splitlines()
    assert lines[0] == "**Scores of 50 % <b>**" and lines[-1] == "Note & more."
    assert lines[3] == "| --- | ---: | ---: |"
    assert lines[5] == "| c\\|d | not stated | 5 |"


def test_latex_escapes_and_uses_booktabs():
    text = to_latex(TABLE, "scores")
    assert r"a\_1 \& b & 51.7 & 1,234 \\" in text
    assert r"\caption{Scores of 50 \% <b>}" in text and r"\label{tab:scores}" in text
    assert r"\begin{tabular}{lrr}" in text and r"\bottomrule" in text


def test_html_escapes_and_has_no_ids():
    text = to_html(TABLE)
    assert "<td>a_1 &amp; b</td>" in text and "<td class=num>51.7</td>" in text
    assert "&lt;b&gt;" in text and "id=" not in text


def test_four_files_and_csv_keeps_the_numbers(tmp_path):
    paths = write_table(TABLE, tmp_path / "deep" / "scores")
    assert [path.name for path in paths] == ["scores.csv", "scores.md", "scores.tex", "scores.html"]
    back = pd.read_csv(paths[0])
    assert back.score[0] == 0.517 and np.isnan(back.score[1])
    first = [path.read_bytes() for path in paths]
    assert [path.read_bytes() for path in write_table(TABLE, tmp_path / "deep" / "scores")] == first


@pytest.mark.parametrize(("value", "text"), [(0.1234, "12.3"), (0.0, "0.0"), (1.0, "100.0")])
def test_percent(value, text):
    assert percent()(value) == text


def test_points_and_intervals():
    assert points()(-0.0138) == "-1.4" and points(2)(0.0908) == "+9.08"
    rows = pd.DataFrame({"v": [0.211, np.nan, 0.5], "l": [0.178, 0.1, np.nan], "h": [0.249, 0.2, np.nan]})
    assert with_interval(rows, "v", "l", "h").tolist() == ["21.1 [17.8, 24.9]", "", "50.0"]
    assert with_interval(rows.head(1), "v", "l", "h", signed=True).tolist() == ["+21.1 [+17.8, +24.9]"]
    assert with_interval(rows.head(0), "v", "l", "h").empty
