"""A rollout server on transformers: it batches the turns that wait, samples with a key/value cache, takes new weights.

Meant for models of a few million parameters. What is sampled depends on which turns share a batch, so a run does not
repeat bit for bit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ray
import torch
from verl.workers.rollout.base import BaseRollout
from verl.workers.rollout.replica import RolloutReplica, TokenOutput

NAME = "tbstudy_transformers"


@dataclass(slots=True)
class _Turn:
    prompt: list[int]
    temperature: float
    top_k: int
    top_p: float
    max_tokens: int
    done: asyncio.Future


class TokenServer:
    """A model that generates turns; one Ray actor. Turns that arrive within `gather_seconds` share a batch."""

    def __init__(self, path: str, max_model_len: int, max_batch: int, seed: int, gather_seconds: float = 0.02):
        from transformers import AutoModelForCausalLM, AutoTokenizer

        torch.set_num_threads(1)
        self.model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, local_files_only=True).eval()
        tokenizer = AutoTokenizer.from_pretrained(path, local_files_only=True)
        self.end = int(tokenizer.eos_token_id)
        self.max_model_len, self.max_batch, self.gather_seconds = max_model_len, max_batch, gather_seconds
        self.rng = torch.Generator().manual_seed(seed)
        self.global_steps: int | None = None
        self._waiting: list[_Turn] = []
        self._working = False

    async def ready(self) -> bool:
        """True once the model is loaded."""
        return True

    async def generate(self, request_id: str, prompt_ids: list[int], sampling_params: dict[str, Any], **_: Any
                       ) -> TokenOutput:
        """One turn: sampled ids with their log-probabilities under the truncated distribution, as vLLM gives them."""
        room = self.max_model_len - len(prompt_ids)
        if room < 1:
            raise ValueError(f"a prompt of {len(prompt_ids)} tokens leaves no room in {self.max_model_len}")
        turn = _Turn(list(prompt_ids), float(sampling_params.get("temperature", 1.0)),
                     int(sampling_params.get("top_k", -1)), float(sampling_params.get("top_p", 1.0)),
                     min(room, int(sampling_params.get("max_tokens", room))),
                     asyncio.get_running_loop().create_future())
        self._waiting.append(turn)
        if not self._working:
            self._working = True
            asyncio.ensure_future(self._work())
        ids, logprobs = await turn.done
        return TokenOutput(token_ids=ids, log_probs=logprobs, stop_reason="completed",
                           extra_fields={"global_steps": self.global_steps})

    async def _work(self) -> None:
        try:
            while self._waiting:
                await asyncio.sleep(self.gather_seconds)
                batch, self._waiting = self._waiting[: self.max_batch], self._waiting[self.max_batch:]
                try:
                    results = await asyncio.to_thread(sample, self.model, batch, self.end, self.rng)
                except Exception as error:
                    for turn in batch:
                        turn.done.set_exception(RuntimeError(f"{type(error).__name__}: {error}"))
                    continue
                for turn, result in zip(batch, results, strict=True):
                    turn.done.set_result(result)
        finally:
            self._working = False

    async def update_weights(self, named: dict[str, Any], global_steps: int | None) -> None:
        """Take new weights by parameter name; every parameter of the model must come, tied ones once."""
        while self._working:
            await asyncio.sleep(0.01)
        missing, unexpected = self.model.load_state_dict(
            {name: torch.from_numpy(value) for name, value in named.items()}, strict=False)
        tied = set(getattr(self.model, "_tied_weights_keys", None) or ())
        if unexpected or set(missing) - tied:
            raise ValueError(f"weights do not fit: missing {sorted(set(missing) - tied)}, unexpected {unexpected}")
        self.global_steps = global_steps

    async def nothing(self, *_: Any, **__: Any) -> None:
        """There is no device memory to give back, and no request outlives an update."""

    wake_up = sleep = clear_kv_cache = release_kv_cache = resume_kv_cache = nothing
    abort_all_requests = resume_generation = start_profile = stop_profile = nothing


@torch.inference_mode()
def sample(model: Any, turns: Sequence[_Turn], end: int, rng: torch.Generator) -> list[tuple[list[int], list[float]]]:
    """Sample all turns together, each until its end token or its own limit."""
    width = max(len(turn.prompt) for turn in turns)
    ids = torch.full((len(turns), width), end)
    mask = torch.zeros(len(turns), width, dtype=torch.long)
    for row, turn in enumerate(turns):
        ids[row, width - len(turn.prompt):] = torch.tensor(turn.prompt)
        mask[row, width - len(turn.prompt):] = 1
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    found: list[tuple[list[int], list[float]]] = [([], []) for _ in turns]
    live, cache, step = list(range(len(turns))), None, ids
    while live:
        out = model(input_ids=step, attention_mask=mask, position_ids=positions, past_key_values=cache, use_cache=True,
                    logits_to_keep=1)
        cache = out.past_key_values
        logprobs = torch.stack([truncated(out.logits[row, -1], turn) for row, turn in enumerate(turns)])
        chosen = torch.multinomial(logprobs.exp(), 1, generator=rng)
        for row in list(live):
            token = int(chosen[row])
            found[row][0].append(token)
            found[row][1].append(float(logprobs[row, token]))
            if token == end or len(found[row][0]) >= turns[row].max_tokens:
                live.remove(row)
        step = chosen
        mask = torch.cat([mask, torch.ones(len(turns), 1, dtype=torch.long)], 1)
        positions = positions[:, -1:] + 1
    return found


def truncated(logits: torch.Tensor, turn: _Turn) -> torch.Tensor:
    """Log-probabilities (vocab,) after temperature, top-k and top-p, in that order, as vLLM applies them."""
    logits = logits.float() / max(turn.temperature, 1e-6)
    if 0 < turn.top_k < len(logits):
        logits = logits.masked_fill(logits < logits.topk(turn.top_k).values[-1], -torch.inf)
    if turn.top_p < 1:
        ordered, order = logits.sort(descending=True)
        mass = ordered.softmax(-1)
        # A token is kept while the mass before it is below top_p, so the most likely one always is.
        drop = mass.cumsum(-1) - mass >= turn.top_p
        logits = logits.scatter(0, order, ordered.masked_fill(drop, -torch.inf))
    return logits.log_softmax(-1)


class TransformersReplica(RolloutReplica):
    """One `TokenServer` a replica, in a process beside the worker whose weights it gets."""

    async def launch_servers(self) -> None:
        """Start the server's actor and wait until its model is loaded."""
        name = f"{NAME}_server_{self.replica_rank}_0{self.name_suffix}"
        path = self.model_config.path if hasattr(self.model_config, "path") else self.model_config["path"]
        server = ray.remote(TokenServer).options(name=name, num_cpus=1, max_concurrency=self.max_concurrency).remote(
            path, self.config.max_model_len, self.config.max_num_seqs, self.config.seed + self.replica_rank)
        await server.ready.remote()
        self.servers = [server]
        self._server_handle, self._server_address = server, name


class WeightSender(BaseRollout):
    """The worker's side of the server: it sends the actor's weights over."""

    def __init__(self, config: Any, model_config: Any, device_mesh: Any, replica_rank: int = -1, **_: Any):
        super().__init__(config, model_config, device_mesh)
        rank = torch.distributed.get_rank()
        size = self.config.tensor_model_parallel_size * self.config.data_parallel_size
        self.replica_rank = replica_rank if replica_rank >= 0 else rank // size
        self.sends = rank % size == 0

    async def resume(self, tags: list[str]) -> None:
        """Nothing was released."""

    async def release(self) -> None:
        """There is no device memory to release."""

    async def update_weights(self, weights: Any, global_steps: int | None = None, **_: Any) -> None:
        """Gather the parameters, which every rank must do, and hand them to the server."""
        named = {name: _whole(value).float().cpu().numpy() for name, value in weights}
        if self.sends:
            server = ray.get_actor(f"{NAME}_server_{self.replica_rank}_0")
            await server.update_weights.remote(named, global_steps)


def _whole(value: torch.Tensor) -> torch.Tensor:
    full = getattr(value, "full_tensor", None)
    return full() if full is not None else value.detach()
