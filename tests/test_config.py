"""Strict configuration and notebook parameters."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tbstudy.config import check_parameters, load_study, tree_hash
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


@pytest.mark.parametrize("endpoint", [
    {"base_url": "http://host/v1", "model": "m", "api_key_env": "sk-proj-0123456789abcdef"},
    {"base_url": "http://me:sk-proj-0123456789abcdef@host/v1", "model": "m"},
    {"base_url": "http://host/v1", "model": "m", "extra_body": ["sk-proj-0123456789abcdef"]},
    {"base_url": "http://host/v1", "model": 7, "api_key": "sk-proj-0123456789abcdef"}])
def test_a_key_pasted_into_the_configuration_is_refused_and_not_quoted(tmp_path, endpoint):
    with pytest.raises(StudyError) as error:
        load_study(changed(tmp_path, lambda raw: raw.update(policy={"kind": "endpoint", "endpoint": endpoint})))
    assert "policy.endpoint" in str(error.value) and "sk-proj" not in str(error.value)


def test_version_control_and_caches_are_no_part_of_a_dataset(tmp_path):
    (tmp_path / "task.py").write_text("def test(x): pass\n")
    before = tree_hash(tmp_path)
    for folder in (".git", "__pycache__", ".ipynb_checkpoints"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "file").write_text("changes")
    assert tree_hash(tmp_path) == before
    (tmp_path / ".gitignore").write_text("x")
    assert tree_hash(tmp_path) != before


@pytest.mark.parametrize(("text", "told"), [
    ("study: a\nseed: 1\nprobe: {attempts: 4}\nseed: 2\n", ":4: key 'seed' stands here a second time"),
    ("study: a\nbands:\n- {name: x, name: y}\n", ":3: key 'name' stands here a second time"),
    ("study: [\n", "not valid YAML"),
    ("a: &a [*a]\n", "an alias to what holds it"), ("", "expected a mapping of keys")])
def test_a_configuration_that_cannot_be_read(tmp_path, text, told):
    (tmp_path / "broken.yaml").write_text(text)
    with pytest.raises(StudyError, match=f"broken.yaml.*{told}"):
        load_study(tmp_path / "broken.yaml")


def test_an_override_of_an_empty_section(tmp_path):
    path = changed(tmp_path, lambda raw: raw.update(probe=None))
    assert load_study(path, probe__attempts=5).config.probe.attempts == 5
    path = changed(tmp_path, lambda raw: raw.update(probe=3))
    with pytest.raises(StudyError, match="key 'probe' = 3: expected a mapping"):
        load_study(path, probe__attempts=5)


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
    (lambda raw: raw["train"].update(arms=[]), "train.arms"),
    (lambda raw: raw["train"].update(arms=["whole", "whole"]), "an arm is listed twice"),
    (lambda raw: raw.update(sandbox={"transport": "proxy"}), "'proxy' needs the key 'proxy_url'"),
    (lambda raw: raw["analyse"].update(level=0.9), "analyse.level"),
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
