"""Small repairs of verl for this run, applied when the module that needs one is imported.

Each hook names the versions that it is for and the digest of the code that it changes. Where upstream holds the repair
already the hook stays off; where the code is one it does not know it refuses, since a repair that no longer fits is
worse than none. Settings do what settings can: gradient synchronisation on every micro-batch is
`use_no_sync_for_gradient_accumulation=false` in 0.9.1 and needs no hook.
"""

from __future__ import annotations
import __future__

import functools
import hashlib
import importlib.abc
import importlib.metadata
import importlib.util
import inspect
import json
import logging
import os
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal

from tbstudy.errors import StudyError

_logger = logging.getLogger(__name__)

State = Literal["active", "fixed upstream", "not installed"]


@dataclass(frozen=True, slots=True)
class Hook:
    """A repair of `target` (dotted name inside `module`).

    `digests` maps versions of `package` to the digest of the target's source there. `defective` says by the source
    whether the defect is in it. `apply(module)` makes the change.
    """

    name: str
    why: str
    package: str
    module: str
    target: str
    digests: dict[str, str]
    defective: Callable[[str], bool]
    apply: Callable[[ModuleType], None]

    def install(self, module: ModuleType) -> State:
        """Apply to the imported module.

        Raises:
            StudyError: the code has the defect but is not the code that this hook knows.
        """
        source = source_of(module, self.target)
        if not self.defective(source):
            return "fixed upstream"
        version = importlib.metadata.version(self.package)
        if self.digests.get(version) != digest(source):
            raise StudyError(
                f"hook {self.name}: {self.module}.{self.target} of {self.package} {version} is not the code that it "
                f"knows ({self.package} {', '.join(self.digests)}; digest here {digest(source)}). Install a version "
                "that it knows, or compare the code and add its digest to tbstudy.training.verl.hooks")
        self.apply(module)
        return "active"


def digest(source: str) -> str:
    """16 hex digits of a piece of source, blank space at line ends and indentation of the whole left out."""
    lines = [line.rstrip() for line in textwrap.dedent(source).strip().splitlines()]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def source_of(module: ModuleType, target: str) -> str:
    """Source of `target` in `module`; through decorators and earlier hooks to the code as it was written.

    Raises:
        StudyError: there is no such thing.
    """
    thing: Any = module
    for part in target.split("."):
        if not hasattr(thing, part):
            raise StudyError(f"{module.__name__} has no {target}: verl has moved it; this version is not supported")
        thing = inspect.getattr_static(thing, part) if inspect.isclass(thing) else getattr(thing, part)
        thing = getattr(thing, "__func__", thing)
    return inspect.getsource(inspect.unwrap(thing))


def _rewrite(module: ModuleType, target: str, old: str, new: str) -> None:
    """Recompile a function or method of the module with one piece of its source replaced."""
    *owner_path, name = target.split(".")
    owner: Any = functools.reduce(getattr, owner_path, module)
    current = inspect.unwrap(getattr(owner, name))
    source = textwrap.dedent(inspect.getsource(current))
    if source.count(old) != 1:
        raise StudyError(f"{module.__name__}.{target}: expected the text {old!r} once, found {source.count(old)} times")
    # Parsed on its own lines again, so that tracebacks point into the original file.
    padding = "\n" * (current.__code__.co_firstlineno - 1)
    space: dict[str, Any] = {}
    flags = current.__code__.co_flags & __future__.annotations.compiler_flag
    code = compile(padding + source.replace(old, new), inspect.getfile(current), "exec", flags, dont_inherit=True)
    exec(code, module.__dict__, space)
    changed = space[name]
    changed.__qualname__ = current.__qualname__
    setattr(owner, name, changed)


# --- the repairs -----------------------------------------------------------------------------------------------------


def _move_lm_head(module: ModuleType) -> None:
    original = module.linear_cross_entropy

    def linear_cross_entropy(hidden: Any, weight: Any, *args: Any) -> Any:
        # Outside the autograd function, so that the gradient returns to where the weight lives.
        if weight.device != hidden.device:
            weight = weight.to(hidden.device)
        return original(hidden, weight, *args)

    module.linear_cross_entropy = linear_cross_entropy


def slices_its_inputs(model: Any) -> bool:
    """Whether a decoder inside `model` has verl's wrapper that slices embeddings for sequence parallelism.

    Such a model must be given whole sequences, or they would be sliced twice.
    """
    return any(type(part).forward.__name__ == "ulysses_wrapped_decoder_forward" for part in model.modules())


_VISION = 'is_vlm_model = hasattr(getattr(self.module, "module", self.module).config, "vision_config")'
_VISION_BATCH = (_VISION + " and (bool(multi_modal_inputs)"
                 " or __import__('tbstudy.training.verl.hooks', fromlist=['x']).slices_its_inputs(self.module))")


def _text_batches(module: ModuleType) -> None:
    _rewrite(module, "FSDPEngineWithLMHead.prepare_model_inputs", _VISION, _VISION_BATCH)


_ROPE = 'if self.processor is None or not hasattr(self.processor, "get_rope_index"):'


def _positions(module: ModuleType) -> None:
    original = module.AgentLoopWorker._compute_position_ids

    @functools.wraps(original)
    def _compute_position_ids(self: Any, input_ids: Any, attention_mask: Any, multi_modal_inputs: Any,
                              *args: Any, **kwargs: Any) -> Any:
        media = any(multi_modal_inputs.get(key) is not None for key in
                    ("pixel_values", "pixel_values_videos", "image_grid_thw", "video_grid_thw", "input_features"))
        if not media:
            # What the processor says of token types would make the batch look multimodal later.
            multi_modal_inputs.pop("mm_token_type_ids", None)
            return module.compute_position_id_with_mask(attention_mask)
        return original(self, input_ids, attention_mask, multi_modal_inputs, *args, **kwargs)

    module.AgentLoopWorker._compute_position_ids = _compute_position_ids


def _whole_groups(module: ModuleType) -> None:
    _rewrite(module, "ReplayBuffer._terminal_eviction_reasons",
             "failed_uids = self.failure_keys[partition_id] - materializable_uids",
             "failed_uids = set(self.failure_keys[partition_id])")


def _bounded_evictions(module: ModuleType) -> None:
    original = module.ReplayBuffer._evict_terminal_groups

    @functools.wraps(original)
    def _evict_terminal_groups(self: Any, global_steps: int, partition_id: str, eviction_reasons: Any) -> Any:
        result = original(self, global_steps, partition_id, eviction_reasons)
        if result[0]:
            evictions = self.__dict__.setdefault("_tbstudy_evictions", Evictions(self.train_batch_size or 1))
            evictions.add(global_steps, len(result[0]), result[3])
        return result

    module.ReplayBuffer._evict_terminal_groups = _evict_terminal_groups


#: verl's key for how many thrown-away groups had which common score.
_REWARD_COUNTS = "_dapo_filtered_reward_counts"


class Evictions:
    """Counts the groups that an update threw away, tells of it, and ends a run that could go on for ever.

    `limit` is a number of groups; None takes it from the run's configuration.
    """

    def __init__(self, groups: int, limit: int | None = None):
        self.groups, self.step, self.count, self.failed = groups, -1, 0, 0
        self.limit = limit if limit is not None else _run_limit()

    def add(self, step: int, evicted: int, metrics: dict[str, Any]) -> None:
        """`evicted` more groups of update `step` were thrown away.

        Raises:
            StudyError: they are more than the limit.
        """
        if step != self.step:
            self.step, self.count, self.failed = step, 0, 0
        before, self.count = self.count // self.groups, self.count + evicted
        self._write(step, evicted, metrics)
        self.failed += sum(n for key, n in metrics.items() if key.endswith("rollout_failure/evicted_samples"))
        said = (f"update {step}: {self.count} groups thrown away so far ({self.failed} of them with system errors, the "
                f"others with equal rewards) for an update of {self.groups}")
        if self.count // self.groups > before:
            _logger.warning("%s", said)
        if self.limit is not None and self.count > self.limit:
            remedy = ("repair the tool servers, user or judge first" if 2 * self.failed > self.count else
                      "the policy passes or fails nearly every task: select the pool again, or raise "
                      "update.max_evicted")
            raise StudyError(f"{said}; more than update.max_evicted = {self.limit}. {remedy}")


    def _write(self, step: int, evicted: int, metrics: dict[str, Any]) -> None:
        """Beside verl's metrics file, which does not tell all-pass from all-fail."""
        from tbstudy.training.verl.metrics import EVICTIONS

        if file := os.environ.get("VERL_FILE_LOGGER_PATH"):
            scores = sorted((float(score), int(count)) for score, count in metrics.get(_REWARD_COUNTS, {}).items())
            with open(file + EVICTIONS, "a", encoding="utf-8") as out:
                out.write(json.dumps({"step": step, "evicted": evicted, "scores": scores}) + "\n")


def _run_limit() -> int | None:
    from tbstudy.training.verl.config import load_run
    from tbstudy.training.verl.overrides import RUN_VARIABLE

    file = os.environ.get(RUN_VARIABLE)
    return load_run(file).config.update.max_evicted if file else None


def _keep_marker(module: ModuleType) -> None:
    _rewrite(module, "init_on_device",
             "module._parameters[name] = param_cls(module._parameters[name].to(device), **kwargs)",
             "marker = kwargs.pop('_is_hf_initialized', None)\n"
             "            module._parameters[name] = param_cls(module._parameters[name].to(device), **kwargs)\n"
             "            if marker is not None:\n"
             "                module._parameters[name]._is_hf_initialized = marker")


HOOKS: tuple[Hook, ...] = (
    Hook("lm_head_device", "the fused loss reads an LM head that offloading left on the CPU", "verl",
         "verl.utils.kernel.linear_cross_entropy", "LinearCrossEntropy.forward",
         {"0.9.1": "76e2bc6b7a34b513"}, lambda source: ".to(hidden.device" not in source, _move_lm_head),
    Hook("text_batches", "a model with a vision tower gets unsliced text batches under sequence parallelism", "verl",
         "verl.workers.engine.fsdp.transformer_impl", "FSDPEngineWithLMHead.prepare_model_inputs",
         {"0.9.1": "58ec404ccb941698"}, lambda source: _VISION + "\n" in source, _text_batches),
    Hook("text_positions", "a text-only batch gets multimodal position ids when the processor knows them", "verl",
         "verl.experimental.agent_loop.agent_loop", "AgentLoopWorker._compute_position_ids",
         {"0.9.1": "51ef3b3f3c1cf75b"}, lambda source: _ROPE in source, _positions),
    Hook("whole_groups", "a group that lost some rollouts to system errors is trained on, short, instead of refilled",
         "verl", "verl.trainer.ppo.v1.replay_buffer", "ReplayBuffer._terminal_eviction_reasons",
         {"0.9.1": "9a3027b776e22bf5"}, lambda source: "- materializable_uids" in source, _whole_groups),
    Hook("bounded_evictions", "an update whose groups all have equal rewards is refilled without end", "verl",
         "verl.trainer.ppo.v1.replay_buffer", "ReplayBuffer._evict_terminal_groups",
         {"0.9.1": "2754b3b4a7a2120f"}, lambda source: "max_num_gen_batches" not in source, _bounded_evictions),
    Hook("init_marker", "parameters on the meta device lose the mark that transformers set on them", "accelerate",
         "accelerate.big_modeling", "init_on_device",
         {"1.12.0": "53e2fdbbf239f976"}, lambda source: "_is_hf_initialized" not in source, _keep_marker),
)


# --- when they are applied -------------------------------------------------------------------------------------------

_states: dict[str, State] = {}


class _Importer(importlib.abc.MetaPathFinder):
    """Finds the modules that have hooks as usual and applies these once the module ran."""

    def __init__(self) -> None:
        self.hooks: dict[str, list[Hook]] = {}
        self._busy: set[str] = set()

    def add(self, hook: Hook) -> None:
        known = self.hooks.setdefault(hook.module, [])
        if hook not in known:
            known.append(hook)

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname not in self.hooks or fullname in self._busy:
            return None
        self._busy.add(fullname)
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._busy.discard(fullname)
        if spec is None or spec.loader is None:
            return None
        run, hooks = spec.loader.exec_module, self.hooks[fullname]

        def exec_module(module: ModuleType) -> None:
            run(module)
            _apply(hooks, module)

        spec.loader.exec_module = exec_module  # this loader instance serves this module only
        return spec


def _apply(hooks: Sequence[Hook], module: ModuleType) -> None:
    for hook in hooks:
        if hook.name not in _states:
            _states[hook.name] = hook.install(module)


def activate(hooks: Sequence[Hook] = HOOKS) -> None:
    """Apply the hooks of modules that are imported, and those of the others when they will be. Twice is once.

    Raises:
        StudyError: as for `Hook.install`, here or when the module is imported.
    """
    importer = next((finder for finder in sys.meta_path if isinstance(finder, _Importer)), None)
    if importer is None:
        importer = _Importer()
        sys.meta_path.insert(0, importer)
    for hook in hooks:
        importer.add(hook)
        module = sys.modules.get(hook.module)
        # A module that is being imported right now gets its hooks when it has run.
        if module is not None and not getattr(module.__spec__, "_initializing", False):
            _apply([hook], module)


def report(hooks: Sequence[Hook] = HOOKS) -> dict[str, State]:
    """Import every hooked module and say how each hook stands in this process.

    Raises:
        StudyError: a hook refuses.
    """
    activate(hooks)
    for hook in hooks:
        if hook.name in _states:
            continue
        try:
            importlib.metadata.version(hook.package)
        except importlib.metadata.PackageNotFoundError:
            _states[hook.name] = "not installed"
            continue
        importlib.import_module(hook.module)
        # Imported before the hooks were there, as another import's side effect.
        _apply([hook], sys.modules[hook.module])
    return {hook.name: _states[hook.name] for hook in hooks}
