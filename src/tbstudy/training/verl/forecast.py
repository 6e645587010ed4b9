"""What a run will need, on paper: topology, memory, rollouts an update, user calls, tokens, hours.

All of it follows from the configuration, the pool's probe counts and stated assumptions, before any training: as the
policy learns, the shares move.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from tbstudy.difficulty import zero_variance_probability
from tbstudy.errors import StudyError
from tbstudy.selection import PoolManifest
from tbstudy.training.verl.assumptions import Assumptions
from tbstudy.training.verl.config import Run


@dataclass(frozen=True, slots=True)
class RolloutForecast:
    """Expected shares and counts of one update, before any training.

    `groups_needed` is the least number of groups that gives enough useful ones; `groups_played` is what verl's refill
    rule plays for them, mean and 95th percentile over simulated updates.
    """

    tasks: int
    zero_variance_share: float
    replaced_share: float
    groups_needed: float
    groups_played: float
    groups_played_p95: float
    rollouts: float


def topology(run: Run) -> pd.DataFrame:
    """Columns what, value, from: how the GPUs are divided."""
    c = run.config
    servers = c.cluster.world // c.parallel.rollout_tensor
    rows = [
        ("GPUs", c.cluster.world, f"{c.cluster.nodes} nodes x {c.cluster.gpus_per_node} {c.cluster.kind}"),
        ("sequence-parallel ranks", c.parallel.sequence, "parallel.sequence"),
        ("data-parallel ranks", c.data_parallel, "GPUs / sequence-parallel ranks"),
        ("rollout servers", servers, f"GPUs / parallel.rollout_tensor ({c.parallel.rollout_tensor})"),
        ("groups an update", c.update.groups, "update.groups"),
        ("episodes an update", c.update.groups * c.update.rollouts, "update.groups x update.rollouts"),
        ("episodes a data-parallel rank", c.update.groups * c.update.rollouts / c.data_parallel, "of an update"),
        ("episodes a rollout server", c.update.groups * c.update.rollouts / servers, "of an update, at the start"),
        ("agent-loop workers", c.rollout.workers, "rollout.workers"),
        ("tokens a GPU, longest sequence", -(-c.lengths.model // c.parallel.sequence), "lengths.model / sequence"),
    ]
    return pd.DataFrame(rows, columns=["what", "value", "from"])


def model_shape(folder: Path) -> dict[str, float]:
    """Parameters and, per token, key/value bytes (16 bit) of a checkpoint folder, from its files' headers.

    Raises:
        StudyError: config.json cannot be read, or no weights and no index tell the size.
    """
    try:
        raw = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StudyError(f"{folder / 'config.json'}: cannot be read ({error}); give --parameters (or "
                         "model.parameters) instead") from None
    text = raw.get("text_config", raw)
    index = folder / "model.safetensors.index.json"
    parameters = 0.0
    for path in sorted(folder.glob("*.safetensors")):
        with open(path, "rb") as file:
            header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        parameters += sum(float(np.prod(entry["shape"])) for name, entry in header.items() if name != "__metadata__")
    if not parameters and index.is_file():
        parameters = json.loads(index.read_text(encoding="utf-8"))["metadata"]["total_size"] / 2
    if not parameters:
        raise StudyError(f"{folder}: no weights to count parameters of; give --parameters instead")
    head = text.get("head_dim") or text["hidden_size"] // text["num_attention_heads"]
    layers = sum(kind == "full_attention" for kind in text["layer_types"]) if text.get("layer_types") else text[
        "num_hidden_layers"]
    return {"parameters": parameters, "kv_bytes": 2 * 2 * layers * text["num_key_value_heads"] * head}


def memory(run: Run, parameters: float, kv_bytes: float | None = None) -> pd.DataFrame:
    """Columns what, gib, where, how: weights, gradients, optimizer and cache of one GPU (or its host), in GiB.

    Activations are not in it: they depend on the kernels. Parameters are kept in 32 bit by the optimizer's engine and
    computed with in `model.dtype`.
    """
    c, gib = run.config, 2.0 ** 30
    world, width = c.cluster.world, 4 if c.model.dtype == "float32" else 2
    host = "host" if c.optimizer.offload_optimizer else "GPU"
    shard = parameters / world / gib
    rollout = width * parameters / c.parallel.rollout_tensor / gib
    budget = c.rollout.gpu_memory_utilization * c.cluster.memory_gib
    rows = [
        ("rollout: weights", rollout, "GPU", f"{width} bytes / parallel.rollout_tensor"),
        ("rollout: key/value cache", budget - rollout, "GPU", "gpu_memory_utilization x memory - weights"),
        ("update: parameter shard", 4 * shard, "host" if c.optimizer.offload_parameters else "GPU",
         "4 bytes / GPUs; on the GPU while it computes"),
        ("update: gradient shard", 4 * shard, "GPU", "4 bytes / GPUs"),
        ("update: Adam moments", 8 * shard, host, "8 bytes / GPUs"),
        ("checkpoint, all ranks", 12 * parameters / gib, "disk", "parameters and moments, each save"),
    ]
    if kv_bytes:
        tokens = max(0.0, budget - rollout) * gib / (kv_bytes / c.parallel.rollout_tensor)
        rows.append(("rollout: tokens cached by a server", tokens / 1e6, "GPU", "millions, not GiB"))
    return pd.DataFrame(rows, columns=["what", "gib", "where", "how"])


def rollouts(run: Run, pool: PoolManifest, system_error_rate: float = 0.0, *, updates: int = 400) -> RolloutForecast:
    """Expected groups and rollouts of an update over the pool's training split.

    A task's group is useless with the posterior probability that all its rewards are equal, or when one of its
    rollouts is a system error. `updates` simulated updates follow verl's rule: as many groups in flight as an update
    has, two more for each one thrown away over equal rewards and one for each with an error, until enough are useful;
    those still in flight are finished.
    """
    c = run.config
    uids = set(pool.uids(c.data.split))
    tasks = [task for task in (*pool.tasks, *pool.outside) if task.uid in uids]
    if not tasks:
        raise StudyError(f"the pool's split {c.data.split!r} is empty; nothing to forecast")
    zero = np.array([zero_variance_probability(task.k, task.n, c.update.rollouts) for task in tasks])
    failed = 1.0 - (1.0 - system_error_rate) ** c.update.rollouts
    useful = float(np.mean((1.0 - zero) * (1.0 - failed)))
    if useful <= 0:
        raise StudyError("no group of this pool would ever be useful: all rewards equal with certainty")
    rng = np.random.default_rng(c.seed)
    played = np.array([_one_update(rng, zero, failed, c.update.groups) for _ in range(updates)], float)
    return RolloutForecast(len(tasks), float(zero.mean()), 1.0 - useful, c.update.groups / useful, float(played.mean()),
                           float(np.quantile(played, 0.95)), float(played.mean()) * c.update.rollouts)


def tables(run: Run, pool: PoolManifest, given: Assumptions | None = None, parameters: float | None = None
           ) -> dict[str, pd.DataFrame]:
    """Everything that a forecast says, by title. `parameters` of the model are counted in its folder when left out, and
    taken from the configuration where there is no folder.

    Raises:
        StudyError: the model's folder is not there and nothing tells its size, or the pool cannot train.
    """
    given = given or Assumptions()
    folder = run.path(run.config.model.path)
    if parameters is None and not folder.is_dir():
        parameters = run.config.model.parameters
    shape = {"parameters": parameters, "kv_bytes": None} if parameters else model_shape(folder)
    found = rollouts(run, pool, given.system_error_rate)
    return {"Topology": topology(run), "Memory": memory(run, shape["parameters"], shape["kv_bytes"]),
            "Rollouts of an update, before any training": rollout_table(found), "On paper": plan(run, found, given),
            "Assumptions": assumptions_table(given)}


def rollout_table(found: RolloutForecast) -> pd.DataFrame:
    """Columns what, value."""
    names = {"tasks": "tasks in the split", "zero_variance_share": "expected share of zero-variance groups",
             "replaced_share": "expected share of groups replaced, system errors included",
             "groups_needed": "groups needed for one update", "groups_played": "groups played under verl's refill rule",
             "groups_played_p95": "the same, 95th percentile", "rollouts": "rollouts an update"}
    return pd.DataFrame([(said, getattr(found, name)) for name, said in names.items()], columns=["what", "value"])


def _one_update(rng: np.random.Generator, zero: np.ndarray, failed: float, groups: int) -> int:
    flying, good, credit, played = groups, 0, 0, groups
    while flying:
        # Which group ends next does not matter: all are drawn alike.
        flying -= 1
        if rng.random() < failed:
            credit += 1
        elif rng.random() < zero[rng.integers(len(zero))]:
            credit += 2
        else:
            good += 1
        if good < groups:
            more = min(credit, groups - flying)
            flying, credit, played = flying + more, credit - more, played + more
    return played


def plan(run: Run, found: RolloutForecast, given: Assumptions) -> pd.DataFrame:
    """Columns what, per_update, whole_run: calls, tokens and hours under the assumptions."""
    c = run.config
    trained = c.update.groups * c.update.rollouts
    generated = found.rollouts * given.generated_tokens
    sequence = given.prompt_tokens + given.observation_tokens + given.generated_tokens
    seconds = (generated / (given.generate_rate * c.cluster.world)
               + trained * sequence / (given.train_rate * c.cluster.world) + given.overhead_seconds)
    calls = found.rollouts * given.user_calls
    rows = [
        ("rollouts played", found.rollouts),
        ("rollouts trained on", trained),
        ("policy calls", found.rollouts * given.policy_turns),
        ("generated tokens", generated),
        ("trained tokens, prompts included", trained * sequence),
        ("simulated-user calls", calls),
        ("simulated-user input tokens", calls * given.user_input_tokens),
        ("simulated-user output tokens", calls * given.user_output_tokens),
        ("hours", seconds / 3600),
        ("GPU-hours", seconds / 3600 * c.cluster.world),
    ]
    table = pd.DataFrame(rows, columns=["what", "per_update"])
    return table.assign(whole_run=table.per_update * c.update.updates)


def assumptions_table(given: Assumptions) -> pd.DataFrame:
    """Columns assumption, value."""
    return pd.DataFrame(asdict(given).items(), columns=["assumption", "value"])
