"""`tbstudy play`: a policy on the bundled benchmark, into records that `evaluate` and `analyse` read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from model_server import Brain, ModelServer, status

from tbstudy import cli, stages
from tbstudy.config import load_study
from tbstudy.errors import StudyError
from tbstudy.store import read_lines

ROOT = Path(__file__).parents[2]


@pytest.fixture
def config(mini_config) -> Path:
    """The bundled benchmark, four tasks of it."""
    lists = mini_config.parent / "benchmark.yaml"
    lists.write_text(yaml.safe_dump(yaml.safe_load((ROOT / "data/demo/lists/benchmark.yaml").read_text())[::30]))
    return mini_config


def play(config: Path, folder: Path, *options: str) -> int:
    return cli.main(["play", str(config), "--study", str(folder), "--attempts", "2", *options])


def keys(path: Path) -> list[tuple[str, str, int]]:
    return [(r["metadata"]["policy"], r["uid"], r["metadata"]["repetition"]) for _, r in read_lines(path)]


def test_base_and_trained_behind_a_server_are_played_scored_and_compared(config, tmp_path, no_pauses, capsys):
    out = tmp_path / "records" / "both.jsonl"
    uids = yaml.safe_load((config.parent / "benchmark.yaml").read_text())
    brain = Brain(ROOT / "data" / "recorded" / "base_policy")
    with ModelServer(brain, raw="ids") as server:
        endpoint = {"base_url": server.url, "model": "base", "tries": 2, "concurrency": 1}
        raw = yaml.safe_load(config.read_text())
        raw["policy"] = {"kind": "endpoint", "endpoint": endpoint, "sampling": {"max_episode_tokens": 3000}}
        config.write_text(yaml.safe_dump(raw))
        server.faults = [status(500)] * 2
        assert play(config, tmp_path / "run", "--name", "base", "--out", str(out)) == 1
        said, shown = capsys.readouterr()
        assert f"{2 * len(uids)} attempts by 'base'" in said and "1 system errors" in said and "--repair" in said
        assert "play base: " in said + shown, "progress"
        asked = len(server.seen)
        assert play(config, tmp_path / "run", "--name", "base", "--out", str(out)) == 1 and len(server.seen) == asked
        lines = out.read_text().splitlines(keepends=True)
        out.write_text("".join(lines[:5]) + lines[5][:400])  # as if it had been killed while it wrote
        assert play(config, tmp_path / "run", "--name", "base", "--out", str(out), "--repair") == 0
        assert "line that was not finished" in capsys.readouterr().out
        before = {body["seed"] for body in server.seen}
        asked = len(server.seen)
        assert play(config, tmp_path / "run", "--name", "trained", "--set", "policy.endpoint.model=trained",
                    "--out", str(out)) == 0
        assert server.seen[-1]["model"] == "trained"
        assert not before & {body["seed"] for body in server.seen[asked:]}, "every policy has numbers of its own"
    every = keys(out)
    clean = {(name, uid, r) for name in ("base", "trained") for uid in uids for r in range(2)}
    assert set(every) == clean and len(every) == len(clean) + 1, "one attempt was played again"
    capsys.readouterr()
    tasks = ["--tasks", str(config.parent / "benchmark.yaml"), "--repeats", "2"]
    assert cli.main(["evaluate", str(out), "--policy", "trained", *tasks]) == 0
    assert cli.main(["analyse", str(out), *tasks]) == 0


def test_a_local_policy_plays_what_the_evaluation_plays(config, tmp_path, capsys):
    assert play(config, tmp_path / "run", "--name", "base") == 0
    out = tmp_path / "run" / "play_benchmark.jsonl"
    command = capsys.readouterr().out.splitlines()[-1].removeprefix("score: tbstudy ").split()
    assert cli.main(command) == 0
    study = load_study(config, tmp_path / "other", evaluate__attempts=2)
    stages.run_campaign(study, stages.load_tasks(study, "benchmark"), 2, tmp_path / "other" / "e.jsonl", name="base",
                        stage="evaluate")
    found = []
    for path in (out, tmp_path / "other" / "e.jsonl"):
        records = {f"{r['uid']} {r['metadata']['repetition']}": r for _, r in read_lines(path)}
        for record in records.values():
            record["metadata"].pop("seconds")
        found.append(json.dumps(records, sort_keys=True))
    assert found[0] == found[1]
    trained = ["--name", "trained", "--checkpoint", str(ROOT / "data/recorded/base_policy"), "--list",
               str(config.parent / "benchmark.yaml")]
    assert play(config, tmp_path / "run", *trained) == 0
    assert {name for name, _, _ in keys(out)} == {"base", "trained"}


@pytest.mark.parametrize(("options", "message"), [
    (["--list", "nowhere"], "--list 'nowhere': neither benchmark, candidates or test nor a file"),
    (["--list", "test"], "run the stage select first"),
    (["--attempts", "0"], "must be at least 1"),
    (["--set", "policy.wave"], "expected section.key=value"),
    (["--set", "policy.waves=3"], "unknown key 'policy.waves'"),
    (["--checkpoint", "x", "--set", "policy.kind=endpoint", "--set",
      "policy.endpoint={base_url: 'http://127.0.0.1:1/v1', model: m}"], "whose model is the server's"),
    (["--checkpoint", "/nowhere"], "/nowhere: no such folder"),
    (["--out", str(ROOT / "data")], f"--out {ROOT / 'data'}: is a folder"),
    (["--name", " "], "--name is empty"),
])
def test_what_cannot_be_played_is_said(config, tmp_path, capsys, options, message):
    assert play(config, tmp_path / "run", "--name", "base", *options) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("change", [{"train__backend": "verl"}, {"policy": {
    "kind": "endpoint", "endpoint": {"base_url": "http://127.0.0.1:1/v1", "model": "m"}}}], ids=["verl", "endpoint"])
def test_the_evaluation_stage_names_the_command_for_what_it_does_not_play(config, tmp_path, change):
    with pytest.raises(StudyError, match="`tbstudy play`"):
        stages.evaluate(load_study(config, tmp_path / "run", **change))
