"""The configuration of a verl run: one strict model, read from YAML, complete before anything starts."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from tbstudy.config import Section
from tbstudy.errors import StudyError
from tbstudy.tasks.source import parse_yaml

_ENV_NAME = re.compile(r"[A-Z_][A-Z0-9_]*")
#: What an API key looks like when it is written where its variable's name belongs.
_SECRET = re.compile(r"\b(sk-|hf_|ghp_|xox[bp]-)[A-Za-z0-9_-]{8,}|://[^/@\s]+:[^/@\s]+@")


class ModelSection(Section):
    """`path` is a Hugging Face checkpoint folder. `kernels`: fused log-probability kernel of the actor. `parameters` is
    their number, for forecasts where the folder is not."""

    path: str
    parameters: float | None = Field(default=None, gt=0)
    kernels: Literal["triton", "torch", "none"] = "triton"
    attention: Literal["flash_attention_2", "sdpa"] = "flash_attention_2"
    dtype: Literal["bfloat16", "float32"] = "bfloat16"


class DataSection(Section):
    """`pool` is a pool manifest, `split` the part that trains, `validation` the part that verl validates on.

    `tasks` is the number of training tasks that is expected, so that a stale manifest is noticed.
    """

    dataset: str
    servers: str
    pool: str
    benchmark: str
    agent: str | None = None
    split: Literal["train", "test", "whole"] = "train"
    validation: Literal["train", "test", "whole"] = "test"
    tasks: int | None = Field(default=None, gt=0)
    shuffle: bool = True


class SandboxSection(Section):
    """Tool servers of an agent-loop worker; times in seconds. `concurrency` bounds a worker's open sessions."""

    transport: Literal["inprocess", "forked", "process", "http", "proxy"] = "forked"
    python: str | None = None
    proxy_url: str | None = None
    start_seconds: float = Field(default=600.0, gt=0)
    call_seconds: float = Field(default=30.0, gt=0)
    session_seconds: float = Field(default=3600.0, gt=0)
    concurrency: int = Field(default=32, gt=0)

    @model_validator(mode="after")
    def _complete(self) -> SandboxSection:
        if self.transport == "proxy" and not self.proxy_url:
            raise ValueError("transport 'proxy' needs the key 'proxy_url'")
        return self


class EndpointSection(Section):
    """An OpenAI-compatible endpoint. `base_url_env` and `api_key_env` name environment variables."""

    model: str
    base_url: str | None = None
    base_url_env: str | None = None
    api_key_env: str | None = None
    temperature: float | None = Field(default=None, ge=0)
    concurrency: int = Field(default=16, gt=0)
    timeout_seconds: float = Field(default=600.0, gt=0)

    @field_validator("base_url_env", "api_key_env")
    @classmethod
    def _names_a_variable(cls, value: str | None) -> str | None:
        if value is not None and not _ENV_NAME.fullmatch(value):
            # The value itself may be the secret: it is not repeated.
            raise ValueError("must be the name of an environment variable (A-Z, 0-9, _), not the value itself")
        return value

    @model_validator(mode="after")
    def _complete(self) -> EndpointSection:
        if (self.base_url is None) == (self.base_url_env is None):
            raise ValueError("needs exactly one of the keys 'base_url' and 'base_url_env'")
        return self


class UserSection(Section):
    """The simulated user: scripted from the task's private facts, or a model behind an endpoint."""

    kind: Literal["scripted", "endpoint"] = "endpoint"
    endpoint: EndpointSection | None = None

    @model_validator(mode="after")
    def _complete(self) -> UserSection:
        if self.kind == "endpoint" and self.endpoint is None:
            raise ValueError("kind 'endpoint' needs the key 'endpoint'")
        return self


class ClusterSection(Section):
    """`platform` cpu runs verl's trainer without GPUs; Ray then pretends to have them."""

    nodes: int = Field(gt=0)
    gpus_per_node: int = Field(gt=0)
    kind: str = "H100"
    memory_gib: float = Field(default=80.0, gt=0)
    platform: Literal["cuda", "cpu"] = "cuda"
    ray_address: str | None = None
    cpus: int | None = Field(default=None, gt=0)

    @property
    def world(self) -> int:
        """Number of GPUs in all."""
        return self.nodes * self.gpus_per_node


class ParallelSection(Section):
    """`sequence` is Ulysses' degree in training, `rollout_tensor` the tensor parallelism of one rollout server."""

    sequence: int = Field(default=1, gt=0)
    rollout_tensor: int = Field(default=1, gt=0)


class UpdateSection(Section):
    """`groups` prompts with `rollouts` episodes each make one update; `updates` in all.

    Zero-variance groups are replaced, and so are groups with a system error. An update gives up once it evicted
    `max_evicted` groups, since verl itself would go on without end.
    """

    groups: int = Field(gt=0)
    rollouts: int = Field(gt=1)
    updates: int = Field(gt=0)
    max_evicted: int = Field(default=360, gt=0)
    mini_batch: int | None = Field(default=None, gt=0)
    micro_batch_per_gpu: int = Field(default=1, gt=0)


class OptimizerSection(Section):
    """AdamW with a constant learning rate, after `warmup_updates`."""

    lr: float = Field(gt=0)
    weight_decay: float = Field(default=0.0, ge=0)
    grad_clip: float = Field(default=1.0, gt=0)
    clip_low: float = Field(default=0.2, gt=0)
    clip_high: float = Field(default=0.2, gt=0)
    normalise_by_std: bool = True
    warmup_updates: int = Field(default=0, ge=0)
    offload_parameters: bool = True
    offload_optimizer: bool = True
    strategy: Literal["fsdp", "fsdp2"] = "fsdp"


class SamplingSection(Section):
    """Sampling of the policy in training; `turn_tokens` caps one generation."""

    temperature: float = Field(default=1.0, gt=0)
    top_k: int = 20
    top_p: float = Field(default=0.95, gt=0, le=1)
    turn_tokens: int = Field(default=8192, gt=0)


class LengthsSection(Section):
    """Tokens: the first prompt, everything after it, and both together as the rollout server allows."""

    prompt: int = Field(gt=0)
    response: int = Field(gt=0)
    model: int = Field(gt=0)


class RolloutSection(Section):
    """The rollout servers. `workers` are the processes that play episodes."""

    engine: Literal["vllm", "transformers"] = "vllm"
    gpu_memory_utilization: float = Field(default=0.70, gt=0, lt=1)
    batched_tokens: int = Field(default=32768, gt=0)
    max_sequences: int = Field(default=256, gt=0)
    workers: int = Field(default=6, gt=0)


class CheckpointSection(Section):
    """`folder` is written by every node; `shared` says that it is the same folder on all of them."""

    folder: str
    shared: bool = False
    every: int = Field(default=5, gt=0)
    keep: int | None = Field(default=None, gt=0)
    resume: Literal["auto", "disable"] = "auto"


class ServingSection(Section):
    """The evaluation host: `vllm serve` and the proxy in front of it."""

    tensor_parallel: int = Field(default=8, gt=0)
    dtype: Literal["bfloat16", "float16", "float32"] = "bfloat16"
    max_model_len: int = Field(default=262144, gt=0)
    gpu_memory_utilization: float = Field(default=0.85, gt=0, lt=1)
    max_num_seqs: int = Field(default=16, gt=0)
    max_num_batched_tokens: int = Field(default=8192, gt=0)
    reasoning_parser: str = "qwen3"
    tool_call_parser: str = "qwen3_xml"
    served_name: str = "policy"
    port: int = Field(default=8000, gt=0, lt=65536)
    proxy_port: int = Field(default=8001, gt=0, lt=65536)
    temperature: float = Field(default=1.0, ge=0)
    top_k: int = 20
    top_p: float = Field(default=0.95, gt=0, le=1)
    max_completion_tokens: int = Field(default=8192, gt=0)
    cpu: bool = False


class RunConfig(Section):
    """A whole verl run. Relative paths are relative to `root`, which is relative to the file's folder."""

    run: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    seed: int = Field(ge=0)
    root: str = ".."
    model: ModelSection
    data: DataSection
    sandbox: SandboxSection = SandboxSection()
    user: UserSection
    judge: EndpointSection | None = None
    cluster: ClusterSection
    parallel: ParallelSection = ParallelSection()
    update: UpdateSection
    optimizer: OptimizerSection
    sampling: SamplingSection = SamplingSection()
    lengths: LengthsSection
    rollout: RolloutSection = RolloutSection()
    checkpoints: CheckpointSection
    serving: ServingSection = ServingSection()
    loggers: tuple[Literal["console", "file", "wandb", "tensorboard", "mlflow"], ...] = ("console", "file")
    pins: dict[str, str] = {}
    overrides: dict[str, Any] = {}

    @property
    def data_parallel(self) -> int:
        """Ranks that see different episodes: the world divided by the sequence-parallel degree."""
        return self.cluster.world // self.parallel.sequence

    @property
    def endpoints(self) -> dict[str, EndpointSection]:
        """The endpoints that episodes need, by role."""
        found = {"user": self.user.endpoint if self.user.kind == "endpoint" else None, "judge": self.judge}
        return {role: endpoint for role, endpoint in found.items() if endpoint is not None}


class Run:
    """A loaded run configuration with its paths resolved."""

    def __init__(self, config: RunConfig, file: Path, root: Path):
        self.config, self.file, self.root = config, file, root

    def path(self, relative: str) -> Path:
        """A path of the configuration; absolute ones stay."""
        return (self.root / relative).expanduser()

    @property
    def checkpoints(self) -> Path:
        """The folder that holds `global_step_*`."""
        return self.path(self.config.checkpoints.folder)

    def dump(self) -> str:
        """The run as JSON that `load_run` reads back anywhere: the root is absolute."""
        return json.dumps({**self.config.model_dump(mode="json"), "root": str(self.root)}, indent=1, sort_keys=True)


def load_run(file: str | Path, changes: dict[str, Any] | None = None) -> Run:
    """Read a run configuration. A file may name another one to start from with the key `base` (relative to itself).

    `changes` are dotted keys with their values, applied last.

    Raises:
        StudyError: naming the file and every wrong key with its value (not of a key that looks like a secret).
    """
    path = Path(file)
    raw = _read(path)
    for dotted, value in (changes or {}).items():
        *sections, key = dotted.split(".")
        target = raw
        for section in sections:
            target = target.setdefault(section, {})
            if not isinstance(target, dict):
                raise StudyError(f"{dotted}: {section!r} is not a section of {path}")
        target[key] = copy.deepcopy(value)
    where = _secret(raw)
    if where:
        raise StudyError(f"{path}: key {where!r} holds what looks like a secret; write the name of an environment "
                         "variable instead (api_key_env, base_url_env)")
    try:
        # JSON mode lets YAML lists be tuples and stays strict about every scalar.
        config = RunConfig.model_validate_json(json.dumps(raw))
    except (ValidationError, TypeError) as error:
        raise StudyError(f"{path}: {_explain(error)}") from None
    return Run(config, path.resolve(), (path.parent / config.root).resolve())


def _explain(error: Exception) -> str:
    """One line per wrong key. The value is left out where it may be a secret or is a whole section."""
    if not isinstance(error, ValidationError):
        return str(error)
    lines = []
    for found in error.errors():
        key = ".".join(map(str, found["loc"])) or "(whole file)"
        if found["type"] == "extra_forbidden":
            lines.append(f"unknown key {key!r}: mistyped?")
        elif found["type"] == "missing":
            lines.append(f"key {key!r} is missing")
        elif key.endswith("_env") or isinstance(found["input"], (dict, list)):
            lines.append(f"key {key!r}: {found['msg']}")
        else:
            lines.append(f"key {key!r} = {found['input']!r}: {found['msg']}")
    return "; ".join(lines)


def _read(path: Path, chain: tuple[Path, ...] = ()) -> dict[str, Any]:
    if path.resolve() in chain:
        raise StudyError(f"{path}: the key 'base' leads back to itself")
    try:
        text = path.read_text(encoding="utf-8")
        # YAML 1.1 takes JSON's 1e-06 for text.
        raw = json.loads(text) if path.suffix == ".json" else parse_yaml(text, str(path), unique=True)
    except OSError as error:
        raise StudyError(f"{path}: cannot be read ({error.strerror})") from None
    except json.JSONDecodeError as error:
        raise StudyError(f"{path}: not JSON: {error}") from None
    if not isinstance(raw, dict):
        raise StudyError(f"{path}: expected a mapping of keys, found {type(raw).__name__}")
    base = raw.pop("base", None)
    if base is None:
        return raw
    return _merge(_read(path.parent / base, (*chain, path.resolve())), raw)


#: Sections whose keys are data, not settings: a derived file replaces them as a whole.
_WHOLE = ("endpoint", "judge", "pins", "overrides")


def _merge(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    out = dict(below)
    for key, value in above.items():
        both = isinstance(value, dict) and isinstance(out.get(key), dict) and key not in _WHOLE
        out[key] = _merge(out[key], value) if both else value
    return out


def _secret(value: Any, at: str = "") -> str:
    if isinstance(value, dict):
        return next((found for key, item in value.items() if (found := _secret(item, f"{at}.{key}".lstrip(".")))), "")
    if isinstance(value, list):
        return next((found for i, item in enumerate(value) if (found := _secret(item, f"{at}[{i}]"))), "")
    return at if isinstance(value, str) and _SECRET.search(value) else ""
