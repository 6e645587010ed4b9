"""A study folder's tables and figures, with an index that the frozen report is made from.

report = StudyReport("runs/laptop", title="Laptop study")
report.table("outcome", Table(...))
report.figure("transitions", figures.transition_heatmap(...), "caption")
report.view("example", compare_episodes(...), "caption")
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tbstudy.disk import write_atomic
from tbstudy.errors import StudyError
from tbstudy.report.style import save_figure
from tbstudy.report.tables import Table, write_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INDEX = "report.json"
KINDS = ("table", "figure", "view", "section")


class HtmlView(Protocol):
    """What shows itself as an HTML fragment: an episode, two side by side."""

    def html(self) -> str:
        """The fragment: everything foreign escaped, no script, nothing loaded from elsewhere."""


class StudyReport:
    """Writes into `folder`/tables, `folder`/figures and `folder`/views and keeps `folder`/report.json: title, intro,
    entries in order.

    Adding an entry again replaces it in place. Notebooks add what they show; `build.freeze` turns the folder into a
    versioned report. An existing index is continued, so that several notebooks can share one report.

    As a context, the report counts as cut from entering to leaving without an error, and `build.freeze` refuses a cut
    one: its entries may be partly of an older analysis.
    """

    _open = False

    def __init__(self, folder: str | Path, *, title: str | None = None, intro: str | None = None):
        self.folder = Path(folder)
        self.index: dict[str, Any] = {"title": title or self.folder.name, "intro": intro or "", "entries": []}
        path = self.folder / INDEX
        if path.is_file():
            found = load_index(self.folder)
            self.index = found | {key: value for key, value in (("title", title), ("intro", intro)) if value}

    def __enter__(self) -> StudyReport:
        self.index["cut"] = True
        self._write()
        self._open = True
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._open = False
        if kind is None:
            del self.index["cut"]
            self._write()

    def table(self, name: str, table: Table) -> Table:
        """Write the table in four formats and index it; returns it, for a notebook to show."""
        write_table(table, self.folder / "tables" / name)
        self._add({"kind": "table", "name": name, "caption": table.caption})
        return table

    def figure(self, name: str, figure: Figure, caption: str = "") -> Figure:
        """Write the figure as PDF, SVG and PNG and index it; returns it, for a notebook to show."""
        save_figure(figure, self.folder / "figures" / name)
        self._add({"kind": "figure", "name": name, "caption": caption})
        return figure

    def view(self, name: str, view: HtmlView, caption: str = "") -> HtmlView:
        """Write the view's HTML and index it; returns it, for a notebook to show."""
        write_atomic(self.folder / "views" / f"{name}.html", f"{view.html()}\n".encode())
        self._add({"kind": "view", "name": name, "caption": caption})
        return view

    def section(self, title: str, text: str = "") -> None:
        """A heading with a paragraph before the entries that follow."""
        self._add({"kind": "section", "name": title, "caption": text})

    def facts(self, **values: Any) -> None:
        """Facts for the manifest: seeds, model, counts, config_hash, ... (JSON values; later ones replace earlier)."""
        self.index["facts"] = self.index.get("facts", {}) | values
        self._write()

    def _add(self, entry: dict[str, str]) -> None:
        if "/" in entry["name"] and entry["kind"] != "section":
            raise StudyError(f"{entry['name']!r} cannot name a {entry['kind']}: it becomes a file name")
        entries = self.index["entries"]
        same = [i for i, old in enumerate(entries) if (old["kind"], old["name"]) == (entry["kind"], entry["name"])]
        if same:
            entries[same[0]] = entry
        else:
            entries.append(entry)
        self._write()

    def _write(self) -> None:
        if not self._open:
            write_atomic(self.folder / INDEX, f"{json.dumps(self.index, indent=1, ensure_ascii=False)}\n".encode())


def load_index(folder: str | Path) -> dict[str, Any]:
    """The index of a study folder. Raises `StudyError` when there is none or it is not one."""
    path = Path(folder) / INDEX
    try:
        index = json.loads(path.read_text(encoding="utf-8"))
        entries = index["entries"]
    except OSError as error:
        raise StudyError(f"{path}: no report index ({error.strerror}); run the analyse stage first") from None
    except (ValueError, KeyError, TypeError) as error:
        raise StudyError(f"{path}: not a report index ({error}); delete it and run the analyse stage again") from None
    for entry in entries:
        if entry.get("kind") not in KINDS or "name" not in entry:
            raise StudyError(f"{path}: entries: {entry!r} is no {', '.join(KINDS[:-1])} or {KINDS[-1]}")
    return index
