"""Records as pandas tables: one row an attempt, a task, a message or a tool call.

`source` is a JSONL file (plain or gzipped, ours or ThinkingBox's `tb infer`), several of them, a study or folder that
holds some, or records already read. The column `source` tells the files of a folder apart: a study plays some tasks
with the same policy in more than one campaign.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any, Protocol

import pandas as pd

from tbstudy.errors import StudyError
from tbstudy.evaluation.attempts import Source as RecordSource
from tbstudy.evaluation.attempts import failed_answers, is_write_tool, latest, read_attempts


class HasFolder(Protocol):
    """A study: what it wrote lies in `folder`."""

    folder: Path


Records = str | Path | HasFolder | Sequence[str | Path] | Iterable[Mapping[str, Any]]
Key = tuple[str, str, int]  # policy, uid, repetition
_KEY = ("source", "policy", "uid", "repetition")


def attempts(source: str | Path | HasFolder | Sequence[str | Path], **options: Any) -> pd.DataFrame:
    """One row an attempt that counts: the columns of `evaluation.attempts.COLUMNS`; `options` go to its reader."""
    return pd.concat([latest(read_attempts(path, **options)) for path in record_files(source)], ignore_index=True)


def tasks(source: str | Path | HasFolder | Sequence[str | Path] | pd.DataFrame, **options: Any) -> pd.DataFrame:
    """One row a policy and task: source, policy, uid, domain, n (clean attempts), k (passed), system_errors, pass_rate,
    and means over the clean attempts: tool_calls, write_calls, tool_errors, generated tokens, seconds."""
    rows = source if isinstance(source, pd.DataFrame) else attempts(source, **options)
    clean = ~rows.system_error.astype(bool)
    means = ["tool_calls", "write_calls", "tool_errors", "policy_output_tokens", "seconds"]
    table = pd.DataFrame({
        **{name: rows[name].astype(str) for name in ("source", "policy", "uid", "domain")},
        "n": clean.astype(int), "k": (rows.passed.astype(bool) & clean).astype(int),
        "system_errors": (~clean).astype(int), **{name: rows[name].astype(float).where(clean) for name in means}})
    grouped = table.groupby(["source", "policy", "uid"], sort=True).agg(
        {"domain": "first", "n": "sum", "k": "sum", "system_errors": "sum", **dict.fromkeys(means, "mean")})
    grouped.insert(4, "pass_rate", (grouped.k / grouped.n.where(grouped.n > 0)).astype(float))
    return grouped.reset_index()


def messages(source: Records) -> pd.DataFrame:
    """One row a message: source, policy, uid, repetition, index, role, content, reasoning, calls (how many), tool (of
    an answer), tool_error, raw_text."""
    columns = [*_KEY, "index", "role", "content", "reasoning", "calls", "tool", "tool_error", "raw_text"]
    rows = []
    for file, key, record in read_records(source):
        talk = chat_messages(record)
        failed = failed_answers(talk, record.get("finish_reason") or "")
        for index, m in enumerate(talk):
            answer = m["role"] == "tool"
            rows.append((file, *key, index, m["role"], m.get("content"), m.get("reasoning_content"),
                         len(m.get("tool_calls") or ()), m.get("name") if answer else None,
                         bool(failed[index]), m.get("raw_text")))
    return pd.DataFrame(rows, columns=columns)


def tool_calls(source: Records, writes: Callable[[str], bool] | None = None) -> pd.DataFrame:
    """One row a tool call: source, policy, uid, repetition, index (of its message), call (0, 1, ... in the episode),
    tool, arguments (dict), answer (None when the episode ended with it), error, write (by `writes`, default: by name).
    """
    changes = writes or is_write_tool
    columns = [*_KEY, "index", "call", "tool", "arguments", "answer", "error", "write"]
    rows = []
    for file, key, record in read_records(source):
        talk, number = chat_messages(record), 0
        failed = failed_answers(talk, record.get("finish_reason") or "", changes)
        for index, m in enumerate(talk):
            # Some servers count ids anew in every reply, so only what follows a message answers its calls.
            after = takewhile(lambda later: not later[0].get("tool_calls"), zip(
                talk[index + 1:], failed[index + 1:], strict=True))
            answers = {a.get("tool_call_id"): (a.get("content"), wrong) for a, wrong in after if wrong is not None}
            for call in m.get("tool_calls") or ():
                name, (answer, wrong) = call["function"]["name"], answers.get(call.get("id"), (None, False))
                rows.append((file, *key, index, number, name, decoded(call["function"]["arguments"]), answer, wrong,
                             changes(name)))
                number += 1
    return pd.DataFrame(rows, columns=columns)


def record_files(source: str | Path | HasFolder | Sequence[str | Path]) -> list[Path]:
    """The record files that `source` names; in a folder those of the probe come first.

    Raises:
        StudyError: a path does not exist, or a folder holds no .jsonl or .jsonl.gz.
    """
    found: list[Path] = []
    one = getattr(source, "folder", source)
    for path in [Path(one)] if isinstance(one, (str, Path)) else [Path(p) for p in one]:
        if path.is_dir():
            inside = sorted((p for p in path.iterdir() if p.name.endswith((".jsonl", ".jsonl.gz"))),
                            key=lambda p: (not p.name.startswith("probe"), p.name))
            if not inside:
                raise StudyError(f"{path}: holds no records (*.jsonl, *.jsonl.gz); run a campaign first")
            found += inside
        elif path.is_file():
            found.append(path)
        else:
            raise StudyError(f"{path}: there are no records; check the path")
    return found


def read_records(source: Records, containing: str = "") -> Iterator[tuple[str, Key, dict[str, Any]]]:
    """Every record with the name of its file and its key, in file order; only lines that hold the text `containing`
    are decoded.

    Raises:
        StudyError: naming file and line of what is no record. A torn last line is passed over.
    """
    if _is_paths(source):
        for path in record_files(source):  # type: ignore[arg-type]
            for key, record in _read_file(path, containing):
                yield path.name, key, record
        return
    for number, record in enumerate(source, 1):  # type: ignore[arg-type]
        where = f"record {number}"
        yield "", _key(RecordSource(record, Path(where), None), record, where), dict(record)


def find_records(source: Records, uid: str, repetition: int = 0) -> dict[tuple[str, str], dict[str, Any]]:
    """The records of one attempt by (file, policy); of one that was repeated after a system error, the last clean."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    # A uid is plain ASCII in JSON text unless a file name is not.
    for file, (policy, theirs, number), record in read_records(source, uid if uid.isascii() else ""):
        if (theirs, number) == (uid, repetition):
            before = found.get((file, policy))
            if before is None or not _broken(record) or _broken(before):
                found[file, policy] = {**record, "metadata": {"policy": policy, **record["metadata"]}}
    return found


def find_record(source: Records, uid: str, repetition: int = 0, policy: str | None = None) -> dict[str, Any]:
    """The record of one attempt, from the first file that has it.

    Raises:
        StudyError: there is none, or several policies have it and `policy` does not say which.
    """
    found = find_records(source, uid, repetition)
    names = sorted({name for _, name in found})
    if policy is None and len(names) > 1:
        first = {name for file, name in found if file == next(iter(found))[0]}
        if len(first) > 1:
            raise StudyError(f"{uid} repetition {repetition} was played by {', '.join(names)}; name the policy")
        policy = first.pop()
    for (_, name), record in found.items():
        if policy in (None, name):
            return record
    raise StudyError(f"no attempt {uid} repetition {repetition}" + (f" of policy {policy!r}" if policy else "")
                     + f" in {_named(source)}; `tbstudy show RECORDS --list` lists what there is")


def chat_messages(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The conversation as chat messages, whichever of the two formats the record has."""
    given = record.get("messages") or []
    if not any("T" in m for m in given):
        return list(given)
    talk: list[dict[str, Any]] = []
    thought: str | None = None
    for m in given:
        kind, extra = m.get("T"), m.get("metadata") or {}
        if kind == "Text" and extra.get("tag") == "think":
            thought = m["content"] if thought is None else f"{thought}\n{m['content']}"
            continue
        if kind == "Text":
            new = {"role": m["role"], "content": m["content"]}
        elif kind in ("ToolCall", "ParallelToolCall"):
            calls = m["tool_calls"] if kind == "ParallelToolCall" else [m]
            new = {"role": "assistant", "content": None, "tool_calls": [
                {"id": c["id"], "type": "function", "function": {
                    "name": c["name"], "arguments": json.dumps(c["arguments"], ensure_ascii=False)}} for c in calls]}
        elif kind == "ToolResponse":
            new = {"role": "tool", "tool_call_id": m["id"], "name": m["name"], "content": m["content"]}
        else:
            continue
        if thought is not None and new["role"] == "assistant":
            new["reasoning_content"], thought = thought, None
        if "raw_text" in extra:
            new["raw_text"] = extra["raw_text"]
        talk.append(new)
    return talk


def decoded(arguments: Any) -> dict[str, Any]:
    """Arguments of a recorded call; text that is no JSON object comes back under the key "(unreadable)"."""
    if isinstance(arguments, dict):
        return arguments
    try:
        value = json.loads(arguments)
    except (TypeError, ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {"(unreadable)": arguments}


def _read_file(path: Path, containing: str) -> Iterator[tuple[Key, dict[str, Any]]]:
    source: RecordSource | None = None
    wanted = containing.encode()
    with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as lines:
        for number, line in enumerate(lines, 1):
            if line.isspace() or (wanted not in line and source is not None):
                continue
            try:
                record = json.loads(line)
            except ValueError as error:
                if not line.endswith(b"\n"):
                    return
                raise StudyError(f"{path}:{number}: not JSON ({error})") from None
            source = source or RecordSource(record, path, None)
            yield _key(source, record, f"{path}:{number}"), record


def _key(source: RecordSource, record: Mapping[str, Any], where: str) -> Key:
    try:
        meta = record["metadata"]
        name = meta["policy"] if source.kind == "tbstudy" else source.policy
        return str(name), str(record["uid"]), int(meta["repetition"])
    except (KeyError, TypeError, ValueError) as error:
        raise StudyError(f"{where}: not an attempt record ({type(error).__name__}: {error})") from None


def _broken(record: Mapping[str, Any]) -> bool:
    verdict = record.get("test_result")
    return bool(record.get("is_system_error") or verdict is None or verdict.get("is_system_error"))


def _is_paths(source: Records) -> bool:
    return isinstance(source, (str, Path)) or hasattr(source, "folder") or (
        isinstance(source, Sequence) and all(isinstance(item, (str, Path)) for item in source))


def _named(source: Records) -> str:
    return ", ".join(map(str, record_files(source))) if _is_paths(source) else "the given records"
