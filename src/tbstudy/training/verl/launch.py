"""Starting the trainer: preflight, the files that its processes read, the process itself and its log."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tbstudy.errors import StudyError
from tbstudy.training.verl import preflight
from tbstudy.training.verl.compose import compose, verl_missing
from tbstudy.training.verl.config import Run
from tbstudy.training.verl.overrides import (
    AGENT_LOOP,
    AGENT_NAME,
    agent_loop_file,
    command,
    environment,
    metrics_folder,
    run_file,
)

#: Keys that a caller may not set: the run would not be the one that the configuration describes.
_OURS = ("ray_kwargs.ray_init.runtime_env", "actor_rollout_ref.rollout.agent.default_agent_loop", "data.custom_cls",
         "reward.custom_reward_function")
#: How often a start is tried when Ray itself was too slow, and how Ray says so.
RAY_TRIES, _RAY_LATE = 4, b"The current node timed out during startup"
_OVERRIDE = re.compile(r"(\+{0,2}|~)[A-Za-z_][\w.@/-]*(=.*)?", re.DOTALL)


def dry_run(run: Run, extra: Sequence[str] = ()) -> str:
    """What `launch` would start, ready to paste, with what the configuration and the files that it names can tell about
    it. A file that is missing here is a finding and no refusal: the command may be meant for another machine.

    Raises:
        StudyError: a rule on paper fails, or verl is installed and refuses the configuration.
    """
    check_overrides(extra)
    findings = preflight.on_paper(run)
    preflight.refuse(findings)
    missing = verl_missing()
    if missing:
        checked = f"not checked by verl: {missing}"
    else:
        compose(run, extra)
        checked = "composed and validated by verl"
    files = preflight.on_files(run)
    missing = [f.rule for f in files if not f.ok]
    refused = [f"# launch would refuse on this machine: {', '.join(missing)}"] if missing else []
    lines = [f"# {run.config.run}: {checked}", preflight.text(findings + files), *refused, "", paste(run, extra)]
    return "\n".join(lines)


def paste(run: Run, extra: Sequence[str] = ()) -> str:
    """The trainer's command for a shell, its environment first, one setting a line."""
    variables = [f"{name}={shlex.quote(value)}" for name, value in environment(run).items()]
    python, dash_m, module, *overrides = command(run, extra)
    parts = [*variables, f"{shlex.quote(python)} {dash_m} {module}", *(shlex.quote(item) for item in overrides)]
    return " \\\n  ".join(parts)


def check_overrides(extra: Sequence[str]) -> None:
    """Raise a StudyError for an override that is none, or that would take the run away from its configuration."""
    for item in extra:
        if not _OVERRIDE.fullmatch(item):
            raise StudyError(f"override {item!r}: expected key=value (or +key=value, ~key) in Hydra's grammar")
        key = item.lstrip("+~").partition("=")[0]
        if key.startswith(_OURS):
            raise StudyError(f"override {key}: this is what ties the trainer to the run's tasks and verdicts; change "
                             "the configuration file instead")


def launch(run: Run, extra: Sequence[str] = (), world: preflight.World | None = None) -> int:
    """Run the preflight and, if everything holds, the trainer to its end; its exit code.

    Raises:
        StudyError: a rule failed (all of them are listed); nothing was started.
    """
    check_overrides(extra)
    findings = preflight.on_paper(run)
    preflight.refuse(findings)
    findings += preflight.on_machine(run, world, extra)
    print(preflight.text(findings), flush=True)
    preflight.refuse(findings)
    prepare(run)
    for tries_left in reversed(range(RAY_TRIES)):
        log = log_file(run)
        print(f"trainer's log: {log}\nmetrics: {metrics_folder(run)}", flush=True)
        code = _run(command(run, extra), {**os.environ, **environment(run)}, log)
        # Ray gives a local cluster half a minute to start, which a busy machine may not manage.
        if not code or not tries_left or _RAY_LATE not in log.read_bytes()[-20_000:]:
            break
        print("Ray did not start in time; trying again", file=sys.stderr, flush=True)
    if code:
        print(f"the trainer ended with exit code {code}; the same command resumes from the newest checkpoint "
              f"(`tbstudy checkpoint resume-point {run.checkpoints}` shows it)", file=sys.stderr)
    return code


def prepare(run: Run) -> None:
    """Write what the trainer's processes read into the folder that all nodes share."""
    run.checkpoints.mkdir(parents=True, exist_ok=True)
    metrics_folder(run).mkdir(parents=True, exist_ok=True)
    _write(run_file(run), run.dump() + "\n")
    _write(agent_loop_file(run), f"- name: {AGENT_NAME}\n  _target_: {AGENT_LOOP}\n")


def _write(path: Path, text: str) -> None:
    scratch = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    scratch.write_text(text, encoding="utf-8")
    os.replace(scratch, path)


def log_file(run: Run) -> Path:
    """Where the next attempt's log goes: beside its metrics."""
    folder = metrics_folder(run)
    return folder / f"attempt-{len(list(folder.glob('attempt-*.log'))) + 1:03d}.log"


def _run(arguments: list[str], variables: dict[str, str], log: Path) -> int:
    """The process to its end, its output here and in `log`; Ctrl-C ends it as it would end on its own terminal."""
    with open(log, "wb") as kept:
        process = subprocess.Popen(arguments, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   start_new_session=True)
        assert process.stdout is not None
        try:
            for line in process.stdout:
                kept.write(line)
                kept.flush()
                sys.stdout.write(line.decode(errors="replace"))
                sys.stdout.flush()
            return process.wait()
        except BaseException:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            raise
