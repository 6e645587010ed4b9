"""The small policy's network: Qwen3's architecture, written for CPUs, in the parameter layout of transformers.

Why not call transformers' own module: sampling thousands of short turns at once wants one key/value cache for the
prompt that a batch shares and a ragged cache behind it, and training wants the gradient of that shared prompt once
per batch. A test holds the two implementations together.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from tbstudy.disk import write_atomic
from tbstudy.errors import StudyError

KeyValue = tuple[torch.Tensor, torch.Tensor]  # keys and values of one layer, each (rows, kv heads, time, head_dim)


@dataclass(frozen=True, slots=True)
class SmallConfig:
    """Sizes of a Qwen3 network; `to_dict` gives the fields of transformers' Qwen3Config."""

    vocab_size: int
    hidden_size: int = 96
    intermediate_size: int = 256
    num_hidden_layers: int = 4
    num_attention_heads: int = 4
    num_key_value_heads: int = 2
    head_dim: int = 32
    rope_theta: float = 1_000_000.0
    rms_norm_eps: float = 1e-6
    max_position_embeddings: int = 4096

    def to_dict(self, **extra) -> dict:
        return {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_act": "silu",
                "attention_bias": False, "attention_dropout": 0.0, "tie_word_embeddings": True,
                "torch_dtype": "float32", "use_sliding_window": False, "initializer_range": 0.02,
                "rope_parameters": {"rope_type": "default", "rope_theta": self.rope_theta},
                **{name: getattr(self, name) for name in self.__slots__}, **extra}

    @classmethod
    def from_dict(cls, raw: dict) -> SmallConfig:
        if raw.get("model_type") != "qwen3":
            raise StudyError(f"config.json: model_type is {raw.get('model_type')!r}, the local policy runs qwen3 only")
        return cls(**{name: raw[name] for name in cls.__slots__ if name in raw})


class SmallLM(nn.Module):
    """Causal LM with Qwen3's parameter names (tied embeddings), so that its state dict is a transformers checkpoint."""

    def __init__(self, config: SmallConfig):
        super().__init__()
        self.config = config
        self.model = nn.Module()
        self.model.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.model.layers = nn.ModuleList(_Layer(config) for _ in range(config.num_hidden_layers))
        self.model.norm = _RMSNorm(config.hidden_size, config.rms_norm_eps)
        half = torch.arange(0, config.head_dim, 2, dtype=torch.float32) / config.head_dim
        angles = torch.outer(torch.arange(config.max_position_embeddings, dtype=torch.float32),
                             config.rope_theta ** -half)
        self.register_buffer("cos", torch.cat([angles, angles], -1).cos(), persistent=False)
        self.register_buffer("sin", torch.cat([angles, angles], -1).sin(), persistent=False)

    def hidden(self, ids: torch.Tensor, positions: torch.Tensor, prefix: list[KeyValue] | None = None
               ) -> tuple[torch.Tensor, list[KeyValue]]:
        """Final hidden states (B, T, hidden) and per-layer keys and values (B, heads, T, D) of `ids` (B, T).

        `positions` is (T,) or (B, T). `prefix` holds keys and values (1, heads, P, D) that every row attends to.
        Padding must stand at the right: attention is causal, so it never reaches a real token.
        """
        x = self.model.embed_tokens(ids)
        cos, sin = self.cos[positions], self.sin[positions]
        if cos.dim() == 2:
            cos, sin = cos[None], sin[None]
        mask = None
        if prefix is not None:
            rows, ahead = ids.shape[1], prefix[0][0].shape[2]
            mask = torch.ones(rows, ahead + rows, dtype=torch.bool).tril(ahead)
        kept = []
        for i, layer in enumerate(self.model.layers):
            q, k, v = layer.self_attn.project(layer.input_layernorm(x), cos[:, None], sin[:, None])
            kept.append((k, v))
            if prefix is not None:
                pk, pv = prefix[i]
                k = torch.cat([pk.expand(k.shape[0], -1, -1, -1), k], 2)
                v = torch.cat([pv.expand(v.shape[0], -1, -1, -1), v], 2)
            groups = q.shape[1] // k.shape[1]
            y = F.scaled_dot_product_attention(q, k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1),
                                               attn_mask=mask, is_causal=mask is None)
            x = x + layer.self_attn.o_proj(y.transpose(1, 2).flatten(2))
            x = x + layer.mlp(layer.post_attention_layernorm(x))
        return self.model.norm(x), kept

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Next-token logits (..., vocab) from hidden states (..., hidden)."""
        return hidden @ self.model.embed_tokens.weight.T

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Logits (B, T, vocab) of whole sequences (B, T) that start at position 0."""
        return self.logits(self.hidden(ids, torch.arange(ids.shape[1]))[0])

    def initialise(self, seed: int) -> SmallLM:
        """Random weights from `seed`, with one copying circuit laid out at the start.

        A small model finds "repeat what followed this token last time" late and abruptly. It is therefore given:
        the first head of layer 0 attends to the previous token by position and writes it into a subspace, the first
        head of layer 1 looks for a key whose previous token is the current one and repeats the key's token (an
        induction head, arXiv 2209.11895). Everything stays trainable.
        """
        c, rng = self.config, torch.Generator().manual_seed(seed)

        def normal(*shape: int, scale: float) -> torch.Tensor:
            return torch.randn(*shape, generator=rng) * scale

        width, dim, half = c.hidden_size, c.head_dim, c.head_dim // 2
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                if parameter.dim() == 2:
                    scale = 0.5 * parameter.shape[1] ** -0.5
                    if name.endswith(("o_proj.weight", "down_proj.weight")):
                        scale *= 0.1
                    parameter.copy_(normal(*parameter.shape, scale=0.05 if "embed" in name else scale))
            # One constant direction lets a head ignore content; in the tied output it shifts all logits alike.
            self.model.embed_tokens.weight[:, 0] = 0.25
            self.model.norm.weight.fill_(3.0)
            if c.num_hidden_layers < 2:
                return self
            previous, induction = self.model.layers[0].self_attn, self.model.layers[1].self_attn
            fast = torch.tensor([0, 1])
            angle = c.rope_theta ** -(2 * fast / dim)
            for proj, real, imaginary in ((previous.k_proj, torch.ones(2), torch.zeros(2)),
                                          (previous.q_proj, angle.cos(), -angle.sin())):
                proj.weight[:dim] = normal(dim, width, scale=0.01)
                proj.weight[fast, 0], proj.weight[fast + half, 0] = real, imaginary
            for norm in (previous.q_norm, previous.k_norm):
                norm.weight[torch.cat([fast, fast + half])] = 2.5
            read, write = normal(dim, width, scale=width ** -0.5), normal(width, dim, scale=1.0)
            read[:, 0] = 0.0
            write = torch.linalg.qr(write)[0]
            write[0] = 0.0
            previous.v_proj.weight[:dim] = read
            previous.o_proj.weight[:, :dim] = 0.12 * write
            # The slowest half of the rotary pairs hardly turns over an episode: content is matched there.
            slow = torch.cat([torch.arange(half // 2, half), torch.arange(half + half // 2, dim)])
            match = normal(len(slow), dim, scale=dim ** -0.5)
            for proj, value in ((induction.q_proj, match @ read), (induction.k_proj, match @ write.T)):
                proj.weight[:dim] = normal(dim, width, scale=0.01)
                proj.weight[slow] = 2 * value
            for norm in (induction.q_norm, induction.k_norm):
                norm.weight[slow] = 1.8
            copy = torch.linalg.qr(normal(width, dim, scale=1.0))[0]
            copy[0] = 0.0
            induction.v_proj.weight[:dim] = copy.T
            induction.o_proj.weight[:, :dim] = 0.15 * copy
        return self

    def save(self, folder: Path, **extra) -> None:
        """Write config.json and model.safetensors; `extra` fields (token ids) go into the config."""
        from safetensors.torch import save

        config = json.dumps(self.config.to_dict(**extra), indent=1, sort_keys=True) + "\n"
        weights = {k: v.detach().contiguous() for k, v in self.state_dict().items()}
        write_atomic(folder / "config.json", config.encode())
        write_atomic(folder / "model.safetensors", save(weights, metadata={"format": "pt"}))

    @classmethod
    def load(cls, folder: Path) -> SmallLM:
        """Read what `save` or transformers wrote.

        Raises:
            StudyError: a missing or foreign checkpoint, naming the file.
        """
        from safetensors.torch import load_file

        for name in ("config.json", "model.safetensors"):
            if not (folder / name).is_file():
                raise StudyError(f"{folder / name}: not found; a checkpoint folder holds config.json, "
                                 "model.safetensors and tokenizer.json (`tbstudy base-policy` makes one)")
        model = cls(SmallConfig.from_dict(json.loads((folder / "config.json").read_text())))
        try:
            state = load_file(folder / "model.safetensors")
        except Exception as error:  # safetensors has errors of its own for what is cut or is no such file
            raise StudyError(f"{folder / 'model.safetensors'}: cannot be read ({error}); take a whole copy, or train "
                             "it again") from None
        state.pop("lm_head.weight", None)  # tied: transformers may write it beside the embedding
        try:
            model.load_state_dict(state)
        except RuntimeError as error:
            raise StudyError(f"{folder / 'model.safetensors'}: does not fit config.json: {error}") from None
        return model


class _Layer(nn.Module):
    def __init__(self, config: SmallConfig):
        super().__init__()
        self.self_attn = _Attention(config)
        self.mlp = _MLP(config)
        self.input_layernorm = _RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.post_attention_layernorm = _RMSNorm(config.hidden_size, config.rms_norm_eps)


class _Attention(nn.Module):
    def __init__(self, config: SmallConfig):
        super().__init__()
        self.heads, self.kv_heads, self.dim = (config.num_attention_heads, config.num_key_value_heads,
                                               config.head_dim)
        self.q_proj = nn.Linear(config.hidden_size, self.heads * self.dim, bias=False)
        self.k_proj = nn.Linear(config.hidden_size, self.kv_heads * self.dim, bias=False)
        self.v_proj = nn.Linear(config.hidden_size, self.kv_heads * self.dim, bias=False)
        self.o_proj = nn.Linear(self.heads * self.dim, config.hidden_size, bias=False)
        self.q_norm = _RMSNorm(self.dim, config.rms_norm_eps)
        self.k_norm = _RMSNorm(self.dim, config.rms_norm_eps)

    def project(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor
                ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Rotated queries and keys and plain values, each (B, heads, T, D)."""
        batch, time, _ = x.shape
        q = self.q_norm(self.q_proj(x).view(batch, time, self.heads, self.dim)).transpose(1, 2)
        k = self.k_norm(self.k_proj(x).view(batch, time, self.kv_heads, self.dim)).transpose(1, 2)
        v = self.v_proj(x).view(batch, time, self.kv_heads, self.dim).transpose(1, 2)
        return q * cos + _rotate(q) * sin, k * cos + _rotate(k) * sin, v


class _MLP(nn.Module):
    def __init__(self, config: SmallConfig):
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.up_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class _RMSNorm(nn.Module):
    def __init__(self, size: int, eps: float):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.rms_norm(x, (x.shape[-1],), self.weight, self.eps)


def _rotate(x: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    return torch.cat([-x[..., half:], x[..., :half]], -1)
