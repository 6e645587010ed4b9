"""Faults at exact points of a miniature study, from outside: no code of the study knows about them.

A point is the n-th change (open, write, fsync, rename, ...) that a part of the study makes to its folders, counted over
all its processes by a library loaded into them (disk_faults.c). At that point the writing process, the main process
or all of them are killed, Ctrl-C is pressed, or the disk is full from there on.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from tbstudy.config import load_study
from tbstudy.errors import StudyError
from tbstudy.outcome import outcome, tables
from tbstudy.report.build import freeze
from tbstudy.store import key_of, read_lines

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PARTS = ("probe", "train", "evaluate", "report")
#: full: the process ends with its message and is started again; full_again: it goes on once there is space.
KINDS = ("kill", "kill_main", "kill_all", "interrupt", "full", "full_again")
APPENDED = ("probe.jsonl", "evaluate_test.jsonl", "evaluate_benchmark.jsonl")


@dataclass(frozen=True, slots=True)
class Point:
    """A fault: in which part of the study, of which kind, at which change, and how much of a write gets through.

    `only` ("operation name") makes changes of one kind to one file count alone.
    """

    part: str
    kind: str
    at: int
    through: int
    only: str = ""

    def __str__(self) -> str:
        return f"{self.part}-{self.kind}-{self.at}-{self.through}"


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process of the study ended: exit status (negative: signal), what it printed, which change was hit."""

    status: int
    output: str
    hit: str


def compiler() -> str | None:
    """A C compiler, without which there are no exact points; only Linux has LD_PRELOAD as used here."""
    return next((c for c in ("cc", "gcc", "clang") if shutil.which(c)), None) if sys.platform == "linux" else None


def build(folder: Path) -> Path:
    """Compile the fault library."""
    out = folder / "disk_faults.so"
    subprocess.run([compiler(), "-shared", "-fPIC", "-O1", "-o", out, HERE / "disk_faults.c", "-ldl"], check=True)
    return out


def write_config(folder: Path, root: Path = ROOT, workers: int = 2, arms: Sequence[str] = ("selected", "whole"),
                 **changes: Any) -> Path:
    """A study of a few seconds a part, with `workers` processes at work in probe, training and evaluation."""
    folder.mkdir(parents=True, exist_ok=True)
    lists = root / "data" / "demo" / "lists"
    for name, step in (("candidates", 14), ("benchmark", 24)):
        uids = yaml.safe_load((lists / f"{name}.yaml").read_text())[::step]
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(uids))
    raw = {
        "study": "faults", "seed": 5, "root": str(root), "dataset": "data/demo", "servers": "servers.yaml",
        "candidates": str(folder / "candidates.yaml"), "benchmark": str(folder / "benchmark.yaml"),
        "policy": {"kind": "local", "checkpoint": "data/recorded/base_policy", "wave": 12, "workers": workers},
        "probe": {"attempts": 3, "min_clean": 2}, "select": {"test_fraction": 0.4},
        "train": {"updates": 2, "groups": 1, "rollouts": 4, "oversample": 2.0, "max_rounds": 2, "lr": 1.0e-3,
                  "arms": list(arms)},
        "evaluate": {"attempts": 2}, "analyse": {"resamples": 100}} | changes
    path = folder / "faults.yaml"
    path.write_text(yaml.safe_dump(raw))
    return path


class Bench:
    """An undisturbed run, kept part by part, and what a disturbed one must come to."""

    def __init__(self, folder: Path, root: Path = ROOT, older: bool = True, **options: Any):
        self.folder = folder
        self.config = write_config(folder / "config", root, **options)
        self.library = build(folder)
        self.changes: dict[str, list[str]] = {}
        self.after: dict[str, dict[str, Any]] = {}
        self.left: dict[str, dict[str, bytes]] = {}
        self.sizes: dict[str, tuple[int, int]] = {}
        base = folder / "base"
        for part in PARTS:
            if part == "report" and older:
                # It starts over the finished report of another analysis, whose files it replaces.
                self._run(write_config(folder / "older", root, analyse={"resamples": 50}, **options), base, part)
            shutil.copytree(base, self._start(part)) if base.exists() else self._start(part).mkdir()
            ended = self._run(self.config, base, part, Point(part, "none", 0, 0))
            if ended.status:
                raise RuntimeError(f"the undisturbed run failed: {ended.output}")
            self.changes[part] = ended.hit.splitlines()
            self.after[part], self.left[part] = snapshot(base, self.config, part), files(base)
            self.sizes[part] = disk_size(self._start(part)), disk_size(base)
        self.before = {part: files(self._start(part)) for part in PARTS}

    def _start(self, part: str) -> Path:
        return self.folder / f"before_{part}"

    def points(self, count: int, seed: int, parts: Sequence[str] = PARTS, kinds: Sequence[str] = KINDS) -> list[Point]:
        """`count` points spread evenly over parts and kinds, the rest drawn from `seed`."""
        rng = random.Random(seed)
        pairs = [(part, kind) for kind in kinds for part in parts]
        found = []
        for i in range(count):
            part, kind = pairs[i % len(pairs)]
            found.append(Point(part, kind, rng.randint(1, len(self.changes[part])), rng.randrange(101)))
        return found

    def begin(self, part: str, name: str) -> Path:
        """A fresh case as it is before the part."""
        case = self.folder / "cases" / name
        if not os.path.ismount(case):
            shutil.rmtree(case, ignore_errors=True)
        shutil.copytree(self._start(part), case, dirs_exist_ok=True)
        return case

    def disturb(self, case: Path, point: Point) -> Ended:
        """Run the part with the fault, and check what it left: one line for a person, and only whole files."""
        ended = self._run(self.config, case, point.part, point)
        if point.kind == "small_disk":
            assert ended.status == 2, f"{point}: {ended}"
            self._check_message(ended, point)
            self.check_whole(case, point.part)
            return ended
        if not ended.hit:
            assert ended.status == 0, f"{point}: failed without a fault: {ended.output}"
            return ended
        if point.kind in ("full", "full_again"):
            self._check_message(ended, point)
        if point.kind == "kill" and ended.status > 0:  # a worker was killed, not the process that we see
            assert ended.status == 2 and "start again" in ended.output, f"{point}: {ended}"
        elif point.kind in ("kill", "kill_main", "kill_all"):
            assert ended.status in (-9, 0), f"{point}: {ended}"
        elif point.kind == "interrupt":
            assert ended.status == 130, f"{point}: {ended}"
        self.check_whole(case, point.part)
        return ended

    def _check_message(self, ended: Ended, point: Point) -> None:
        assert "Traceback" not in ended.output, f"{point}: {ended.output}"
        told = re.search(r"^trouble: .*", ended.output, re.M)
        if told is None:  # what could not be written was of no consequence
            assert ended.status == 0, f"{point}: {ended}"
            return
        assert ended.status == (0 if point.kind == "full_again" else 2), f"{point}: {ended}"
        line = told.group()
        assert "No space left" in line and "free space" in line, f"{point}: {line}"
        assert str(self.folder / "cases") in line, f"{point}: no file is named: {line}"

    def finish(self, case: Path, part: str) -> None:
        """Start the part again and compare everything with the undisturbed run."""
        ended = self._run(self.config, case, part)
        assert ended.status == 0, ended.output
        found = snapshot(case, self.config, part)
        for name, value in self.after[part].items():
            assert found[name] == value, f"{name} differs from the undisturbed run"
        left = [p for p in case.rglob("*.tmp")]
        assert not left, f"scratch files stay: {left}"

    def check_whole(self, case: Path, part: str) -> None:
        """Every file is the one before the part, the one after it, or an append-only file whose end may be torn."""
        for name, content in files(case).items():
            if name in APPENDED:
                keys = [key_of(json.loads(line)) for line in content.split(b"\n")[:-1]]
                assert len(keys) == len(set(keys)), f"{name}: a key is doubled"
                continue
            good = [plain(name, w[name]) for w in (self.before[part], self.left[part]) if name in w]
            if name.startswith("report v"):
                continue  # compared by `snapshot` as a whole
            if name.endswith(("training.jsonl", "state.pt")):
                whole(name, content)
            elif name == "report.json" and b'"cut": true' in content:
                self._check_refused(case)
            else:
                assert plain(name, content) in good, f"{name}: neither the old nor the new file"

    def _check_refused(self, case: Path) -> None:
        """A report that was cut while it was written is not frozen."""
        try:
            freeze(case / "study", self.folder / "never", "never")
        except StudyError as error:
            assert "was cut" in str(error)
        else:
            raise AssertionError("a cut report was frozen")

    def _run(self, config: Path, case: Path, part: str, point: Point | None = None) -> Ended:
        case.mkdir(parents=True, exist_ok=True)
        environment = os.environ | {"TBSTUDY_PROGRESS": "lines", "SOURCE_DATE_EPOCH": "0"}
        log = self.folder / "hit"
        log.write_text("")
        command = [sys.executable, str(HERE / "pipeline_stage.py"), str(config), str(case), part]
        if point is not None and point.kind != "small_disk":
            environment |= faulty(self.library, case, point, self.folder / "state", log)
            command += ["--again"] if point.kind == "full_again" else []
        # Output to a file: a killed process may leave workers that hold a pipe open.
        with open(self.folder / "output", "w+b") as out:
            process = subprocess.Popen(command, env=environment, stdout=out, stderr=subprocess.STDOUT,
                                       start_new_session=True, preexec_fn=hear_interrupts)
            status = process.wait(timeout=900)
            out.seek(0)
            text = out.read().decode(errors="replace")
        return Ended(status, text, log.read_text())


def faulty(library: Path, case: Path, point: Point, state: Path, log: Path) -> dict[str, str]:
    """The environment in which programs meet the fault in what they change below `case`."""
    state.write_bytes(bytes(16))
    return {"LD_PRELOAD": str(library), "FAULT_FOLDER": str(case.resolve()), "FAULT_STATE": str(state),
            "FAULT_LOG": str(log), "FAULT_KIND": "full" if point.kind == "full_again" else point.kind,
            "FAULT_AT": str(point.at), "FAULT_PART": str(point.through),
            **({"FAULT_ONLY": point.only} if point.only else {})}


def hear_interrupts() -> None:
    """A shell's background job ignores Ctrl-C, and so would what it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextlib.contextmanager
def small_disk(folder: Path, size: int) -> Iterator[Callable[[int], None]]:
    """A file system of `size` bytes at `folder`, and how to enlarge it.

    Raises:
        PermissionError: this needs root, and a system that lets it mount.
    """
    folder.mkdir(parents=True, exist_ok=True)

    def mount(options: str) -> None:
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], capture_output=True, text=True)
        if done.returncode:
            raise PermissionError(done.stderr.strip())

    mount(f"size={max(size, 4096)}")
    try:
        yield lambda larger: mount(f"remount,size={larger}")
    finally:
        subprocess.run(["umount", folder], check=True)


def disk_size(folder: Path) -> int:
    """Bytes that the files of a folder take in pages of 4 KiB."""
    return sum(-(-p.stat().st_size // 4096) * 4096 for p in folder.rglob("*") if p.is_file())


def files(case: Path) -> dict[str, bytes]:
    """The files that a reader would take for whole: no hidden ones, and nothing in hidden folders."""
    found = {}
    for path in sorted(p for p in case.rglob("*") if p.is_file()):
        relative = path.relative_to(case)
        if not any(part.startswith(".") for part in relative.parts):
            name = str(relative)
            name = name.replace("reports/faults/", "report ", 1).removeprefix("study/")
            found[name] = path.read_bytes()
    return found


def plain(name: str, content: bytes) -> bytes:
    """Content without what differs from run to run: seconds."""
    if name.split("/")[0] == "tables" and "training" in name:
        return b""  # holds seconds; its whole form is compared in `snapshot`
    return content


def whole(name: str, content: bytes) -> None:
    """Fail when a training table or a training state is not readable to its end."""
    if name.endswith(".pt"):
        import io

        import torch

        torch.load(io.BytesIO(content), weights_only=True)
    else:
        assert content.endswith(b"\n")
        [json.loads(line) for line in content.splitlines()]


def snapshot(case: Path, config: Path, part: str) -> dict[str, Any]:
    """Everything that a part of the study leaves, but for timings."""
    study = load_study(config, case / "study")
    if part == "probe":
        return {"probe": verdicts(study.folder / "probe.jsonl"), "pool": (study.folder / "pool.json").read_bytes(),
                "bands": (study.folder / "bands.csv").read_bytes()}
    if part == "train":
        found = {}
        for arm in study.config.train.arms:
            folder = study.folder / "train" / arm
            rows = [json.loads(line) for line in (folder / "training.jsonl").read_text().splitlines()]
            found[f"{arm} table"] = json.dumps([{k: v for k, v in row.items() if k != "seconds"} for row in rows])
            found[f"{arm} checkpoint"] = {p.name: p.read_bytes() for p in (folder / "checkpoint").iterdir()}
        return found
    if part == "evaluate":
        shown = tables(outcome(study))
        shown["training"] = replace(shown["training"], data=shown["training"].data.drop(columns="seconds"))
        return {name: verdicts(study.folder / name) for name in APPENDED[1:]} | {
            "tables": {name: table.cells().to_csv() for name, table in shown.items()}}
    kept = {k: v for k, v in files(case).items() if k.split("/")[0] in ("tables", "figures", "report.json")}
    versions = sorted((case / "reports" / "faults").glob("v*"))
    # Whatever was cut, every version that there is is complete: the older report's, then the new one's.
    names = {v.name: sorted(str(p.relative_to(v)) for p in v.rglob("*")) for v in versions}
    assert len({json.dumps(n) for n in names.values()}) == 1, f"versions differ in their files: {names}"
    last = {str(p.relative_to(versions[-1])): p.read_bytes() for p in versions[-1].rglob("*")
            if p.is_file() and p.name != "manifest.json"}
    return {"study": kept, "frozen": last}


def verdicts(path: Path) -> dict[tuple, dict]:
    """Records by key without their timings; fails when a key is doubled."""
    found: dict[tuple, dict] = {}
    for _, record in read_lines(path):
        record["metadata"].pop("seconds")
        assert key_of(record) not in found, f"{path}: {key_of(record)} is stored twice"
        found[key_of(record)] = record
    return found
