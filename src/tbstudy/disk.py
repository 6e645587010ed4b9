"""Files that are there whole or not at all, and a disk's refusal in words that help."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from tbstudy.errors import StudyError

_REMEDIES = {
    errno.ENOSPC: "free space on that disk", errno.EDQUOT: "free some of your quota on that disk",
    errno.EFBIG: "use a file system that allows larger files", errno.EROFS: "use a folder that can be written",
    errno.EACCES: "make the folder writable", errno.EPERM: "make the folder writable"}


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say of `path` that it cannot be written, and what to do, where the system refuses inside the context.

    Raises:
        StudyError: instead of an OSError, or of what libraries written in Rust raise for one.
    """
    try:
        yield
    except StudyError:
        raise
    except Exception as error:
        number = error.errno if isinstance(error, OSError) else None
        if number is None:
            said = re.search(r"\(os error (\d+)\)", str(error))
            if said is None:
                raise
            number = int(said[1])
        other = getattr(error, "filename", None) or path
        at = "" if str(other).startswith(str(path)) or ".tmp" in str(other) else f" ({other})"
        raise StudyError(
            f"{path}: cannot be written: {os.strerror(number)}{at}; "
            f"{_REMEDIES.get(number, 'look after that disk')} and start again: what is finished is kept") from error


def hash_files(files: Iterable[tuple[str, Path]]) -> str:
    """SHA-256 over names and contents of files, in hex, in the order that they come in."""
    digest = hashlib.sha256()
    for name, file in files:
        data = file.read_bytes()
        digest.update(os.fsencode(name) + f"\0{len(data)}\0".encode())
        digest.update(data)
    return digest.hexdigest()


def no_room(error: BaseException) -> bool:
    """Whether the disk takes no more: full, or the quota is spent."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def write_atomic(path: Path, data: bytes, lasting: bool = True) -> None:
    """Replace a file so that a reader sees the old or the new content, whole, whatever happens in between. `lasting`:
    when this returns, the new content also outlives a power cut.

    Raises:
        StudyError: the disk is full or refuses; the old content is still there.
    """
    with writing(path):
        make_folder(path.parent)
        scratch = scratch_for(path)
        try:
            target = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
            try:
                write_all(target, data)
                if lasting:
                    os.fsync(target)
            finally:
                os.close(target)
            os.replace(scratch, path)
        finally:
            with contextlib.suppress(OSError):
                scratch.unlink(missing_ok=True)
        if lasting:
            sync_folder(path.parent)


@contextlib.contextmanager
def whole_folder(path: Path, replace: bool = False) -> Iterator[Path]:
    """A scratch folder to fill, which becomes `path` at the end of the context: whole and on disk, or not at all.

    Raises:
        StudyError: the disk is full or refuses, or `path` is there and may not be replaced.
    """
    with writing(path):
        make_folder(path.parent)
        scratch = scratch_for(path)
        shutil.rmtree(scratch, ignore_errors=True)
        try:
            scratch.mkdir()
            yield scratch
            for folder, _, names in os.walk(scratch):
                for name in names:
                    _sync(Path(folder) / name)
                _sync(Path(folder))
            if replace and path.exists():
                shutil.rmtree(path)
            # Fails on a folder that someone else made meanwhile, unless it is empty.
            os.rename(scratch, path)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        sync_folder(path.parent)


def make_folder(path: Path) -> None:
    """Create a folder and those above it, so that they outlive a power cut."""
    if path.is_dir():
        return
    make_folder(path.parent)
    path.mkdir(exist_ok=True)
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Make names in a folder (new files, renames) outlive a power cut, where the system can."""
    if os.name == "posix":
        _sync(path)


def write_all(target: int, data: bytes) -> None:
    """Write everything to a file descriptor: a disk that is nearly full takes a part first."""
    left = memoryview(data)
    while left:
        left = left[os.write(target, left):]


def scratch_for(path: Path) -> Path:
    """A name beside `path` for this process alone; what killed processes left under such names is removed."""
    for old in path.parent.glob(f".{path.name}.*.tmp"):
        owner = old.name.removesuffix(".tmp").rsplit(".", 1)[1]
        if owner.isdigit() and int(owner) != os.getpid() and not _alive(int(owner)):
            if old.is_dir():
                shutil.rmtree(old, ignore_errors=True)
            else:
                with contextlib.suppress(OSError):
                    old.unlink()
    return path.with_name(f".{path.name}.{os.getpid()}.tmp")


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # somebody else's
    return True


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    except OSError as error:
        # Some file systems know no fsync of folders.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)
