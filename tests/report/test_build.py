import argparse
import json
from pathlib import Path

import pandas as pd
import pytest
from shown_records import RECORDS, UID

from tbstudy.errors import StudyError
from tbstudy.report import figures
from tbstudy.report.build import freeze
from tbstudy.report.cli import add_parser
from tbstudy.report.study import StudyReport
from tbstudy.report.tables import Table
from tbstudy.report.viewer import compare_episodes

DATA = Path(__file__).parents[2] / "data" / "published"


@pytest.fixture
def study(tmp_path):
    folder = tmp_path / "laptop"
    report = StudyReport(folder, title="Laptop <study>", intro="What was found.")
    report.section("Outcome", "Text & more.")
    report.table("outcome", Table(pd.DataFrame({"metric": ["pass@1"], "value": [0.5]}), "Outcome"))
    report.figure("stages", figures.stage_diagram(), "Six stages.")
    report.view("example", compare_episodes(RECORDS, UID, 0, ("base", "trained")), "Before & after.")
    report.facts(seeds={"train": 1}, model="small", config_hash="abc", counts={"tasks": 3}, updates=50)
    (folder / "probe.jsonl").write_text("{}\n{}\n{}\n")
    (folder / "01_probe.ipynb").write_text("{}")
    return folder


def test_a_frozen_report_holds_everything(study, tmp_path):
    extra = tmp_path / "06_analyse.ipynb"
    extra.write_text("{}")
    target = freeze(study, tmp_path / "reports", "laptop", notebooks=[extra], data=[DATA / "domains.csv"])
    assert target == tmp_path / "reports" / "laptop" / "v1"
    files = sorted(path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file())
    assert files == [
        *(f"figures/stages.{kind}" for kind in ("pdf", "png", "svg")),
        "manifest.json", "notebooks/01_probe.ipynb", "notebooks/06_analyse.ipynb", "report.html",
        *(f"tables/outcome.{kind}" for kind in ("csv", "html", "md", "tex")), "views/example.html",
    ]  # fmt: skip
    manifest = json.loads((target / "manifest.json").read_text())
    assert manifest["seeds"] == {"train": 1} and manifest["model"] == "small" and manifest["config_hash"] == "abc"
    assert manifest["counts"] == {"records": {"probe.jsonl": 3}, "tasks": 3} and manifest["facts"] == {"updates": 50}
    assert set(manifest["data"]) == {"probe.jsonl", "report.json", "domains.csv"}
    assert manifest["packages"]["numpy"] and manifest["notebooks"] == ["01_probe.ipynb", "06_analyse.ipynb"]
    assert (manifest["tables"], manifest["figures"], manifest["views"]) == (["outcome"], ["stages"], ["example"])


def test_html_is_self_contained_and_escaped(study, tmp_path):
    text = (freeze(study, tmp_path / "reports", "laptop") / "report.html").read_text()
    assert "Laptop &lt;study&gt;" in text and "Text &amp; more." in text
    assert "data:image/svg+xml;base64," in text and "<script" not in text
    assert text.count("<img") == 1 and 'src="http' not in text and "<table>" in text


def test_html_shows_an_episode_beside_another_and_nothing_in_it_acts(study, tmp_path):
    text = (freeze(study, tmp_path / "reports", "laptop") / "report.html").read_text()
    shown = text[text.index('<figure id="example">'):]
    assert "Before &amp; after." in shown and "2 differences in the final state" in shown
    assert shown.index("lend.py:test_a #0 by base") < shown.index("lend.py:test_a #0 by trained")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown and "default-src 'none'" in text
    assert text.count("<div") == text.count("</div>") and text.count("<figure") == text.count("</figure>")


def test_versions_count_up_and_are_never_overwritten(study, tmp_path):
    root = tmp_path / "reports"
    assert freeze(study, root, "laptop").name == "v1"
    assert freeze(study, root, "laptop").name == "v2"
    assert freeze(study, root, "laptop", "2026-11").name == "2026-11"
    before = (root / "laptop" / "v1" / "manifest.json").read_bytes()
    with pytest.raises(StudyError, match="never overwritten"):
        freeze(study, root, "laptop", "v1")
    assert (root / "laptop" / "v1" / "manifest.json").read_bytes() == before
    with pytest.raises(StudyError, match="cannot name a folder"):
        freeze(study, root, "laptop", "../v9")


def test_a_failed_freeze_leaves_nothing(study, tmp_path):
    (study / "figures" / "stages.svg").unlink()
    with pytest.raises(StudyError, match="stages.svg: indexed but missing"):
        freeze(study, tmp_path / "reports", "laptop")
    assert list((tmp_path / "reports" / "laptop").iterdir()) == []


def test_a_missing_view_is_named(study, tmp_path):
    (study / "views" / "example.html").unlink()
    with pytest.raises(StudyError, match="example.html: indexed but missing"):
        freeze(study, tmp_path / "reports", "laptop")


def test_same_study_same_tables_and_figures(study, tmp_path):
    one, two = freeze(study, tmp_path / "r", "laptop"), freeze(study, tmp_path / "r", "laptop")
    for path in (one / "figures").iterdir():
        assert path.read_bytes() == (two / "figures" / path.name).read_bytes()


def test_an_entry_added_again_replaces_the_old_one(study):
    report = StudyReport(study)
    report.table("outcome", Table(pd.DataFrame({"metric": ["pass@1"], "value": [0.9]}), "Outcome, again"))
    entries = json.loads((study / "report.json").read_text())["entries"]
    assert [entry["name"] for entry in entries] == ["Outcome", "outcome", "stages", "example"]
    assert entries[1]["caption"] == "Outcome, again" and report.index["title"] == "Laptop <study>"


def test_no_index_or_a_broken_one_is_named(tmp_path):
    with pytest.raises(StudyError, match="run the analyse stage"):
        freeze(tmp_path, tmp_path / "r", "x")
    (tmp_path / "report.json").write_text("[]")
    with pytest.raises(StudyError, match="not a report index"):
        freeze(tmp_path, tmp_path / "r", "x")
    (tmp_path / "report.json").write_text('{"entries": [{"kind": "poem", "name": "x"}]}')
    with pytest.raises(StudyError, match="no table, figure, view or section"):
        freeze(tmp_path, tmp_path / "r", "x")


def command(*arguments):
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers(required=True))
    options = parser.parse_args(["report", *map(str, arguments)])
    return options.run(options)


def test_report_command(study, tmp_path, capsys):
    assert command(study, "--out", tmp_path / "reports", "--name", "mine", "--version", "a1") == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "reports" / "mine" / "a1")


def test_published_report_command(tmp_path, capsys):
    assert command("published", "--out", tmp_path, "--data", DATA) == 0
    target = tmp_path / "published" / "v1"
    manifest = json.loads((target / "manifest.json").read_text())
    assert [name.split("_")[1] for name in manifest["figures"]] == list("1234567")
    assert {"training_table_1_outcome", "training_table_2_cost", "training_table_3_setup", "first_table_2_pass1",
            "first_table_3_reliable_cost"} <= set(manifest["tables"])  # fmt: skip
    assert "training_setup.yaml" in manifest["data"]
    assert (target / "report.html").stat().st_size < 3_000_000


def test_a_cut_report_is_not_frozen_until_it_is_written_to_its_end(study, tmp_path):
    def table(value):
        return Table(pd.DataFrame({"metric": ["pass@1"], "value": [value]}), "Outcome")

    with pytest.raises(KeyboardInterrupt), StudyReport(study) as report:
        report.table("outcome", table(0.7))
        raise KeyboardInterrupt
    with pytest.raises(StudyError, match=r"report\.json: the analyse stage was cut"):
        freeze(study, tmp_path / "reports", "laptop")
    with StudyReport(study) as report:
        report.table("outcome", table(0.8))
    target = freeze(study, tmp_path / "reports", "laptop")
    assert target.name == "v1" and "0.8" in (target / "tables" / "outcome.csv").read_text()
    assert len(json.loads((study / "report.json").read_text())["entries"]) == 4


def test_a_notebook_that_a_killed_run_was_executing_is_not_frozen(study, tmp_path):
    (study / "notebooks").mkdir()
    (study / "notebooks" / ".running.02_band.ipynb").write_text("{")
    target = freeze(study, tmp_path / "reports", "laptop")
    assert [p.name for p in (target / "notebooks").iterdir()] == ["01_probe.ipynb"]
