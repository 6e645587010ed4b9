"""What a forecast takes for granted; apart from the forecast, so that the command line can list it quickly."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What the pool cannot tell. Tokens and calls are per episode; rates are tokens a second and GPU.

    `generate_rate` counts generated tokens over all GPUs of the rollout, idle time of the longest episodes included;
    `train_rate` counts all tokens of the trained sequences for log-probabilities, forward and backward together.
    """

    prompt_tokens: float = 16000.0
    observation_tokens: float = 4000.0
    generated_tokens: float = 5000.0
    policy_turns: float = 14.0
    user_calls: float = 3.0
    user_input_tokens: float = 1500.0
    user_output_tokens: float = 60.0
    system_error_rate: float = 0.01
    generate_rate: float = 250.0
    train_rate: float = 700.0
    overhead_seconds: float = 120.0
