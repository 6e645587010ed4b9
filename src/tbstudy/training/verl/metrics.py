"""verl's metrics as the training table that the local trainer writes too."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from tbstudy.errors import StudyError
from tbstudy.training.verl.config import Run
from tbstudy.training.verl.overrides import metrics_folder

COLUMNS = ["arm", "update", "mean_reward", "zero_variance_share", "all_pass_share", "all_fail_share",
           "system_error_share", "truncated_share", "groups", "groups_rolled_out", "rollouts", "loss", "grad_norm",
           "clip_fraction", "kl", "entropy", "tokens", "seconds"]
#: What the hook that bounds evictions writes beside verl's metrics file.
EVICTIONS = ".evictions"
#: What the agent loops write beside it, a file for each process.
EPISODES = ".episodes"


def note_episode(line: dict[str, Any]) -> None:
    """Append one rollout of training to this process' file beside verl's metrics; nothing outside a trainer."""
    if file := os.environ.get("VERL_FILE_LOGGER_PATH"):
        with open(f"{file}{EPISODES}.{socket.gethostname()}-{os.getpid()}", "a", encoding="utf-8") as out:
            out.write(json.dumps(line) + "\n")


def training_table(run: Run, arm: str = "selected") -> pd.DataFrame:
    """One row an update, with `COLUMNS`, from all attempts of a run; an update that was repeated counts once, as last.

    Shares are of the groups that were played to their end, those thrown away included. `mean_reward` is the mean of
    their clean rewards; groups that were played beyond the need and dropped are left out of it. `tokens` are those
    that the policy generated in all rollouts of the update, learned from or not, where the run kept its episodes. What
    verl does not report is NaN, so is `kl`: verl compares the policy with its own recomputation, not with the sampler.

    Raises:
        StudyError: there are no metrics, or a line of them is torn anywhere but at the end.
    """
    files = sorted(metrics_folder(run).glob("attempt-*.jsonl"))
    updates: dict[int, dict[str, Any]] = {}
    for path in files:
        evicted = _evictions(path.with_name(path.name + EVICTIONS))
        played = _played(path)
        for line in _lines(path):
            if "actor/grad_norm" in line["data"]:  # validation alone is no update
                updates[int(line["step"])] = _row(run, arm, int(line["step"]), line["data"],
                                                  evicted.get(int(line["step"]), {}), played.get(int(line["step"]), {}))
    if not updates:
        raise StudyError(f"{metrics_folder(run)}: no update recorded; is this the run's checkpoint folder?")
    return pd.DataFrame([updates[step] for step in sorted(updates)], columns=COLUMNS)


def _row(run: Run, arm: str, step: int, data: dict[str, Any], evicted: dict[str, Any],
         episodes: dict[str, float]) -> dict[str, Any]:
    size, kept = run.config.update.rollouts, run.config.update.groups
    surplus = int(data.get("training/filter_groups/discarded_surplus_samples", 0))
    failed = int(data.get("training/rollout_failure/evicted_samples", 0))
    zero = int(data.get("training/filter_groups/evicted_samples", 0))
    full = evicted.get("all_pass", 0)
    played = kept + surplus + failed + zero
    judged = kept + zero
    reward = data.get("critic/score/mean", float("nan"))
    nan = float("nan")
    return {
        "arm": arm, "update": step, "mean_reward": (kept * reward + evicted.get("score", 0.0)) / judged,
        "zero_variance_share": zero / played, "all_pass_share": full / played,
        "all_fail_share": (zero - full) / played, "system_error_share": failed / played,
        # verl's own clip ratio counts the longest response of every batch.
        "truncated_share": episodes.get("truncated", nan), "groups": kept, "groups_rolled_out": played,
        "rollouts": played * size, "loss": data.get("actor/pg_loss", nan),
        "grad_norm": data.get("actor/grad_norm", nan),
        "clip_fraction": data.get("actor/pg_clipfrac", nan), "kl": nan,
        # verl's own token count has the prompts in it.
        "entropy": data.get("actor/entropy", nan), "tokens": episodes.get("tokens", nan),
        "seconds": data.get("timing_s/step", nan)}


def _evictions(path: Path) -> dict[int, dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    if not path.is_file():
        return found
    for line in _lines(path):
        step = found.setdefault(int(line["step"]), {"all_pass": 0, "score": 0.0})
        for score, count in line["scores"]:
            step["all_pass"] += count if score > 0 else 0
            step["score"] += score * count
    return found


def episode_table(run: Run) -> pd.DataFrame:
    """One row a rollout of training, of all attempts: step, uid, session, reward, system_error, cause, finish_reason,
    truncated, policy_turns, user_calls, tool_calls, prompt_tokens, response_tokens, generated_tokens, seconds, attempt.

    An update that was repeated after a crash is there twice, by `attempt`.
    """
    rows = [{**line, "attempt": path.name.partition(".")[0]} for path in
            sorted(metrics_folder(run).glob(f"attempt-*.jsonl{EPISODES}.*")) for line in _lines(path)]
    return pd.DataFrame(rows)


def _played(path: Path) -> dict[int, dict[str, float]]:
    """By update: `truncated`, the share of rollouts with a verdict that were, and `tokens`, generated by them all."""
    steps: dict[int, list[dict[str, Any]]] = {}
    for file in sorted(path.parent.glob(f"{path.name}{EPISODES}.*")):
        for line in _lines(file):
            steps.setdefault(int(line["step"]), []).append(line)
    nan, found = float("nan"), {}
    for step, lines in steps.items():
        cut = [line["truncated"] for line in lines if not line["system_error"]]
        found[step] = {"truncated": sum(cut) / len(cut) if cut else nan,
                       "tokens": sum(line.get("generated_tokens", nan) for line in lines)}
    return found


def _lines(path: Path) -> Iterable[dict[str, Any]]:
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, text in enumerate(lines, 1):
        try:
            yield json.loads(text)
        except ValueError as error:
            if number < len(lines):
                raise StudyError(f"{path}:{number}: not JSON ({error})") from None
