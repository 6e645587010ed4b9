"""A probe that cannot be banded is refused with the reason."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tbstudy import pipeline, stages
from tbstudy.config import load_study
from tbstudy.errors import StudyError
from tbstudy.pipeline import run_study
from tbstudy.processes import exclusive

ROOT = Path(__file__).parents[1]
CONFIG, RECORDED = ROOT / "configs" / "laptop.yaml", ROOT / "data" / "recorded" / "laptop" / "probe.jsonl.gz"


@pytest.fixture
def records():
    with gzip.open(RECORDED, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def write(folder, records):
    folder.mkdir()
    (folder / "probe.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))


def test_attempts_of_another_configuration_are_not_banded(tmp_path, records):
    write(tmp_path / "study", records)
    own, other = (load_study(CONFIG, tmp_path / "study", **changed) for changed in ({}, {"seed": 2}))
    assert len(stages.probe_attempts(own)) == len(records)
    with pytest.raises(StudyError, match=f"configuration {own.rollout_hash()}, this study has {other.rollout_hash()}"):
        stages.band(other)
    assert not (tmp_path / "study" / "bands.csv").exists()


def test_a_refused_run_leaves_the_configuration_of_the_folder_alone(tmp_path, records):
    write(tmp_path / "study", records)
    (tmp_path / "study" / "config.yaml").write_text("study: what made the records\n")
    with pytest.raises(StudyError, match="use another study folder"):
        run_study(load_study(CONFIG, tmp_path / "study", seed=2), ["band"], show=False)
    assert (tmp_path / "study" / "config.yaml").read_text() == "study: what made the records\n"


def test_a_probe_of_system_errors_alone_says_what_went_wrong(tmp_path, records):
    for record in records:
        record |= {"is_system_error": True, "test_result": None}
        record["metadata"]["error"] = {"type": "policy", "message": "ConnectError: nobody at port 8000"}
    write(tmp_path / "study", records)
    with pytest.raises(StudyError) as told:
        stages.probe_attempts(load_study(CONFIG, tmp_path / "study"))
    assert "all 2112 attempts are system errors" in str(told.value)
    assert "policy: ConnectError: nobody at port 8000" in str(told.value) and "--repair" in str(told.value)


def test_a_probe_that_was_cut_says_which_attempt_was_never_made(tmp_path, records):
    write(tmp_path / "study", records[:-1])
    with pytest.raises(StudyError, match=r"1 attempts were never made, first attempt \d of task \S+ by policy"):
        stages.band(load_study(CONFIG, tmp_path / "study"))


def test_bands_with_a_gap_are_refused_before_an_attempt_is_played(tmp_path):
    bands = [{"name": "low", "low": 0.0, "high": 0.2, "keep": True},
             {"name": "high", "low": 0.4, "high": 1.0, "keep": True}]
    with pytest.raises(StudyError, match="must start at 0.2"):
        stages.probe(load_study(CONFIG, tmp_path / "study", bands=bands))
    assert not (tmp_path / "study" / "probe.jsonl").exists()


def test_a_stage_names_the_one_to_run_first(tmp_path):
    study = load_study(CONFIG, tmp_path / "study")
    for stage, first in ((stages.band, "probe"), (stages.pool_of, "select"), (stages.training_plan, "select")):
        with pytest.raises(StudyError, match=f"not there yet; run the stage {first} first"):
            stage(study)


def test_more_clean_attempts_than_attempts(tmp_path):
    with pytest.raises(StudyError, match="probe.min_clean = 4 is more than probe.attempts = 3"):
        stages.band(load_study(CONFIG, tmp_path / "study", probe__attempts=3))


def test_a_second_run_of_a_study_is_refused_before_it_starts_a_notebook(tmp_path):
    folder = tmp_path / "study"
    with exclusive(folder, name=".run.lock"):
        done = subprocess.run([sys.executable, "-m", "tbstudy.cli", "run", str(CONFIG), "--study", str(folder)],
                              capture_output=True, text=True, cwd=ROOT, timeout=300)
    assert done.returncode == 2 and done.stderr.startswith(f"tbstudy: {folder}: another process is working here")
    assert [file.name for file in folder.iterdir()] == [".run.lock"]


def test_what_comes_after_a_stage_that_was_executed_again_is_not_unchanged(tmp_path, monkeypatch):
    done = []

    def execute(study, stage, parameters, out, show):
        done.append(stage)
        for file in (out, *stages.results_of(study, stage)):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()

    monkeypatch.setattr(pipeline, "_execute", execute)
    study = load_study(CONFIG, tmp_path / "study")
    run_study(study, show=False)
    assert done == list(pipeline.STAGES)
    run_study(study, ["probe"], repair=True, show=False)
    run_study(study, show=False)
    assert done == [*pipeline.STAGES, "probe", *pipeline.STAGES[1:]]
    run_study(study, show=False)
    assert len(done) == 12
    (tmp_path / "study" / "pool.json").unlink()
    run_study(study, show=False)
    assert done[12:] == list(pipeline.STAGES[2:]), "what a stage has written is gone"

    def cut(study, stage, parameters, out, show):
        raise KeyboardInterrupt

    monkeypatch.setattr(pipeline, "_execute", cut)
    with pytest.raises(KeyboardInterrupt):
        run_study(study, ["probe"], repair=True, show=False)
    assert json.loads((tmp_path / "study" / "stages.json").read_text()) == {}
