"""The study's configuration: one strict model, read from YAML. An unknown key or a wrong type is an error."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import NoneType
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from tbstudy.difficulty import DEFAULT_BANDS
from tbstudy.disk import hash_files
from tbstudy.errors import StudyError
from tbstudy.policies.client import OPERATIONAL, Endpoint
from tbstudy.tasks.source import read_yaml


class Section(BaseModel):
    """Base of all sections: frozen, no unknown keys, no silent conversion (the text "false" is not a boolean)."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class SandboxConfig(Section):
    """How tool servers run and how long a call may take, in seconds."""

    transport: Literal["inprocess", "forked", "process", "http", "proxy"] = "inprocess"
    call_seconds: float = Field(default=5.0, gt=0)
    python: str = "{python}"
    proxy_url: str | None = None

    @model_validator(mode="after")
    def _reachable(self) -> SandboxConfig:
        if self.transport == "proxy" and not self.proxy_url:
            raise ValueError("transport 'proxy' needs the key 'proxy_url'")
        return self


class SamplingConfig(Section):
    """Sampling of the policy; `max_turn_tokens` caps one generation, `max_episode_tokens` prompt and all turns."""

    temperature: float = Field(default=1.0, gt=0)
    top_k: int = Field(default=20, ge=0)
    top_p: float = Field(default=0.95, gt=0, le=1)
    max_turn_tokens: int = Field(default=96, gt=0)
    max_episode_tokens: int = Field(default=1536, gt=0)


class PolicyConfig(Section):
    """The base policy: a local checkpoint, or a model behind an endpoint."""

    kind: Literal["local", "endpoint"] = "local"
    checkpoint: str | None = None
    endpoint: Endpoint | None = None
    sampling: SamplingConfig = SamplingConfig()
    wave: int = Field(default=128, gt=0)
    workers: int = Field(default=2, gt=0)

    @model_validator(mode="after")
    def _complete(self) -> PolicyConfig:
        needed = {"local": "checkpoint", "endpoint": "endpoint"}[self.kind]
        if getattr(self, needed) is None:
            raise ValueError(f"kind {self.kind!r} needs the key {needed!r}")
        return self


class UserConfig(Section):
    """The simulated user: scripted from the task's private facts, or a model behind an endpoint."""

    kind: Literal["scripted", "endpoint"] = "scripted"
    endpoint: Endpoint | None = None
    temperature: float = Field(default=0.3, ge=0)


class JudgeConfig(Section):
    """The model behind the yes/no questions of checks; without one a question is a system error."""

    endpoint: Endpoint | None = None
    temperature: float = Field(default=0.0, ge=0)


class ProbeConfig(Section):
    """`attempts` episodes per candidate; a task with fewer than `min_clean` clean ones is not banded."""

    attempts: int = Field(default=8, gt=0)
    min_clean: int = Field(default=4, gt=0)


class BandConfig(Section):
    """A difficulty band [low, high] of the pass probability, and whether its tasks are kept for training."""

    name: str
    low: float = Field(ge=0, le=1)
    high: float = Field(ge=0, le=1)
    keep: bool


class SelectConfig(Section):
    """Split of the pool and uids that must stay out of it. `keep` overrides which bands the `bands` section keeps."""

    keep: tuple[str, ...] | None = None
    test_fraction: float = Field(default=0.4, gt=0, lt=1)
    exclude: tuple[str, ...] = ()


class TrainConfig(Section):
    """Local GRPO. `groups` prompts with `rollouts` episodes each make one update.

    `oversample` times as many groups are rolled out at first; zero-variance groups and groups with a system error
    are replaced from them and then from further rounds, `max_rounds` in all. `arms` are trained side by side:
    `selected` on the pool's train split, `whole` on the train split plus the candidates outside the kept bands.
    """

    backend: Literal["local", "verl"] = "local"
    updates: int = Field(default=50, gt=0)
    groups: int = Field(default=8, gt=0)
    rollouts: int = Field(default=8, gt=1)
    oversample: float = Field(default=2.0, ge=1)
    max_rounds: int = Field(default=4, gt=0)
    lr: float = Field(default=5.0e-4, gt=0)
    clip_low: float = Field(default=0.2, gt=0)
    clip_high: float = Field(default=0.2, gt=0)
    normalise_by_std: bool = False
    max_grad_norm: float = Field(default=1.0, gt=0)
    arms: tuple[Literal["selected", "whole"], ...] = Field(default=("selected", "whole"), min_length=1)

    @field_validator("arms")
    @classmethod
    def _once(cls, arms: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(arms)) < len(arms):
            raise ValueError("an arm is listed twice")
        return arms


class EvaluateConfig(Section):
    """`attempts` episodes per task for base and trained policy."""

    attempts: int = Field(default=20, gt=0)


class AnalyseConfig(Section):
    """Bootstrap `resamples` of the 95 % intervals."""

    resamples: int = Field(default=10_000, gt=0)


class StudyConfig(Section):
    """A whole study. Relative paths are relative to `root`, which is relative to the config file's folder.

    `verl_run` is the run configuration that `train.backend: verl` stands for.
    """

    study: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    seed: int = Field(ge=0)
    root: str = ".."
    dataset: str
    candidates: str
    benchmark: str
    servers: str
    sandbox: SandboxConfig = SandboxConfig()
    policy: PolicyConfig
    user: UserConfig = UserConfig()
    judge: JudgeConfig = JudgeConfig()
    probe: ProbeConfig = ProbeConfig()
    bands: tuple[BandConfig, ...] = tuple(
        BandConfig(name=b.name, low=b.low, high=b.high, keep=b.keep) for b in DEFAULT_BANDS)
    select: SelectConfig = SelectConfig()
    train: TrainConfig = TrainConfig()
    evaluate: EvaluateConfig = EvaluateConfig()
    analyse: AnalyseConfig = AnalyseConfig()
    verl_run: str = "configs/reference-q38.yaml"


class Study:
    """A loaded configuration with its paths resolved: `path(name)` under the root, `folder` for what the run writes."""

    def __init__(self, config: StudyConfig, file: Path, folder: Path | None = None):
        self.config, self.file = config, file
        self.root = (file.parent / config.root).resolve()
        self.folder = folder if folder is not None else self.root / "runs" / config.study

    def path(self, relative: str) -> Path:
        """A path of the configuration."""
        return self.root / relative

    def existing(self, key: str) -> Path:
        """The file or folder that the key `dataset`, or a key whose path lies in the dataset (`candidates`,
        `benchmark`, `servers`), names.

        Raises:
            StudyError: it is not there; naming the key and where a relative path starts.
        """
        value = getattr(self.config, key)
        base = self.root if key == "dataset" else self.existing("dataset")
        if not (base / value).exists():
            raise StudyError(f"{self.file}: key {key!r} = {value!r}: {base / value} does not exist (" + (
                "the path starts at `root`, which starts at the configuration's folder)" if key == "dataset" else
                "the path starts at the dataset)"))
        return base / value

    @property
    def checkpoint(self) -> Path | None:
        """The base policy's folder, None behind an endpoint."""
        found = self.config.policy.checkpoint
        return None if found is None else self.path(found)

    def rollout_hash(self, checkpoint: Path | None = None) -> str:
        """16 hex digits over everything that can change what one attempt does: seed, sampling, wave size, user,
        sandbox, the dataset's files and the checkpoint's weights (default: the base policy's).
        """
        c = self.config
        policy = c.policy.model_dump(mode="json", exclude={
            "workers": True, "checkpoint": True, "endpoint": OPERATIONAL})
        weights = checkpoint or self.checkpoint
        return _digest({
            "seed": c.seed, "policy": policy,
            "user": c.user.model_dump(mode="json", exclude={"endpoint": OPERATIONAL}),
            **({} if c.judge.endpoint is None else
               {"judge": c.judge.model_dump(mode="json", exclude={"endpoint": OPERATIONAL})}),
            "sandbox": c.sandbox.model_dump(mode="json"), "dataset": tree_hash(self.existing("dataset")),
            "weights": tree_hash(weights) if weights is not None else None})

    def section_hash(self, *sections: str) -> str:
        """16 hex digits over the named sections of the configuration and the seed."""
        raw = self.config.model_dump(mode="json")
        return _digest({name: raw[name] for name in ("seed", *sections)})


def parse_changes(given: Iterable[str]) -> dict[str, Any]:
    """The `section.key=value` of a command's --set, values in YAML.

    Raises:
        StudyError: one is not of that form.
    """
    changes = {}
    for item in given:
        key, equals, value = item.partition("=")
        if not equals:
            raise StudyError(f"--set {item!r}: expected section.key=value")
        try:
            changes[key] = yaml.safe_load(value)
        except yaml.YAMLError:
            raise StudyError(f"--set {item!r}: the value is not YAML") from None
    return changes


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


#: Folders that are no part of what lies around them.
_NO_CONTENT = frozenset({"__pycache__", ".git", ".ipynb_checkpoints"})


def tree_hash(folder: Path) -> str:
    """SHA-256 over the names and contents of a folder's files, in hex; without caches and version control.

    Raises:
        StudyError: there is no such folder.
    """
    if not folder.is_dir():
        raise StudyError(f"{folder}: no such folder")
    files = sorted(p for p in folder.rglob("*") if p.is_file() and not _NO_CONTENT & set(p.relative_to(folder).parts))
    return hash_files((file.relative_to(folder).as_posix(), file) for file in files)


def find(relative: str | Path) -> Path:
    """A file or folder named from the working folder or any folder above it (notebooks run in their own folder).

    Raises:
        StudyError: it is nowhere.
    """
    wanted = Path(relative)
    for base in (Path.cwd(), *Path.cwd().parents):
        if (base / wanted).exists():
            return (base / wanted).resolve()
    raise StudyError(f"{relative}: not found here or in any folder above; run from the project's folder")


def load_study(file: str | Path, folder: str | Path | None = None, **overrides: Any) -> Study:
    """Read a configuration. `overrides` are dotted keys with `__` for the dot, e.g. `probe__attempts=4`.

    Raises:
        StudyError: naming the file and every wrong key with its value.
    """
    path = find(file)
    raw = read_yaml(path, "configuration", unique=True)
    if not isinstance(raw, dict):
        raise StudyError(f"{path}: expected a mapping of keys, found {type(raw).__name__}")
    for dotted, value in overrides.items():
        *sections, key = dotted.split("__")
        target = raw
        for section in sections:
            if target.get(section) is None:
                target[section] = {}
            target = target[section]
            if not isinstance(target, dict):
                raise StudyError(f"{path}: key {section!r} = {target!r}: expected a mapping of keys")
        target[key] = value
    try:
        # JSON mode lets YAML lists be tuples and stays strict about every scalar.
        config = StudyConfig.model_validate_json(json.dumps(raw))
    except (ValidationError, TypeError) as error:
        raise StudyError(f"{path}: {explain(error)}") from None
    if folder is not None:
        base = Path(folder)
        folder = base if base.is_absolute() else (path.parent / config.root).resolve() / base
    return Study(config, path, folder)


def explain(error: Exception) -> str:
    """One line per wrong key of a validation error."""
    if not isinstance(error, ValidationError):
        return str(error)
    lines = []
    for e in error.errors():
        key = ".".join(map(str, e["loc"])) or "(whole file)"
        if e["type"] == "extra_forbidden":
            lines.append(f"unknown key {key!r}: mistyped?")
        elif e["type"] == "missing":
            lines.append(f"key {key!r} is missing")
        else:
            lines.append(f"key {key!r}{_value(e)}: {e['msg']}")
    return "; ".join(lines)


#: Keys whose value may be, or hold, a pasted key.
_UNQUOTED = frozenset({"api_key_env", "base_url", "extra_body"})


def _value(error: Mapping[str, Any]) -> str:
    """The wrong value as a message may quote it: a single one, and not where somebody may have put a key."""
    value = error["input"]
    quoted = isinstance(value, (str, int, float, NoneType)) and not _UNQUOTED & set(map(str, error["loc"]))
    return f" = {value!r}" if quoted else ""


def check_parameters(known: dict[str, type | tuple[type, ...]], values: dict[str, Any]) -> None:
    """Strict check of a notebook's parameters, since papermill passes unknown names and mistyped values through.

    `known` maps parameter names to types; `values` is the notebook's namespace, whose upper-case names are its
    parameters.

    Raises:
        StudyError: naming every unknown or mistyped parameter.
    """
    wrong = [f"unknown parameter {name!r} (known: {', '.join(known)})"
             for name in sorted({n for n in values if n.isupper() and not n.startswith("_")} - set(known))]
    for name, types in known.items():
        value = values[name]
        allowed = types if isinstance(types, tuple) else (types,)
        if type(value) not in allowed and not (value is None and type(None) in allowed):
            names = " or ".join("None" if t is type(None) else t.__name__ for t in allowed)
            how = f" (papermill: -y '{name}: [a, b]', not -p)" if list in allowed else ""
            wrong.append(f"parameter {name!r} = {value!r} is {type(value).__name__}, expected {names}{how}")
    if wrong:
        raise StudyError("; ".join(wrong))
