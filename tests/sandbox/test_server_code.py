"""The code of tool servers is noted with the first attempts; attempts of two codes are never mixed unasked."""

import json
import os
import pathlib
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from tbstudy.errors import StudyError
from tbstudy.sandbox.server_code import SERVERS, note_servers, noted_servers, server_code
from tbstudy.sandbox.servers import ServerSpec


@pytest.fixture
def package(tmp_path):
    """A package of two modules and a data file, and a server in it."""
    folder = tmp_path / "code" / "shop_package"
    folder.mkdir(parents=True)
    for name in ("__init__.py", "server.py", "rules.py"):
        (folder / name).write_text(f"# {name}\n")
    (folder / "rows.json").write_text("{}")
    return folder


def server(package, **settings) -> ServerSpec:
    return ServerSpec("shop", command=(sys.executable, "-m", "shop_package.server"), cwd=str(package.parent),
                      **settings)


def played(folder):
    folder.mkdir(exist_ok=True)
    (folder / "probe.jsonl").write_text("{}\n")
    return folder


@pytest.mark.parametrize("changed", ["server.py", "rules.py", "rows.json"])
def test_attempts_of_two_codes_are_not_mixed_unasked(tmp_path, package, changed):
    study = tmp_path / "study"
    note_servers([server(package)], "forked", study)
    note = noted_servers(study / SERVERS)["shop"]
    assert [(n["code"], n["python"]) for n in note] == [("shop_package.server", sys.version.split()[0])]
    assert "mcp" in note[0]["packages"] and len(note[0]["sha256"]) == 64
    played(study)
    note_servers([server(package)], "forked", study)
    assert noted_servers(study / SERVERS)["shop"] == note, "the same code is noted once"

    before = (package / changed).read_text()
    (package / changed).write_text(before + "\n")
    with pytest.raises(StudyError, match=r"server 'shop': its code \(shop_package.server, .*use another study folder"):
        note_servers([server(package)], "forked", study)
    assert noted_servers(study / SERVERS)["shop"] == note, "a refusal changes nothing"
    (package / changed).write_text(before)
    note_servers([server(package)], "forked", study)

    (package / changed).write_text(before + "\n")
    (study / SERVERS).unlink()
    note_servers([server(package)], "forked", study)
    assert noted_servers(study / SERVERS)["shop"][0]["sha256"] != note[0]["sha256"]


def test_without_an_attempt_there_is_nothing_to_mix(tmp_path, package):
    note_servers([server(package)], "forked", tmp_path / "study")
    (package / "rules.py").write_text("# mended\n")
    note_servers([server(package)], "forked", tmp_path / "study")
    assert len(noted_servers(tmp_path / "study" / SERVERS)["shop"]) == 1


def test_what_a_server_writes_beside_its_code_is_not_its_code(tmp_path, package):
    found = server_code([server(package)], "process")
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "rules.pyc").write_bytes(b"x")
    (package / "server.log").write_text("a session\n")
    (package / "shop.db").write_bytes(b"x")
    assert server_code([server(package)], "process") == found


def test_what_is_installed_beside_an_installed_module_is_not_its_code(tmp_path):
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "shop_module.py").write_text("1")
    spec = ServerSpec("shop", command=(sys.executable, "-m", "shop_module"), cwd=str(folder))
    [first] = server_code([spec], "process").values()
    (folder / "other.py").write_text("1")
    assert server_code([spec], "process") == {"shop": first}
    (folder / "shop_module.py").write_text("2")
    assert server_code([spec], "process")["shop"]["sha256"] != first["sha256"]


def test_hidden_files_and_folders_are_not_code(tmp_path, package):
    found = server_code([server(package)], "process")
    for folder in (".venv", ".ipynb_checkpoints"):
        (package / folder).mkdir()
        (package / folder / "rules.py").write_text("x")
    (package / ".rules.py.swp.json").write_text("x")
    (package / ".#rules.py").symlink_to("nobody@nowhere.1")  # as an editor marks what it has open
    (package / "rows.yaml").mkdir()
    assert server_code([server(package)], "process") == found


def test_a_package_that_lies_in_two_folders(tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder / "shop_space").mkdir(parents=True)
        (tmp_path / folder / "shop_space" / f"{folder}.py").write_text("1")
    spec = ServerSpec("shop", command=(sys.executable, "-m", "shop_space.two"),
                      env={"PYTHONPATH": os.pathsep.join(str(tmp_path / f) for f in ("one", "two"))})
    first = server_code([spec], "process")["shop"]["sha256"]
    (tmp_path / "two" / "shop_space" / "two.py").write_text("2")
    assert server_code([spec], "process")["shop"]["sha256"] not in (first, None)


def test_code_without_a_source_file_is_not_known(tmp_path):
    with zipfile.ZipFile(tmp_path / "code.zip", "w") as packed:
        packed.writestr("shop_packed/__init__.py", "")
    in_zip = ServerSpec("shop", command=(sys.executable, "-m", "shop_packed"),
                        env={"PYTHONPATH": str(tmp_path / "code.zip")})
    (tmp_path / "shop_compiled").mkdir()
    (tmp_path / "shop_compiled" / "__init__.pyc").write_bytes(b"x")
    compiled = ServerSpec("compiled", command=(sys.executable, "-m", "shop_compiled"), cwd=str(tmp_path))
    assert [found["sha256"] for found in server_code([in_zip, compiled], "process").values()] == [None, None]


def test_a_file_that_cannot_be_read_leaves_the_code_unknown(package, monkeypatch):
    def refuse(self):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "read_bytes", refuse)
    assert server_code([server(package)], "process")["shop"]["sha256"] is None


def test_a_command_s_database_is_not_its_code(tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "main.js").write_text("1")
    (tmp_path / "shop.db").write_bytes(b"1")
    spec = ServerSpec("shop", command=("node", "one/main.js", "two/main.js", "--db", "shop.db"), cwd=str(tmp_path))
    found = server_code([spec], "process")["shop"]
    (tmp_path / "shop.db").write_bytes(b"2")
    assert server_code([spec], "process")["shop"] == found
    (tmp_path / "one" / "main.js").write_text("2")
    assert server_code([spec], "process")["shop"]["sha256"] != found["sha256"]


def test_folders_that_come_and_go_meanwhile(tmp_path, package, monkeypatch):
    # Beside a command that writes to another folder the study's may be trained in.
    study = played(tmp_path / "study")
    (study / "train").mkdir()
    scandir = os.scandir

    def gone(folder):
        if Path(folder).name == "train":
            raise FileNotFoundError(2, "No such file or directory", str(folder))
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", gone)
    monkeypatch.setattr(pathlib, "_scandir", gone, raising=False)
    note_servers([server(package)], "forked", study)
    assert noted_servers(study / SERVERS)["shop"][0]["sha256"]


def test_another_interpreter_or_version_is_noted_beside_the_first(tmp_path, package):
    study = played(tmp_path / "study")
    note_servers([server(package)], "forked", study)
    note = noted_servers(study / SERVERS)
    note["shop"][0]["packages"]["mcp"] = "0.1"
    (study / SERVERS).write_text(json.dumps(note))
    note_servers([server(package)], "forked", study)
    assert [n["packages"]["mcp"] for n in noted_servers(study / SERVERS)["shop"]][0] == "0.1"
    assert len(noted_servers(study / SERVERS)["shop"]) == 2


def test_scripts_modules_in_this_process_and_what_is_not_here(tmp_path):
    script = tmp_path / "server.js"
    script.write_text("1")
    by_script = ServerSpec("a", command=("node", "server.js"), cwd=str(tmp_path))
    [first] = server_code([by_script], "process").values()
    script.write_text("2")
    [second] = server_code([by_script], "process").values()
    assert first["code"] == "server.js" and first["sha256"] != second["sha256"]

    here = ServerSpec("b", command=("python", "-m", "tbstudy_demo.clinic"), in_process="tbstudy_demo.clinic:server")
    found = server_code([here], "inprocess")["b"]
    assert len(found["sha256"]) == 64
    assert server_code([replace(here, in_process=None)], "inprocess")["b"] == found, "its module is run in process, too"
    assert server_code([ServerSpec("c", "mcp-remote", url="http://x")], "http") == {}
    for missing in ((sys.executable, "-m", "no_such_module_of_ours"), ("no-such-python", "-m", "x"), ("no-such-tool",),
                    ("node", "-e", "1;" * 5000)):
        assert server_code([ServerSpec("d", command=missing)], "process")["d"]["sha256"] is None


@pytest.mark.parametrize("text", ["{", "null", "[]", '{"s": [{}]}', '{"s": 1}', '{"s": [1]}'])
def test_a_note_that_is_none_is_named(tmp_path, text):
    (tmp_path / SERVERS).write_text(text)
    with pytest.raises(StudyError, match="servers.json: not a note of servers' code"):
        noted_servers(tmp_path / SERVERS)


def test_files_of_attempts_elsewhere_have_notes_of_their_own(tmp_path, package):
    study, one, other = tmp_path / "study", tmp_path / "results" / "one.jsonl", tmp_path / "results" / "other.jsonl"
    one.parent.mkdir()
    note_servers([server(package)], "forked", study, one)
    one.write_text("{}\n")
    (package / "rules.py").write_text("# mended\n")
    note_servers([server(package)], "forked", study, other)
    other.write_text("{}\n")
    assert [f.name for f in sorted(one.parent.glob("*.json"))] == ["one.servers.json", "other.servers.json"]
    with pytest.raises(StudyError, match="remove one.servers.json"):
        note_servers([server(package)], "forked", study, one)
    note_servers([server(package)], "forked", study, other)
    note_servers([server(package)], "forked", study, study / "play_benchmark.jsonl")
    assert (study / SERVERS).exists()
