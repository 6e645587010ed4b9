"""Files are whole or not at all, also where the system refuses in the middle of a write."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

import pytest

from tbstudy.disk import scratch_for, whole_folder, write_atomic, writing
from tbstudy.errors import StudyError
from tbstudy.store import RecordStore


def record(repetition: int, size: int = 0) -> dict:
    return {"uid": "a.py:t", "metadata": {"policy": "base", "repetition": repetition, "config_hash": "c"},
            "is_system_error": False, "text": "x" * size,
            "test_result": {"result": True, "reward": 1.0, "is_system_error": False}}


@pytest.fixture
def room():
    """Limits how long files may get, as the system does it: a part of a write gets through, the next one fails."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (before[0] if size is None else size, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_file_that_does_not_fit_leaves_the_old_one_and_no_scratch(tmp_path, room):
    path = tmp_path / "new" / "f.json"
    write_atomic(path, b"old")
    room(1000)
    with pytest.raises(StudyError, match=r"new/f\.json: cannot be written: File too large; .*start again"):
        write_atomic(path, b"x" * 5000)
    room(None)
    assert path.read_bytes() == b"old" and [p.name for p in path.parent.iterdir()] == ["f.json"]


def test_records_that_do_not_fit_are_stored_wholly_or_not_at_all_and_the_store_goes_on(tmp_path, room):
    store = RecordStore(tmp_path / "r.jsonl", "base", "c")
    store.append([record(0)])
    whole = store.path.read_bytes()
    room(len(whole) + 300)
    with pytest.raises(StudyError, match=r"r\.jsonl: cannot be written: File too large"):
        store.append([record(1), record(2, 500)])
    assert store.path.read_bytes() == whole and store.done() == {("base", "a.py:t", 0)}
    room(None)
    store.append([record(1), record(2, 500)])
    assert RecordStore(store.path, "base", "c").done() == {("base", "a.py:t", r) for r in range(3)}


@pytest.mark.parametrize("torn", (1, 70_000, 200_000))
def test_a_torn_end_of_any_length_is_cut(tmp_path, torn):
    path = tmp_path / "r.jsonl"
    RecordStore(path, "base", "c").append([record(0, 100_000), record(1)])
    whole = path.read_bytes()
    with path.open("ab") as out:
        out.write(b"y" * torn)
    store = RecordStore(path, "base", "c")
    assert store.torn == torn and path.read_bytes() == whole and len(store.done()) == 2


def test_a_file_of_one_torn_line_is_emptied(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_bytes(b"y" * 100_000)
    assert RecordStore(path, "base", "c").torn == 100_000 and path.read_bytes() == b""


def test_packed_records_are_not_continued_and_damage_is_named(tmp_path):
    import gzip

    path = tmp_path / "r.jsonl.gz"
    plain = RecordStore(tmp_path / "r.jsonl", "base", "c")
    plain.append([record(r, 2000) for r in range(50)])
    path.write_bytes(gzip.compress(plain.path.read_bytes()))
    with pytest.raises(StudyError, match=r"r\.jsonl\.gz: packed records cannot be continued.*gunzip"):
        RecordStore(path, "base", "c").append([record(50)])
    assert gzip.decompress(path.read_bytes()) == plain.path.read_bytes()
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(StudyError, match=r"r\.jsonl\.gz: damaged behind line \d+"):
        RecordStore(path, "base", "c")


def test_a_folder_appears_whole_or_not_at_all(tmp_path, room):
    def fill(folder, text):
        (folder / "deep").mkdir()
        for name in ("a", "deep/b"):
            (folder / name).write_text(text)

    target = tmp_path / "out"
    with whole_folder(target) as scratch:
        fill(scratch, "one")
        assert not target.exists()
    room(1000)
    with pytest.raises(StudyError, match="out: cannot be written: File too large"):
        with whole_folder(target, replace=True) as scratch:
            fill(scratch, "x" * 2000)
    room(None)
    assert (target / "deep" / "b").read_text() == "one" and [p.name for p in tmp_path.iterdir()] == ["out"]
    with pytest.raises(StudyError, match="out: cannot be written: Directory not empty"):
        with whole_folder(target) as scratch:
            fill(scratch, "two")
    with whole_folder(target, replace=True) as scratch:
        fill(scratch, "two")
    assert (target / "a").read_text() == "two" and [p.name for p in tmp_path.iterdir()] == ["out"]


def test_scratch_of_killed_processes_is_removed_and_that_of_living_ones_kept(tmp_path):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    for name in (f".f.json.{dead.pid}.tmp", f".f.json.{os.getppid()}.tmp", ".f.json.notes.tmp"):
        (tmp_path / name).write_text("half")
    (tmp_path / f".g.json.{dead.pid}.tmp").write_text("half")
    write_atomic(tmp_path / "f.json", b"{}")
    left = {".f.json.notes.tmp", "f.json", f".f.json.{os.getppid()}.tmp", f".g.json.{dead.pid}.tmp"}
    assert {p.name for p in tmp_path.iterdir()} == left
    assert scratch_for(tmp_path / "f.json").name == f".f.json.{os.getpid()}.tmp"


def test_a_library_in_rust_says_it_in_words(tmp_path):
    from tokenizers import Tokenizer, models

    with pytest.raises(StudyError, match="cannot be written: No such file or directory"):
        with writing(tmp_path / "checkpoint"):
            Tokenizer(models.BPE()).save(str(tmp_path / "no" / "tokenizer.json"))
    with pytest.raises(ValueError, match="other"):
        with writing(tmp_path):
            raise ValueError("other")
