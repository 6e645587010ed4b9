"""What the size of a wave changes in the small policy's attempts: how many differ, and by how much.

    python benchmarks/waves.py [--waves 128,64,16,1] [--attempts 2]

Each attempt has its own random numbers, whatever wave it is in. The network's sums are rounded otherwise for another
number of rows, so a token's probability moves in its last digits; rarely that moves a sampled token, and with it the
rest of the attempt.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tbstudy.campaign import WavePlayer, load_tasks, waves
from tbstudy.config import load_study

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--waves", type=lambda s: [int(n) for n in s.split(",")], default=[128, 64, 16, 1])
    p.add_argument("--attempts", type=int, default=2, help="per task of the benchmark (default: %(default)s)")
    args = p.parse_args()
    study = load_study(ROOT / "configs" / "laptop.yaml")
    player = WavePlayer(study, study.checkpoint, "base", seed=11)
    first: dict = {}
    for size in args.waves:
        differ, moved, found = 0, 0.0, {}
        for wave in waves(load_tasks(study, "benchmark"), args.attempts, size):
            for key, (episode, verdict) in zip(wave, player.play(wave), strict=True):
                found[key] = episode.messages, episode.conversation.trajectory.logprobs, verdict.passed
        first = first or found
        for key, (messages, logprobs, _) in found.items():
            if messages != first[key][0]:
                differ += 1
            else:
                moved = max(moved, max(abs(a - b) for a, b in zip(logprobs, first[key][1], strict=True)))
        passed = sum(f[2] for f in found.values())
        print(f"waves of {size:3}: {len(found)} attempts, {passed} passed, {differ} differ from those in waves of "
              f"{args.waves[0]}; log-probabilities of the others differ by at most {moved:.1e}", flush=True)


if __name__ == "__main__":
    main()
