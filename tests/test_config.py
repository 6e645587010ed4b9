"""Strict configuration and notebook parameters."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tbstudy.config import check_parameters, load_study
from tbstudy.errors import StudyError

ROOT = Path(__file__).parents[1]
LAPTOP = ROOT / "configs" / "laptop.yaml"


def changed(tmp_path: Path, edit) -> Path:
    raw = yaml.safe_load(LAPTOP.read_text()) | {"root": str(ROOT)}
    edit(raw)
    path = tmp_path / "changed.yaml"
    path.write_text(yaml.safe_dump(raw))
    return path


def test_the_committed_configuration_loads():
    study = load_study(LAPTOP)
    assert study.root == ROOT and study.folder == ROOT / "runs" / "laptop"
    assert [b.name for b in study.config.bands] == ["rarely", "hard", "medium", "often", "nearly_always"]


@pytest.mark.parametrize(("key", "start"), [("dataset", "`root`"), ("candidates", "the dataset"),
                                            ("servers", "the dataset")])
def test_a_path_that_leads_nowhere_is_told_by_its_key(tmp_path, key, start):
    path = changed(tmp_path, lambda raw: raw.update({key: "data/nowhere"}))
    with pytest.raises(StudyError, match=f"key '{key}' = 'data/nowhere': .*nowhere does not exist .*starts at {start}"):
        load_study(path).existing(key)


@pytest.mark.parametrize(("edit", "named"), [
    (lambda raw: raw["probe"].update(atempts=4), "probe.atempts"),
    (lambda raw: raw.update(sed=1), "'sed'"),
    (lambda raw: raw["train"].update(lr="1e-6"), "train.lr"),
    (lambda raw: raw["bands"][0].update(keep="false"), "bands.0.keep"),
    (lambda raw: raw["policy"].update(kind="remote"), "policy.kind"),
    (lambda raw: raw["policy"].pop("checkpoint"), "checkpoint"),
    (lambda raw: raw.pop("dataset"), "dataset"),
    (lambda raw: raw["probe"].update(attempts=True), "probe.attempts"),
])
def test_a_wrong_key_or_type_is_named(tmp_path, edit, named):
    with pytest.raises(StudyError, match=named):
        load_study(changed(tmp_path, edit))


def test_a_missing_file_is_named():
    with pytest.raises(StudyError, match="configs/nothing.yaml"):
        load_study("configs/nothing.yaml")


def test_what_cannot_change_an_attempt_does_not_change_the_hash(tmp_path):
    base = load_study(LAPTOP)
    same = load_study(changed(tmp_path, lambda raw: raw["policy"].update(workers=1)))
    other = load_study(changed(tmp_path, lambda raw: raw["policy"]["sampling"].update(top_k=5)))
    assert base.rollout_hash() == same.rollout_hash() != other.rollout_hash()


def test_parameters_are_strict():
    known = {"KEEP": (list, type(None)), "ATTEMPTS": int}
    check_parameters(known, {"KEEP": None, "ATTEMPTS": 8, "study": 1})
    with pytest.raises(StudyError, match=r"KEEP.*'false'.*str.*papermill: -y 'KEEP: \[a, b\]', not -p"):
        check_parameters(known, {"KEEP": "false", "ATTEMPTS": 8})
    with pytest.raises(StudyError, match="unknown parameter 'ATEMPTS'"):
        check_parameters(known, {"KEEP": None, "ATTEMPTS": 8, "ATEMPTS": 4})
    with pytest.raises(StudyError, match="ATTEMPTS.*True.*bool"):
        check_parameters(known, {"KEEP": None, "ATTEMPTS": True})
