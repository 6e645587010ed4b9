"""`tbstudy report`: freeze a study folder, or the published study, into a versioned report."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path


def add_parser(subparsers: argparse._SubParsersAction) -> argparse.ArgumentParser:
    """Add the `report` command; its handler is in the `run` default and returns an exit code."""
    parser = subparsers.add_parser(
        "report",
        help="freeze a study into reports/<name>/<version>/",
        description="Freeze the tables, figures and executed notebooks of a study folder into a versioned report. "
        "An existing version is never overwritten.",
    )
    parser.add_argument("study", help="study folder (it holds report.json), or 'published' for the published study")
    parser.add_argument("--out", type=Path, default=Path("reports"), help="root of the reports (default: reports)")
    parser.add_argument("--name", help="name of the report (default: the study folder's name)")
    parser.add_argument("--version", dest="report_version", help="version (default: the next of v1, v2, ...)")
    parser.add_argument("--notebook", type=Path, action="append", default=[], help="another executed notebook to copy")
    parser.add_argument(
        "--data",
        type=Path,
        default=Path("data/published"),
        help="folder of the published numbers (default: data/published)",
    )
    parser.set_defaults(run=run)
    return parser


def run(options: argparse.Namespace) -> int:
    """Freeze and print the folder written."""
    from tbstudy.report.build import freeze

    if options.study != "published":
        study = Path(options.study)
        name = options.name or study.resolve().name
        print(freeze(study, options.out, name, options.report_version, notebooks=options.notebook))
        return 0
    from tbstudy.report.published import build_published

    with tempfile.TemporaryDirectory() as scratch:
        build_published(options.data, scratch)
        files = sorted(path for path in options.data.iterdir() if path.suffix in (".csv", ".yaml"))
        name = options.name or "published"
        print(freeze(scratch, options.out, name, options.report_version, notebooks=options.notebook, data=files))
    return 0
