"""Append-only JSONL of attempts: a key is stored once, a torn last line is cut, nothing half-written is read."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tbstudy.errors import StudyError
from tbstudy.secrets import scrubber

Key = tuple[str, str, int]  # policy, uid, repetition


def key_of(record: dict[str, Any]) -> Key:
    """What identifies an attempt."""
    meta = record["metadata"]
    return meta["policy"], record["uid"], meta["repetition"]


def is_system_error(record: dict[str, Any]) -> bool:
    """Whether the attempt has no verdict."""
    verdict = record.get("test_result")
    return bool(record.get("is_system_error") or verdict is None or verdict.get("is_system_error"))


class RecordStore:
    """The records of one or several policies. Opening it for `policy` repairs a torn end and refuses that policy's
    records when they carry another `config_hash` than this run's.

    System errors stay in the file as history; a later clean attempt of the same key replaces them when the file is
    read (`repair=True` makes `done` leave them out, so that they run again). Keys from the environment are replaced
    by `[key]` wherever a record quotes them.
    """

    def __init__(self, path: Path, policy: str, config_hash: str):
        self.path = path
        self._scrub = scrubber()
        self.torn = _cut_torn_end(path)
        self.clean: set[Key] = set()
        self.failed: set[Key] = set()
        for number, record in read_lines(path):
            key = key_of(record)
            theirs = record["metadata"].get("config_hash")
            if key[0] == policy and theirs != config_hash:
                raise StudyError(
                    f"{path}:{number}: this record of policy {policy!r} was made under configuration {theirs}, this "
                    f"run has {config_hash} (seed, sampling, dataset, sandbox, user and checkpoint count); use another "
                    "study folder, or what made these records")
            if key in self.clean:
                raise StudyError(f"{path}:{number}: {key} is stored twice")
            (self.failed if is_system_error(record) else self.clean).add(key)
        self.failed -= self.clean

    def done(self, repair: bool = False) -> set[Key]:
        """Keys that need not run again; with `repair` system errors do."""
        return set(self.clean) if repair else self.clean | self.failed

    def append(self, records: Iterable[dict[str, Any]]) -> None:
        """Write records whole and force them to disk; keys already stored clean are an error."""
        lines = []
        for record in records:
            key = key_of(record)
            if key in self.clean:
                raise StudyError(f"{self.path}: {key} would be stored twice")
            line = as_line(record)
            if is_system_error(record):
                self.failed.add(key)
            else:
                self.clean.add(key)
                self.failed.discard(key)
            lines.append(self._scrub(line) + "\n")
        if lines:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab") as out:
                out.write("".join(lines).encode())
                out.flush()
                os.fsync(out.fileno())


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


def read_lines(path: Path) -> Iterable[tuple[int, dict[str, Any]]]:
    """Numbered records of a JSONL file, plain or gzipped; nothing when it does not exist.

    Raises:
        StudyError: a line that is not a record, with its number.
    """
    if not path.exists():
        return
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                record = json.loads(line)
                key_of(record)
            except (ValueError, KeyError, TypeError) as error:
                raise StudyError(f"{path}:{number}: not a record: {type(error).__name__}: {error}") from None
            yield number, record


def write_atomic(path: Path, data: bytes) -> None:
    """Replace a file so that a reader sees the old or the new content, whole, whatever happens in between."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with scratch.open("wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        os.replace(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)


def _cut_torn_end(path: Path) -> int:
    """Bytes cut from the end because the last line was not finished."""
    if not path.exists() or path.suffix == ".gz":
        return 0
    with path.open("r+b") as file:
        data = file.read()
        end = data.rfind(b"\n") + 1
        if end < len(data):
            file.truncate(end)
            file.flush()
            os.fsync(file.fileno())
        return len(data) - end
