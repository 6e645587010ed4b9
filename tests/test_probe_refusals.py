"""A probe that cannot be banded is refused with the reason."""

import gzip
import json
from pathlib import Path

import pytest

from tbstudy import stages
from tbstudy.config import load_study
from tbstudy.errors import StudyError
from tbstudy.pipeline import run_study

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
