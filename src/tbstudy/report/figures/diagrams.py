"""Two diagrams: the loop of one episode, and the six stages of the study."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tbstudy.report import style
from tbstudy.report.style import PAPER_WIDTH, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def _canvas(width: float, height: float) -> tuple[Figure, Axes]:
    """A figure whose axes are measured in inches, without frame or ticks."""
    figure, axes = new_figure(width, height)
    axes.set_xlim(0, width)
    axes.set_ylim(0, height)
    axes.set_axis_off()
    return figure, axes


def _box(
    axes: Axes, x: float, y: float, w: float, h: float, title: str, text: str = "", colour: str = style.BLUE
) -> None:
    from matplotlib.patches import FancyBboxPatch

    shape = FancyBboxPatch(
        (x, y), w, h, boxstyle="round,pad=0,rounding_size=0.06", fc="white", ec=colour, lw=1.3, zorder=2
    )
    axes.add_patch(shape)
    lines = text.count("\n") + 1 if text else 0
    top = y + h / 2 + (0.068 * lines if lines else 0)
    axes.text(x + w / 2, top, title, ha="center", va="center", fontsize=8, fontweight="bold", color=colour, zorder=3)
    if text:
        axes.text(x + w / 2, top - 0.1, text, ha="center", va="top", fontsize=6.8, linespacing=1.25, zorder=3)


def _arrow(
    axes: Axes, start: tuple[float, float], end: tuple[float, float], *, bend: float = 0.0, dashed: bool = False
) -> None:
    axes.annotate(
        "",
        end,
        start,
        arrowprops={
            "arrowstyle": "-|>",
            "color": style.INK,
            "lw": 1.0,
            "ls": "--" if dashed else "-",
            "connectionstyle": f"arc3,rad={bend}",
            "shrinkA": 1,
            "shrinkB": 1,
        },
        zorder=1,
    )


@styled
def loop_diagram() -> Figure:
    """One episode: policy, user and tools act on a fresh database; the check reads the state; the verdict trains."""
    figure, axes = _canvas(PAPER_WIDTH, 2.75)
    _box(
        axes,
        0.1,
        1.62,
        1.5,
        0.86,
        "Task",
        "initial rows, user goal,\npolicy text, tools,\nexecutable check",
        style.BLACK,
    )
    _box(axes, 2.5, 1.62, 1.5, 0.86, "Policy", "reasons, speaks,\ncalls tools", style.BLUE)
    _box(axes, 5.2, 1.92, 1.55, 0.62, "Simulated user", "tells facts when asked", style.PURPLE)
    _box(axes, 5.2, 1.08, 1.55, 0.62, "Tool session", "isolated, over MCP", style.GREEN)
    _box(axes, 5.2, 0.12, 1.55, 0.68, "Database", "fresh for this attempt;\nterminal state and effects", style.GREEN)
    _box(axes, 2.5, 0.12, 1.5, 0.68, "Check", "any path, right state;\nwrong, missing, extra fail", style.VERMILION)
    _box(axes, 0.1, 0.12, 1.5, 0.68, "Verdict", "1 or 0,\nsystem errors apart", style.VERMILION)
    _arrow(axes, (1.6, 2.05), (2.5, 2.05))
    axes.text(2.05, 2.1, "query", fontsize=6.8, ha="center", va="bottom")
    _arrow(axes, (4.0, 2.3), (5.2, 2.3))
    _arrow(axes, (5.2, 2.12), (4.0, 2.12))
    axes.text(4.6, 2.34, "visible text", fontsize=6.8, ha="center", va="bottom")
    _arrow(axes, (4.0, 1.86), (5.2, 1.5))
    _arrow(axes, (5.2, 1.3), (4.0, 1.7))
    axes.text(4.32, 1.4, "calls, answers", fontsize=6.8, ha="center", va="top")
    _arrow(axes, (5.975, 1.08), (5.975, 0.8))
    axes.text(6.03, 0.94, "writes", fontsize=6.8, ha="left", va="center")
    _arrow(axes, (5.2, 0.46), (4.0, 0.46))
    axes.text(4.6, 0.5, "state", fontsize=6.8, ha="center", va="bottom")
    _arrow(axes, (2.5, 0.46), (1.6, 0.46))
    _arrow(axes, (0.85, 0.8), (2.62, 1.62), dashed=True)
    axes.text(1.5, 1.22, "reward: GRPO update", fontsize=6.8, ha="right", va="center")
    return figure


@styled
def stage_diagram(counts: dict[str, str] | None = None) -> Figure:
    """The six stages in order; `counts` adds a line under a stage, by its name (probe, band, select, train, ...)."""
    counts = counts or {}
    stages = [
        ("probe", "Probe", "base policy,\nn attempts a task", style.ORANGE),
        ("band", "Band", "Beta posterior,\nmost mass wins", style.ORANGE),
        ("select", "Select", "gates, kept bands,\nfixed pool", style.GREEN),
        ("train", "Train", "GRPO on database\nverdicts", style.BLUE),
        ("evaluate", "Evaluate", "base and trained,\nk attempts a task", style.VERMILION),
        ("analyse", "Analyse", "intervals, ledger,\ncost, report", style.VERMILION),
    ]
    width, gap = 0.98, 0.18
    figure, axes = _canvas(PAPER_WIDTH, 1.25 if counts else 0.85)
    floor = 0.46 if counts else 0.06
    start = (PAPER_WIDTH - 6 * width - 5 * gap) / 2
    for index, (key, title, text, colour) in enumerate(stages):
        x = start + index * (width + gap)
        _box(axes, x, floor, width, 0.72, f"{index + 1} {title}", text, colour)
        if index:
            _arrow(axes, (x - gap, floor + 0.36), (x, floor + 0.36))
        if key in counts:
            axes.text(x + width / 2, floor - 0.07, counts[key], ha="center", va="top", fontsize=6.6, linespacing=1.3)
    return figure
