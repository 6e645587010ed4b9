"""A run configuration as verl's own settings: the overrides of `python -m verl.trainer.main_ppo`.

Every setting that decides the run is written out, also where verl's default agrees today, so that the printed command
says everything and a changed default changes nothing.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from tbstudy.training.verl.config import Run

AGENT_NAME = "tbstudy_episode"
AGENT_LOOP = "tbstudy.training.verl.agent_loop.EpisodeAgentLoop"
#: Names the run's dumped configuration to the trainer's processes.
RUN_VARIABLE = "TBSTUDY_VERL_RUN"
#: Modules that verl imports in every process.
PLUGIN = "tbstudy.training.verl.plugin"
CPU_PLUGIN = "tbstudy.training.verl.cpu.plugin"
_PLAIN = re.compile(r"[A-Za-z0-9_./:+-]+")


def verl_settings(run: Run) -> dict[str, Any]:
    """verl's settings by dotted key. A key that starts with `+` is one that verl's tree does not hold."""
    c = run.config
    actor, rollout, model = "actor_rollout_ref.actor", "actor_rollout_ref.rollout", "actor_rollout_ref.model"
    o, s, cpu = c.optimizer, c.sampling, c.cluster.platform == "cpu"
    settings: dict[str, Any] = {
        # Where it runs.
        "trainer.nnodes": c.cluster.nodes,
        "trainer.n_gpus_per_node": c.cluster.gpus_per_node,
        f"{actor}.strategy": o.strategy,
        f"{actor}.ulysses_sequence_parallel_size": c.parallel.sequence,
        f"{rollout}.tensor_model_parallel_size": c.parallel.rollout_tensor,
        # What it learns from.
        "data.train_files": f"{run.path(c.data.pool)}:{c.data.split}",
        "data.val_files": f"{run.path(c.data.pool)}:{c.data.validation}:validate",
        "data.custom_cls.path": "pkg://tbstudy.training.verl.dataset",
        "data.custom_cls.name": "PoolDataset",
        "data.train_batch_size": c.update.groups,
        # Refilled groups are drawn one at a time.
        "data.gen_batch_size": 1,
        "data.max_prompt_length": c.lengths.prompt,
        "data.max_response_length": c.lengths.response,
        "data.truncation": "error",
        "data.filter_overlong_prompts": False,
        "data.shuffle": c.data.shuffle,
        "data.seed": c.seed,
        "data.return_raw_chat": True,
        "data.dataloader_num_workers": 0,
        # The algorithm.
        "algorithm.adv_estimator": "grpo",
        "algorithm.norm_adv_by_std_in_grpo": o.normalise_by_std,
        "algorithm.use_kl_in_reward": False,
        # Old log-probabilities are the actor's, computed before the update; the sampler's correct nothing.
        "algorithm.rollout_correction.bypass_mode": False,
        "algorithm.rollout_correction.rollout_is": None,
        "algorithm.rollout_correction.rollout_rs": None,
        "algorithm.filter_groups.enable": True,
        "algorithm.filter_groups.metric": "score",
        "trainer.v1.trainer_mode": "sync",
        "trainer.v1.sampler.sync_refill_failed_groups": True,
        f"{actor}.use_kl_loss": False,
        f"{actor}.entropy_coeff": 0,
        f"{actor}.loss_agg_mode": "token-mean",
        f"{actor}.clip_ratio_low": o.clip_low,
        f"{actor}.clip_ratio_high": o.clip_high,
        # Dual clip: what a token with a negative advantage can cost, in multiples of the advantage.
        f"{actor}.clip_ratio_c": 3.0,
        f"{actor}.ppo_epochs": 1,
        f"{actor}.ppo_mini_batch_size": c.update.mini_batch or c.update.groups,
        f"{actor}.ppo_micro_batch_size_per_gpu": c.update.micro_batch_per_gpu,
        f"{actor}.use_dynamic_bsz": False,
        f"{actor}.grad_clip": o.grad_clip,
        # The optimizer clips by its own copy of the setting.
        f"{actor}.optim.clip_grad": o.grad_clip,
        f"{actor}.optim.optimizer": "AdamW",
        f"{actor}.optim.lr": o.lr,
        f"{actor}.optim.betas": [0.9, 0.999],
        f"{actor}.optim.weight_decay": o.weight_decay,
        f"{actor}.optim.lr_warmup_steps": o.warmup_updates,
        f"{actor}.optim.lr_scheduler_type": "constant",
        f"{actor}.fsdp_config.param_offload": o.offload_parameters,
        f"{actor}.fsdp_config.optimizer_offload": o.offload_optimizer,
        f"{actor}.fsdp_config.dtype": c.model.dtype,
        # What verl's engine goes by; without it parameters are computed with in 16 bit whatever dtype says.
        f"+{actor}.fsdp_config.mixed_precision.param_dtype": "fp32" if c.model.dtype == "float32" else "bf16",
        f"+{actor}.fsdp_config.mixed_precision.reduce_dtype": "fp32",
        f"+{actor}.fsdp_config.mixed_precision.buffer_dtype": "fp32",
        f"{actor}.fsdp_config.seed": c.seed,
        f"{actor}.fsdp_config.use_no_sync_for_gradient_accumulation": False,
        f"{actor}.data_loader_seed": c.seed,
        # The model.
        f"{model}.path": str(run.path(c.model.path)),
        f"{model}.use_remove_padding": True,
        f"{model}.enable_gradient_checkpointing": True,
        f"{model}.use_fused_kernels": c.model.kernels != "none",
        f"{model}.trust_remote_code": False,
        f"+{model}.override_config.attn_implementation": c.model.attention,
        # The rollout: our episodes, nothing truncated, no other agent loop to fall back to.
        f"{rollout}.name": "vllm" if c.rollout.engine == "vllm" else "tbstudy_transformers",
        f"{rollout}.mode": "async",
        f"{rollout}.n": c.update.rollouts,
        f"{rollout}.seed": c.seed,
        f"{rollout}.temperature": s.temperature,
        f"{rollout}.top_k": s.top_k,
        f"{rollout}.top_p": s.top_p,
        f"{rollout}.do_sample": True,
        f"{rollout}.calculate_log_probs": True,
        f"{rollout}.prompt_length": c.lengths.prompt,
        f"{rollout}.response_length": c.lengths.response,
        f"{rollout}.max_model_len": c.lengths.model,
        f"{rollout}.max_num_batched_tokens": c.rollout.batched_tokens,
        f"{rollout}.max_num_seqs": c.rollout.max_sequences,
        f"{rollout}.gpu_memory_utilization": c.rollout.gpu_memory_utilization,
        f"{rollout}.dtype": c.model.dtype,
        f"{rollout}.log_prob_micro_batch_size_per_gpu": c.update.micro_batch_per_gpu,
        "actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu": c.update.micro_batch_per_gpu,
        f"{rollout}.agent.num_workers": c.rollout.workers,
        f"{rollout}.agent.default_agent_loop": AGENT_NAME,
        f"{rollout}.agent.agent_loop_config_path": str(agent_loop_file(run)),
        f"{rollout}.multi_turn.enable": True,
        # Characters; verl's own tool loop would cut answers at 256 in the middle.
        f"{rollout}.multi_turn.max_tool_response_length": 1_000_000_000,
        f"{rollout}.val_kwargs.n": 1,
        f"{rollout}.val_kwargs.do_sample": True,
        f"{rollout}.val_kwargs.temperature": s.temperature,
        f"{rollout}.val_kwargs.top_k": s.top_k,
        f"{rollout}.val_kwargs.top_p": s.top_p,
        "reward.custom_reward_function.path": "pkg://tbstudy.training.verl.reward",
        "reward.custom_reward_function.name": "compute_score",
        "reward.num_workers": 1 if cpu else 8,
        # The course of the run.
        "trainer.total_training_steps": c.update.updates,
        # Steps end the run; an epoch is at least one step, so this never does.
        "trainer.total_epochs": c.update.updates + 1,
        "trainer.save_freq": c.checkpoints.every,
        "trainer.resume_mode": c.checkpoints.resume,
        "trainer.default_local_dir": str(run.checkpoints),
        "trainer.max_actor_ckpt_to_keep": c.checkpoints.keep,
        "trainer.val_before_train": False,
        "trainer.test_freq": -1,
        "trainer.project_name": "tbstudy",
        "trainer.experiment_name": c.run,
        "trainer.logger": list(c.loggers),
        "trainer.use_v1": True,
    }
    if c.model.kernels != "none":
        settings[f"{model}.fused_kernel_options.impl_backend"] = c.model.kernels
    if c.cluster.ray_address or c.cluster.nodes > 1:
        settings["+ray_kwargs.ray_init.address"] = c.cluster.ray_address or "auto"
    elif c.cluster.cpus:
        settings["ray_kwargs.ray_init.num_cpus"] = c.cluster.cpus
    if cpu:
        settings |= _cpu_settings(c.cluster.gpus_per_node)
    for name, value in environment(run).items():
        settings[f"+ray_kwargs.ray_init.runtime_env.env_vars.{name}"] = value
    return settings | c.overrides


def _cpu_settings(gpus: int) -> dict[str, Any]:
    actor, rollout = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"
    return {
        # Ray is told of GPUs that are not there; verl asks it for them.
        "+ray_kwargs.ray_init.num_gpus": gpus,
        "+ray_kwargs.ray_init.include_dashboard": False,
        f"{actor}.use_torch_compile": False,
        f"{actor}.fsdp_config.use_torch_compile": False,
        f"{rollout}.free_cache_engine": False,
        f"{rollout}.enforce_eager": True,
        f"{rollout}.checkpoint_engine.update_weights_bucket_megabytes": 32,
        "transfer_queue.backend.SimpleStorage.num_data_storage_units": 1,
    }


def environment(run: Run) -> dict[str, str]:
    """Variables that every process of the trainer needs. Secrets are not among them: each node has its own."""
    plugins, found = [PLUGIN], {RUN_VARIABLE: str(run_file(run))}
    if run.config.cluster.platform == "cpu":
        plugins.append(CPU_PLUGIN)
        # The engine that verl registers for cuda is plain PyTorch; nothing else in it asks for a GPU.
        found |= {"VERL_PLATFORM": "cpu", "VERL_ENGINE_DEVICE": "cuda", "OMP_NUM_THREADS": "1"}
        # Twenty processes import torch on a few cores; Ray takes slow ones for dead.
        found |= {"RAY_worker_register_timeout_seconds": "900", "RAY_agent_register_timeout_ms": "900000",
                  "RAY_health_check_timeout_ms": "120000", "RAY_gcs_server_request_timeout_seconds": "600"}
    # verl's logger empties its file when it starts, so every attempt gets one of its own.
    found["VERL_FILE_LOGGER_PATH"] = str(next_metrics_file(run))
    return found | {"VERL_USE_EXTERNAL_MODULES": ",".join(plugins), "TOKENIZERS_PARALLELISM": "false"}


def run_file(run: Run) -> Path:
    """Where the resolved run configuration is written for the workers: in the folder that all nodes share."""
    return run.checkpoints / "run.json"


def metrics_folder(run: Run) -> Path:
    """Where the attempts of a run leave verl's metrics, one JSONL file each."""
    return run.checkpoints / "metrics"


def next_metrics_file(run: Run) -> Path:
    """The metrics file of the next attempt."""
    folder = metrics_folder(run)
    return folder / f"attempt-{len(list(folder.glob('attempt-*.jsonl'))) + 1:03d}.jsonl"


def agent_loop_file(run: Run) -> Path:
    """Where verl reads which class plays the episodes."""
    return run.checkpoints / "agent_loop.yaml"


def hydra_value(value: Any) -> str:
    """A value in Hydra's override grammar."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(hydra_value(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{hydra_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (int, float)):
        return repr(value)
    text = str(value)
    # Text that YAML would read as something else is quoted, so that it stays text.
    looks_typed = re.fullmatch(r"[-+]?[0-9.][0-9.eE+-]*|true|false|null|none|nan|inf", text, re.IGNORECASE)
    if _PLAIN.fullmatch(text) and not looks_typed:
        return text
    # Backslashes are themselves except before a quote.
    return "'" + re.sub(r"(\\*)('|$)", lambda m: m[1] * 2 + ("\\'" if m[2] else ""), text) + "'"


def hydra_overrides(run: Run) -> list[str]:
    """The settings as `key=value` arguments."""
    return [f"{key}={hydra_value(value)}" for key, value in verl_settings(run).items()]


def command(run: Run, extra: list[str] | tuple[str, ...] = ()) -> list[str]:
    """The trainer's command line; `extra` overrides come last and win."""
    # Hydra would leave a folder `outputs` wherever it is started.
    hydra = [f"hydra.run.dir={hydra_value(str(run.checkpoints / 'hydra'))}", "hydra.output_subdir=null"]
    return [sys.executable, "-m", "verl.trainer.main_ppo", *hydra_overrides(run), *hydra, *extra]
