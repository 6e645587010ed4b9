"""Ctrl-C on `tbstudy run`: two lines of ours, the notebook so far, and the same command continues."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import nbformat

from tbstudy.config import load_study
from tbstudy.stages import planned, pool_of


def start(config, folder) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "tbstudy.cli", "run", str(config), "--study", str(folder), "--stages", "probe"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def wait_for(process: subprocess.Popen, begun) -> None:
    deadline = time.monotonic() + 300
    while not begun():
        assert process.poll() is None, f"ended too early: {process.stderr.read()}"
        assert time.monotonic() < deadline
        time.sleep(0.02)


def said(stderr: str) -> list[str]:
    """Lines on standard error that are not the bar."""
    return [line for line in stderr.replace("\r", "\n").splitlines() if line.strip() and not line.startswith("probe:")]


def stop(config, folder, begun) -> None:
    """Ctrl-C once `begun`; checks what is said and what is left."""
    process = start(config, folder)
    wait_for(process, begun)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert said(err) == ["tbstudy: stopping (Ctrl-C again: at once)", "tbstudy: stopped; the same command continues"]
    assert out == "" and "0/128" in err and "0/1 " not in err, "the bar knows its total from the start"
    assert "100%" not in err, "and does not claim to be done"
    left = sorted(p.name for p in (folder / "notebooks").iterdir())
    assert left == ["01_probe.failed.ipynb"]
    cells = [c for c in nbformat.read(folder / "notebooks" / left[0], 4).cells if c.cell_type == "code"]
    errors = [o.ename for c in cells for o in c.outputs if o.output_type == "error"]
    assert errors == ["KeyboardInterrupt"] and any(o.get("text") for c in cells[:3] for o in c.outputs)


def test_ctrl_c_while_workers_start_is_two_lines(mini_config, tmp_path):
    stop(mini_config, tmp_path / "run", (tmp_path / "run" / ".lock").exists)


def test_ctrl_c_while_attempts_are_played_is_two_lines_and_the_same_command_continues(mini_config, tmp_path):
    folder = tmp_path / "run"
    records = folder / "probe.jsonl"
    stop(mini_config, folder, lambda: records.exists() and records.stat().st_size)
    again = start(mini_config, folder)
    out, err = again.communicate(timeout=300)
    assert again.returncode == 0 and out.startswith("probe     executed"), err
    assert said(err) == [] and records.read_bytes().count(b"\n") == 32 * 4
    assert sorted(p.name for p in (folder / "notebooks").iterdir()) == ["01_probe.ipynb"]


def test_a_second_ctrl_c_does_not_wait(mini_config, tmp_path):
    folder = tmp_path / "run"
    process = start(mini_config, folder)
    wait_for(process, (folder / ".lock").exists)
    kernel = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True).stdout
    kernels = [int(pid) for pid in kernel.split()]
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130 and said(err)[-1] == "tbstudy: stopped; the same command continues", err
    assert len(said(err)) == 2, err
    assert kernels and not [pid for pid in kernels if os.path.exists(f"/proc/{pid}")]


def test_a_kernel_that_dies_is_named_with_its_last_words(mini_config, tmp_path):
    folder = tmp_path / "run"
    process = start(mini_config, folder)
    wait_for(process, (folder / ".lock").exists)
    kernel = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True).stdout
    for pid in kernel.split():
        os.kill(int(pid), signal.SIGKILL)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 2 and "the kernel of 01_probe.ipynb died" in err, err
    assert "Traceback" not in err and (folder / "notebooks" / "01_probe.kernel.log").is_file()


def test_a_stage_knows_its_size(mini_config, tmp_path):
    study = load_study(mini_config, tmp_path / "run")
    assert planned(study, "probe") == 32 * 4 and planned(study, "train") == 3 * 2
    assert planned(study, "band") is None and planned(study, "evaluate") is None, "no pool yet"
    recorded = load_study("configs/laptop.yaml", "data/recorded/laptop")
    assert planned(recorded, "evaluate") == 20 * (4 * len(pool_of(recorded).uids("test")) + 2 * 120)
