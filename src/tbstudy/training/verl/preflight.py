"""What must hold before a run may start. Nothing is started while one rule fails.

Rules on paper look at the configuration alone, rules on the machine at what is there. Each returns what is wrong and
what to change, or an empty text.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tbstudy.errors import StudyError, SystemFault
from tbstudy.selection import PoolManifest, load_pool
from tbstudy.tasks.loader import load_dataset, load_list
from tbstudy.training.verl import checkpoints
from tbstudy.training.verl.config import EndpointSection, Run


class World:
    """What the rules on the machine look at. Tests put their own in its place."""

    def gpus(self, run: Run) -> list[int]:
        """GPUs of each node: those of the Ray cluster where there is one, else this machine's.

        Raises:
            StudyError: no cluster answers.
        """
        if run.config.cluster.nodes > 1 or run.config.cluster.ray_address:
            from tbstudy.training.verl.nodes import cluster_gpus

            return cluster_gpus(run.config.cluster.ray_address or "auto")
        import torch

        return [torch.cuda.device_count()]

    def version(self, package: str) -> str | None:
        """Installed version, without a local part such as +cu130; None when it is not installed."""
        try:
            return importlib.metadata.version(package).partition("+")[0]
        except importlib.metadata.PackageNotFoundError:
            return None

    def environment(self, name: str) -> str | None:
        """An environment variable."""
        return os.environ.get(name)

    def ask(self, role: str, endpoint: EndpointSection) -> None:
        """One short question to an endpoint.

        Raises:
            StudyError, SystemFault: it does not answer.
        """
        from tbstudy.policies.client import Client
        from tbstudy.training.verl.workplace import endpoint as resolved

        async def once() -> None:
            client = Client(resolved(endpoint, role).model_copy(update={"tries": 2}), role)
            try:
                await client.text([{"role": "user", "content": "Answer with the word yes."}])
            finally:
                await client.close()

        asyncio.run(once())

    def open_session(self, run: Run, uid: str) -> int:
        """Start and end one session of the task; the number of tools it offers.

        Raises:
            StudyError, SystemFault: it cannot be started.
        """
        from tbstudy.training.verl.workplace import Workplace

        async def once() -> int:
            place = Workplace(run)
            try:
                async with place.sandbox.session(place.task(uid)) as session:
                    return len(await session.tools())
            finally:
                await place.close()

        return asyncio.run(once())

    def prompt_lengths(self, run: Run, uids: Sequence[str]) -> dict[str, int]:
        """Tokens of each task's first prompt.

        Raises:
            StudyError, SystemFault: the tokenizer or a session is not to be had.
        """
        from transformers import AutoTokenizer

        from tbstudy.training.verl.workplace import Workplace

        async def measure() -> dict[str, int]:
            place = Workplace(run)
            try:
                return await place.prompt_lengths(tokenizer, uids)
            finally:
                await place.close()

        tokenizer = AutoTokenizer.from_pretrained(run.path(run.config.model.path), local_files_only=True)
        return asyncio.run(measure())

    def nodes_seen(self, run: Run) -> list[str]:
        """Nodes that have written their mark into the checkpoint folder."""
        from tbstudy.training.verl.nodes import marks

        return marks(run)

    def hooks(self, run: Run) -> dict[str, str]:
        """How each hook stands here, those of the CPU platform included where the run is on it.

        Raises:
            StudyError: one refuses, or verl is not installed.
        """
        from tbstudy.training.verl.compose import verl_missing
        from tbstudy.training.verl.hooks import HOOKS, report

        if reason := verl_missing():
            raise StudyError(reason)
        found = dict(report(HOOKS))
        if run.config.cluster.platform == "cpu":
            from tbstudy.training.verl.cpu.plugin import HOOKS as CPU_HOOKS

            found |= report(CPU_HOOKS)
        return found

    def compose(self, run: Run, extra: Sequence[str]) -> None:
        """Let verl read the configuration.

        Raises:
            StudyError: it refuses, or is not installed.
        """
        from tbstudy.training.verl.compose import compose

        compose(run, extra)


# --- on paper --------------------------------------------------------------------------------------------------------


def tensor_parallel_divides_node(run: Run) -> str:
    gpus, tensor = run.config.cluster.gpus_per_node, run.config.parallel.rollout_tensor
    if gpus % tensor:
        return (f"parallel.rollout_tensor = {tensor} does not divide cluster.gpus_per_node = {gpus}: a rollout server "
                f"would span nodes. Use one of {_divisors(gpus)}")
    return ""


def sequence_parallel_divides_world(run: Run) -> str:
    world, sequence = run.config.cluster.world, run.config.parallel.sequence
    if world % sequence:
        return (f"parallel.sequence = {sequence} does not divide the {world} GPUs of the cluster. "
                f"Use one of {_divisors(world)}")
    return ""


def episodes_divide(run: Run) -> str:
    c = run.config
    episodes = c.update.groups * c.update.rollouts
    if c.cluster.world % c.parallel.sequence == 0 and episodes % c.data_parallel:
        return (f"update.groups x update.rollouts = {episodes} episodes are not divisible by the {c.data_parallel} "
                f"data-parallel ranks ({c.cluster.world} GPUs / parallel.sequence {c.parallel.sequence}); change one "
                "of them")
    if episodes % c.cluster.world:
        return (f"update.groups x update.rollouts = {episodes} episodes are not divisible by the {c.cluster.world} "
                "GPUs, as verl demands; change update.groups or update.rollouts")
    return ""


def mini_batch_divides(run: Run) -> str:
    update = run.config.update
    mini = update.mini_batch or update.groups
    if mini > update.groups or update.groups % mini:
        return f"update.mini_batch = {mini} does not divide update.groups = {update.groups}; leave it out for one step"
    return ""


def lengths_fit(run: Run) -> str:
    c = run.config
    if c.lengths.prompt + c.lengths.response > c.lengths.model:
        return (f"lengths.prompt + lengths.response = {c.lengths.prompt + c.lengths.response} tokens exceed "
                f"lengths.model = {c.lengths.model}; raise lengths.model or shorten the others")
    if c.sampling.turn_tokens > c.lengths.response:
        return (f"sampling.turn_tokens = {c.sampling.turn_tokens} exceeds lengths.response = {c.lengths.response}; "
                "one generation cannot be longer than all of them")
    return ""


def engine_fits_platform(run: Run) -> str:
    c = run.config
    wanted = "transformers" if c.cluster.platform == "cpu" else "vllm"
    if c.rollout.engine != wanted:
        return (f"rollout.engine = {c.rollout.engine} with cluster.platform = {c.cluster.platform}; "
                f"this platform runs {wanted}")
    if c.cluster.platform == "cpu" and c.model.kernels == "triton":
        return "model.kernels = triton needs a GPU; use torch or none"
    if c.cluster.platform == "cpu" and c.model.attention != "sdpa":
        return f"model.attention = {c.model.attention} needs a GPU; use sdpa"
    return ""


def metrics_are_written(run: Run) -> str:
    if "file" not in run.config.loggers:
        return "loggers has no 'file': the training table is read from it; add it"
    return ""


def folder_is_said_to_be_shared(run: Run) -> str:
    c = run.config
    if c.cluster.nodes > 1 and not c.checkpoints.shared:
        return (f"checkpoints.shared is false with {c.cluster.nodes} nodes: every rank writes its shard into "
                f"{run.checkpoints}, which must be one folder for all. Put it on shared storage and say so")
    return ""


# --- on the machine --------------------------------------------------------------------------------------------------


def versions_are_pinned(run: Run, world: World) -> str:
    wrong = []
    for package, wanted in run.config.pins.items():
        found = world.version(package)
        if found != wanted.partition("+")[0]:
            wrong.append(f"{package} {'is not installed' if found is None else f'is {found}'}, pinned {wanted}")
    return f"{'; '.join(wrong)}. Install the pinned versions, or change pins if you mean it" if wrong else ""


def verl_accepts(run: Run, world: World, extra: Sequence[str] = ()) -> str:
    world.compose(run, extra)
    return ""


def hooks_are_active(run: Run, world: World) -> str:
    bad = [f"{name}: {state}" for name, state in world.hooks(run).items() if state not in ("active", "fixed upstream")]
    return f"{'; '.join(bad)}. Install the packages that the hooks repair (see pins)" if bad else ""


def gpus_match(run: Run, world: World) -> str:
    cluster = run.config.cluster
    if cluster.platform == "cpu":
        return ""
    found = world.gpus(run)
    fit = [count for count in found if count >= cluster.gpus_per_node]
    if len(fit) < cluster.nodes:
        return (f"the configuration wants {cluster.nodes} nodes of {cluster.gpus_per_node} GPUs, found {len(found)} "
                f"with {', '.join(map(str, found)) or 'none'}. Start the missing nodes (`tbstudy ray worker`), or "
                "change cluster.nodes and cluster.gpus_per_node")
    return ""


def model_is_complete(run: Run, world: World) -> str:
    folder = run.path(run.config.model.path)
    problem = folder_problem(folder)
    if problem:
        return f"model.path {folder}: {problem}. Download the checkpoint again, whole"
    raw = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    text = raw.get("text_config", raw)
    heads = text.get("num_attention_heads")
    for key, degree in (("sequence", run.config.parallel.sequence),
                        ("rollout_tensor", run.config.parallel.rollout_tensor)):
        if heads and heads % degree:
            return (f"parallel.{key} = {degree} does not divide the model's {heads} attention heads. "
                    f"Use one of {_divisors(heads)}")
    tied = text.get("tie_word_embeddings", raw.get("tie_word_embeddings", False))
    if run.config.optimizer.strategy == "fsdp2" and not tied and run.config.model.kernels != "none":
        return ("optimizer.strategy = fsdp2 fails in the LM head with fused kernels and untied embeddings; use fsdp, "
                "or model.kernels = none")
    context = text.get("max_position_embeddings")
    if context and run.config.lengths.model > context:
        return f"lengths.model = {run.config.lengths.model} exceeds the model's {context} positions; shorten it"
    return ""


def folder_problem(folder: Path) -> str:
    """What is missing of a Hugging Face checkpoint folder, or an empty text."""
    if not folder.is_dir():
        return "no such folder"
    for name in ("config.json", "tokenizer_config.json"):
        try:
            json.loads((folder / name).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            return f"{name} cannot be read ({error})"
    if not any((folder / name).is_file() for name in ("tokenizer.json", "vocab.json")):
        return "no tokenizer.json"
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        try:
            shards = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
        except (ValueError, KeyError, AttributeError):
            return f"{index.name} is torn"
    else:
        shards = ["model.safetensors"]
    missing = [name for name in shards if not (folder / name).is_file()]
    if missing:
        return f"{len(missing)} of {len(shards)} weight files missing ({', '.join(missing[:3])})"
    torn = [name for name in shards if not _whole_safetensors(folder / name)]
    return f"weight files cut short: {', '.join(torn[:3])}" if torn else ""


def _whole_safetensors(path: Path) -> bool:
    """The header says where the last tensor ends; the file must end there."""
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        total = path.stat().st_size
        if not 0 < size <= total - 8:
            return False
        try:
            header = json.loads(file.read(size))
        except ValueError:
            return False
    ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
    return total == 8 + size + max(ends, default=0)


def pool_is_usable(run: Run, world: World) -> str:
    data = run.config.data
    pool = load_pool(run.path(data.pool))
    uids = pool.uids(data.split)
    if data.tasks is not None and len(uids) != data.tasks:
        return (f"{run.path(data.pool)}: split {data.split!r} has {len(uids)} tasks, data.tasks says {data.tasks}: a "
                "stale manifest? Select again, or correct data.tasks")
    if len(uids) < run.config.update.groups:
        return (f"{run.path(data.pool)}: split {data.split!r} has {len(uids)} tasks, fewer than update.groups = "
                f"{run.config.update.groups}; select more tasks or lower update.groups")
    if not pool.uids(data.validation):
        return (f"{run.path(data.pool)}: split {data.validation!r} is empty, and verl loads it for validation; "
                "change data.validation")
    load_dataset(run.path(data.dataset), uids, agent=data.agent)
    return ""


def pool_avoids_benchmark(run: Run, world: World) -> str:
    pool: PoolManifest = load_pool(run.path(run.config.data.pool))
    benchmark = set(load_list(run.path(run.config.data.benchmark)))
    shared = sorted(benchmark & set(pool.uids(run.config.data.split)))
    if shared:
        return (f"{len(shared)} tasks of the pool are benchmark tasks ({', '.join(shared[:3])}): the evaluation would "
                "be of tasks trained on. Select the pool again with the benchmark given")
    return ""


def secrets_are_set(run: Run, world: World) -> str:
    missing = [f"{role}: {name}" for role, endpoint in run.config.endpoints.items()
               for name in (endpoint.base_url_env, endpoint.api_key_env) if name and not world.environment(name)]
    if missing:
        return (f"environment variables not set ({', '.join(missing)}); set them on every node before Ray starts "
                "there, since its processes inherit them")
    return ""


def sandbox_answers(run: Run, world: World) -> str:
    pool = load_pool(run.path(run.config.data.pool))
    uid = pool.uids(run.config.data.split)[0]
    if not world.open_session(run, uid):
        return f"a session of {uid} offers no tools; check data.servers"
    return ""


def prompts_fit(run: Run, world: World) -> str:
    limit = run.config.lengths.prompt
    uids = load_pool(run.path(run.config.data.pool)).uids(run.config.data.split)
    long = {uid: count for uid, count in world.prompt_lengths(run, uids).items() if count > limit}
    if long:
        longest = max(long, key=lambda uid: long[uid])
        return (f"{len(long)} prompts are longer than lengths.prompt = {limit} tokens (longest: {longest}, "
                f"{long[longest]}); raise lengths.prompt, since a cut prompt would hide tools or instructions")
    return ""


def endpoints_answer(run: Run, world: World) -> str:
    for role, endpoint in run.config.endpoints.items():
        world.ask(role, endpoint)
    return ""


def checkpoint_folder_is_usable(run: Run, world: World) -> str:
    folder = run.checkpoints
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder):
            pass
    except OSError as error:
        return f"checkpoints.folder {folder}: cannot be written ({error.strerror}); correct the path or its rights"
    if run.config.cluster.nodes > 1:
        seen = world.nodes_seen(run)
        if len(seen) < run.config.cluster.nodes:
            return (f"checkpoints.folder {folder} is not confirmed to be shared: {len(seen)} of "
                    f"{run.config.cluster.nodes} nodes have left their mark in it ({', '.join(seen) or 'none'}). "
                    "Start every node with `tbstudy ray head|worker` and this configuration")
    return ""


def latest_checkpoint_is_complete(run: Run, world: World) -> str:
    if run.config.checkpoints.resume == "disable":
        there = checkpoints.steps(run.checkpoints)
        return (f"checkpoints.resume is disable, but {run.checkpoints} holds step {there[-1]}, which would be written "
                "over; move the folder away or use resume: auto") if there else ""
    return checkpoints.latest_problem(run.checkpoints, run.config.cluster.world)


PAPER: tuple[Callable[[Run], str], ...] = (
    tensor_parallel_divides_node, sequence_parallel_divides_world, episodes_divide, mini_batch_divides, lengths_fit,
    engine_fits_platform, metrics_are_written, folder_is_said_to_be_shared)
MACHINE: tuple[Callable[..., str], ...] = (
    versions_are_pinned, verl_accepts, hooks_are_active, gpus_match, model_is_complete, pool_is_usable,
    pool_avoids_benchmark, secrets_are_set, sandbox_answers, prompts_fit, endpoints_answer, checkpoint_folder_is_usable,
    latest_checkpoint_is_complete)

#: Of the rules on the machine those that only read files which the configuration names.
FILES: tuple[Callable[..., str], ...] = (model_is_complete, pool_is_usable, pool_avoids_benchmark)


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule and what is wrong; an empty problem is a pass."""

    rule: str
    problem: str

    @property
    def ok(self) -> bool:
        return not self.problem


def on_paper(run: Run) -> list[Finding]:
    """The rules that need nothing but the configuration."""
    return [Finding(rule.__name__.replace("_", " "), rule(run)) for rule in PAPER]


def on_machine(run: Run, world: World | None = None, extra: Sequence[str] = ()) -> list[Finding]:
    """The rules about what is there, all of them, whatever fails."""
    return _look(MACHINE, run, world or World(), extra)


def on_files(run: Run) -> list[Finding]:
    """The rules about the files that the configuration names: model, pool, dataset, benchmark."""
    return _look(FILES, run, World())


def _look(rules: Sequence[Callable[..., str]], run: Run, world: World, extra: Sequence[str] = ()) -> list[Finding]:
    findings = []
    for rule in rules:
        arguments: tuple[Any, ...] = (run, world, extra) if rule is verl_accepts else (run, world)
        try:
            problem = rule(*arguments)
        except (StudyError, SystemFault) as error:
            problem = str(error)
        except Exception as error:  # a rule that cannot be decided has not been passed
            problem = f"could not be checked: {type(error).__name__}: {error}"
        findings.append(Finding(rule.__name__.replace("_", " "), problem))
    return findings


def text(findings: Sequence[Finding]) -> str:
    """The findings for a terminal."""
    return "\n".join(f"  {'ok  ' if f.ok else 'FAIL'} {f.rule}{'' if f.ok else ': ' + f.problem}" for f in findings)


def refuse(findings: Sequence[Finding]) -> None:
    """Raise a StudyError that lists every failed rule, if there is one."""
    failed = [f for f in findings if not f.ok]
    if failed:
        lines = "\n".join(f"  {f.rule}: {f.problem}" for f in failed)
        raise StudyError(f"{len(failed)} of {len(findings)} preflight rules failed; nothing was started\n{lines}")


def _divisors(number: int) -> str:
    return ", ".join(str(n) for n in range(1, number + 1) if number % n == 0)
