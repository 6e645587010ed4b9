"""Batched multi-turn sampling on a CPU: one key/value cache for the shared prompt, a ragged one behind it.

A *wave* is a fixed set of conversations that start together. Turns of different length interleave: each decoding step
advances every live row by one token, and rows that come back with tool results or user text join through a chunked
prefill. The engine runs only when every live conversation waits for it, so what a wave samples depends on its members
and their seeds alone, never on timing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch

from tbstudy.policies.small_model import KeyValue, SmallLM, _rotate


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling parameters; `top_k` 0 and `top_p` 1 switch the truncations off.

    Tokens are drawn from softmax(logits / `temperature`), cut to `top_k` and then to `top_p` and scaled to sum to one.
    A row's log-probabilities are of that softmax before the cut: the function that a trainer differentiates.
    """

    temperature: float = 1.0
    top_k: int = 20
    top_p: float = 0.95


@dataclass(slots=True, eq=False)
class Row:
    """One conversation inside the engine, named by `key`. `uniforms` are its random numbers, one a sampled token."""

    key: str
    uniforms: np.ndarray
    pending: list[int] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    budget: int = 0
    slot: int = -1
    drawn: int = 0
    ended: bool = False


class Engine:
    """Samples turns for the rows of one wave at a time. Not thread-safe; one engine per process and model."""

    def __init__(self, model: SmallLM, end_id: int, sampling: Sampling):
        self.model, self.end_id, self.sampling = model, end_id, sampling
        self._prefix_ids: tuple[int, ...] = ()
        self._prefix: list[KeyValue] | None = None
        self.reset()

    def reset(self) -> None:
        """Forget the wave (the shared prompt's cache is kept while the weights stay)."""
        self.rows: list[Row] = []
        self.lengths = torch.zeros(0, dtype=torch.long)
        self._keys: list[torch.Tensor] = []
        self._values: list[torch.Tensor] = []

    def weights_changed(self) -> None:
        """Drop the shared prompt's cache: the model was updated in place."""
        self._prefix_ids, self._prefix = (), None

    # admission -------------------------------------------------------------------------------------------------

    @torch.inference_mode()
    def admit(self, rows: list[Row]) -> None:
        """Start a wave with rows whose `pending` holds their whole prompts; the common prefix is computed once."""
        self.reset()
        first = rows[0].pending
        shared = min(len(r.pending) for r in rows) - 1
        for row in rows[1:]:
            at = next((i for i in range(shared) if row.pending[i] != first[i]), shared)
            shared = min(shared, at)
        ids = tuple(first[:shared])
        if ids != self._prefix_ids or self._prefix is None:
            self._prefix_ids = ids
            self._prefix = (self.model.hidden(torch.tensor([ids]), torch.arange(shared))[1] if shared else
                            [(torch.zeros(1, c.num_key_value_heads, 0, c.head_dim),) * 2
                             for c in [self.model.config] for _ in range(c.num_hidden_layers)])
        for slot, row in enumerate(rows):
            row.pending = row.pending[shared:]
            row.slot = slot
        self.rows = list(rows)
        self.lengths = torch.zeros(len(rows), dtype=torch.long)
        shape = (128, len(rows), self.model.config.num_key_value_heads, self.model.config.head_dim)
        self._keys = [torch.zeros(shape) for _ in range(self.model.config.num_hidden_layers)]
        self._values = [torch.zeros(shape) for _ in range(self.model.config.num_hidden_layers)]

    def release(self, gone: set[int]) -> None:
        """Drop the rows in the slots `gone` and close the gaps."""
        keep = [r for r in self.rows if r.slot not in gone]
        index = torch.tensor([r.slot for r in keep], dtype=torch.long)
        self._keys = [k[:, index].contiguous() for k in self._keys]
        self._values = [v[:, index].contiguous() for v in self._values]
        self.lengths = self.lengths[index]
        for slot, row in enumerate(keep):
            row.slot = slot
        self.rows = keep

    # generation ------------------------------------------------------------------------------------------------

    @torch.inference_mode()
    def run(self) -> list[Row]:
        """Advance until at least one row's turn ends; returns those rows (`ids` and `logprobs` of the turn filled)."""
        fresh = [r for r in self.rows if r.pending]
        if fresh:
            self._take(fresh, self._feed_chunk(fresh))
        while True:
            done = [r for r in self.rows if r.ended]
            if done:
                return done
            tokens = torch.tensor([r.ids[-1] for r in self.rows])
            self._take(self.rows, self._feed_one(tokens))

    def _take(self, rows: list[Row], hidden: torch.Tensor) -> None:
        ids, logprobs = self._sample(self.model.logits(hidden), [r.uniforms[r.drawn] for r in rows])
        for row, token, logprob in zip(rows, ids, logprobs, strict=True):
            row.drawn += 1
            row.ids.append(token)
            row.logprobs.append(logprob)
            row.ended = token == self.end_id or len(row.ids) >= row.budget

    def _sample(self, logits: torch.Tensor, uniforms: list[float]) -> tuple[list[int], list[float]]:
        s = self.sampling
        logits = logits / s.temperature
        k = min(s.top_k, logits.shape[-1]) if s.top_k else logits.shape[-1]
        top, ids = logits.topk(k, -1)
        p = torch.softmax(top, -1).double()
        cumulative = p.cumsum(-1)
        # A token is kept while the mass before it is below top_p, so the most likely one always is.
        p = torch.where(cumulative - p < s.top_p, p, 0.0)
        cumulative = p.cumsum(-1)
        target = torch.tensor(uniforms, dtype=torch.float64)[:, None] * cumulative[:, -1:]
        at = (cumulative <= target).sum(-1, keepdim=True).clamp(max=k - 1)
        chosen = ids.gather(-1, at)
        logprobs = logits.gather(-1, chosen) - logits.logsumexp(-1, keepdim=True)
        return chosen[:, 0].tolist(), logprobs[:, 0].tolist()

    # the network -----------------------------------------------------------------------------------------------

    def _feed_one(self, tokens: torch.Tensor) -> torch.Tensor:
        """Append one token (rows,) to every row; returns final hidden states (rows, hidden)."""
        model, ahead = self.model, len(self._prefix_ids)
        at = self.lengths.clone()
        self.lengths = at + 1
        longest = int(at.max()) + 1
        self._reserve(longest)
        x = model.model.embed_tokens(tokens)
        cos, sin = model.cos[at + ahead][:, None], model.sin[at + ahead][:, None]
        hidden_own = torch.arange(longest)[None, :] > at[:, None]
        rows, c = len(tokens), model.config
        groups, slots = c.num_attention_heads // c.num_key_value_heads, torch.arange(rows)
        for i, layer in enumerate(model.model.layers):
            a = layer.self_attn
            h = layer.input_layernorm(x)
            q = a.q_norm(a.q_proj(h).view(rows, a.heads, a.dim))
            k = a.k_norm(a.k_proj(h).view(rows, a.kv_heads, a.dim))
            q, k = q * cos + _rotate(q) * sin, k * cos + _rotate(k) * sin
            self._keys[i][at, slots] = k
            self._values[i][at, slots] = a.v_proj(h).view(rows, a.kv_heads, a.dim)
            # Own part: one small product per row and head, time being the leading axis of the cache.
            own_k = self._keys[i][:longest].view(longest, rows * a.kv_heads, a.dim)
            own_v = self._values[i][:longest].view(longest, rows * a.kv_heads, a.dim)
            own = torch.bmm(q.view(rows * a.kv_heads, groups, a.dim), own_k.permute(1, 2, 0))
            own = own.view(rows, a.kv_heads, groups, longest).masked_fill(hidden_own[:, None, None], -torch.inf)
            # Shared part: one product per head for all rows.
            pk, pv = self._prefix[i]
            by_head = q.view(rows, a.kv_heads, groups, a.dim).transpose(0, 1).reshape(a.kv_heads, rows * groups, a.dim)
            shared = torch.bmm(by_head, pk[0].transpose(1, 2)).view(a.kv_heads, rows, groups, ahead).transpose(0, 1)
            w = torch.softmax(torch.cat([shared, own], -1) * a.dim ** -0.5, -1)
            y = torch.bmm(w[..., ahead:].reshape(rows * a.kv_heads, groups, longest), own_v.transpose(0, 1))
            y = y.view(rows, a.kv_heads, groups, a.dim)
            mixed = torch.bmm(w[..., :ahead].transpose(0, 1).reshape(a.kv_heads, rows * groups, ahead), pv[0])
            y = y + mixed.view(a.kv_heads, rows, groups, a.dim).transpose(0, 1)
            x = x + a.o_proj(y.reshape(rows, a.heads * a.dim))
            x = x + layer.mlp(layer.post_attention_layernorm(x))
        return model.model.norm(x)

    def _feed_chunk(self, rows: list[Row]) -> torch.Tensor:
        """Append every row's pending tokens; returns hidden states (rows, hidden) at each row's last token."""
        model, ahead = self.model, len(self._prefix_ids)
        sizes = torch.tensor([len(r.pending) for r in rows])
        widest = int(sizes.max())
        ids = torch.zeros(len(rows), widest, dtype=torch.long)
        for i, row in enumerate(rows):
            ids[i, :len(row.pending)] = torch.tensor(row.pending)
            row.pending = []
        slots = torch.tensor([r.slot for r in rows])
        start = self.lengths[slots]
        self.lengths[slots] = start + sizes
        longest = int((start + widest).max())
        self._reserve(longest)
        x = model.model.embed_tokens(ids)
        own_positions = start[:, None] + torch.arange(widest)
        cos, sin = (table[own_positions + ahead][:, None] for table in (model.cos, model.sin))
        # Key j of a row's own cache is visible to its chunk token t when j <= start + t; all of the prefix is.
        visible = torch.arange(longest)[None, None, :] <= own_positions[:, :, None]
        mask = torch.cat([torch.ones(len(rows), widest, ahead, dtype=torch.bool), visible], -1)[:, None]
        groups = model.config.num_attention_heads // model.config.num_key_value_heads
        for i, layer in enumerate(model.model.layers):
            q, k, v = layer.self_attn.project(layer.input_layernorm(x), cos, sin)
            # Padding lands beyond the row's length and is overwritten by its next tokens.
            self._keys[i][own_positions, slots[:, None]] = k.transpose(1, 2)
            self._values[i][own_positions, slots[:, None]] = v.transpose(1, 2)
            pk, pv = self._prefix[i]
            k = torch.cat([pk.expand(len(rows), -1, -1, -1), self._keys[i][:longest, slots].permute(1, 2, 0, 3)], 2)
            v = torch.cat([pv.expand(len(rows), -1, -1, -1), self._values[i][:longest, slots].permute(1, 2, 0, 3)], 2)
            y = torch.nn.functional.scaled_dot_product_attention(
                q, k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1), attn_mask=mask)
            x = x + layer.self_attn.o_proj(y.transpose(1, 2).flatten(2))
            x = x + layer.mlp(layer.post_attention_layernorm(x))
        return model.model.norm(x[torch.arange(len(rows)), sizes - 1])

    def _reserve(self, longest: int) -> None:
        have = self._keys[0].shape[0]
        if longest > have:
            extra = max(longest - have, have // 2)
            pad = torch.zeros(extra, *self._keys[0].shape[1:])
            self._keys = [torch.cat([k, pad]) for k in self._keys]
            self._values = [torch.cat([v, pad]) for v in self._values]
