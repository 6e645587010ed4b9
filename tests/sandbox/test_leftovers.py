"""Many sessions, with clients that break off and servers that break down among them, leave nothing behind.

A few here; TBSTUDY_SESSIONS=1500 plays that many of each transport, as `python benchmarks/leftovers.py` does.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "leftovers.py"
SESSIONS = int(os.environ.get("TBSTUDY_SESSIONS", "40"))


@pytest.mark.parametrize("kind", ("forked", "process"))
def test_nothing_is_left_of_many_sessions(kind, tmp_path):
    done = subprocess.run([sys.executable, str(SCRIPT), "--sessions", str(SESSIONS), "--transports", kind,
                           "--json", str(tmp_path / "found.json")], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""  # no exception that nobody asked for, no unclosed resource
    found = json.loads((tmp_path / "found.json").read_text())[kind]
    assert found["left"] == found["left when closed"] == {}
    each = SESSIONS // 10
    outcomes = found["outcomes"]
    assert outcomes["golden"] == {"passed": each}
    for how in ("exit", "hang", "flood", "garbage", "init fails"):
        assert outcomes[how] == {"system fault": each}
    for how in ("cancelled in a call", "cancelled at the start"):
        assert outcomes[how] == {"cancelled": each}
    assert outcomes["our exception"] == {"ours": each}


def test_what_is_left_is_seen(tmp_path):
    """The script's own eyes: a process, a descriptor and a file that are left are in its answer."""
    code = ("import asyncio, os, subprocess, sys, tempfile\n"
            f"sys.path.insert(0, {str(SCRIPT.parent)!r})\nimport leftovers\n"
            f"os.environ[leftovers.MARK] = 'test'\nos.environ['TMPDIR'] = tempfile.tempdir = {str(tmp_path)!r}\n"
            "async def main():\n    before = leftovers.standing()\n"
            "    child = subprocess.Popen(['sleep', '60'], start_new_session=True)\n"
            "    ended = subprocess.Popen(['true'])\n    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)\n"
            "    file = open(tempfile.mkstemp()[1])\n"
            "    print(leftovers.leftovers(before, leftovers.standing()))\n    child.kill()\nasyncio.run(main())\n")
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.stdout.strip() == (
        "{'processes': [0, 1], 'zombies': [0, 1], 'descriptors': [7, 9], 'files': [0, 1]}"), found.stderr
