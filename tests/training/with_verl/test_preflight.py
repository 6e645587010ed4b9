"""Every rule with an example that fails it; nothing starts when one does."""

from __future__ import annotations

import json
import shutil

import pytest
from verl_cases import CONFIGS, DEMO, write_pool

from tbstudy.errors import StudyError, SystemFault
from tbstudy.training.verl import launch, preflight
from tbstudy.training.verl.config import load_run
from tbstudy.training.verl.preflight import MACHINE, PAPER

REFERENCE = CONFIGS / "reference-q38.yaml"

#: rule -> a change of the reference configuration that breaks it, and what the message must say.
BROKEN_PAPER = {
    "tensor parallel divides node": ({"parallel.rollout_tensor": 3}, "rollout_tensor = 3 does not divide"),
    "sequence parallel divides world": ({"parallel.sequence": 5}, "sequence = 5 does not divide the 24 GPUs"),
    "episodes divide": ({"update.groups": 17}, "136 episodes are not divisible by the 6 data-parallel"),
    "mini batch divides": ({"update.mini_batch": 4}, "mini_batch = 4 does not divide update.groups = 18"),
    "lengths fit": ({"lengths.model": 133119}, "= 133120 tokens exceed lengths.model = 133119"),
    "engine fits platform": ({"rollout.engine": "transformers"}, "this platform runs vllm"),
    "metrics are written": ({"loggers": ["console"]}, "loggers has no 'file'"),
    "folder is said to be shared": ({"checkpoints.shared": False}, "shared is false with 3 nodes"),
}


class FakeWorld(preflight.World):
    """Everything is as the run wants it, unless a test says otherwise."""

    def __init__(self, **told):
        self.told = told

    def gpus(self, run):
        return self.told.get("gpus", [run.config.cluster.gpus_per_node] * run.config.cluster.nodes)

    def version(self, package):
        return self.told.get("versions", {}).get(package, self.pins.get(package))

    pins: dict = {}

    def environment(self, name):
        return self.told.get("environment", {}).get(name, "set")

    def ask(self, role, endpoint):
        if role in self.told.get("silent", ()):
            raise SystemFault(role, f"{role} model {endpoint.model}: ConnectError")

    def open_session(self, run, uid):
        if "session" in self.told:
            raise self.told["session"]
        return self.told.get("tools", 5)

    def prompt_lengths(self, run, uids):
        return {uid: self.told.get("prompt", 100) for uid in uids}

    def nodes_seen(self, run):
        return self.told.get("nodes", ["a", "b", "c"])

    def hooks(self, run):
        return self.told.get("hooks", {"lm_head_device": "active", "init_marker": "fixed upstream"})

    def compose(self, run, extra):
        if "compose" in self.told:
            raise self.told["compose"]


@pytest.fixture
def good(small_config, tmp_path):
    """The small run as if it were three nodes of eight GPUs with endpoints: every rule holds in `FakeWorld()`."""
    endpoint = {"model": "m", "base_url_env": "U_URL", "api_key_env": "U_KEY"}
    changes = {"cluster": {"nodes": 3, "gpus_per_node": 8}, "rollout.engine": "vllm", "user": {
        "kind": "endpoint", "endpoint": endpoint}, "judge": endpoint, "checkpoints.shared": True,
        "update": {"groups": 6, "rollouts": 8, "updates": 3}, "parallel": {"sequence": 2, "rollout_tensor": 2},
        "pins": {"verl": "0.9.1"}}
    FakeWorld.pins = {"verl": "0.9.1"}
    return lambda **more: load_run(small_config, {**changes, **more})


def failed(run, **told):
    return {f.rule: f.problem for f in preflight.on_machine(run, FakeWorld(**told)) if not f.ok}


def test_the_reference_passes_on_paper():
    assert all(finding.ok for finding in preflight.on_paper(load_run(REFERENCE)))


@pytest.mark.parametrize("rule", BROKEN_PAPER)
def test_paper_rules(rule):
    changes, said = BROKEN_PAPER[rule]
    findings = {f.rule: f.problem for f in preflight.on_paper(load_run(REFERENCE, changes)) if not f.ok}
    assert set(findings) == {rule} and said in findings[rule]


@pytest.mark.parametrize(("changes", "said"), [
    ({"sampling.turn_tokens": 106497}, "turn_tokens = 106497 exceeds"),
    ({"update.groups": 3, "update.rollouts": 2, "parallel.sequence": 8},
     "not divisible by the 24 GPUs, as verl demands"),
    ({"cluster.platform": "cpu"}, "this platform runs transformers"),
    ({"cluster.platform": "cpu", "rollout.engine": "transformers"}, "kernels = triton needs a GPU"),
    ({"cluster.platform": "cpu", "rollout.engine": "transformers", "model.kernels": "torch"}, "needs a GPU; use sdpa"),
])
def test_further_ways_to_fail_on_paper(changes, said):
    assert any(said in f.problem for f in preflight.on_paper(load_run(REFERENCE, changes)))


def test_a_run_that_is_right_passes_everything(good):
    assert failed(good()) == {}


def test_every_rule_has_a_failing_example():
    covered = {name.removeprefix("fails_") for name in globals() if name.startswith("fails_")}
    assert covered == {rule.__name__ for rule in MACHINE}
    assert set(BROKEN_PAPER) == {rule.__name__.replace("_", " ") for rule in PAPER}


def fails_versions_are_pinned(good, tmp_path):
    yield good(), {"versions": {"verl": "0.9.0"}}, "verl is 0.9.0, pinned 0.9.1"
    yield good(pins={"vllm": "0.27.1"}), {}, "vllm is not installed, pinned 0.27.1"


def fails_verl_accepts(good, tmp_path):
    yield good(), {"compose": StudyError("verl does not know a setting: x")}, "does not know a setting"


def fails_hooks_are_active(good, tmp_path):
    yield good(), {"hooks": {"text_batches": "not installed"}}, "text_batches: not installed"


def fails_gpus_match(good, tmp_path):
    yield good(), {"gpus": [8, 8]}, "wants 3 nodes of 8 GPUs, found 2 with 8, 8"
    yield good(), {"gpus": [8, 8, 7]}, "found 3 with 8, 8, 7"


def fails_model_is_complete(good, tmp_path):
    yield good(**{"model.path": "nowhere"}), {}, "no such folder"
    yield good(**{"parallel.sequence": 3, "parallel.rollout_tensor": 1}), {}, "does not divide the model's 2 attention"
    yield good(**{"lengths.model": 999_999}), {}, "exceeds the model's 4096 positions"
    untied = tmp_path / "untied"
    shutil.copytree(tmp_path / "model", untied)
    raw = json.loads((untied / "config.json").read_text())
    (untied / "config.json").write_text(json.dumps({**raw, "tie_word_embeddings": False}))
    yield good(**{"model.path": "untied", "optimizer.strategy": "fsdp2"}), {}, "fsdp2 fails in the LM head"
    for number, (name, spoil, said) in enumerate([
            ("tokenizer_config.json", lambda p: p.unlink(), "tokenizer_config.json cannot be read"),
            ("tokenizer.json", lambda p: p.unlink(), "no tokenizer.json"),
            ("model.safetensors", lambda p: p.unlink(), "1 of 1 weight files missing"),
            ("model.safetensors", lambda p: p.write_bytes(p.read_bytes()[:-7]), "cut short: model.safetensors"),
            ("config.json", lambda p: p.write_text("{"), "config.json cannot be read")]):
        folder = tmp_path / f"model{number}"
        shutil.copytree(tmp_path / "model", folder)
        spoil(folder / name)
        yield good(**{"model.path": folder.name}), {}, said
    sharded = tmp_path / "sharded"
    shutil.copytree(tmp_path / "model", sharded)
    (sharded / "model.safetensors.index.json").write_text(json.dumps(
        {"weight_map": {"a": "model.safetensors", "b": "model-00002.safetensors"}}))
    yield good(**{"model.path": "sharded"}), {}, r"1 of 2 weight files missing (model-00002.safetensors)"


def fails_pool_is_usable(good, tmp_path):
    yield good(**{"data.pool": "none.json"}), {}, "cannot read the pool manifest"
    yield good(**{"data.tasks": 187}), {}, "has 8 tasks, data.tasks says 187"
    yield good(**{"update.groups": 12}), {}, "has 8 tasks, fewer than update.groups = 12"
    uids = [f"telecom_plan_change.py:test_{i:03d}" for i in range(8)]
    write_pool(tmp_path / "untested.json", uids, [])
    yield good(**{"data.pool": "untested.json"}), {}, "split 'test' is empty"
    write_pool(tmp_path / "foreign.json", [*uids, "telecom_plan_change.py:test_999"], ["x.py:y"])
    yield good(**{"data.pool": "foreign.json"}), {}, "test_999"


def fails_pool_avoids_benchmark(good, tmp_path):
    (tmp_path / "list.yaml").write_text("- telecom_plan_change.py:test_003\n")
    yield good(**{"data.benchmark": "list.yaml"}), {}, "1 tasks of the pool are benchmark tasks (telecom_plan_change"


def fails_secrets_are_set(good, tmp_path):
    yield good(), {"environment": {"U_KEY": ""}}, "user: U_KEY, judge: U_KEY"


def fails_sandbox_answers(good, tmp_path):
    yield good(), {"session": SystemFault("backend", "server ledger did not start")}, "did not start"
    yield good(), {"tools": 0}, "offers no tools"


def fails_prompts_fit(good, tmp_path):
    yield good(), {"prompt": 2501}, "8 prompts are longer than lengths.prompt = 2500"


def fails_endpoints_answer(good, tmp_path):
    yield good(), {"silent": ["user"]}, "user model m: ConnectError"
    yield good(), {"silent": ["judge"]}, "judge model m: ConnectError"


def fails_checkpoint_folder_is_usable(good, tmp_path):
    yield good(), {"nodes": ["a", "b"]}, "2 of 3 nodes have left their mark in it (a, b)"
    (tmp_path / "file").write_text("")
    yield good(**{"checkpoints.folder": "file/below"}), {}, "cannot be written"


def fails_latest_checkpoint_is_complete(good, tmp_path):
    folder = tmp_path / "broken"
    (folder / "global_step_5" / "actor").mkdir(parents=True)
    (folder / "latest_checkpointed_iteration.txt").write_text("5")
    yield good(**{"checkpoints.folder": "broken"}), {}, "global_step_5: incomplete: no shards"
    yield good(**{"checkpoints.folder": "broken", "checkpoints.resume": "disable"}), {}, "would be written over"


@pytest.mark.parametrize("rule", [rule.__name__ for rule in MACHINE])
def test_machine_rules(rule, good, tmp_path):
    for run, told, said in globals()[f"fails_{rule}"](good, tmp_path):
        problems = failed(run, **told)
        name = rule.replace("_", " ")
        assert said in problems.get(name, ""), (name, problems)


def test_nothing_starts_when_a_rule_fails(good, tmp_path, monkeypatch):
    monkeypatch.setattr(launch, "_run", lambda *_: pytest.fail("the trainer was started"))
    with pytest.raises(StudyError, match="(?s)2 of .* failed; nothing was started.*found 1 with 8.*judge model"):
        launch.launch(good(), world=FakeWorld(gpus=[8], silent=["judge"]))
    assert not (tmp_path / "checkpoints" / "run.json").exists()
    with pytest.raises(StudyError, match="nothing was started"):
        launch.launch(good(**{"lengths.model": 10}), world=FakeWorld())


def test_a_rule_that_cannot_be_decided_has_failed(good):
    problems = failed(good(), session=ZeroDivisionError("hm"))
    assert problems == {"sandbox answers": "could not be checked: ZeroDivisionError: hm"}


def test_the_real_world_answers_for_the_small_run(small_config):
    run = load_run(small_config)
    world = preflight.World()
    assert world.version("no-such-package") is None and world.version("torch") == "2.13.0"
    assert preflight.sandbox_answers(run, world) == ""
    assert preflight.prompts_fit(run, world) == ""
    long = load_run(small_config, {"lengths.prompt": 64})
    assert "longer than lengths.prompt = 64" in preflight.prompts_fit(long, world)
    assert DEMO.is_dir() and preflight.pool_avoids_benchmark(run, world) == ""
