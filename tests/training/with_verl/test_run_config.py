"""The run configuration: strict, complete, silent about secrets; the presets; what it becomes for verl."""

from __future__ import annotations

import json

import pytest
import yaml
from verl_cases import CONFIGS, ROOT, needs_verl

from tbstudy.errors import StudyError
from tbstudy.evaluation.serve import serve_command
from tbstudy.training.verl.config import load_run
from tbstudy.training.verl.overrides import environment, hydra_overrides, hydra_value, verl_settings

REFERENCE = CONFIGS / "reference-q38.yaml"
PRESETS = ("reference-q38.yaml", "reference-q38-1node.yaml", "reference-small-cpu.yaml")
ACTOR, ROLLOUT = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"


@pytest.fixture(scope="module")
def published():
    return yaml.safe_load((ROOT / "data" / "published" / "training_setup.yaml").read_text())


def published_settings(p) -> dict:
    """Every published training value under the verl setting that carries it."""
    return {
        "trainer.nnodes": p["gpus"]["nodes"],
        "trainer.n_gpus_per_node": p["gpus"]["per_node"],
        f"{ACTOR}.ulysses_sequence_parallel_size": p["parallelism"]["ulysses_sp"],
        f"{ROLLOUT}.tensor_model_parallel_size": p["parallelism"]["rollout_tp"],
        "data.train_batch_size": p["groups_per_update"],
        f"{ACTOR}.ppo_mini_batch_size": p["groups_per_update"],
        f"{ROLLOUT}.n": p["rollouts_per_group"],
        "trainer.total_training_steps": p["updates"],
        f"{ACTOR}.optim.optimizer": p["optimizer"]["name"],
        f"{ACTOR}.optim.lr": p["optimizer"]["lr"],
        f"{ACTOR}.optim.weight_decay": p["optimizer"]["weight_decay"],
        f"{ACTOR}.use_kl_loss": p["kl"] != "disabled",
        "algorithm.use_kl_in_reward": p["kl"] != "disabled",
        f"{ACTOR}.loss_agg_mode": "token-mean",
        "algorithm.adv_estimator": "grpo",
        f"{ACTOR}.fsdp_config.param_offload": p["offload"]["parameters"],
        f"{ACTOR}.fsdp_config.optimizer_offload": p["offload"]["optimizer"],
        f"{ROLLOUT}.temperature": p["sampling"]["temperature"],
        f"{ROLLOUT}.top_k": p["sampling"]["top_k"],
        f"{ROLLOUT}.top_p": p["sampling"]["top_p"],
        "data.max_prompt_length": p["lengths"]["max_prompt"],
        f"{ROLLOUT}.prompt_length": p["lengths"]["max_prompt"],
        "data.max_response_length": p["lengths"]["max_response"],
        f"{ROLLOUT}.response_length": p["lengths"]["max_response"],
        f"{ROLLOUT}.max_model_len": p["lengths"]["max_model_len"],
        f"{ROLLOUT}.gpu_memory_utilization": p["rollout_engine"]["gpu_memory_utilization"],
        f"{ROLLOUT}.max_num_batched_tokens": p["rollout_engine"]["max_num_batched_tokens"],
        f"{ROLLOUT}.agent.num_workers": p["rollout_engine"]["agent_loop_workers"],
        "data.seed": p["seed"],
        f"{ROLLOUT}.seed": p["seed"],
        "data.shuffle": p["shuffle"],
        "trainer.save_freq": p["save_freq"],
        "trainer.resume_mode": "auto",
        "algorithm.filter_groups.enable": p["zero_variance_groups"].startswith("replaced"),
        "algorithm.filter_groups.metric": "score",
        "trainer.v1.sampler.sync_refill_failed_groups": p["system_errors"].startswith("the group is refilled"),
        f"{ACTOR}.fsdp_config.use_no_sync_for_gradient_accumulation": False,
    }


def test_reference_settings_are_the_published_ones(published):
    settings = verl_settings(load_run(REFERENCE))
    expected = published_settings(published)
    assert {key: settings[key] for key in expected} == expected


def test_the_rest_of_the_published_setup(published):
    run = load_run(REFERENCE)
    c, p = run.config, published
    assert (c.cluster.world, c.data_parallel) == (p["parallelism"]["world"], p["parallelism"]["effective_dp"])
    assert c.update.groups * c.update.rollouts == p["episodes_per_update"]
    assert (c.data.tasks, c.cluster.kind) == (p["training_pool_tasks"], p["gpus"]["kind"])
    assert c.sampling.turn_tokens == c.serving.max_completion_tokens == p["sampling"]["max_completion_tokens"]
    assert c.user.endpoint.temperature == p["simulated_user"]["temperature"]
    pins = {"torch": "torch", "transformers": "transformers", "vllm": "vllm", "ray": "ray",
            "TransferQueue": "transfer_queue", "flash-attn": "flash_attn"}
    assert {name: c.pins[name] for name in pins} == {name: str(p["pins"][key]) for name, key in pins.items()}
    assert c.pins["verl"] == "0.9.1"  # in place of the patched 0.9.0


def test_serving_is_the_published_one(published):
    run, p = load_run(REFERENCE), published["serving"]
    command = serve_command(run.config.serving, "merged")
    given = dict(zip(command, command[1:], strict=False))
    assert given["--tensor-parallel-size"] == str(p["tensor_parallel"]) and given["--dtype"] == p["dtype"]
    assert given["--max-model-len"] == str(p["max_model_len"])
    assert float(given["--gpu-memory-utilization"]) == p["gpu_memory_utilization"]
    assert given["--max-num-seqs"] == str(p["max_num_seqs"])
    assert given["--max-num-batched-tokens"] == str(p["max_num_batched_tokens"])
    assert given["--reasoning-parser"] == p["reasoning_parser"]
    assert given["--tool-call-parser"] == p["tool_call_parser"] and "--enable-auto-tool-choice" in command


def test_defaults_that_would_hurt_are_not_left_alone():
    settings = verl_settings(load_run(REFERENCE))
    assert settings[f"{ROLLOUT}.agent.default_agent_loop"] == "tbstudy_episode"
    assert settings[f"{ROLLOUT}.multi_turn.max_tool_response_length"] >= 10**9
    assert settings["data.truncation"] == "error" and settings["data.gen_batch_size"] == 1
    assert settings[f"{ROLLOUT}.calculate_log_probs"] is True


def test_no_secret_value_reaches_command_or_environment(monkeypatch):
    monkeypatch.setenv("TBSTUDY_USER_KEY", "very-secret")
    run = load_run(REFERENCE)
    assert "very-secret" not in "".join([*hydra_overrides(run), *environment(run).values(), run.dump()])


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_read_and_a_dumped_run_reads_back(preset, tmp_path):
    run = load_run(CONFIGS / preset)
    (tmp_path / "run.json").write_text(run.dump())
    again = load_run(tmp_path / "run.json")
    assert again.root == run.root and again.path("x") == run.path("x")
    assert again.config.model_dump(exclude={"root"}) == run.config.model_dump(exclude={"root"})


def test_the_single_node_preset_differs_where_it_says(published):
    one, three = (load_run(CONFIGS / name).config for name in ("reference-q38-1node.yaml", "reference-q38.yaml"))
    assert one.cluster.world == 8 and one.update == three.update and one.optimizer == three.optimizer
    assert one.sampling == three.sampling and one.user == three.user and one.pins == three.pins


@needs_verl
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("preset", PRESETS)
def test_verl_composes_and_validates(preset, published):
    from tbstudy.training.verl.compose import compose, flatten

    run = load_run(CONFIGS / preset)
    config = flatten(compose(run))
    settings = {key.lstrip("+"): value for key, value in verl_settings(run).items()}
    different = {key: (value, config[key]) for key, value in settings.items() if config[key] != value}
    assert not different
    if preset == "reference-q38.yaml":
        expected = published_settings(published)
        assert {key: config[key] for key in expected} == expected


@needs_verl
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("extra", "said"), [
    ("actor_rollout_ref.actor.learning_rate=1", "learning_rate"),
    ("data.train_batch_size=17", "verl refuses"),
    ("actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=null", "log_prob_micro_batch_size"),
    ("actor_rollout_ref.actor.ppo_mini_batch_size=19", "verl refuses"),
])
def test_verl_catches_unknown_keys_and_broken_rules(extra, said):
    from tbstudy.training.verl.compose import compose

    with pytest.raises(StudyError, match=said):
        compose(load_run(REFERENCE), [extra])


def write(tmp_path, **changes):
    raw = yaml.safe_load((CONFIGS / "reference-q38.yaml").read_text())
    for dotted, value in changes.items():
        *sections, key = dotted.split("__")
        target = raw
        for section in sections:
            target = target[section]
        target[key] = value
    path = tmp_path / "changed.yaml"
    path.write_text(yaml.safe_dump(raw))
    return path


@pytest.mark.parametrize(("changes", "said"), [
    ({"update__grups": 3}, "unknown key 'update.grups'"),
    ({"update__groups": "18"}, "key 'update.groups' = '18'"),
    ({"optimizer__lr": 0}, "key 'optimizer.lr' = 0"),
    ({"data__shuffle": "yes please"}, "key 'data.shuffle'"),
    ({"sandbox__transport": "proxy"}, "needs the key 'proxy_url'"),
    ({"user__endpoint": None}, "needs the key 'endpoint'"),
    ({"user__endpoint": {"model": "m"}}, "exactly one of the keys"),
    ({"judge__base_url": "http://j"}, "exactly one of the keys"),
])
def test_a_wrong_key_is_named(tmp_path, changes, said):
    with pytest.raises(StudyError, match=said) as error:
        load_run(write(tmp_path, **changes))
    assert "changed.yaml" in str(error.value)


@pytest.mark.parametrize(("changes", "secret"), [
    ({"user__endpoint": {"model": "m", "base_url": "http://u", "api_key_env": "aB3-this-is-a-key"}}, "this-is-a-key"),
    ({"judge": {"model": "m", "base_url": "https://me:pass1@host/v1"}}, "pass1"),
    ({"overrides": {"trainer.key": "sk-abcdefgh12345"}}, "abcdefgh12345"),
    ({"judge": {"model": "hf_abcdefghijk", "base_url": "http://j"}}, "abcdefghijk"),
])
def test_a_secret_is_refused_and_not_repeated(tmp_path, changes, secret):
    with pytest.raises(StudyError) as error:
        load_run(write(tmp_path, **changes))
    assert secret not in str(error.value) and "environment variable" in str(error.value)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(StudyError, match="cannot be read"):
        load_run(tmp_path / "none.yaml")
    (tmp_path / "list.yaml").write_text("- 1\n")
    with pytest.raises(StudyError, match="expected a mapping"):
        load_run(tmp_path / "list.yaml")
    (tmp_path / "torn.yaml").write_text("run: [\n")
    with pytest.raises(StudyError, match="not valid YAML"):
        load_run(tmp_path / "torn.yaml")
    (tmp_path / "twice.yaml").write_text("run: a\nseed: 1\nseed: 2\n")
    with pytest.raises(StudyError, match="twice.yaml:3: key 'seed' stands here a second time"):
        load_run(tmp_path / "twice.yaml")
    (tmp_path / "self.yaml").write_text("base: self.yaml\n")
    with pytest.raises(StudyError, match="leads back to itself"):
        load_run(tmp_path / "self.yaml")


def test_changes_from_the_command_line():
    run = load_run(REFERENCE, {"update.updates": 3, "checkpoints.folder": "/x"})
    assert run.config.update.updates == 3 and str(run.checkpoints) == "/x"
    with pytest.raises(StudyError, match="not a section"):
        load_run(REFERENCE, {"run.name": "x"})


@pytest.mark.parametrize(("value", "written"), [
    (None, "null"), (True, "true"), (1e-06, "1e-06"), (0, "0"), (["a", "b"], "[a,b]"), ("/a/b-c.json:train", None),
    ("a b", "'a b'"), ("it's", "'it\\'s'"), ("1.5", "'1.5'"), ("true", "'true'"), ("", "''"), ("a,b=c", "'a,b=c'"),
    ("tr\u00e4n \\ x", None), ("{x}", "'{x}'"), ("2026-01-01", None),
])
def test_values_in_hydras_grammar(value, written):
    text = hydra_value(value)
    assert written is None or text == written
    parser = pytest.importorskip("hydra.core.override_parser.overrides_parser", reason="hydra comes with verl")
    parsed = parser.OverridesParser.create().parse_override(f"key={text}").value()
    assert (str(parsed) if isinstance(value, str) else parsed) == value
    assert isinstance(value, str) is (isinstance(parsed, str) or type(parsed).__name__ == "QuotedString")


def test_run_json_is_json(tmp_path):
    assert json.loads(load_run(REFERENCE).dump())["run"] == "reference-q38"


@pytest.mark.parametrize("name", PRESETS)
def test_what_verl_would_choose_by_default_is_written_out(name):
    """The defaults of verl 0.9.1 that decide an update, so that another version's change nothing."""
    settings, lines = verl_settings(load_run(CONFIGS / name)), hydra_overrides(load_run(CONFIGS / name))
    assert settings[f"{ACTOR}.clip_ratio_c"] == 3.0 and f"{ACTOR}.optim.betas=[0.9,0.999]" in lines
    assert {f"algorithm.rollout_correction.{key}=null" for key in ("rollout_is", "rollout_rs")} <= set(lines)
    assert "algorithm.rollout_correction.bypass_mode=false" in lines
    assert settings["algorithm.norm_adv_by_std_in_grpo"] is True
