"""Sampling speed: the wave engine against transformers' generate, same weights, same multi-turn episodes.

    python benchmarks/sampling.py [--rows 64] [--turns 4]

Both play the same script of turns on one thread: a shared prompt, then per turn a number of new tokens and an
observation. The peer is what a plain loop over transformers does: batched `generate` per turn, prompt and history
left-padded and prefilled again. Prints tokens a second and the ratio.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch

from tbstudy.policies.sampler import Engine, Row, Sampling
from tbstudy.policies.small_model import SmallLM

ROOT = Path(__file__).parents[1]
PROMPT, NEW, SEEN = 430, 14, 20


def ours(model: SmallLM, prompts: list[list[int]], turns: int, seen: np.ndarray) -> float:
    """Seconds for all turns of all rows; no turn ends early, so that both sides sample the same number of tokens."""
    rng = np.random.default_rng(0)
    rows = [Row(str(i), rng.random(turns * NEW), pending=list(p), budget=NEW) for i, p in enumerate(prompts)]
    engine = Engine(model, end_id=-1, sampling=Sampling())
    started = time.perf_counter()
    engine.admit(rows)
    for turn in range(turns):
        done = 0
        while done < len(rows):
            for row in engine.run():
                row.pending = [row.ids[-1], *seen[turn, int(row.key)].tolist()]
                row.ids, row.logprobs, row.ended = [], [], False
                done += 1
    return time.perf_counter() - started


def peer(model, prompts: list[list[int]], turns: int, seen: np.ndarray) -> float:
    """The same with transformers."""
    history = [list(p) for p in prompts]
    torch.manual_seed(0)
    started = time.perf_counter()
    for turn in range(turns):
        width = max(map(len, history))
        ids = torch.tensor([[0] * (width - len(h)) + h for h in history])
        mask = torch.tensor([[0] * (width - len(h)) + [1] * len(h) for h in history])
        out = model.generate(ids, attention_mask=mask, do_sample=True, top_k=20, top_p=0.95, temperature=1.0,
                             max_new_tokens=NEW, min_new_tokens=NEW, pad_token_id=0, eos_token_id=None)
        for i, row in enumerate(out[:, width:].tolist()):
            history[i] += row + seen[turn, i].tolist()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--checkpoint", type=Path, default=ROOT / "data" / "recorded" / "base_policy")
    args = parser.parse_args()
    from transformers import AutoModelForCausalLM

    torch.set_num_threads(1)
    rng = np.random.default_rng(1)
    model = SmallLM.load(args.checkpoint).eval()
    theirs = AutoModelForCausalLM.from_pretrained(args.checkpoint).eval()
    vocab = model.config.vocab_size
    shared = rng.integers(10, vocab, PROMPT).tolist()
    prompts = [shared + rng.integers(10, vocab, 12).tolist() for _ in range(args.rows)]
    seen = rng.integers(10, vocab, (args.turns, args.rows, SEEN))
    tokens = args.rows * args.turns * NEW
    a, b = ours(model, prompts, args.turns, seen), peer(theirs, prompts, args.turns, seen)
    print(f"{args.rows} episodes of {args.turns} turns, {tokens} tokens sampled")
    print(f"wave engine           {a:7.2f} s  {tokens / a:8.0f} tokens/s")
    print(f"transformers generate {b:7.2f} s  {tokens / b:8.0f} tokens/s")
    print(f"ratio {b / a:.1f}")


if __name__ == "__main__":
    main()
