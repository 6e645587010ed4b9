"""verl's checkpoints: `global_step_N/actor` with one model, optimizer and extra-state shard a rank, beside it data.pt.

A run that was killed while saving leaves a folder that looks like a checkpoint. Nothing here trusts a folder's name.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tbstudy.errors import StudyError

_SHARD = re.compile(r"(model|optim|extra_state)_world_size_(\d+)_rank_(\d+)\.pt")
_STEP = re.compile(r"global_step_(\d+)")
TRACKER = "latest_checkpointed_iteration.txt"
KINDS = ("model", "optim", "extra_state")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One checkpoint: its step, the world size its shards are of (0: none), and what is wrong with it."""

    folder: Path
    step: int
    world: int = 0
    problems: tuple[str, ...] = field(default=())

    @property
    def complete(self) -> bool:
        return not self.problems


def steps(folder: Path) -> list[int]:
    """Steps that have a folder, ascending."""
    if not folder.is_dir():
        return []
    return sorted(int(match[1]) for path in folder.iterdir() if path.is_dir() and (match := _STEP.fullmatch(path.name)))


def verify(folder: Path, world: int | None = None, kinds: Iterable[str] = KINDS) -> Checkpoint:
    """Look at every file of the checkpoint `global_step_N`; with `world`, its shards must be of that many ranks.

    Shards are PyTorch's zip files: one that was cut short has no central directory, which is read without loading.

    Raises:
        StudyError: the folder is not called `global_step_N` or does not exist.
    """
    match = _STEP.fullmatch(folder.name)
    if not match or not folder.is_dir():
        raise StudyError(f"{folder}: not a checkpoint folder (expected global_step_<N>)")
    actor, problems = folder / "actor", []
    found: dict[str, dict[int, set[int]]] = {kind: {} for kind in kinds}
    for path in sorted(actor.glob("*.pt")) if actor.is_dir() else ():
        if shard := _SHARD.fullmatch(path.name):
            if shard[1] in found:
                found[shard[1]].setdefault(int(shard[2]), set()).add(int(shard[3]))
            if not zipfile.is_zipfile(path):
                problems.append(f"{path.name} is cut short ({path.stat().st_size} bytes)")
    worlds = sorted({size for ranks in found.values() for size in ranks})
    if not worlds:
        problems.append("no shards under actor/")
    if len(worlds) > 1:
        problems.append(f"shards of different world sizes: {', '.join(map(str, worlds))}")
    size = world or (worlds[-1] if worlds else 0)
    if world and worlds and worlds != [world]:
        problems.append(f"shards are of {worlds[-1]} ranks, the run has {world}")
    for kind, ranks in found.items():
        if missing := sorted(set(range(size)) - ranks.get(size, set())):
            problems.append(f"{kind}: {len(missing)} of {size} shards missing (rank {_ranges(missing)})")
    problems += [f"actor/{name} is missing or torn" for name in ("fsdp_config.json", "huggingface/config.json")
                 if not _readable_json(actor / name)]
    if not (folder / "data.pt").is_file() or not zipfile.is_zipfile(folder / "data.pt"):
        problems.append("data.pt (the position in the data) is missing or cut short")
    return Checkpoint(folder, int(match[1]), worlds[-1] if worlds else 0, tuple(problems))


def _ranges(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:6]))
    return shown + (", ..." if len(numbers) > 6 else "")


def _readable_json(path: Path) -> bool:
    try:
        json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return True


def tracked_step(folder: Path) -> int | None:
    """The step that verl would resume from: what its tracker file says. None without one.

    Raises:
        StudyError: the tracker does not hold a number.
    """
    path = folder / TRACKER
    if not path.is_file():
        return None
    text = path.read_text(encoding="utf-8").strip()
    if not text.isdigit():
        raise StudyError(f"{path}: expected a step number, found {text!r}; write the step to resume from into it")
    return int(text)


def resume_point(folder: Path, world: int | None = None) -> Checkpoint | None:
    """The newest complete checkpoint, or None. Incomplete ones are passed over."""
    for step in reversed(steps(folder)):
        checkpoint = verify(folder / f"global_step_{step}", world)
        if checkpoint.complete:
            return checkpoint
    return None


def latest_problem(folder: Path, world: int | None = None) -> str:
    """Why verl's resume would go wrong in this folder, with the remedy; empty when it would not."""
    tracked, point = tracked_step(folder), resume_point(folder, world)
    remedy = (f"write {point.step} into {folder / TRACKER} to resume from the newest complete one" if point
              else "move the folder away, or set checkpoints.resume to disable, to start afresh")
    if tracked is None:
        # verl would start from scratch and then write over the steps that are there.
        return f"{folder}: has checkpoints but no {TRACKER}; {remedy}" if steps(folder) else ""
    latest = folder / f"global_step_{tracked}"
    if not latest.is_dir():
        return f"{folder}: {TRACKER} says step {tracked}, which is not there; {remedy}"
    checkpoint = verify(latest, world)
    return "" if checkpoint.complete else f"{latest}: incomplete: {'; '.join(checkpoint.problems)}; {remedy}"


def merge_command(checkpoint: Path, target: Path) -> list[str]:
    """verl's merger from rank shards to one Hugging Face folder."""
    return [sys.executable, "-m", "verl.model_merger", "merge", "--backend", "fsdp",
            "--local_dir", str(checkpoint / "actor"), "--target_dir", str(target)]


def merge(checkpoint: Path, target: Path, tokenizer: Path | None = None) -> Path:
    """Merge a complete checkpoint into the Hugging Face folder `target`. Needs verl.

    `tokenizer` is the base model's folder, whose tokenizer files and chat template the merged one gets unchanged.

    Raises:
        StudyError: the checkpoint is incomplete, `target` holds files, or the merger failed.
    """
    found = verify(checkpoint, kinds=("model",))
    if not found.complete:
        raise StudyError(f"{checkpoint}: incomplete: {'; '.join(found.problems)}")
    if target.exists() and any(target.iterdir()):
        raise StudyError(f"{target}: not empty; merge into a new folder")
    done = subprocess.run(merge_command(checkpoint, target), capture_output=True, text=True)
    if done.returncode or not any(target.glob("*.safetensors")):
        raise StudyError(f"{checkpoint}: verl's merger failed (exit {done.returncode}):\n{done.stderr[-2000:]}")
    if tokenizer is not None:
        for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja",
                     "vocab.json", "merges.txt"):
            if (tokenizer / name).is_file():
                (target / name).write_bytes((tokenizer / name).read_bytes())
    return target
