"""Killed at any stage and started again, a study ends with the tables of an undisturbed run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tbstudy import stages
from tbstudy.config import Study, load_study
from tbstudy.store import read_lines

RUN = "from tbstudy import stages\nfrom tbstudy.config import load_study\nstudy = load_study({config!r}, {folder!r})\n"
STAGE_CALLS = {"probe": "stages.probe(study)", "train": "stages.train(study)", "evaluate": "stages.evaluate(study)"}


def start(config: Path, folder: Path, stage: str) -> subprocess.Popen:
    # A guard, because workers import the main module when they are spawned.
    body = "".join(f"    {line}\n" for line in (RUN + STAGE_CALLS[stage]).format(
        config=str(config), folder=str(folder)).splitlines())
    script = folder.parent / f"{folder.name}_{stage}.py"
    script.write_text(f"if __name__ == '__main__':\n{body}")
    return subprocess.Popen([sys.executable, str(script)], env=os.environ | {"TBSTUDY_PROGRESS": "lines"},
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)


def finish(config: Path, folder: Path, stage: str) -> None:
    process = start(config, folder, stage)
    out, _ = process.communicate(timeout=600)
    assert process.returncode == 0, out.decode()


def kill_midway(config: Path, folder: Path, stage: str, begun) -> None:
    """SIGKILL the stage's process, and only that one, once `begun` says that work has started."""
    process = start(config, folder, stage)
    deadline = time.monotonic() + 300
    while not begun():
        assert process.poll() is None, f"{stage} ended before it could be killed: {process.stdout.read().decode()}"
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()


def lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def verdicts(path: Path) -> dict:
    """Everything of a records file but the timings."""
    found = {}
    for _, record in read_lines(path):
        record["metadata"].pop("seconds")
        key = (record["metadata"]["policy"], record["uid"], record["metadata"]["repetition"])
        assert key not in found, f"{key} is stored twice"
        found[key] = record
    return found


def final_tables(study: Study) -> dict:
    from tbstudy.outcome import outcome, tables

    found = tables(outcome(study))
    del found["training"].data["seconds"]
    return {name: table.cells().to_csv() for name, table in found.items()}


@pytest.mark.study
def test_killed_and_continued_equals_undisturbed(mini_config, tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    for folder, kill in ((whole, False), (cut, True)):
        study = load_study(mini_config, folder)
        if kill:
            kill_midway(mini_config, folder, "probe", lambda: lines(cut / "probe.jsonl") > 0)
            assert lines(cut / "probe.jsonl") < 32 * 4, "nothing was left to continue"
            with (cut / "probe.jsonl").open("ab") as out:
                out.write(b'{"uid": "torn')  # as if the disk had stopped in the middle of a line
        finish(mini_config, folder, "probe")
        stages.select(study)
        if kill:
            kill_midway(mini_config, folder, "train", lambda: lines(cut / "train/selected/training.jsonl") > 0)
            done = [lines(cut / f"train/{arm}/training.jsonl") for arm in ("selected", "whole")]
            assert min(done) < 3, "nothing was left to continue"
        finish(mini_config, folder, "train")
        if kill:
            kill_midway(mini_config, folder, "evaluate", lambda: lines(cut / "evaluate_test.jsonl") > 0)
            assert not (cut / "evaluate_benchmark.jsonl").exists(), "nothing was left to continue"
        finish(mini_config, folder, "evaluate")
    for name in ("probe.jsonl", "evaluate_test.jsonl", "evaluate_benchmark.jsonl"):
        assert verdicts(whole / name) == verdicts(cut / name)
    for arm in ("selected", "whole"):
        rows = [[{k: v for k, v in json.loads(line).items() if k != "seconds"} for line in
                 (folder / f"train/{arm}/training.jsonl").read_text().splitlines()] for folder in (whole, cut)]
        assert len(rows[0]) == 3 and json.dumps(rows[0]) == json.dumps(rows[1])
        weights = [(folder / f"train/{arm}/checkpoint/model.safetensors").read_bytes() for folder in (whole, cut)]
        assert weights[0] == weights[1]
    assert final_tables(load_study(mini_config, whole)) == final_tables(load_study(mini_config, cut))
