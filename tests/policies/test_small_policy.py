"""The small policy: the same function as transformers' Qwen3, sampled exactly, wave by wave."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tbstudy.errors import StudyError
from tbstudy.policies.sampler import Engine, Row, Sampling
from tbstudy.policies.small_model import SmallConfig, SmallLM

UNTRUNCATED = Sampling(1.0, 0, 1.0)
TINY = SmallConfig(vocab_size=97, hidden_size=24, intermediate_size=32, num_hidden_layers=3, num_attention_heads=4,
                   num_key_value_heads=2, head_dim=8)


@pytest.fixture(scope="module")
def model() -> SmallLM:
    return SmallLM(TINY).initialise(5).eval()


def test_logits_equal_those_of_transformers(model, tmp_path):
    from transformers import AutoModelForCausalLM

    model.save(tmp_path)
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert type(theirs).__name__ == "Qwen3ForCausalLM"
    ids = torch.randint(0, 97, (3, 40), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        assert torch.allclose(model(ids), theirs(ids).logits, atol=1e-5)


def test_a_checkpoint_reads_back_and_a_missing_one_is_named(model, tmp_path):
    model.save(tmp_path / "ok")
    again = SmallLM.load(tmp_path / "ok")
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True))
    with pytest.raises(StudyError, match="model.safetensors"):
        (tmp_path / "ok" / "model.safetensors").unlink()
        SmallLM.load(tmp_path / "ok")


def test_weights_that_were_cut_are_named(model, tmp_path):
    model.save(tmp_path / "cut")
    file = tmp_path / "cut" / "model.safetensors"
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(StudyError, match=r"cut/model.safetensors: cannot be read"):
        SmallLM.load(tmp_path / "cut")


def test_a_shared_prefix_changes_nothing(model):
    ids = torch.randint(0, 97, (1, 30), generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        _, cache = model.hidden(ids[:, :12], torch.arange(12))
        hidden, _ = model.hidden(ids[:, 12:], torch.arange(12, 30), cache)
        assert torch.allclose(model.logits(hidden), model(ids)[:, 12:], atol=1e-5)


def wave(seed: int, rows: int = 9) -> list[Row]:
    rng = np.random.default_rng(seed)
    base = rng.integers(2, 97, 20).tolist()
    return [Row(f"row {i}", np.random.default_rng((seed, i)).random(600),
                pending=base + rng.integers(2, 97, 3 + i).tolist(), budget=8 + i) for i in range(rows)]


def play(model: SmallLM, rows: list[Row], turns: int = 4, sampling: Sampling = UNTRUNCATED):
    """Several turns a row with observations of different length; returns each row's whole sequence and log-probs."""
    engine = Engine(model, end_id=1, sampling=sampling)
    whole = {r.key: list(r.pending) for r in rows}
    said: dict[str, list[tuple[int, float]]] = {r.key: [] for r in rows}
    count = dict.fromkeys(whole, 0)
    rng = {r.key: np.random.default_rng(len(r.key)) for r in rows}
    engine.admit(rows)
    while engine.rows:
        gone = set()
        for row in engine.run():
            start = len(whole[row.key])
            whole[row.key] += row.ids
            said[row.key] += [(start + i, p) for i, p in enumerate(row.logprobs)]
            count[row.key] += 1
            if count[row.key] == turns:
                gone.add(row.slot)
                continue
            seen = rng[row.key].integers(2, 97, 1 + count[row.key] * 3).tolist()
            row.pending = [row.ids[-1], *seen]
            whole[row.key] += seen
            row.ids, row.logprobs, row.ended = [], [], False
        if gone:
            engine.release(gone)
    return whole, said


def test_log_probabilities_equal_a_plain_forward_pass(model):
    whole, said = play(model, wave(1))
    checked = 0
    for key, ids in whole.items():
        with torch.no_grad():
            plain = model(torch.tensor([ids]))[0].log_softmax(-1)
        for position, logprob in said[key]:
            assert plain[position - 1, ids[position]].item() == pytest.approx(logprob, abs=1e-4)
            checked += 1
    assert checked > 100


def test_the_same_wave_samples_the_same(model):
    assert play(model, wave(2)) == play(model, wave(2))


def test_top_k_one_is_greedy(model):
    whole, said = play(model, wave(3), sampling=Sampling(1.0, 1, 1.0))
    ids = whole["row 0"]
    with torch.no_grad():
        best = model(torch.tensor([ids]))[0].argmax(-1)
    assert all(best[p - 1].item() == ids[p] for p, _ in said["row 0"])


def test_truncated_sampling_has_the_truncated_frequencies(model):
    engine = Engine(model, end_id=1, sampling=Sampling(0.7, 5, 0.8))
    logits = torch.randn(1, 97, generator=torch.Generator().manual_seed(4)) * 2
    uniforms = np.random.default_rng(0).random(20_000)
    ids, logprobs = engine._sample(logits.expand(len(uniforms), -1), uniforms.tolist())
    p = torch.softmax(logits[0].double() / 0.7, -1)
    top, order = p.sort(descending=True)
    kept = [i for i in range(5) if top[:i].sum() / top[:5].sum() < 0.8]
    expected = top[kept] / top[kept].sum()
    found = np.bincount(ids, minlength=97)[order[kept].numpy()] / len(ids)
    assert set(ids) == set(order[kept].tolist())
    assert np.abs(found - expected.numpy()).max() < 0.015
    assert logprobs[0] == pytest.approx(p[ids[0]].log().item(), abs=1e-5)
