"""Builds the small base policy from a seed: tokenizer and warm start on imperfect demonstrations."""

from __future__ import annotations

import json
import os
import random
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from tbstudy.interpreter import Trajectory
from tbstudy.policies.small_model import SmallConfig, SmallLM
from tbstudy.policies.small_tokenizer import CHAT_TEMPLATE, build_tokenizer, load_tokenizer
from tbstudy.store import write_atomic
from tbstudy.tasks.loader import load_dataset
from tbstudy.training.sft import Example, Step, WarmStart, warm_start
from tbstudy_demo.cases import Call, Domain
from tbstudy_demo.demonstrate import Cell, Demonstration, cells, demonstrations
from tbstudy_demo.registry import DOMAINS, load
from tbstudy_demo.words import atoms


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of training with its own learning-rate schedule.

    The first `copy_steps` of `steps` repeat random sequences, which settles the copying circuit; the rest take
    demonstrations. Copied values weigh more than other generated tokens: drawn ones (ids, names, amounts), and with
    `heavy_facts` also the words that decide branches (true, null, status names).
    """

    steps: int
    lr: float
    copy_steps: int = 0
    heavy_facts: bool = False


@dataclass(frozen=True, slots=True)
class BuildPlan:
    """All that decides the base policy.

    A step takes `batch` demonstrations and `copies` repeated sequences (times `copy_factor`) in each of `processes`.
    """

    seed: int = 20260301
    vocab_size: int = 2600
    hidden_size: int = 96
    intermediate_size: int = 240
    layers: int = 3
    phases: tuple[Phase, ...] = (Phase(1100, 3e-3, copy_steps=150), Phase(900, 2e-3, heavy_facts=True),
                                 Phase(900, 2e-3, heavy_facts=True))
    batch: int = 24
    copies: int = 8
    copy_factor: float = 0.2
    value_weight: float = 3.0
    processes: int = 2

    @property
    def steps(self) -> int:
        """Steps of all phases."""
        return sum(phase.steps for phase in self.phases)


#: System texts of a domain's tasks by domain name, as the dataset has them.
Systems = dict[str, tuple[str, ...]]


def opening(demo: Demonstration, systems: Systems) -> list[dict[str, Any]]:
    """The messages before the agent's first turn."""
    return [*({"role": "system", "content": text} for text in systems[demo.cell.domain.name]),
            {"role": "user", "content": demo.query}]


def transcript(demo: Demonstration) -> list[dict[str, Any]]:
    """A demonstration from its query on, as chat messages."""
    messages = [{"role": "user", "content": demo.query}]
    for _, message, after in demo.turns:
        messages += [message, *after]
    return messages


def value_atoms(domains: list[Domain], of: list[Cell], samples: int = 40) -> tuple[str, ...]:
    """Texts that become one token: the drawn values, and every short text value of tool arguments and rows."""
    found = set(atoms()) | {"true", "false", "null"}

    def collect(value: Any) -> None:
        if isinstance(value, dict):
            for v in value.values():
                collect(v)
        elif isinstance(value, list):
            for v in value:
                collect(v)
        elif isinstance(value, str) and 1 < len(value) <= 28 and value.replace(" ", "").replace("_", "").isalpha():
            found.add(value)

    for domain in domains:
        for tool in domain.server.tool_schemas():
            for schema in tool["function"]["parameters"].get("properties", {}).values():
                collect(schema.get("enum", []))
                for option in schema.get("anyOf", []):
                    collect(option.get("enum", []))
    for cell in of:
        for i in range(samples):
            case = cell.template.draw(cell.twin, f"atoms|{i}")
            collect(case.rows)
            for script in (case.script, *case.mistakes.values()):
                collect([step.arguments for step in script if isinstance(step, Call)])
    return tuple(sorted(found))


def make_tokenizer(domains: list[Domain], of: list[Cell], systems: Systems, seed: int, vocab_size: int,
                   samples: int = 4000) -> Any:
    """Train the tokenizer on rendered demonstrations; prompts count a few times, or they would be spelt out."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    blank = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE()), chat_template=CHAT_TEMPLATE)
    texts = []
    for domain in domains:
        prompt = blank.apply_chat_template(
            [{"role": "system", "content": "\n\n".join(systems[domain.name])}],
            tools=domain.server.tool_schemas(), tokenize=False)
        texts += [prompt] * 12
    for demo in islice(demonstrations(of, seed), samples):
        texts.append(blank.apply_chat_template(transcript(demo), tokenize=False))
    return build_tokenizer(texts, value_atoms(domains, of), vocab_size)


def encode(demo: Demonstration, tokenizer: Any, systems: Systems) -> tuple[list[int], list[int], list[int]]:
    """Prompt ids, response ids and response mask of a demonstration, built as an episode's trajectory is."""
    domain = demo.cell.domain
    trajectory = Trajectory(tokenizer, domain.server.tool_schemas(), opening(demo, systems))
    for text, message, after in demo.turns:
        ids = [*tokenizer.encode(text, add_special_tokens=False), tokenizer.eos_token_id]
        trajectory.append_generation(ids, [0.0] * len(ids), True)
        if after:
            trajectory.append_observation(list(after), message)
    return trajectory.prompt_ids, trajectory.response_ids, trajectory.response_mask


def steps(of: list[Cell], tokenizer: Any, systems: Systems, plan: BuildPlan, phase: Phase, seed: int
          ) -> Iterator[Step]:
    """Endless steps of one process: repeated sequences first, then demonstrations of one domain beside a few."""
    rng = random.Random(f"steps|{seed}")
    names = sorted({c.domain.name for c in of})
    streams = {n: demonstrations([c for c in of if c.domain.name == n], seed + i) for i, n in enumerate(names)}
    ready: dict[str, list[list[Example]]] = {n: [] for n in names}
    queue: list[str] = []
    values = {tokenizer.convert_tokens_to_ids(a) for a in atoms()}
    heavy = set(values)
    if phase.heavy_facts:
        heavy |= {tokenizer.convert_tokens_to_ids(a)
                  for a in value_atoms(list({c.domain.name: c.domain for c in of}.values()), of)}
    for _ in range(phase.copy_steps):
        yield [(1.0, repeated(rng, sorted(values), len(tokenizer), 4 * plan.copies))]
    while True:
        if not queue:
            queue = names[:]
            rng.shuffle(queue)
        name = queue.pop()
        if not ready[name]:
            rows = [encode(d, tokenizer, systems) for d in islice(streams[name], plan.batch * 3)]
            shared = _common_prefix([prompt for prompt, _, _ in rows])
            examples = [Example(tuple(p[:shared]), tuple(p[shared:] + r),
                                (0.0,) * (len(p) - shared) + _weights(p, r, m, heavy, plan.value_weight))
                        for p, r, m in rows]
            examples.sort(key=lambda e: len(e.ids))
            ready[name] = [examples[i:i + plan.batch] for i in range(0, len(examples), plan.batch)]
            rng.shuffle(ready[name])
        yield [(1.0, ready[name].pop()),
               (plan.copy_factor, repeated(rng, sorted(values), len(tokenizer), plan.copies))]


def repeated(rng: random.Random, values: list[int], vocab: int, rows: int) -> list[Example]:
    """Random sequences, values for the most part, written twice: the second half is predictable by copying."""
    length = rng.randint(6, 28)
    found = []
    for _ in range(rows):
        half = tuple(rng.choice(values) if rng.random() < 0.7 else rng.randrange(vocab) for _ in range(length))
        found.append(Example((0,), half * 2, (0.0,) * length + (2.0,) * length))
    return found


def _weights(prompt: list[int], response: list[int], mask: list[int], values: set[int], heavy: float
             ) -> tuple[float, ...]:
    seen, weights = set(prompt), []
    for token, generated in zip(response, mask, strict=True):
        weights.append((heavy if token in values and token in seen else 1.0) if generated else 0.0)
        seen.add(token)
    return tuple(weights)


def _common_prefix(rows: list[list[int]]) -> int:
    first, shared = rows[0], min(map(len, rows)) - 1
    for row in rows[1:]:
        shared = next((i for i in range(shared) if row[i] != first[i]), shared)
    return shared


def systems_of(dataset: Path) -> Systems:
    """System texts by domain, from the dataset that the policy will be probed on."""
    found: Systems = {}
    for task in load_dataset(dataset).tasks.values():
        found.setdefault(task.scenario, task.system)
    return found


def build(folder: Path, dataset: Path, plan: BuildPlan = BuildPlan(),
          report: Callable[[int, float, float], None] = lambda step, loss, copied: None) -> None:
    """Train the base policy and write it to `folder` (transformers checkpoint, tokenizer, build.json).

    The processes average their gradients each step; with the same plan the result is the same on the same machine.
    A build that was stopped continues with the phase it was in.
    """
    import torch.multiprocessing as mp

    systems, started = systems_of(dataset), time.perf_counter()
    work = folder.with_name(f".{folder.name}.phases")
    if not (work / "tokenizer.json").exists():
        domains = [load(name) for name in DOMAINS]
        make_tokenizer(domains, cells(domains, plan.seed), systems, plan.seed, plan.vocab_size).save_pretrained(work)
    losses: list[float] = []
    done = 0
    for index, phase in enumerate(plan.phases):
        if not (work / str(index) / "model.safetensors").exists():
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                port = probe.getsockname()[1]
            queue = mp.get_context("spawn").SimpleQueue()
            context = mp.spawn(_train, (plan, index, work, systems, port, queue), nprocs=plan.processes, join=False)
            alive = True
            while alive:
                alive = not context.join(timeout=0.5)
                while not queue.empty():
                    step, loss, copied = queue.get()
                    losses.append(loss)
                    report(done + step, loss, copied)
        done += phase.steps
    for file in work.iterdir():
        if file.is_file():
            write_atomic(folder / file.name, file.read_bytes())
    for file in (work / str(len(plan.phases) - 1)).iterdir():
        write_atomic(folder / file.name, file.read_bytes())
    card = {"plan": asdict(plan), "seconds": round(time.perf_counter() - started),
            "loss_of_last_50_steps": sum(losses[-50:]) / max(1, len(losses[-50:]))}
    write_atomic(folder / "build.json", (json.dumps(card, indent=1) + "\n").encode())


def _train(rank: int, plan: BuildPlan, index: int, work: Path, systems: Systems, port: int, queue: Any) -> None:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=plan.processes)
    tokenizer, phase = load_tokenizer(work), plan.phases[index]
    habits = cells([load(name) for name in DOMAINS], plan.seed)
    if index:
        model = SmallLM.load(work / str(index - 1))
    else:
        model = SmallLM(SmallConfig(vocab_size=len(tokenizer), hidden_size=plan.hidden_size,
                                    intermediate_size=plan.intermediate_size,
                                    num_hidden_layers=plan.layers)).initialise(plan.seed)
    data = steps(habits, tokenizer, systems, plan, phase, plan.seed + 1000 * (rank + 1) + 100 * index)

    def average(gradient: torch.Tensor) -> None:
        dist.all_reduce(gradient)
        gradient /= plan.processes

    def report(step: int, loss: float, copied: float) -> None:
        if rank == 0:
            queue.put((step, loss, copied))

    warm_start(model, data, WarmStart(steps=phase.steps, lr=phase.lr), report, average)
    if rank == 0:
        model.save(work / str(index), eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id)
    dist.barrier()
    dist.destroy_process_group()
