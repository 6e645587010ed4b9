"""The record store: whole lines, one clean record a key, one configuration a policy."""

from __future__ import annotations

import json

import pytest

from tbstudy import secrets
from tbstudy.errors import StudyError
from tbstudy.store import RecordStore, is_system_error, read_lines, write_atomic


def record(uid="a.py:t", repetition=0, policy="base", config="c0", broken=False):
    return {"uid": uid, "metadata": {"policy": policy, "repetition": repetition, "config_hash": config},
            "is_system_error": broken,
            "test_result": None if broken else {"result": True, "reward": 1.0, "is_system_error": False}}


def test_appended_records_are_found_again(tmp_path):
    path = tmp_path / "r.jsonl"
    RecordStore(path, "base", "c0").append([record(), record(repetition=1)])
    assert RecordStore(path, "base", "c0").done() == {("base", "a.py:t", 0), ("base", "a.py:t", 1)}


def test_a_torn_last_line_is_cut_and_counted(tmp_path):
    path = tmp_path / "r.jsonl"
    RecordStore(path, "base", "c0").append([record(), record(repetition=1)])
    whole = path.read_bytes()
    path.write_bytes(whole[:-10])
    store = RecordStore(path, "base", "c0")
    assert store.torn > 0 and store.done() == {("base", "a.py:t", 0)}
    store.append([record(repetition=1)])
    assert path.read_bytes() == whole


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_cutting_anywhere_loses_only_the_last_record(tmp_path, cut):
    path = tmp_path / "r.jsonl"
    RecordStore(path, "base", "c0").append([record(), record(repetition=1)])
    path.write_bytes(path.read_bytes()[:-cut])
    assert RecordStore(path, "base", "c0").done() == {("base", "a.py:t", 0)}


def test_a_clean_key_is_stored_once(tmp_path):
    store = RecordStore(tmp_path / "r.jsonl", "base", "c0")
    store.append([record()])
    with pytest.raises(StudyError, match="stored twice"):
        store.append([record()])
    with pytest.raises(StudyError, match="twice"):
        (tmp_path / "r.jsonl").write_text(2 * (json.dumps(record()) + "\n"))
        RecordStore(tmp_path / "r.jsonl", "base", "c0")


def test_what_is_wrong_with_a_line_and_what_to_do_about_it(tmp_path):
    path, line = tmp_path / "r.jsonl", json.dumps(record(repetition=7))
    path.write_text(f"{line}\n{line}\n")
    with pytest.raises(StudyError, match=r":2: attempt 7 of task a.py:t by policy 'base' is stored twice; remove one"):
        RecordStore(path, "base", "c0")
    path.write_text(f"{line}\n{line[:40]}\n{line}\n")
    with pytest.raises(StudyError, match=":2: not a record: .*; remove the line, and the command"):
        RecordStore(path, "base", "c0")
    path.write_text(f"{line}\n")
    assert RecordStore(path, "base", "c0").done() == {("base", "a.py:t", 7)}


def test_another_configuration_is_refused_for_the_same_policy_only(tmp_path):
    path = tmp_path / "r.jsonl"
    RecordStore(path, "base", "c0").append([record()])
    with pytest.raises(StudyError, match="configuration c0.*c1"):
        RecordStore(path, "base", "c1")
    RecordStore(path, "trained", "c1").append([record(policy="trained", config="c1")])


def test_system_errors_are_kept_apart_and_repaired(tmp_path):
    path = tmp_path / "r.jsonl"
    store = RecordStore(path, "base", "c0")
    store.append([record(broken=True), record(repetition=1)])
    key = ("base", "a.py:t", 0)
    assert key in store.done() and key not in store.done(repair=True)
    store.append([record()])
    assert key in RecordStore(path, "base", "c0").done(repair=True)
    assert [is_system_error(r) for _, r in read_lines(path)] == [True, False, False]


def test_a_line_that_is_no_record_is_named(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_text(json.dumps(record()) + "\n{}\n")
    with pytest.raises(StudyError, match="r.jsonl:2"):
        RecordStore(path, "base", "c0")


def test_atomic_write_leaves_nothing_behind_when_it_fails(tmp_path, monkeypatch):
    path = tmp_path / "f.json"
    write_atomic(path, b"old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tbstudy.store.os.fsync", full)
    with pytest.raises(StudyError, match=r"f\.json: cannot be written: No space left.*free space"):
        write_atomic(path, b"new")
    assert path.read_bytes() == b"old" and [p.name for p in tmp_path.iterdir()] == ["f.json"]


def test_keys_that_came_into_use_after_the_file_was_opened_are_taken_out(tmp_path, monkeypatch):
    monkeypatch.setattr(secrets, "_used", set())
    path = tmp_path / "r.jsonl"
    store = RecordStore(path, "base", "c0")
    secrets.use("short-key-9")
    store.append([record() | {"messages": ["it was short-key-9"]}])
    assert json.loads(path.read_text())["messages"] == ["it was [key]"]


@pytest.mark.parametrize(("name", "secret"), [
    ("OPENAI_API_KEY", True), ("PGPASSWORD", True), ("ACCESSTOKEN", True), ("GH_TOKENS", True), ("APIKEYS", True),
    ("AWS_SECRET_ACCESS_KEY", True), ("DB_PASS", True), ("MY_KEYS", True), ("PATH", False), ("MONKEY", False),
    ("AUTHOR", False), ("TOKENIZERS_PARALLELISM", False), ("COMPASS", False)])
def test_names_that_say_key(name, secret):
    assert secrets.is_secret_name(name) is secret
