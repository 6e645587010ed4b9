"""The study as its users run it: the six notebooks, by `tbstudy run` and by papermill alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def tbstudy(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "tbstudy.cli", *arguments], capture_output=True, text=True, cwd=ROOT,
                          timeout=1200)


@pytest.mark.study
def test_a_miniature_study_runs_end_to_end_and_is_not_run_twice(mini_config, tmp_path):
    folder = tmp_path / "run"
    first = tbstudy("run", str(mini_config), "--study", str(folder), "--report-to", str(tmp_path / "reports"))
    assert first.returncode == 0, first.stderr
    executed = sorted(p.name for p in (folder / "notebooks").glob("*.ipynb"))
    assert executed == [p.name for p in NOTEBOOKS]
    report = tmp_path / "reports" / "mini" / "v1"
    manifest = json.loads((report / "manifest.json").read_text())
    assert manifest["seeds"] == {"study": 3} and manifest["counts"]["candidates"] == 32
    assert manifest["counts"]["records"]["probe.jsonl"] == 32 * 4
    html = (report / "report.html").read_text()
    assert html.count("<figure") >= 6 and "Held-out test split" in html
    second = tbstudy("run", str(mini_config), "--study", str(folder), "--report-to", str(tmp_path / "reports"))
    assert second.returncode == 0 and second.stdout.count("unchanged") == 6
    assert not (tmp_path / "reports" / "mini" / "v2").exists()


@pytest.mark.parametrize(("name", "value", "message"), [
    ("ATEMPTS", "4", "unknown parameter 'ATEMPTS'"),
    ("KEEP", "false", "parameter 'KEEP' = 'false' is str"),
    ("TEST_FRACTION", "half", "parameter 'TEST_FRACTION' = 'half' is str"),
])
def test_papermill_stops_at_a_wrong_parameter(tmp_path, name, value, message):
    done = subprocess.run(
        [sys.executable, "-m", "papermill", "notebooks/03_select.ipynb", str(tmp_path / "out.ipynb"), "-k", "python3",
         "-p", name, value], capture_output=True, text=True, cwd=ROOT, timeout=300)
    assert done.returncode != 0 and message in done.stderr


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_notebooks_are_thin_and_executed(path):
    notebook = nbformat.read(path, as_version=4)
    code = [c for c in notebook.cells if c.cell_type == "code"]
    lines = [line for c in code for line in c.source.splitlines() if line.strip() and not line.startswith("#")]
    assert len(lines) <= 60
    assert not [line for line in lines if line.lstrip().startswith(("def ", "class ", "for ", "while ", "if "))]
    assert "/" + "root" not in str(notebook) and "/" + "work" not in str(notebook) and "/tmp/" not in str(notebook)
    assert "parameters" in code[0].metadata.tags
    assert all(c.execution_count for c in code), "not executed"
    assert not [o for c in code for o in c.outputs if o.output_type == "error" or o.get("name") == "stderr"]


def test_the_committed_notebooks_give_their_tables_again():
    done = subprocess.run([sys.executable, "-m", "pytest", "--nbval", "-p", "no:cacheprovider", "notebooks"],
                          capture_output=True, text=True, cwd=ROOT, timeout=900,
                          env=os.environ | {"PYTEST_ADDOPTS": ""})
    assert done.returncode == 0, done.stdout[-4000:]
    assert f"{sum(len([c for c in nbformat.read(p, 4).cells if c.cell_type == 'code']) for p in NOTEBOOKS)} passed" \
        in done.stdout
