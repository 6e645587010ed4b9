"""Builds the small base policy from a seed: tokenizer, warm start on imperfect demonstrations, and its gate."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice
from typing import Any

from tbstudy.interpreter import Trajectory
from tbstudy.policies.small_tokenizer import build_tokenizer
from tbstudy.training.sft import Example
from tbstudy_demo.cases import Call, Domain
from tbstudy_demo.demonstrate import Cell, Demonstration, demonstrations
from tbstudy_demo.words import atoms


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
    from transformers import PreTrainedTokenizerFast
    from tokenizers import Tokenizer, models

    from tbstudy.policies.small_tokenizer import CHAT_TEMPLATE

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


def batches(of: list[Cell], tokenizer: Any, systems: Systems, seed: int, size: int, parts: int
            ) -> Iterator[list[list[Example]]]:
    """Endless steps of `parts` batches; a batch holds `size` fresh demonstrations of one domain, similar in length."""
    rng = random.Random(f"batches|{seed}")
    names = sorted({c.domain.name for c in of})
    streams = {n: demonstrations([c for c in of if c.domain.name == n], seed + i) for i, n in enumerate(names)}
    ready: dict[str, list[list[Example]]] = {n: [] for n in names}
    queue: list[str] = []
    while True:
        step = []
        for _ in range(parts):
            if not queue:
                queue = names[:]
                rng.shuffle(queue)
            name = queue.pop()
            if not ready[name]:
                rows = [encode(d, tokenizer, systems) for d in islice(streams[name], size * 8)]
                shared = _common_prefix([prompt for prompt, _, _ in rows])
                examples = [Example(tuple(p[:shared]), tuple(p[shared:] + r), tuple([0] * (len(p) - shared) + m))
                            for p, r, m in rows]
                examples.sort(key=lambda e: len(e.ids))
                ready[name] = [examples[i:i + size] for i in range(0, len(examples), size)]
                rng.shuffle(ready[name])
            step.append(ready[name].pop())
        yield step


def _common_prefix(rows: list[list[int]]) -> int:
    first, shared = rows[0], min(map(len, rows)) - 1
    for row in rows[1:]:
        shared = next((i for i in range(shared) if row[i] != first[i]), shared)
    return shared
