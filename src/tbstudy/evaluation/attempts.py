"""Campaign files -> one row an attempt.

Three kinds of JSONL are read, told apart by their first record: our own records, ThinkingBox's `tb infer` output, and
the canonical results of OpenEnv's `thinkingbox-eval` (with its errors sidecar). What they share is read by the same
code; `Source` holds what differs.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pydantic_core import from_json

from tbstudy.errors import StudyError

ROLES = ("policy", "user", "judge")
# Column name -> dtype of the attempts table; categories keep 18 full campaigns inside a few hundred MiB.
COLUMNS: dict[str, str] = {
    "policy": "category",
    "uid": "category",
    "repetition": "int32",
    "domain": "category",
    "file": "category",
    "passed": "bool",
    "reward": "float64",
    "system_error": "bool",
    "error_type": "category",
    "finish_reason": "category",
    "config_hash": "category",
    "warnings": "int32",
    "seconds": "float64",
    "policy_input_tokens": "float64",
    "policy_cached_tokens": "float64",
    "policy_output_tokens": "float64",
    "user_input_tokens": "float64",
    "user_output_tokens": "float64",
    "judge_input_tokens": "float64",
    "judge_output_tokens": "float64",
    "prompt_tokens": "float64",
    "generated_tokens": "float64",
    "wrong": "int32",
    "missing": "int32",
    "extra": "int32",
    "tool_calls": "int32",
    "write_calls": "int32",
    "tool_errors": "int32",
    "last_tool_error": "bool",
    "source": "category",
    "line": "int32",
}

# The public benchmark's scenarios by the domain names its authors report.
THINKINGBOX_DOMAINS = {
    "sandbox_external_retail": "retail",
    "sandbox_auto_insurance": "auto_insurance",
    "external_booking_v1": "travel",
    "sandbox_neobank_support_v1": "neobank",
    "sandbox_consulting": "consulting",
}
READ_PREFIXES = frozenset("get list search find read lookup look check view show query fetch track count".split())
_GROUP_SUFFIX = re.compile(r"(_group\d+)?(_rubrics_yesno)?\.py$")
_TB_DIFF_TYPE = re.compile(r"^\s*Type: (.+)$", re.MULTILINE)
_EMPTY_RESULTS = frozenset({"", "[]", "{}", "null", "none"})
_MAY_SAY_ERROR = re.compile(r'"(error|success|status|type)"', re.IGNORECASE)
_JSON = json.JSONDecoder()


@cache
def is_read_tool(name: str) -> bool:
    """Whether a tool only looks things up, by the first word of its name (get_, list_, search_, ...).

    Records do not say which tools write, so this is a convention; `read_attempts(writes=...)` overrides it.
    """
    return name.lower().split("_", 1)[0] in READ_PREFIXES


@cache
def is_write_tool(name: str) -> bool:
    """Whether a tool changes state: every tool that `is_read_tool` does not name."""
    return not is_read_tool(name)


def is_empty(content: str) -> bool:
    """Whether a tool's answer holds nothing: "", [], {}, null."""
    return content[:160].strip().lower() in _EMPTY_RESULTS


def is_tool_error(content: str, *, read: bool = True) -> bool:
    """Whether a tool's answer reports an error or a refusal, or is the empty answer of a look-up.

    True for text that starts with "error", and for a JSON object whose own fields say so: an `error` that is neither
    null, false, 0 nor empty, `success` false, `status` or `type` "error". An empty answer counts when the tool only
    reads (`read`): a tool that writes may have nothing to say.
    """
    text = content.lstrip()
    if len(text) < 160 and is_empty(text):
        return read
    if not text.startswith("{"):
        return text[:5].lower() == "error"
    if not _MAY_SAY_ERROR.search(text):
        return False
    try:
        # What follows the object is not looked at: a tool may answer in several texts.
        found = {key.lower(): value for key, value in _JSON.raw_decode(text)[0].items()}
    except (ValueError, RecursionError):
        return False
    said = {str(found.get(name)).lower() for name in ("status", "type")}
    return bool(found.get("error")) or found.get("success") is False or "error" in said


def failed_answers(
    messages: Sequence[dict[str, Any]], finish_reason: str = "", changes: Callable[[str], bool] = is_write_tool
) -> list[bool | None]:
    """For each message, whether it is a tool's answer that failed (`is_tool_error`); None where no tool answered.

    Reads chat messages and ThinkingBox messages. When the episode ended with an end-turn tool, the calls of its last
    turn are not made and their empty answers are none.
    """
    found: list[bool | None] = []
    asked: list[str] = []
    last = 0
    for index, message in enumerate(messages):
        kind = message.get("T") or message["role"]
        if kind not in ("tool", "ToolResponse"):
            found.append(None)
            if calls := _calls(message, kind):
                asked, last = [_tool(call) for call in calls], index
            continue
        # Not every server repeats the tool's name in its answer; answers come in the order of the calls.
        called = asked.pop(0) if asked else ""
        name = message.get("name") or called
        found.append(is_tool_error(message.get("content") or "", read=not changes(name)))
    if finish_reason == "end_turn_tool":
        for index in range(last, len(messages)):
            if is_empty(messages[index].get("content") or ""):
                found[index] = None
    return found


def read_attempts(
    paths: str | Path | Sequence[str | Path],
    *,
    policy: str | None = None,
    errors: str | Path | None = None,
    domain_of: Callable[[str], str] | None = None,
    writes: Callable[[str], bool] | None = None,
    on_torn: Callable[[str], None] = warnings.warn,
) -> pd.DataFrame:
    """One row an attempt, in file order, with the columns and dtypes of `COLUMNS`.

    `policy` names the policy of files that do not (ThinkingBox); by default the file's stem. `errors` is an OpenEnv
    errors sidecar, whose entries become system errors. `domain_of(uid)` overrides the recorded domain; `writes(tool)`
    says which tools change state. Token counts that were not recorded are NaN; `wrong`, `missing` and `extra` count
    the entries of the verdict's diff. A torn last line (no newline, not JSON) is skipped and reported to `on_torn`;
    any other unreadable line raises `StudyError` with file and line, as do a missing uid or repetition.
    """
    files = [Path(paths)] if isinstance(paths, (str, Path)) else [Path(path) for path in paths]
    changes = writes or is_write_tool
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for path in files:
        source = None
        for line, record in _records(path, on_torn):
            source = source or Source(record, path, policy)
            try:
                row = source.row(record, changes)
            except (KeyError, TypeError, AttributeError, ValueError) as error:
                raise StudyError(
                    f"{path}:{line}: not an attempt record ({type(error).__name__}: {error}); expected uid, "
                    "metadata.repetition, is_system_error, test_result as `tb infer` and `tbstudy` write them"
                ) from None
            _append(columns, row, path.name, line)
    if errors is not None:
        sidecar = Path(errors)
        for line, record in _records(sidecar, on_torn):
            _append(columns, _sidecar_row(record, sidecar, line, policy or files[0].stem), sidecar.name, line)
    if domain_of is not None:
        columns["domain"] = [domain_of(uid) for uid in columns["uid"]]
    return pd.DataFrame({name: _series(columns[name], dtype) for name, dtype in COLUMNS.items()})


class Source:
    """What one file's kind of record is: "tbstudy", "thinkingbox" or "openenv", and how its policy is named."""

    def __init__(self, first: dict[str, Any], path: Path, policy: str | None):
        metadata = first.get("metadata") if isinstance(first, dict) else None
        if not isinstance(metadata, dict) or "uid" not in first:
            raise StudyError(
                f"{path}: unknown format: the first record has no uid and metadata; expected JSONL of tbstudy, "
                "`tb infer` or `thinkingbox-eval`"
            )
        provenance = metadata.get("provenance")
        self.kind = "tbstudy" if "policy" in metadata else "openenv" if isinstance(provenance, dict) else "thinkingbox"
        self.policy = policy or (_openenv_model(provenance) if self.kind == "openenv" else None) or path.stem

    def row(self, record: dict[str, Any], changes: Callable[[str], bool]) -> dict[str, Any]:
        """The columns of one record. Raises KeyError, TypeError, AttributeError or ValueError when it is not an
        attempt."""
        metadata, verdict = record["metadata"], record.get("test_result")
        uid = sys.intern(record["uid"])
        broken = bool(record["is_system_error"] or verdict is None or verdict["is_system_error"])
        file = uid.partition(":")[0]
        row: dict[str, Any] = {
            "policy": metadata["policy"] if self.kind == "tbstudy" else self.policy,
            "uid": uid,
            "repetition": int(metadata["repetition"]),
            "domain": metadata.get("domain") or domain_name(metadata.get("scenario") or file),
            "file": file,
            "passed": bool(not broken and verdict["result"]),
            "reward": float(verdict["reward"]) if not broken else np.nan,
            "system_error": broken,
            "error_type": (metadata.get("error") or {}).get("type", "check") if broken else "",
            "finish_reason": record.get("finish_reason") or "",
            "config_hash": metadata.get("config_hash") or _openenv_config(metadata.get("provenance")),
            "warnings": metadata.get("interpretation_warnings") or 0,
            "seconds": metadata.get("seconds", metadata.get("execution_time", np.nan)),
        }
        for entry in record.get("usage") or ():
            role = entry.get("role", "policy")
            for kind in ("input", "output"):
                name = f"{role}_{kind}_tokens"
                row[name] = row.get(name, 0) + entry.get(f"{kind}_tokens", 0)
            if role == "policy":
                cached = (entry.get("input_tokens_details") or {}).get("cached_tokens", 0)
                row["policy_cached_tokens"] = row.get("policy_cached_tokens", 0) + cached
        tokens = record.get("tokens")
        if tokens:
            row["prompt_tokens"], row["generated_tokens"] = tokens.get("prompt"), tokens.get("generated")
        if not broken and not row["passed"]:
            row["wrong"], row["missing"], row["extra"] = diff_kinds(verdict)
        row |= trace_counts(record.get("messages") or (), changes, row["finish_reason"])
        return row


@cache
def domain_name(scenario: str) -> str:
    """The domain of a scenario or test file name: the published name where there is one, else the bare stem."""
    stem = _GROUP_SUFFIX.sub("", scenario)
    return THINKINGBOX_DOMAINS.get(stem, stem)


def diff_kinds(verdict: dict[str, Any]) -> tuple[int, int, int]:
    """(wrong, missing, extra): how many entries of each kind the verdict's diff has.

    Our records carry the diff in `metadata.diff`; ThinkingBox's checks print it into the assertion's traceback.
    """
    kinds = [entry["kind"] for entry in (verdict.get("metadata") or {}).get("diff") or ()]
    if not kinds:
        named = {"missing": "missing", "present": "extra"}
        kinds = [named.get(text.split()[0], "wrong") for text in _TB_DIFF_TYPE.findall(verdict.get("tb") or "")]
    return kinds.count("wrong"), kinds.count("missing"), kinds.count("extra")


def trace_counts(
    messages: Sequence[dict[str, Any]], changes: Callable[[str], bool], finish_reason: str = ""
) -> dict[str, Any]:
    """Tool calls of the policy, calls made to state-changing tools, tool answers that failed (`failed_answers`), and
    whether the last one did.

    Reads chat messages (`role`, `tool_calls[].function.name`) and ThinkingBox messages (`T`, `tool_calls[].name`).
    """
    turns = [[_tool(call) for call in _calls(m, m.get("T") or m["role"])] for m in messages]
    failed = failed_answers(messages, finish_reason, changes)
    answers = [wrong for wrong in failed if wrong is not None]
    last = max((index for index, tools in enumerate(turns) if tools), default=0)
    # What the turn that an end-turn tool ended asked for was not made, and so has changed nothing.
    unmade = finish_reason == "end_turn_tool" and all(wrong is None for wrong in failed[last:])
    return {
        "tool_calls": sum(map(len, turns)),
        "write_calls": sum(changes(name) for tools in (turns[:last] if unmade else turns) for name in tools),
        "tool_errors": sum(answers),
        "last_tool_error": bool(answers and answers[-1]),
    }


def _calls(message: dict[str, Any], kind: str) -> Sequence[dict[str, Any]]:
    return message.get("tool_calls") or ((message,) if kind == "ToolCall" else ())


def _tool(call: dict[str, Any]) -> str:
    return (call.get("function") or call)["name"]


def latest(attempts: pd.DataFrame) -> pd.DataFrame:
    """The attempts that count: of a key recorded again after a system error (`--repair`), only what came after.

    A key is (policy, uid, repetition). System-error rows are dropped where the key also has a clean row; of several
    system errors the last is kept. Two clean rows of one key both stay: `coverage` reports them, no rule picks one.
    """
    key = ["policy", "uid", "repetition"]
    codes = attempts.groupby(key, observed=True, sort=False).ngroup().to_numpy()
    broken = attempts.system_error.to_numpy(bool)
    has_clean = np.zeros(codes.max() + 1 if len(codes) else 0, bool)
    has_clean[codes[~broken]] = True
    last = ~pd.Series(codes).duplicated(keep="last").to_numpy()
    return attempts[~broken | (~has_clean[codes] & last)].reset_index(drop=True)


def _numbered(handle: Iterable[bytes], path: Path) -> Iterator[tuple[int, bytes]]:
    number = 0
    try:
        for number, line in enumerate(handle, 1):
            yield number, line
    except (EOFError, OSError, zlib.error) as error:
        raise StudyError(f"{path}: cannot be read beyond line {number} ({error}); the file is damaged, take a whole "
                         "copy") from None


def _records(path: Path, on_torn: Callable[[str], None]) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        handle = gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb")
    except OSError as error:
        raise StudyError(f"{path}: cannot read the campaign ({error.strerror}); check the path") from None
    with handle:
        for number, line in _numbered(handle, path):
            if line.isspace():
                continue
            try:
                yield number, from_json(line)
            except ValueError as error:
                if line.endswith(b"\n"):
                    raise StudyError(f"{path}:{number}: not JSON ({error}); remove or repair this line") from None
                on_torn(f"{path}:{number}: torn last line of {len(line)} bytes skipped")


def _append(columns: dict[str, list[Any]], row: dict[str, Any], source: str, line: int) -> None:
    row["source"], row["line"] = source, line
    for name, dtype in COLUMNS.items():
        value = row.get(name)
        if value is None:
            value = "" if dtype == "category" else np.nan if dtype == "float64" else 0
        columns[name].append(value)


def _series(values: list[Any], dtype: str) -> pd.Series:
    return pd.Series(pd.Categorical(values)) if dtype == "category" else pd.Series(np.array(values, dtype=dtype))


def _openenv_model(provenance: Any) -> str | None:
    model = ((provenance or {}).get("config") or {}).get("agent_model") or {}
    return model.get("deployment") or model.get("model")


def _openenv_config(provenance: Any) -> str:
    if not isinstance(provenance, dict):
        return ""
    return str((provenance.get("config") or {}).get("sha256") or "")[:16]


def _sidecar_row(record: dict[str, Any], path: Path, line: int, policy: str) -> dict[str, Any]:
    try:
        uid, repetition = sys.intern(record["uid"]), int(record["repetition"])
    except (KeyError, TypeError) as error:
        raise StudyError(f"{path}:{line}: not an errors-sidecar entry: no {error}; see docs/metrics.md") from None
    file = uid.partition(":")[0]
    return {
        "policy": _openenv_model(record.get("provenance")) or policy,
        "uid": uid,
        "repetition": repetition,
        "domain": domain_name(file),
        "file": file,
        "reward": np.nan,
        "system_error": True,
        "error_type": record.get("classification") or "backend",
        "config_hash": _openenv_config(record.get("provenance")),
    }
