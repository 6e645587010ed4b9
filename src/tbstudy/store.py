"""Append-only JSONL of attempts: a key is stored once, a torn last line is cut, nothing half-written is read."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tbstudy import secrets
from tbstudy.disk import make_folder, sync_folder, write_all, write_atomic, writing
from tbstudy.errors import StudyError
from tbstudy.secrets import scrubber

__all__ = ["Key", "RecordStore", "as_line", "is_system_error", "key_of", "read_lines", "write_atomic"]

#: Bytes read at a time to find where the last whole line ends.
_BLOCK = 1 << 16

Key = tuple[str, str, int]  # policy, uid, repetition


def key_of(record: dict[str, Any]) -> Key:
    """What identifies an attempt."""
    meta = record["metadata"]
    return meta["policy"], record["uid"], meta["repetition"]


def named(key: Key) -> str:
    """A key as a person reads it."""
    policy, uid, repetition = key
    return f"attempt {repetition} of task {uid} by policy {policy!r}"


def told_error(record: dict[str, Any]) -> str:
    """A record's system error as a person reads it."""
    error = record["metadata"].get("error") or {}
    return f"{record['uid']}: {error.get('type')}: {str(error.get('message'))[:300]}"


def is_system_error(record: dict[str, Any]) -> bool:
    """Whether the attempt has no verdict."""
    verdict = record.get("test_result")
    return bool(record.get("is_system_error") or verdict is None or verdict.get("is_system_error"))


class RecordStore:
    """The records of one or several policies. Opening it for `policy` repairs a torn end (with `look`, it leaves the
    file as it is: somebody may be writing) and refuses that policy's records when they carry another `config_hash` than
    this run's.

    System errors stay in the file as history; a later clean attempt of the same key replaces them when the file is
    read (`repair=True` makes `done` leave them out, so that they run again). Keys from the environment are replaced
    by `[key]` wherever a record quotes them.
    """

    def __init__(self, path: Path, policy: str, config_hash: str, look: bool = False):
        self.path = path
        self._scrub, self._known = scrubber(), secrets.in_use()
        self.torn = 0 if look else _cut_torn_end(path)
        self.clean: set[Key] = set()
        self.failed: set[Key] = set()
        for number, record in read_lines(path, unfinished=look):
            key = key_of(record)
            theirs = record["metadata"].get("config_hash")
            if key[0] == policy and theirs != config_hash:
                raise StudyError(
                    f"{path}:{number}: this record of policy {policy!r} was made under configuration {theirs}, this "
                    f"run has {config_hash} (seed, sampling, dataset, sandbox, user and checkpoint count); use another "
                    "study folder, or what made these records")
            if key in self.clean:
                raise StudyError(f"{path}:{number}: {named(key)} is stored twice; remove one of its lines")
            (self.failed if is_system_error(record) else self.clean).add(key)
        self.failed -= self.clean

    def done(self, repair: bool = False) -> set[Key]:
        """Keys that need not run again; with `repair` system errors do."""
        return set(self.clean) if repair else self.clean | self.failed

    def append(self, records: Iterable[dict[str, Any]]) -> None:
        """Write records whole and force them to disk: all of them are stored, or none.

        Raises:
            StudyError: a key is stored clean already, the file is packed, or the disk is full or refuses.
        """
        if self._known != secrets.in_use():
            self._scrub, self._known = scrubber(), secrets.in_use()
        lines, failed, clean = [], set(), set()
        for record in records:
            key = key_of(record)
            if key in self.clean or key in clean:
                raise StudyError(f"{self.path}: {named(key)} would be stored twice")
            (failed if is_system_error(record) else clean).add(key)
            lines.append(self._scrub(as_line(record)) + "\n")
        if not lines:
            return
        if self.path.suffix == ".gz":
            raise StudyError(f"{self.path}: packed records cannot be continued; unpack the file (gunzip), or use "
                             "another study folder")
        self._append("".join(lines).encode())
        self.clean |= clean
        self.failed |= failed
        self.failed -= clean

    def _append(self, data: bytes) -> None:
        with writing(self.path):
            make_folder(self.path.parent)
            new = not self.path.exists()
            target = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                end = os.fstat(target).st_size
                try:
                    write_all(target, data)
                    os.fsync(target)
                except BaseException:
                    # Disk full, Ctrl-C: another record may follow in this process, so no part of this one may stay.
                    with contextlib.suppress(OSError):
                        os.ftruncate(target, end)
                    raise
            finally:
                os.close(target)
            if new:
                sync_folder(self.path.parent)


def as_line(record: dict[str, Any]) -> str:
    """The record as one line of JSON in valid Unicode.

    Raises:
        TypeError, ValueError, RecursionError: it holds what JSON does not, or nests too deep.
    """
    line = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    try:
        line.encode()
    except UnicodeEncodeError:  # half a surrogate pair, which JSON has as an escape only
        line = json.dumps(record, separators=(",", ":"))
    return line


def read_lines(path: Path, unfinished: bool = False) -> Iterable[tuple[int, dict[str, Any]]]:
    """Numbered records of a JSONL file, plain or gzipped; nothing when it does not exist. With `unfinished`, a last
    line without its end is left out.

    Raises:
        StudyError: a line that is not a record, with its number.
    """
    if not path.exists():
        return
    opener = gzip.open if path.suffix == ".gz" else open
    number = 0
    try:
        with opener(path, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if unfinished and not line.endswith("\n"):
                    return
                try:
                    record = json.loads(line)
                    key_of(record)
                except (ValueError, KeyError, TypeError) as error:
                    raise StudyError(f"{path}:{number}: not a record: {type(error).__name__}: {error}; remove the "
                                     "line, and the command that wrote it plays its attempt again") from None
                yield number, record
    except (EOFError, zlib.error, gzip.BadGzipFile, UnicodeDecodeError) as error:
        raise StudyError(f"{path}: damaged behind line {number}: {error}; restore the file, or remove it to play its "
                         "attempts again") from None


def _cut_torn_end(path: Path) -> int:
    """Bytes cut from the end because the last line was not finished."""
    if not path.exists() or path.suffix == ".gz":
        return 0
    with writing(path), path.open("rb") as file:
        size = at = file.seek(0, os.SEEK_END)
        end = 0
        while at and not end:
            start = max(0, at - _BLOCK)
            file.seek(start)
            found = file.read(at - start).rfind(b"\n")
            end, at = (start + found + 1 if found >= 0 else 0), start
        if end < size:
            with path.open("r+b") as torn:
                torn.truncate(end)
                os.fsync(torn.fileno())
    return size - end
