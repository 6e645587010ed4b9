"""What verl imports in every process of a CPU run: the platform, the rollout, and what still stands in their way."""

from __future__ import annotations

from types import ModuleType

from tbstudy.training.verl import hooks
from tbstudy.training.verl.hooks import Hook


def _process_group(module: ModuleType) -> None:
    # verl would ask for "cpu:gloo,cpu:gloo", which names the device twice.
    module.initialize_global_process_group_ray.__defaults__ = (None, "cpu:gloo")


def _replica(module: ModuleType) -> None:
    def load() -> type:
        from tbstudy.training.verl.cpu.rollout import TransformersReplica

        return TransformersReplica

    module.RolloutReplicaRegistry.register("tbstudy_transformers", load)


def _rollout(module: ModuleType) -> None:
    module._ROLLOUT_REGISTRY[("tbstudy_transformers", "async")] = "tbstudy.training.verl.cpu.rollout.WeightSender"


HOOKS: tuple[Hook, ...] = (
    Hook("cpu_process_group", "the process group's backend names the device twice when it is the CPU", "verl",
         "verl.utils.distributed", "initialize_global_process_group_ray", {"0.9.1": "e9ec517a0089c3c5"},
         lambda source: 'f"cpu:gloo,{get_device_name()}' in source, _process_group),
    Hook("cpu_replica", "the rollout's servers are registered where verl looks for them", "verl",
         "verl.workers.rollout.replica", "RolloutReplicaRegistry.register", {"0.9.1": "a08422fbc30c8a3e"},
         lambda source: True,
         _replica),
    Hook("cpu_rollout", "and so is the sender of weights", "verl",
         "verl.workers.rollout.base", "get_rollout_class", {"0.9.1": "b82e97bb3ad28dee"},
         lambda source: True, _rollout),
)


def register() -> None:
    """Make the platform known to verl and activate the hooks."""
    from verl.plugin.platform import PlatformRegistry

    from tbstudy.training.verl.cpu.platform import PlatformCPU

    if PlatformRegistry.get("cpu") is not PlatformCPU:
        PlatformRegistry.register("cpu")(PlatformCPU)
    hooks.activate(HOOKS)


register()
