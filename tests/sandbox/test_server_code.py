"""The code of tool servers is noted with the first attempts; attempts of two codes are never mixed unasked."""

import json
import sys

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
    note = noted_servers(study)["shop"]
    assert [(n["code"], n["python"]) for n in note] == [("shop_package.server", sys.version.split()[0])]
    assert "mcp" in note[0]["packages"] and len(note[0]["sha256"]) == 64
    played(study)
    note_servers([server(package)], "forked", study)
    assert noted_servers(study)["shop"] == note, "the same code is noted once"

    before = (package / changed).read_text()
    (package / changed).write_text(before + "\n")
    with pytest.raises(StudyError, match=r"server 'shop': its code \(shop_package.server, .*use another study folder"):
        note_servers([server(package)], "forked", study)
    assert noted_servers(study)["shop"] == note, "a refusal changes nothing"
    (package / changed).write_text(before)
    note_servers([server(package)], "forked", study)

    (package / changed).write_text(before + "\n")
    (study / SERVERS).unlink()
    note_servers([server(package)], "forked", study)
    assert noted_servers(study)["shop"][0]["sha256"] != note[0]["sha256"]


def test_without_an_attempt_there_is_nothing_to_mix(tmp_path, package):
    note_servers([server(package)], "forked", tmp_path / "study")
    (package / "rules.py").write_text("# mended\n")
    note_servers([server(package)], "forked", tmp_path / "study")
    assert len(noted_servers(tmp_path / "study")["shop"]) == 1


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


def test_another_interpreter_or_version_is_noted_beside_the_first(tmp_path, package):
    study = played(tmp_path / "study")
    note_servers([server(package)], "forked", study)
    note = noted_servers(study)
    note["shop"][0]["packages"]["mcp"] = "0.1"
    (study / SERVERS).write_text(json.dumps(note))
    note_servers([server(package)], "forked", study)
    assert [n["packages"]["mcp"] for n in noted_servers(study)["shop"]][0] == "0.1"
    assert len(noted_servers(study)["shop"]) == 2


def test_scripts_modules_in_this_process_and_what_is_not_here(tmp_path):
    script = tmp_path / "server.js"
    script.write_text("1")
    by_script = ServerSpec("a", command=("node", "server.js"), cwd=str(tmp_path))
    [first] = server_code([by_script], "process").values()
    script.write_text("2")
    [second] = server_code([by_script], "process").values()
    assert first["code"] == "server.js" and first["sha256"] != second["sha256"]

    here = ServerSpec("b", command=("python", "-m", "tbstudy_demo.clinic"), in_process="tbstudy_demo.clinic:server")
    assert len(server_code([here], "inprocess")["b"]["sha256"]) == 64
    assert server_code([ServerSpec("c", "mcp-remote", url="http://x")], "http") == {}
    for missing in ((sys.executable, "-m", "no_such_module_of_ours"), ("no-such-python", "-m", "x"), ("no-such-tool",),
                    ("node", "-e", "1;" * 5000)):
        assert server_code([ServerSpec("d", command=missing)], "process")["d"]["sha256"] is None


def test_a_note_that_is_no_json_is_named(tmp_path):
    (played(tmp_path / "study") / SERVERS).write_text("{")
    with pytest.raises(StudyError, match="servers.json: not JSON"):
        noted_servers(tmp_path / "study")
