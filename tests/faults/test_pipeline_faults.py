"""Killed, interrupted or out of disk at exact points, a study goes on and ends with the tables of an undisturbed run.

`benchmarks/faults.py` does the same at many more points, with two processes at work and two arms.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys

import pytest
from pipeline_faults import Bench, Point, build, compiler, faulty, small_disk, write_config
from scripted_load import erring_policy

from tbstudy.campaign import load_tasks, run_campaign
from tbstudy.config import load_study

pytestmark = [pytest.mark.study, pytest.mark.skipif(compiler() is None, reason="needs Linux and a C compiler")]


@pytest.fixture(scope="module")
def bench(tmp_path_factory) -> Bench:
    return Bench(tmp_path_factory.mktemp("faults"), workers=1, arms=("selected",), older=False)


def survive(bench: Bench, part: str, points: list[Point]) -> None:
    """One fault after the other in the same folder, then the rest undisturbed."""
    case = bench.begin(part, part)
    hits = [bench.disturb(case, point).hit for point in points]
    assert all(hits), f"a point was never reached: {list(zip(points, hits, strict=True))}"
    bench.finish(case, part)


def test_probe_killed_in_a_write_and_out_of_disk_in_the_next(bench):
    survive(bench, "probe", [Point("probe", "kill_all", 2, 60, "write probe.jsonl"),
                             Point("probe", "full", 1, 30, "write probe.jsonl")])


def test_training_killed_between_the_last_state_and_its_table(bench):
    survive(bench, "train", [Point("train", "kill", 2, 100, "rename state.pt")])


def test_evaluation_interrupted_and_out_of_disk_for_a_while(bench):
    survive(bench, "evaluate", [Point("evaluate", "interrupt", 2, 0, "write evaluate_test.jsonl"),
                                Point("evaluate", "full_again", 1, 0, "fsync evaluate_test.jsonl")])


def test_report_killed_in_a_figure_and_out_of_disk_while_it_is_frozen(bench):
    survive(bench, "report", [Point("report", "kill", 1, 50, "write transition.png"),
                              Point("report", "full", 1, 50, "write report.html")])


def test_report_on_a_disk_that_is_really_full(bench):
    start, end = bench.sizes["report"]
    case = bench.folder / "cases" / "small"
    with contextlib.ExitStack() as stack:
        try:
            enlarge = stack.enter_context(small_disk(case, (start + end) // 2))
        except (PermissionError, FileNotFoundError) as error:
            pytest.skip(f"no file system can be mounted here: {error}")
        bench.begin("report", "small")
        bench.disturb(case, Point("report", "small_disk", 0, 0))
        enlarge(4 * end)
        bench.finish(case, "report")


@pytest.mark.parametrize("point", [Point("band", "full", 3, 50, "write .running.02_band.ipynb"),
                                   Point("band", "full", 1, 50, "write bands.csv"),
                                   Point("band", "full", 1, 0, "rename 02_band.ipynb")], ids=lambda p: p.only)
def test_a_notebook_out_of_disk_is_one_line_and_the_same_command_continues(tmp_path, point):
    config, folder = write_config(tmp_path / "config"), tmp_path / "case" / "study"
    study = load_study(config, folder)
    run_campaign(study, load_tasks(study, "candidates"), 3, folder / "probe.jsonl", name="base", stage="probe",
                 policy=erring_policy(), at_once=4)
    command = [sys.executable, "-m", "tbstudy.cli", "run", str(config), "--study", str(folder), "--stages", "band"]
    fault = faulty(build(tmp_path), folder, point, tmp_path / "state", tmp_path / "hit")
    cut = subprocess.run(command, env=os.environ | fault, capture_output=True, text=True, timeout=600)
    said = [line for line in cut.stderr.splitlines() if line.strip() and not line.startswith("band: ")]
    assert cut.returncode == 2 and len(said) == 1 and (tmp_path / "hit").read_text(), cut.stderr
    assert said[0].startswith("tbstudy: ") and str(folder) in said[0] and "No space left" in said[0]
    assert "free space" in said[0] and "start again" in said[0]
    assert not (folder / "notebooks" / "02_band.ipynb").exists() and not (folder / "stages.json").exists()
    whole = subprocess.run(command, env=os.environ, capture_output=True, text=True, timeout=600)
    assert whole.returncode == 0, whole.stderr
    assert [p.name for p in (folder / "notebooks").iterdir()] == ["02_band.ipynb"], "nothing half-written stays"
