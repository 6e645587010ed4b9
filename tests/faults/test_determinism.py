"""The same configuration and seed give the same records at any concurrency; another configuration is refused."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pipeline_faults import snapshot, verdicts, write_config
from scripted_load import erring_policy, erring_turns

from tbstudy import stages
from tbstudy.campaign import load_tasks, run_campaign
from tbstudy.config import load_study
from tbstudy.errors import StudyError
from tbstudy.interpreter import interpret
from tbstudy.sandbox.episode import assistant_message
from tbstudy.store import key_of, read_lines

sys.path.insert(0, str(Path(__file__).parents[1] / "policies"))
from model_server import ModelServer  # noqa: E402


def order(path: Path) -> list:
    return [key_of(r) for _, r in read_lines(path)]


def test_a_scripted_policy_at_any_concurrency(tmp_path):
    study = load_study(write_config(tmp_path), tmp_path / "study")
    tasks, found = load_tasks(study, "candidates"), {}
    for at_once in (1, 3, 8):
        path = tmp_path / f"{at_once}.jsonl"
        run_campaign(study, tasks, 4, path, name="erring", stage="probe", policy=erring_policy(seed=2), at_once=at_once)
        found[at_once] = verdicts(path)
    assert len(found[1]) == 4 * len(tasks)
    assert {r["test_result"]["result"] for r in found[1].values()} == {True, False}
    assert found[1] == found[3] == found[8]
    assert order(tmp_path / "1.jsonl") != order(tmp_path / "8.jsonl"), "attempts never overlapped"


def test_an_endpoint_that_answers_alike_at_any_concurrency(tmp_path):
    tasks = load_tasks(load_study(write_config(tmp_path), tmp_path / "study"), "candidates")
    by_query = {t.query: t for t in tasks}

    def answer(body: dict) -> dict:
        said = [m for m in body["messages"] if m["role"] == "assistant"]
        task = next(by_query[m["content"]] for m in body["messages"] if m["role"] == "user")
        turns = [*erring_turns(task, 0, seed=2), "</think>Done. <DONE>"]
        message = assistant_message(interpret(turns[min(len(said), len(turns) - 1)], body["tools"]), len(said))
        return {k: v for k, v in message.items() if k != "raw_text"}

    found = {}
    with ModelServer(None, script=answer) as server:
        for concurrency in (1, 3, 8):
            study = load_study(
                tmp_path / "faults.yaml", tmp_path / f"run{concurrency}", policy__kind="endpoint",
                policy__checkpoint=None, policy__endpoint={
                    "base_url": server.url, "model": "scripted", "concurrency": concurrency})
            server.most = 0
            path = study.folder / "records.jsonl"
            run_campaign(study, tasks, 2, path, name="base", stage="probe")
            found[concurrency] = verdicts(path)
            assert server.most <= concurrency and (server.most > 1) == (concurrency > 1)
    assert len(found[1]) == 2 * len(by_query)
    assert {r["test_result"]["result"] for r in found[1].values()} == {True, False}
    assert found[1] == found[3] == found[8]


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> dict[int, Path]:
    """Probe and training by different numbers of worker processes; paths of the cases."""
    folder, cases = tmp_path_factory.mktemp("workers"), {}
    for workers in (1, 3):
        config = write_config(folder / f"config{workers}", workers=workers, train={
            "updates": 1, "groups": 1, "rollouts": 4, "max_rounds": 2, "lr": 1.0e-3})
        study = load_study(config, folder / str(workers) / "study")
        stages.probe(study)
        stages.select(study)
        stages.train(study)
        cases[workers] = config
    return cases


def study_of(runs: dict[int, Path], workers: int, **changes):
    return load_study(runs[workers], runs[workers].parents[1] / str(workers) / "study", **changes)


@pytest.mark.study
@pytest.mark.parametrize("part", ("probe", "train"))
def test_the_local_policy_by_any_number_of_processes(runs, part):
    found = {workers: snapshot(study_of(runs, workers).folder.parent, runs[workers], part) for workers in runs}
    for name in found[1]:
        assert found[1][name] == found[3][name], f"{name} depends on the number of processes"


@pytest.mark.study
@pytest.mark.parametrize(("key", "value"), [
    ("seed", 6), ("policy__wave", 24), ("policy__sampling", {"temperature": 0.9}), ("sandbox__call_seconds", 6.0)])
def test_records_of_another_configuration_are_refused(runs, key, value):
    study = study_of(runs, 1, **{key: value})
    before = (study.folder / "probe.jsonl").read_bytes()
    with pytest.raises(StudyError, match=r"probe\.jsonl:1: .*'base' was made under configuration \w+, this run has"):
        stages.probe(study)
    records = study.folder / "evaluate_test.jsonl"
    records.write_bytes(before)
    try:
        with pytest.raises(StudyError, match=r"evaluate_test\.jsonl:1: .*'base' was made under configuration"):
            stages.evaluate(study)
        assert records.read_bytes() == before == (study.folder / "probe.jsonl").read_bytes()
    finally:
        records.unlink()


@pytest.mark.study
@pytest.mark.parametrize(("key", "value"), [("seed", 6), ("train__lr", 2.0e-3), ("train__updates", 2)])
def test_training_of_another_configuration_is_refused_finished_or_not(runs, key, value):
    study = study_of(runs, 1, **{key: value})
    with pytest.raises(StudyError, match=r"train/selected: made with another configuration or pool; remove the folder"):
        stages.train(study)


@pytest.mark.study
def test_training_on_another_pool_is_refused(runs):
    study = study_of(runs, 1)
    path = study.folder / stages.POOL
    before = path.read_bytes()
    stages.select(study_of(runs, 1, select__test_fraction=0.7))
    try:
        assert path.read_bytes() != before
        with pytest.raises(StudyError, match="made with another configuration or pool"):
            stages.train(study)
    finally:
        path.write_bytes(before)
    stages.train(study)
