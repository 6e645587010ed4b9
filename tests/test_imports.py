"""Importing the package is cheap."""

from __future__ import annotations

import subprocess
import sys


def test_import_loads_nothing_heavy():
    code = "import sys, tbstudy; print(sorted({'torch', 'matplotlib', 'transformers', 'pandas'} & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_cli_help_loads_no_torch_and_no_matplotlib():
    code = ("import sys\nfrom tbstudy.cli import main\ntry:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
            "print({'torch', 'matplotlib', 'transformers'} & set(sys.modules), file=sys.stderr)")
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stderr.strip().splitlines()[-1] == "set()" and "base-policy" in out.stdout
