"""How tasks, pools, campaigns, verdicts and reports look in a notebook: short, stable, nothing private.

`install()` registers these views with IPython; `summary(value)` is the same on a terminal. Private context, golden
calls and world states are left out: executed notebooks are public.
"""

from __future__ import annotations

import html
from typing import Any

from tbstudy.campaign import CampaignResult
from tbstudy.errors import StudyError
from tbstudy.evaluation.api import Campaign
from tbstudy.report.study import StudyReport
from tbstudy.reward.verdict import Verdict
from tbstudy.selection import PoolManifest
from tbstudy.tasks.loader import Dataset
from tbstudy.tasks.model import Task

Facts = dict[str, str]


def facts(value: Any) -> tuple[str, Facts]:
    """(title, facts by name) of a value.

    Raises:
        StudyError: it is of no kind that has a view.
    """
    for kind, view in _VIEWS.items():
        if isinstance(value, kind):
            return view(value)
    raise StudyError(f"no view of a {type(value).__name__}; there are views of "
                     f"{', '.join(kind.__name__ for kind in _VIEWS)}")


def summary(value: Any) -> str:
    """The title, then one fact a line."""
    title, found = facts(value)
    width = max(map(len, found), default=0)
    return "\n".join([title, *(f"  {name:<{width}}  {text}" for name, text in found.items())])


def summary_html(value: Any) -> str:
    """The same as a small table without ids or scripts."""
    title, found = facts(value)
    rows = "".join(f'<tr><th style="text-align:left;vertical-align:top">{html.escape(name)}</th>'
                   f'<td style="text-align:left;white-space:pre-wrap">{html.escape(text)}</td></tr>'
                   for name, text in found.items())
    return f"<p><b>{html.escape(title)}</b></p><table><tbody>{rows}</tbody></table>"


def install(shell: Any = None) -> bool:
    """Use these views in IPython (`shell`, default: the running one); False where there is none."""
    if shell is None:
        try:
            from IPython import get_ipython
        except ImportError:
            return False
        shell = get_ipython()
    if shell is None:
        return False
    formatters = shell.display_formatter.formatters
    for kind in _VIEWS:
        formatters["text/html"].for_type(kind, summary_html)
        formatters["text/plain"].for_type(kind, lambda value, printer, cycle: printer.text(summary(value)))
    return True


def _task(task: Task) -> tuple[str, Facts]:
    tags = task.tags.get("labels") or task.tags.get("tags") or ()
    tools = "all" if task.tools is None else ", ".join(t.name for t in task.tools)
    return f"task {task.uid}", _filled({
        "domain": task.domain, "query": task.query, "servers": ", ".join(task.world_state), "tools": tools,
        "private facts": "yes" if task.user_context else "none", "tags": ", ".join(map(str, tags)),
        "earlier messages": str(len(task.history)) if task.history else ""})


def _dataset(dataset: Dataset) -> tuple[str, Facts]:
    return f"dataset {dataset.root.name}: {len(dataset.tasks)} tasks", _filled({
        "agent": dataset.agent, **{name: f"{count} tasks" for name, count in dataset.by_domain().items()}})


def _pool(pool: PoolManifest) -> tuple[str, Facts]:
    sizes = ", ".join(f"{len(pool.uids(split))} {split}" for split in ("train", "test"))  # type: ignore[arg-type]
    gates = "\n".join(f"{gate.left:>5} of {gate.entered}  {gate.name}" for gate in pool.funnel)
    return f"pool of {len(pool.tasks)} tasks: {sizes}", _filled({
        "bands kept": ", ".join(pool.kept_bands), "gates": gates, "outside the bands": f"{len(pool.outside)} tasks",
        "seed": str(pool.seed), "configuration": pool.config_hash})


def _campaign(campaign: Campaign) -> tuple[str, Facts]:
    rows = campaign.attempts
    clean = rows[~rows.system_error.astype(bool)]
    rate = f"{clean.passed.mean():.1%} of {len(clean):,} clean attempts" if len(clean) else "no clean attempt"
    return f"campaign of {campaign.policy}", _filled({
        "scored": campaign.coverage.label(), "tasks": f"{rows.uid.nunique():,}, {campaign.k} attempts each",
        "passed": rate, "system errors": f"{len(rows) - len(clean):,}"})


def _verdict(verdict: Verdict) -> tuple[str, Facts]:
    outcome = "system error" if verdict.system_error else "passed" if verdict.passed else "failed"
    shown = "\n".join(f"{d['kind']} {' '.join(str(d[k]) for k in ('table', 'row', 'field') if d.get(k) is not None)}: "
                      f"expected {d.get('expected')!r}, found {d.get('actual')!r}" for d in verdict.diff)
    return f"verdict: {outcome}", _filled({"reward": "" if verdict.system_error else f"{verdict.reward:g}",
                                           "cause": verdict.cause, "reason": verdict.reason, "differences": shown})


def _report(report: StudyReport) -> tuple[str, Facts]:
    found: Facts = {}
    for kind in ("table", "figure", "view"):
        names = [entry["name"] for entry in report.index["entries"] if entry["kind"] == kind]
        found[f"{kind}s"] = f"{len(names)}: {', '.join(names)}" if names else ""
    return f"report: {report.index['title']}", _filled(found)


def _result(result: CampaignResult) -> tuple[str, Facts]:
    return f"{result.stored + result.played:,} of {result.wanted:,} attempts recorded", _filled({
        "file": result.path.name, "system errors": f"{result.system_errors:,}",
        "cut from a torn end": f"{result.torn_bytes} bytes" if result.torn_bytes else ""})


def _filled(found: Facts) -> Facts:
    return {name: text for name, text in found.items() if text}


_VIEWS = {Task: _task, Dataset: _dataset, PoolManifest: _pool, Campaign: _campaign, Verdict: _verdict,
          StudyReport: _report, CampaignResult: _result}
