"""What a training's state and tables were made from; kept beside them, so that another configuration is refused."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from tbstudy.config import Study
from tbstudy.disk import write_atomic
from tbstudy.errors import StudyError

FILE = "made_from"


def identity(study: Study, arm: str, uids: Iterable[str]) -> str:
    """The rollouts' and the training's configuration, the arm and its prompts, in one line."""
    prompts = hashlib.sha256("\n".join(sorted(uids)).encode()).hexdigest()
    return "|".join((study.rollout_hash(), study.section_hash("train"), arm, prompts))


def check_trainable(study: Study) -> None:
    """The local trainer trains a local checkpoint.

    Raises:
        StudyError: the study's policy is behind an endpoint; naming what trains such a model.
    """
    if study.config.policy.kind != "local":
        raise StudyError(f"{study.file}: policy.kind {study.config.policy.kind!r}: the local trainer needs the "
                         "policy's weights (policy.kind 'local' with policy.checkpoint). A model behind an endpoint is "
                         "probed, banded and selected for here and trained by verl: train.backend 'verl', verl_run and "
                         "`tbstudy launch` (docs/own-tasks.md, docs/reference-run.md)")


def check(folder: Path, wanted: str) -> None:
    """Refuse an arm's folder that another configuration or pool has filled. A folder without a note is accepted:
    recorded studies keep none.

    Raises:
        StudyError: the folder is another training's.
    """
    note = folder / FILE
    if note.is_file() and note.read_text(encoding="utf-8").strip() != wanted:
        raise refusal(folder)


def refusal(place: Path) -> StudyError:
    """The error for a folder or file of another training."""
    return StudyError(f"{place}: made with another configuration or pool; remove the folder or use another study "
                      "folder")


def claim(folder: Path, wanted: str) -> None:
    """Note whose the folder is, before anything else is written there."""
    if not (folder / FILE).is_file():
        write_atomic(folder / FILE, f"{wanted}\n".encode())
