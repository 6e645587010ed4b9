"""Importing the package is cheap."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_import_loads_nothing_heavy():
    code = "import sys, tbstudy; print(sorted({'torch', 'matplotlib', 'transformers', 'pandas'} & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_cli_help_loads_no_torch_and_no_matplotlib():
    code = ("import sys\nfrom tbstudy.cli import main\ntry:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
            "print({'torch', 'matplotlib', 'transformers'} & set(sys.modules), file=sys.stderr)")
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stderr.strip().splitlines()[-1] == "set()" and "base-policy" in out.stdout


def test_binder_installs_what_the_package_needs_except_for_playing():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {re.split(r"[^A-Za-z0-9_-]", line)[0] for line in project["dependencies"]}
    names |= {re.split(r"[^A-Za-z0-9_-]", line)[0] for line in project["optional-dependencies"]["lab"]}
    lines = (ROOT / ".binder" / "requirements.txt").read_text().splitlines()
    listed = {line for line in lines if line and not line.startswith(("#", "-c "))}
    assert listed == names - {"torch", "transformers", "safetensors"} and "-c ../requirements.lock" in lines


def test_the_recorded_run_is_read_without_torch():
    code = ("import sys\nfor name in ('torch', 'transformers', 'safetensors'):\n    sys.modules[name] = None\n"
            "from tbstudy import stages\nfrom tbstudy.config import load_study\n"
            "study = load_study('configs/laptop.yaml', 'data/recorded/laptop')\n"
            "print(stages.probe(study).played, len(stages.train(study)) > 0, "
            "stages.evaluate(study).episodes.sum() > 0)")
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert out.stdout.splitlines()[-1] == "0 True True"
