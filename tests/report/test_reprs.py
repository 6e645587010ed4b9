"""Views of tasks, pools, campaigns, verdicts and reports."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from shown_records import RECORDS, write

from tbstudy.difficulty import band_table
from tbstudy.errors import StudyError
from tbstudy.evaluation.api import load_campaign
from tbstudy.report.reprs import facts, install, summary, summary_html
from tbstudy.report.study import StudyReport
from tbstudy.reward.verdict import Verdict
from tbstudy.selection import select_pool
from tbstudy.tasks.loader import load_dataset

ROOT = Path(__file__).parents[2]
UID = "telecom_plan_change.py:test_001"


def test_a_task_shows_nothing_private():
    task = load_dataset(ROOT / "data" / "demo", [UID]).tasks[UID]
    for text in (summary(task), summary_html(task)):
        assert task.query in text and "telecom" in text and "change_plan" in text
        for private in ("L-787", "golden", "suspended", "You are Rosa"):
            assert private not in text


def test_the_other_views(tmp_path):
    assert "dataset demo: 1 tasks" in summary(load_dataset(ROOT / "data" / "demo", [UID]))
    campaign = load_campaign(write(tmp_path / "a.jsonl", [RECORDS[0], RECORDS[2]]), allow_incomplete=True)
    assert "50.0% of 2 clean attempts" in summary(campaign) and "1, 2 attempts each" in summary(campaign)
    verdict = Verdict(False, 0.0, reason="<b>states differ</b>", diff=RECORDS[0]["test_result"]["metadata"]["diff"])
    assert "verdict: failed" in summary(verdict) and "wrong items I-1 due: expected None, found 3" in summary(verdict)
    assert "&lt;b&gt;" in summary_html(verdict)
    assert "reward" not in facts(Verdict(False, 0.0, True, "timeout", cause="check"))[1]
    assert summary(StudyReport(tmp_path / "study", title="My study")) == "report: My study"
    rows = [(f"t.py:{k}", "d", r, r < k, False) for k in (3, 4, 5, 6) for r in range(8)]
    table = band_table(pd.DataFrame(rows, columns=["uid", "domain", "repetition", "passed", "system_error"]))
    text = summary(select_pool(table))
    assert text.startswith("pool of 4 tasks: ") and "4 of 4  band kept" in text
    with pytest.raises(StudyError, match="no view of a int"):
        summary(3)


def test_ipython_uses_them_and_nothing_else_changes():
    IPython = pytest.importorskip("IPython")
    shell = IPython.core.interactiveshell.InteractiveShell()
    assert install(shell) is True
    data, _ = shell.display_formatter.format(Verdict(True, 1.0))
    assert data["text/plain"] == "verdict: passed\n  reward  1" and "<b>verdict: passed</b>" in data["text/html"]
    assert shell.display_formatter.format(3)[0] == {"text/plain": "3"}
