"""Local GRPO on a CPU: the reference run's algorithm on the small policy, resumable after every update.

docs/reference-run.md lists in what it differs from what verl does.
"""

from __future__ import annotations

import io
import json
import math
import random
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from tbstudy.campaign import WavePlayer, load_tasks, note_backend, stage_seed
from tbstudy.config import Study, TrainConfig
from tbstudy.disk import whole_folder, write_atomic
from tbstudy.errors import StudyError
from tbstudy.policies.small_model import SmallLM
from tbstudy.reward.verdict import Verdict
from tbstudy.sandbox.episode import Episode
from tbstudy.secrets import scrub
from tbstudy.training import identity
from tbstudy.training.grpo import group_advantages, is_zero_variance, policy_loss
from tbstudy.training.sft import pad

#: Rollout tokens that share one backward pass; bounds memory, not the result.
MICRO_TOKENS = 8192


@dataclass(slots=True)
class Rollout:
    """One episode as training data: prompt and response ids, mask 1 on generated tokens, sampling log-probs (of the
    distribution at the study's temperature before `top_k` and `top_p`, see `Sampling`)."""

    prompt_ids: list[int]
    response_ids: list[int]
    mask: list[int]
    logprobs: list[float]
    reward: float
    truncated: bool


@dataclass(slots=True)
class Gathered:
    """Rollouts of one update: `groups` that teach, and what was seen on the way to them."""

    groups: list[list[Rollout]] = field(default_factory=list)
    seen: int = 0
    all_pass: int = 0
    all_fail: int = 0
    system_error: int = 0
    rollouts: int = 0
    rewards: list[float] = field(default_factory=list)
    truncated: int = 0
    fault: str = ""


class PromptOrder:
    """Endless shuffled passes over the pool; `position` alone restores it."""

    def __init__(self, uids: list[str], seed: int):
        if not uids:
            raise StudyError("the training split of the pool is empty: keep more bands or probe more candidates")
        self.uids, self.seed, self.position = sorted(uids), seed, 0

    def take(self, count: int) -> list[str]:
        """The next prompts; a prompt never stands twice in one call while the pool is large enough."""
        found: list[str] = []
        while len(found) < count:
            lap, at = divmod(self.position, len(self.uids))
            order = self.uids[:]
            random.Random(f"{self.seed}|{lap}").shuffle(order)
            if order[at] not in found or count > len(self.uids):
                found.append(order[at])
            self.position += 1
        return found


class Trainer:
    """Trains one arm. `run` continues from the last finished update and writes after each one.

    Raises StudyError when the study's policy is no local checkpoint.
    """

    def __init__(self, study: Study, arm: str, uids: list[str], folder: Path):
        identity.check_trainable(study)
        self.study, self.arm, self.folder = study, arm, folder
        self.config: TrainConfig = study.config.train
        self.seed = stage_seed(study.config.seed, "train", arm)
        note_backend(study, load_tasks(study, "candidates"))
        self.player = WavePlayer(study, study.checkpoint, arm, self.seed)
        self.model: SmallLM = self.player.policy.model
        self.temperature = study.config.policy.sampling.temperature
        self.order = PromptOrder(uids, self.seed)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=self.config.lr, betas=(0.9, 0.95),
                                           weight_decay=0.0)
        self.table: list[dict[str, Any]] = []
        # The state is only good for the same configuration and the same prompts.
        self.identity = identity.identity(study, arm, uids)

    @property
    def updates(self) -> int:
        """Updates done so far."""
        return len(self.table)

    def run(self, progress: Callable[[int, dict[str, Any]], None] = lambda update, row: None) -> None:
        """Train to `config.updates` and leave a transformers checkpoint in `folder`/checkpoint.

        Raises:
            StudyError: the folder holds another training's state, or an update lost all its groups to system errors.
        """
        identity.check(self.folder, self.identity)
        self._load()
        identity.claim(self.folder, self.identity)
        for update in range(self.updates, self.config.updates):
            started = time.perf_counter()
            gathered = self._gather(update)
            if gathered.system_error == gathered.seen:
                # No attempt was judged. Going on would use up the updates and call what is left a trained policy.
                raise StudyError(f"update {update + 1}: all {gathered.seen} groups were lost to system errors, the "
                                 f"last one {gathered.fault:.400}; put that right and start again: what is finished "
                                 "is kept")
            row = {"arm": self.arm, "update": update + 1, **self._summary(gathered)}
            row |= self._update(gathered.groups)
            row["seconds"] = round(time.perf_counter() - started, 3)
            self.table.append(row)
            self._save()
            progress(update + 1, row)
        self.export()

    # rollouts --------------------------------------------------------------------------------------------------

    def _gather(self, update: int) -> Gathered:
        found = Gathered()
        for round_ in range(self.config.max_rounds):
            short = self.config.groups - len(found.groups)
            if not short:
                break
            for group in self._roll_out(self.order.take(math.ceil(short * self.config.oversample)), update, round_):
                found.seen += 1
                found.rollouts += len(group)
                found.truncated += sum(e.cut for e, _ in group)
                broken = [(e, v) for e, v in group if v is None or v.system_error]
                if broken:
                    found.system_error += 1
                    found.fault = _fault(*broken[-1])
                    continue
                rewards = [v.reward for _, v in group]
                found.rewards += rewards
                if is_zero_variance(rewards):
                    found.all_pass += rewards[0] > 0
                    found.all_fail += rewards[0] == 0
                elif len(found.groups) < self.config.groups:
                    found.groups.append([_rollout(e, v) for e, v in group])
        return found

    def _roll_out(self, uids: list[str], update: int, round_: int) -> list[list[tuple[Episode, Verdict | None]]]:
        player, size = self.player, self.config.rollouts
        player.policy.stream = f"{update}|{round_}"
        domain = {uid: player.dataset.tasks[uid].domain for uid in uids}
        groups: dict[int, list[tuple[Episode, Verdict | None]]] = {}
        # A wave holds one domain, whose prompt its rows share.
        for name in sorted(set(domain.values())):
            members = [i for i, uid in enumerate(uids) if domain[uid] == name]
            # Repetitions tell apart the rare case of one prompt twice in a round.
            attempts = [(uids[i], i * size + r) for i in members for r in range(size)]
            played = player.play(attempts)
            for j, i in enumerate(members):
                groups[i] = played[j * size:(j + 1) * size]
        return [groups[i] for i in range(len(uids))]

    def _summary(self, g: Gathered) -> dict[str, Any]:
        seen = max(1, g.seen)
        return {"mean_reward": sum(g.rewards) / max(1, len(g.rewards)),
                "zero_variance_share": (g.all_pass + g.all_fail) / seen, "all_pass_share": g.all_pass / seen,
                "all_fail_share": g.all_fail / seen, "system_error_share": g.system_error / seen,
                "truncated_share": g.truncated / max(1, g.rollouts), "groups": len(g.groups),
                "groups_rolled_out": g.seen, "rollouts": g.rollouts}

    # the update ------------------------------------------------------------------------------------------------

    def _update(self, groups: list[list[Rollout]]) -> dict[str, Any]:
        rollouts = [r for group in groups for r in group]
        if not rollouts:
            # Every group was all-pass or all-fail: nothing was computed, so there is no value, not a value of zero.
            return dict.fromkeys(("loss", "grad_norm", "clip_fraction", "kl", "entropy"), float("nan")) | {"tokens": 0}
        ids = torch.tensor([i for i, group in enumerate(groups) for _ in group])
        advantages = group_advantages(torch.tensor([r.reward for r in rollouts]), ids, self.config.normalise_by_std)
        tokens = sum(sum(r.mask) for r in rollouts)
        totals: dict[str, float] = defaultdict(float)
        for part in _micro_batches(rollouts):
            logprobs, entropy, mask = token_logprobs(self.model, [rollouts[i] for i in part], self.temperature)
            old = torch.zeros_like(logprobs)
            for row, i in enumerate(part):
                old[row, :len(rollouts[i].logprobs)] = torch.tensor(rollouts[i].logprobs)
            result = policy_loss(logprobs, old, advantages[part], mask, self.config.clip_low, self.config.clip_high)
            # Token mean over the whole batch, whatever the split: each part counts by its tokens.
            share = mask.sum().item() / tokens
            (result.loss * share).backward()
            for name, value in (("loss", result.loss.item()), ("clip_fraction", result.clip_fraction),
                                ("kl", result.kl), ("entropy", entropy)):
                totals[name] += value * share
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.max_grad_norm)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.player.policy.engine.weights_changed()
        return {**totals, "grad_norm": float(norm), "tokens": tokens}

    # state -----------------------------------------------------------------------------------------------------

    @property
    def _state_file(self) -> Path:
        return self.folder / "state.pt"

    def _save(self) -> None:
        out = io.BytesIO()
        torch.save({"identity": self.identity, "model": self.model.state_dict(), "position": self.order.position,
                    "optimizer": self.optimizer.state_dict(), "table": self.table}, out)
        write_atomic(self._state_file, out.getvalue())
        self._write_table()

    def _write_table(self) -> None:
        # JSON has no NaN: what an update did not have is null.
        rows = ({k: None if v != v else v for k, v in row.items()} for row in self.table)
        write_atomic(self.folder / "training.jsonl", "".join(json.dumps(r) + "\n" for r in rows).encode())

    def _load(self) -> None:
        if not self._state_file.exists():
            return
        state = torch.load(self._state_file, weights_only=True)
        if state["identity"] != self.identity:
            raise identity.refusal(self._state_file)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.order.position, self.table = state["position"], state["table"]
        # The run may have ended between the state and the table.
        self._write_table()

    def export(self) -> Path:
        """Write the policy as a transformers checkpoint and return its folder, which is there whole or not at all."""
        folder, tokenizer = self.folder / "checkpoint", self.player.policy.tokenizer
        with whole_folder(folder, replace=True) as scratch:
            self.model.save(scratch, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id)
            tokenizer.save_pretrained(scratch)
        return folder


def token_logprobs(model: SmallLM, rollouts: list[Rollout],
                   temperature: float = 1.0) -> tuple[torch.Tensor, float, torch.Tensor]:
    """Log-probabilities (B, T) of the response tokens, mean entropy over generated ones, and the mask (B, T).

    Both are of the softmax of logits / `temperature`, the whole of it: the sampler's `top_k` and `top_p` cut what is
    drawn, not what its log-probabilities are of, so that the two agree before an update whatever the cut. The
    rollouts share a prompt prefix, which is computed once and receives the gradient of all of them.
    """
    shared = _shared_prefix([r.prompt_ids for r in rollouts])
    prefix = rollouts[0].prompt_ids[:shared]
    tails = [tuple(r.prompt_ids[shared:] + r.response_ids) for r in rollouts]
    lead = [len(r.prompt_ids) - shared for r in rollouts]
    width = max(len(r.response_ids) for r in rollouts)
    _, cache = model.hidden(torch.tensor([prefix[:-1]]), torch.arange(shared - 1))
    ids = pad(tails)
    inputs = torch.cat([torch.full((len(rollouts), 1), prefix[-1]), ids[:, :-1]], 1)
    hidden, _ = model.hidden(inputs, torch.arange(shared - 1, shared - 1 + inputs.shape[1]), cache)
    where = [(row, lead[row] + t, t) for row, r in enumerate(rollouts) for t, m in enumerate(r.mask) if m]
    rows, columns, steps = (torch.tensor(v) for v in zip(*where, strict=True))
    logits = model.logits(hidden[rows, columns]) / temperature
    chosen = logits.log_softmax(-1)
    logprobs = torch.zeros(len(rollouts), width)
    logprobs = logprobs.index_put((rows, steps), chosen.gather(-1, ids[rows, columns][:, None])[:, 0])
    mask = torch.zeros(len(rollouts), width)
    mask[rows, steps] = 1.0
    with torch.no_grad():
        entropy = float(-(chosen.exp() * chosen).sum(-1).mean())
    return logprobs, entropy, mask


def _fault(episode: Episode, verdict: Verdict | None) -> str:
    cause, said = (verdict.cause or "check", verdict.reason) if verdict is not None else (
        episode.fault.cause, str(episode.fault))
    return f"{episode.task.uid}: {cause}: {scrub(said)}"


def _rollout(episode: Episode, verdict: Verdict | None) -> Rollout:
    trajectory = episode.conversation.trajectory
    # Observations after the last turn have no effect on the loss; the sequence ends with the last generated token.
    end = trajectory.turns[-1][1]
    return Rollout(trajectory.prompt_ids, trajectory.response_ids[:end], trajectory.response_mask[:end],
                   trajectory.logprobs[:end], verdict.reward, trajectory.truncated)


def _micro_batches(rollouts: list[Rollout]) -> list[list[int]]:
    """Indices in parts of at most MICRO_TOKENS padded tokens that share their system prompt, similar in length."""
    by_prompt: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for i, r in enumerate(rollouts):
        by_prompt[tuple(r.prompt_ids[:64])].append(i)
    parts = []
    for members in by_prompt.values():
        members.sort(key=lambda i: len(rollouts[i].response_ids))
        part: list[int] = []
        for i in members:
            if part and (len(part) + 1) * len(rollouts[i].response_ids) > MICRO_TOKENS:
                parts.append(part)
                part = []
            part.append(i)
        parts.append(part)
    return parts


def _shared_prefix(rows: list[list[int]]) -> int:
    first, shared = rows[0], min(map(len, rows)) - 1
    for row in rows[1:]:
        shared = next((i for i in range(shared) if row[i] != first[i]), shared)
    return shared
