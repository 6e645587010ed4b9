"""Processes that must not outlive or overlap one another."""

from __future__ import annotations

import contextlib
import fcntl
import multiprocessing
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from tbstudy.disk import make_folder, writing
from tbstudy.errors import StudyError


def die_with_parent() -> None:
    """End this worker when the process that started it is gone, so that an orphan never writes beside its successor."""
    # The parent may be gone before this line runs: its pid comes from the start message, not from the system.
    started_by = multiprocessing.parent_process()
    parent = started_by.pid if started_by is not None else os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(3)

    threading.Thread(target=watch, daemon=True).start()


@contextlib.contextmanager
def exclusive(folder: Path, wait_seconds: float = 30.0, name: str = ".lock") -> Iterator[None]:
    """Hold `folder` alone among those who ask for the lock `name` in it. A predecessor that was killed gets
    `wait_seconds` for its orphans to end.

    Raises:
        StudyError: another process keeps working in the folder, or it cannot be written.
    """
    file = folder / name
    deadline = time.monotonic() + wait_seconds
    with writing(file):
        make_folder(folder)
        handle = file.open("a+")
    with handle:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise StudyError(f"{folder}: another process is working here; stop it, or use another study "
                                     "folder") from None
                time.sleep(0.2)
        yield
