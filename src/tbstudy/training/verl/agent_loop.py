"""Our episode behind verl's agent-loop interface: one instance plays one rollout."""

from __future__ import annotations

from typing import Any

from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopMetrics, AgentLoopOutput, register

from tbstudy.errors import StudyError
from tbstudy.sandbox.episode import Episode, run_episode
from tbstudy.training.verl import workplace
from tbstudy.training.verl.conversation import ServerPolicy
from tbstudy.training.verl.metrics import note_episode
from tbstudy.training.verl.overrides import AGENT_NAME
from tbstudy.training.verl.reward import KEY, verdict_fields


@register(AGENT_NAME)
class EpisodeAgentLoop(AgentLoopBase):
    """Plays the task that a row of `PoolDataset` names and judges its terminal state.

    In training a system error is raised, which makes verl throw the group away and draw another; in validation it is
    flagged in the output. `place` is what tests put in place of the process' own workplace.
    """

    def __init__(self, *args: Any, place: workplace.Workplace | None = None, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.place = place

    async def run(self, sampling_params: dict[str, Any], **kwargs: Any) -> AgentLoopOutput:
        """Play one rollout.

        Raises:
            SystemFault: the attempt has no verdict (training only).
            StudyError: the row is not one of `PoolDataset`, or its prompt is longer than the run allows.
        """
        place = self.place if self.place is not None else workplace.current()
        info = kwargs.get("extra_info") or {}
        if "uid" not in info or "validate" not in info:
            raise StudyError("a row without extra_info.uid and .validate: data.custom_cls must be "
                             "tbstudy.training.verl.dataset:PoolDataset")
        task, validating = place.task(info["uid"]), bool(info["validate"])
        lengths, rollout = place.run.config.lengths, self.rollout_config
        policy = ServerPolicy(
            self.server_manager, self.tokenizer, {k: v for k, v in sampling_params.items() if k != "logprobs"},
            prompt=rollout.prompt_length, response=rollout.response_length, total=lengths.model,
            turn=place.run.config.sampling.turn_tokens,
            chat_template_kwargs=dict(self.apply_chat_template_kwargs or {}) or None)
        async with place.free:
            episode = await run_episode(task, int(kwargs.get("session_id", 0)), policy=policy, sandbox=place.sandbox,
                                        user=place.user)
            verdict = await place.judge(episode)
        fields = verdict_fields(episode, verdict, validating)
        if not validating:
            note_episode({"step": int(kwargs.get("global_steps", -1)), "session": int(kwargs.get("session_id", 0)),
                          **fields[KEY], **_tokens(episode), "seconds": round(episode.seconds, 3)})
            if episode.fault is not None:
                raise episode.fault
        return self._output(episode, fields)

    def _output(self, episode: Episode, fields: dict[str, Any]) -> AgentLoopOutput:
        talk = episode.conversation
        trajectory = getattr(talk, "trajectory", None)
        steps = getattr(talk, "steps", [])
        if trajectory is None or not trajectory.response_ids:
            # A flagged validation attempt that never got a token still needs a row: one masked token.
            end = int(self.tokenizer.eos_token_id)
            prompt = [end] if trajectory is None else trajectory.prompt_ids
            response, mask, logprobs = [end], [0], [0.0]
        else:
            prompt, response = trajectory.prompt_ids, trajectory.response_ids
            mask, logprobs = trajectory.response_mask, trajectory.logprobs
        return AgentLoopOutput(
            prompt_ids=prompt, response_ids=response, response_mask=mask, response_logprobs=logprobs,
            num_turns=sum(m["role"] != "system" for m in episode.messages),
            metrics=AgentLoopMetrics(generate_sequences=getattr(talk, "seconds", 0.0), tool_calls=max(
                0.0, episode.seconds - getattr(talk, "seconds", 0.0)), num_preempted=getattr(talk, "preempted", -1)),
            extra_fields={
                "turn_scores": [], "tool_rewards": [], **fields,
                "min_global_steps": min(steps, default=None), "max_global_steps": max(steps, default=None)})


def _tokens(episode: Episode) -> dict[str, int]:
    trajectory = getattr(episode.conversation, "trajectory", None)
    if trajectory is None:
        return {"prompt_tokens": 0, "response_tokens": 0, "generated_tokens": 0}
    return {"prompt_tokens": len(trajectory.prompt_ids), "response_tokens": len(trajectory.response_ids),
            "generated_tokens": sum(trajectory.response_mask)}
