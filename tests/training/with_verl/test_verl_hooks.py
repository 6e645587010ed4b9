"""Hooks: they apply to the code that they know, stay off where upstream is fixed, refuse the rest, and repair."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import textwrap

import pytest
from verl_cases import needs_verl

from tbstudy.errors import StudyError
from tbstudy.training.verl import hooks
from tbstudy.training.verl.hooks import Evictions, Hook, digest

BROKEN = "def area(a, b):\n    return a + b\n"
FIXED = "def area(a, b):\n    return a * b\n"
OTHER = "def area(a, b):\n    c = a + b\n    return c\n"


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Writes a module `shapes<n>` of an installed package and returns its name."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(hooks, "_states", {})
    monkeypatch.setattr(hooks.importlib.metadata, "version", lambda name: "1.0")
    monkeypatch.setattr(sys, "meta_path", [f for f in sys.meta_path if not isinstance(f, hooks._Importer)])

    def make(source: str) -> str:
        name = f"shapes_{abs(hash((str(tmp_path), source)))}"
        (tmp_path / f"{name}.py").write_text(source)
        importlib.invalidate_caches()
        return name

    return make


def hook_for(module: str) -> Hook:
    def apply(found):
        hooks._rewrite(found, "area", "a + b", "a * b")

    return Hook("area", "adds", "shapes", module, "area", {"1.0": digest(BROKEN)}, lambda s: "a + b" in s, apply)


def test_a_hook_is_applied_when_its_module_is_imported_later(package):
    name = package(BROKEN)
    hooks.activate([hook_for(name)])
    assert name not in sys.modules
    assert importlib.import_module(name).area(3, 4) == 12
    assert hooks.report([hook_for(name)]) == {"area": "active"}


def test_a_hook_is_applied_to_a_module_that_is_there_already_and_only_once(package):
    name = package(BROKEN)
    module = importlib.import_module(name)
    for _ in range(2):
        hooks.activate([hook_for(name)])
    assert module.area(3, 4) == 12


def test_a_hook_stays_off_where_upstream_is_fixed(package):
    name = package(FIXED)
    hooks.activate([hook_for(name)])
    assert hooks.report([hook_for(name)]) == {"area": "fixed upstream"}
    assert importlib.import_module(name).area(3, 4) == 12


def test_a_hook_refuses_code_that_it_does_not_know(package):
    name = package(OTHER)
    hooks.activate([hook_for(name)])
    with pytest.raises(StudyError, match=r"hook area: .*area of shapes 1.0 is not the code that it knows"):
        importlib.import_module(name)


def test_a_hook_refuses_a_version_that_it_does_not_name(package, monkeypatch):
    name = package(BROKEN)
    monkeypatch.setattr(hooks.importlib.metadata, "version", lambda _: "1.1")
    with pytest.raises(StudyError, match="shapes 1.1 is not the code that it knows .shapes 1.0"):
        hooks.report([hook_for(name)])


def test_a_hook_refuses_when_its_target_has_moved(package):
    name = package("def surface(a, b):\n    return a + b\n")
    with pytest.raises(StudyError, match="has no area"):
        hooks.report([hook_for(name)])


def test_the_digest_ignores_indentation_and_trailing_blanks_only():
    assert digest(BROKEN) == digest(textwrap.indent(BROKEN, "    ")) == digest(BROKEN.replace("\n", "  \n"))
    assert digest(BROKEN) != digest(FIXED)


def test_evictions_are_counted_per_update_and_bounded():
    seen = Evictions(4, limit=10)
    seen.add(1, 6, {})
    seen.add(1, 4, {"training/rollout_failure/evicted_samples": 1})
    seen.add(2, 10, {})
    with pytest.raises(StudyError, match=r"update 2: 11 groups .* update.max_evicted = 10. the policy passes or fails"):
        seen.add(2, 1, {})
    with pytest.raises(StudyError, match="repair the tool servers, user or judge first"):
        seen.add(3, 11, {"training/rollout_failure/evicted_samples": 9})


# --- the real code ---------------------------------------------------------------------------------------------------

def in_a_new_process(code: str) -> dict:
    """Run code that prints JSON in a process that verl's plugin variable reaches, as a worker's would."""
    out = subprocess.run([sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)], capture_output=True, text=True,
                         env={**os.environ, "VERL_USE_EXTERNAL_MODULES": "tbstudy.training.verl.plugin"})
    assert out.returncode == 0, out.stderr[-3000:]
    return json.loads(out.stdout.splitlines()[-1])


@needs_verl
def test_what_the_hooks_repair_and_how_they_stand():
    found = in_a_new_process("""
        import json, types
        import torch, verl
        from tbstudy.training.verl import hooks

        found = {}
        # The LM head is moved to the hidden states, and its gradient back.
        import verl.utils.kernel.linear_cross_entropy as lce
        seen = {}
        class Weight:
            device = "cpu"
            def to(self, device):
                seen["moved"] = device
                return self
        class Hidden:
            device = "meta"
        lce.LinearCrossEntropy.apply = None
        try:
            lce.linear_cross_entropy(Hidden(), Weight(), None)
        except Exception:
            pass
        found["moved"] = seen.get("moved")

        # A text-only batch has one row of positions, whatever the processor could do.
        from verl.experimental.agent_loop.agent_loop import AgentLoopWorker
        class Processor:
            def get_rope_index(self, **_):
                raise AssertionError("asked for multimodal positions")
        worker = types.SimpleNamespace(processor=Processor())
        mask, media = torch.tensor([[0, 1, 1, 1]]), {"mm_token_type_ids": torch.zeros(1, 4)}
        found["positions"] = AgentLoopWorker._compute_position_ids(worker, None, mask, media).tolist()
        found["media"] = sorted(media)
        try:
            AgentLoopWorker._compute_position_ids(worker, mask, mask, {"image_grid_thw": torch.ones(1, 3)})
        except AssertionError as error:
            found["with image"] = str(error)

        # A group that lost some rollouts is evicted as a whole; equal rewards still are.
        from collections import Counter, defaultdict
        from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer
        buffer = object.__new__(ReplayBuffer)
        buffer.sync_refill_failed_groups, buffer.filter_groups_metric = True, None
        buffer.failure_keys = defaultdict(set, train={"g1", "g2"})
        buffer.partitions = defaultdict(dict, train={"g1_0_0": {}, "g3_0_0": {}})
        found["failed"] = sorted(buffer._terminal_eviction_reasons(1, "train")[2])
        found["validation"] = len(buffer._terminal_eviction_reasons(1, "val")[2])

        # An update that evicts without end stops.
        from tbstudy.errors import StudyError
        buffer.train_batch_size = 2
        buffer._clear_groups = lambda *_: None
        buffer._tbstudy_evictions = hooks.Evictions(2, 5)
        try:
            for i in range(9):
                buffer._evict_terminal_groups(1, "train", (set(), {f"a{i}"}, set(), Counter()))
        except StudyError as error:
            found["stopped"] = [i, str(error)[:9]]
        found["states"] = hooks.report()
        print(json.dumps(found))
    """)
    states = found["states"]
    assert states.pop("init_marker") in ("active", "fixed upstream")  # by the version of accelerate
    assert set(states.values()) == {"active"} and len(states) == 5
    assert found["moved"] == "meta"
    assert found["positions"] == [[0, 0, 1, 2]] and found["media"] == []
    assert found["with image"] == "asked for multimodal positions"
    assert found["failed"] == ["g1", "g2"] and found["validation"] == 0
    assert found["stopped"] == [5, "update 1:"]


@needs_verl
def test_text_batches_are_sliced_exactly_once():
    """The repaired choice of path, asked directly: whole sequences only for media or a decoder that slices itself."""
    found = in_a_new_process("""
        import inspect, json, types
        import torch, verl
        from torch import nn
        import verl.workers.engine.fsdp.transformer_impl as impl
        from tbstudy.training.verl import hooks

        def ulysses_wrapped_decoder_forward(self, x):
            return x
        class Plain(nn.Module):
            def forward(self, x):
                return x
        class Slicing(nn.Module):
            forward = ulysses_wrapped_decoder_forward
        def model(decoder, vision):
            m = nn.Module()
            m.config = types.SimpleNamespace(**({"vision_config": {}} if vision else {}))
            m.decoder = decoder()
            return m

        calls = []
        class Stop(Exception):
            pass
        def tell(name):
            def f(*args, **kwargs):
                calls.append(name)
                raise Stop
            return f
        impl.ulysses_pad, impl.ulysses_pad_and_slice_inputs = tell("whole"), tell("sliced")
        from tensordict import TensorDict
        ids = torch.nested.as_nested_tensor([torch.arange(5), torch.arange(3)], layout=torch.jagged)
        from verl.utils import tensordict_utils as tu
        out = []
        for decoder, vision, media in [(Plain, False, False), (Plain, True, False), (Plain, True, True),
                                       (Slicing, True, False)]:
            impl.extract_multi_modal_inputs = lambda *_: {"pixel_values": 1} if media else {}
            batch = tu.get_tensordict({"input_ids": ids, "position_ids": ids},
                                      {"temperature": 1.0, "use_remove_padding": True})
            engine = types.SimpleNamespace(module=model(decoder, vision), pad_to_length=False, use_ulysses_sp=True,
                                           ulysses_sequence_parallel_size=2, _get_packed_pad_size=lambda n: 0)
            try:
                impl.FSDPEngineWithLMHead.prepare_model_inputs(engine, batch)
            except Stop:
                pass
        print(json.dumps(calls))
    """)
    assert found == ["sliced", "sliced", "whole", "whole"]
