"""One notebook in a kernel of its own, by papermill; Ctrl-C interrupts the kernel and is otherwise quiet."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import papermill
from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import NBClientEngine, papermill_engines
from papermill.exceptions import PapermillExecutionError

from tbstudy.disk import no_room, writing
from tbstudy.errors import StudyError

ENGINE = "tbstudy"


def execute(notebook: Path, out: Path, parameters: dict[str, Any], folder: Path) -> None:
    """Execute `notebook` with `folder` as the working folder into `out`, which is there also after a failure.

    What the kernel itself writes to the terminal (start-up warnings, tracebacks of worker processes that were
    interrupted) goes to a file beside `out`, which is kept where the kernel died.

    Raises:
        PapermillExecutionError: a cell failed.
        StudyError: the kernel died, or the disk is full.
        KeyboardInterrupt: Ctrl-C. The first one interrupts the cell that runs, a second one ends the kernel.
    """
    log = out.with_suffix(".log")
    with writing(out), log.open("wb") as errors, _interruptible() as run:
        try:
            papermill.execute_notebook(
                str(notebook), str(out), kernel_name="python3", progress_bar=False, parameters=parameters,
                cwd=str(folder), engine_name=ENGINE, kernel_errors=errors, run=run)
        except Exception as error:
            if run.stopped:
                raise KeyboardInterrupt from None
            if isinstance(error, PapermillExecutionError) or no_room(error):
                raise
            kept = out.with_name(f"{notebook.stem}.kernel.log")
            os.replace(log, kept)
            raise StudyError(f"the kernel of {notebook.name} died: {error}; its last words are in {kept}") from error
        finally:
            log.unlink(missing_ok=True)
        if run.stopped:
            raise KeyboardInterrupt


class _Engine(NBClientEngine):
    """papermill's own engine, with a hand on the kernel's process."""

    @classmethod
    def execute_managed_notebook(cls, nb_man: Any, kernel_name: str, *, kernel_errors: IO[bytes], run: _Run,
                                 start_timeout: int = 60, **ignored: Any) -> Any:
        """Execute the cells of `nb_man`; the kernel's standard error goes to `kernel_errors`."""
        run.client = PapermillNotebookClient(nb_man, kernel_name=kernel_name, startup_timeout=start_timeout,
                                             timeout=None, on_cell_start=run.next_cell)
        return run.client.execute(stderr=kernel_errors)


papermill_engines.register(ENGINE, _Engine)


class _Run:
    """What a Ctrl-C needs to know."""

    stopped = False
    client: Any = None

    def next_cell(self, **_: object) -> None:
        """Between two cells nothing runs that an interrupt would end."""
        if self.stopped:
            raise RuntimeError("stopped")

    def interrupt(self, *_: object) -> None:
        """First Ctrl-C: interrupt the kernel and its workers; the next: end them."""
        process = getattr(getattr(self.client, "km", None), "provisioner", None)
        if process is None or process.pid is None:  # nothing runs yet
            raise KeyboardInterrupt
        if not self.stopped:
            print("\ntbstudy: stopping (Ctrl-C again: at once)", file=sys.stderr, flush=True)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pgid, signal.SIGKILL if self.stopped else signal.SIGINT)
        self.stopped = True


@contextlib.contextmanager
def _interruptible() -> Iterator[_Run]:
    """Ctrl-C goes to the kernel, not through the event loop that waits for it, while the context is open."""
    run = _Run()
    # Signals can be handled by the main thread alone; elsewhere nobody presses keys.
    mine = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, run.interrupt) if mine else None
    try:
        yield run
    finally:
        if mine:
            signal.signal(signal.SIGINT, before)
