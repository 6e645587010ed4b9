"""The launcher, the nodes and the command line, with processes of their own but no Ray and no GPU."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys

import pytest
from verl_cases import CONFIGS

from tbstudy.errors import StudyError
from tbstudy.training.verl import cli, launch, nodes
from tbstudy.training.verl.config import load_run
from tbstudy.training.verl.overrides import RUN_VARIABLE, command, environment, next_metrics_file
from tbstudy.training.verl.preflight import World


def call(*arguments) -> int:
    parser = argparse.ArgumentParser()
    cli.add_parser(parser.add_subparsers(required=True))
    options = parser.parse_args([str(argument) for argument in arguments])
    return options.run(options)


@pytest.fixture
def without_verl(monkeypatch):
    monkeypatch.setattr(launch, "verl_missing", lambda: "not installed: verl")


def test_dry_run_prints_a_command_that_a_shell_takes_apart_again(without_verl, capsys):
    assert call("launch", CONFIGS / "reference-q38.yaml", "--dry-run", "trainer.save_freq=7") == 0
    out = capsys.readouterr().out
    assert "not checked by verl: not installed" in out
    pasted = out[out.index(f"{RUN_VARIABLE}="):].replace(sys.executable, "show", 1)
    shell = 'show() { for a in "$@"; do printf "%s\\n" "$a"; done; env | grep ^VERL_; }\n' + pasted
    said = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=True).stdout.splitlines()
    run = load_run(CONFIGS / "reference-q38.yaml")
    assert said[: len(command(run))] == [*command(run)[1:], "trainer.save_freq=7"]
    assert "VERL_USE_EXTERNAL_MODULES=tbstudy.training.verl.plugin" in said


def test_dry_run_flags_missing_files_and_goes_on(without_verl, small_config, pool, tmp_path, capsys):
    assert call("launch", small_config, "--dry-run", "--set", f"data.tasks={8}") == 0
    out = capsys.readouterr().out
    assert "FAIL" not in out and "would refuse" not in out and "ok   pool is usable" in out
    pool.unlink()
    assert call("launch", small_config, "--dry-run") == 0, "the command may be meant for another machine"
    out = capsys.readouterr().out
    assert f"FAIL pool is usable: {pool}: cannot read the pool manifest (No such file" in out
    assert "launch would refuse on this machine: pool is usable, pool avoids benchmark" in out
    assert "verl.trainer.main_ppo" in out


def test_dry_run_refuses_what_cannot_work(without_verl):
    with pytest.raises(StudyError, match="mini batch divides"):
        call("launch", CONFIGS / "reference-q38.yaml", "--dry-run", "--set", "update.mini_batch=5")


@pytest.mark.parametrize(("extra", "said"), [
    ("--fast", "expected key=value"),
    ("data.custom_cls.path=x", "ties the trainer"),
    ("+ray_kwargs.ray_init.runtime_env.env_vars.KEY=1", "ties the trainer"),
    ("reward.custom_reward_function.name=f", "ties the trainer"),
])
def test_overrides_that_would_leave_the_run_are_refused(extra, said):
    with pytest.raises(StudyError, match=said):
        launch.check_overrides([extra])


def trainer(tmp_path, code: str) -> list[str]:
    script = tmp_path / "trainer.py"
    script.write_text(code)
    return [sys.executable, str(script)]


def test_launch_writes_the_run_logs_and_hands_on_the_exit_code(small_config, tmp_path, monkeypatch, capfd):
    run = load_run(small_config)
    monkeypatch.setattr(launch.preflight, "on_machine", lambda *_: [])
    code = ("import json, os, sys\nrun = json.load(open(os.environ['TBSTUDY_VERL_RUN']))\n"
            "print('run', run['run'], os.environ['VERL_PLATFORM'])\nsys.exit(3)")
    monkeypatch.setattr(launch, "command", lambda *_: trainer(tmp_path, code))
    assert launch.launch(run) == 3
    log = tmp_path / "checkpoints" / "metrics" / "attempt-001.log"
    assert log.read_text() == "run reference-small-cpu cpu\n"
    told = capfd.readouterr()
    assert "run reference-small-cpu cpu" in told.out and "resumes from the newest checkpoint" in told.err
    assert (tmp_path / "checkpoints" / "agent_loop.yaml").read_text().splitlines()[0] == "- name: tbstudy_episode"
    launch.launch(run)
    assert (tmp_path / "checkpoints" / "metrics" / "attempt-002.log").exists()


def test_a_slow_start_of_ray_is_tried_again_and_nothing_else_is(small_config, tmp_path, monkeypatch):
    run = load_run(small_config)
    monkeypatch.setattr(launch.preflight, "on_machine", lambda *_: [])
    late = "raise Exception('The current node timed out during startup. This could happen')"
    code = f"import pathlib\nif not pathlib.Path(r'{tmp_path}/seen').exists():\n"
    code += f"    pathlib.Path(r'{tmp_path}/seen').touch()\n    {late}\nraise SystemExit(5)"
    monkeypatch.setattr(launch, "command", lambda *_: trainer(tmp_path, code))
    assert launch.launch(run) == 5
    folder = tmp_path / "checkpoints" / "metrics"
    assert sorted(path.name for path in folder.iterdir()) == ["attempt-001.log", "attempt-002.log"]
    monkeypatch.setattr(launch, "command", lambda *_: trainer(tmp_path, late))
    assert launch.launch(run) == 1 and len(list(folder.iterdir())) == 2 + launch.RAY_TRIES


def test_an_interrupt_ends_the_trainer(tmp_path, monkeypatch):
    class Stop(Exception):
        pass

    def interrupted(_):
        raise Stop

    monkeypatch.setattr(launch.sys.stdout, "write", interrupted)
    code = "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)"
    with pytest.raises(Stop):
        launch._run(trainer(tmp_path, code), dict(os.environ), tmp_path / "log")
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "log").read_text()), 0)


def test_every_attempt_has_its_own_metrics_file(small_config):
    run = load_run(small_config)
    first = next_metrics_file(run)
    first.parent.mkdir(parents=True)
    first.write_text("")
    assert next_metrics_file(run).name == "attempt-002.jsonl"
    assert environment(run)["VERL_FILE_LOGGER_PATH"].endswith("attempt-002.jsonl")


def test_the_gpu_run_never_names_the_cpu_folder():
    settings = " ".join(command(load_run(CONFIGS / "reference-q38.yaml")))
    assert "cpu" not in settings.replace("num_cpus", "") and "tbstudy_transformers" not in settings


# --- nodes -----------------------------------------------------------------------------------------------------------


def test_node_commands():
    run = load_run(CONFIGS / "reference-q38.yaml")
    head = nodes.start_command(run, "head", node_ip="10.0.0.1")
    assert "--head" in head and "--num-gpus=8" in head and "--node-ip-address=10.0.0.1" in head
    assert "--address=10.0.0.1:6379" in nodes.start_command(run, "worker", "10.0.0.1")
    assert "--address=h:7000" in nodes.start_command(run, "worker", "h:7000")
    with pytest.raises(StudyError, match="needs the head's address"):
        nodes.start_command(run, "worker")


def test_a_node_proves_itself_and_leaves_its_mark(tmp_path):
    run = load_run(CONFIGS / "reference-q38.yaml", {"root": str(tmp_path), "pins": {"torch": "1.0"}})
    problems = {f.rule: f.problem for f in nodes.verify_node(run, World(), gpus=lambda: 6)}
    assert "torch is 2.13.0, pinned 1.0" in problems["versions are pinned"]
    assert "6 GPUs here, cluster.gpus_per_node says 8" in problems["gpus match"]
    assert "TBSTUDY_USER_KEY" in problems["secrets are set"]
    assert problems["checkpoint folder is usable"] == "" and len(nodes.marks(run)) == 1
    nodes.leave_mark(run, "other")
    assert "other" in nodes.marks(run)
    nodes.clear_marks(run)
    assert nodes.marks(run) == []


def test_a_node_that_lacks_something_is_not_started(tmp_path, monkeypatch):
    run = load_run(CONFIGS / "reference-q38.yaml", {"root": str(tmp_path)})
    monkeypatch.setattr(nodes.subprocess, "run", lambda *_, **__: pytest.fail("Ray was started"))
    monkeypatch.setattr(nodes, "local_gpus", lambda: 8)
    with pytest.raises(StudyError, match="nothing was started"):
        nodes.start(run, "head")


def test_waiting_for_the_cluster():
    run = load_run(CONFIGS / "reference-q38.yaml")
    answers = iter([[8], [8, 8], [8, 8, 8]])
    assert nodes.wait(run, 60, lambda _: next(answers), lambda _: None) == [8, 8, 8]
    with pytest.raises(StudyError, match="16 GPUs on 3 nodes .8, 8, 0., the run needs 24 on 3"):
        nodes.wait(run, 0, lambda _: [8, 8, 0], lambda _: None)


def test_ray_dry_run_shows_environment_and_command(capsys):
    assert call("ray", "worker", CONFIGS / "reference-q38.yaml", "--address", "head", "--dry-run") == 0
    out = capsys.readouterr().out
    assert "VERL_USE_EXTERNAL_MODULES=" in out and "--address=head:6379" in out


# --- the other commands ----------------------------------------------------------------------------------------------


def test_checkpoint_commands(tmp_path, capsys):
    from test_verl_checkpoints import save

    save(tmp_path, 5, 2)
    assert call("checkpoint", "verify", tmp_path) == 0
    assert call("checkpoint", "resume-point", tmp_path) == 0
    out = capsys.readouterr().out
    assert "step 5 (2 ranks): complete" in out and str(tmp_path / "global_step_5") in out
    assert call("checkpoint", "verify", tmp_path / "global_step_5", "--world", "3") == 1
    assert "INCOMPLETE" in capsys.readouterr().out
    with pytest.raises(StudyError, match="needs --out"):
        call("checkpoint", "merge", tmp_path)


def test_serve_dry_run(capsys):
    assert call("serve", CONFIGS / "reference-q38.yaml", "--model", "merged", "--dry-run") == 0
    out = capsys.readouterr().out
    assert "vllm serve merged" in out and "--tool-call-parser qwen3_xml" in out and "--proxy-only" in out


def test_plan_prints_its_assumptions(small_config, capsys):
    assert call("plan", small_config, "--user-calls", "2") == 0
    out = capsys.readouterr().out
    for title in ("Topology", "Memory", "Rollouts of an update", "On paper", "Assumptions"):
        assert title in out
    assert "| user_calls" in out


def test_set_changes_the_configuration():
    with pytest.raises(StudyError, match="expected section.key=value"):
        call("launch", CONFIGS / "reference-q38.yaml", "--dry-run", "--set", "update.updates")


def test_run_file_is_plain_json(small_config, tmp_path):
    run = load_run(small_config)
    launch.prepare(run)
    assert json.loads((tmp_path / "checkpoints" / "run.json").read_text())["root"] == str(tmp_path)
