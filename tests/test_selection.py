import json

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tbstudy import selection as s
from tbstudy.difficulty import DEFAULT_BANDS, assign
from tbstudy.errors import StudyError


def table(tasks: list[tuple[str, str, int, int]]) -> pd.DataFrame:
    rows = [(u, d, k, n, assign(k, n).band if n >= 4 else "") for u, d, k, n in tasks]
    return pd.DataFrame(rows, columns=["uid", "domain", "k", "n", "band"])


CANDIDATES = table(
    [
        ("a.py:t1", "clinic", 0, 8),  # rarely
        ("a.py:t2", "clinic", 2, 8),  # hard
        ("a.py:t3", "clinic", 4, 8),  # medium
        ("a.py:t4", "clinic", 8, 8),  # nearly always
        ("b.py:t1", "parcel", 1, 2),  # too few clean runs
        ("b.py:t2", "parcel", 6, 8),  # often, unsolved by the reference
        ("b.py:t3", "parcel", 5, 8),  # excluded
        ("b.py:t4", "parcel", 4, 8),  # in the benchmark
        ("b.py:t5", "parcel", 3, 8),  # hard
    ]
)


def select(**changes):
    return s.select_pool(
        CANDIDATES,
        **{
            "solvable": set(CANDIDATES.uid) - {"b.py:t2"},
            "exclude": ["b.py:t3"],
            "benchmark": ["b.py:t4", "elsewhere.py:t9"],
            "test_fraction": 1 / 3,
            "seed": 7,
        }
        | changes,
    )


def test_hand_computed_funnel():
    pool = select()
    assert [(g.entered, g.dropped, g.left) for g in pool.funnel] == [
        (9, 1, 8),
        (8, 1, 7),
        (7, 1, 6),
        (6, 1, 5),
        (5, 2, 3),
    ]
    assert [t.uid for t in pool.tasks] == ["a.py:t2", "a.py:t3", "b.py:t5"]
    assert [t.uid for t in pool.outside] == ["a.py:t1", "a.py:t4"]
    assert pool.kept_bands == ["hard", "medium", "often"]
    assert len(pool.uids("test")) == 1 and len(pool.uids("train")) == 2
    assert set(pool.uids("whole")) == set(pool.uids("train")) | {"a.py:t1", "a.py:t4"}
    assert pool.funnel_table().left.tolist() == [8, 7, 6, 5, 3]


def test_solvability_gate_is_optional():
    pool = select(solvable=None)
    assert len(pool.funnel) == 4 and "b.py:t2" in {t.uid for t in pool.tasks}


def test_solvable_needs_clean_runs_and_a_success():
    rows = [("few", True, False)] * 3 + [("few", False, True)] * 2
    rows += [("never", False, False)] * 5 + [("yes", True, False)] + [("yes", False, False)] * 3
    frame = pd.DataFrame(rows, columns=["uid", "passed", "system_error"])
    assert s.solvable_uids(frame) == {"yes"}


def test_round_trip_and_input_hash(tmp_path):
    probe = tmp_path / "probe.jsonl"
    probe.write_bytes(b"abc")
    pool = select(inputs={"probe": probe}, config_hash="0123456789abcdef")
    path = pool.write(tmp_path / "deep" / "pool.json")
    assert s.load_pool(path) == pool
    assert pool.inputs["probe"] == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert [p.name for p in path.parent.iterdir()] == ["pool.json"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda m: m.update(sed=1), "field sed"),
        (lambda m: m["tasks"][0].update(k="many"), "field tasks.0.k"),
        (lambda m: m["tasks"].append(m["tasks"][0]), "listed twice"),
        (lambda m: m["tasks"].pop(), "funnel ends with 3"),
        (lambda m: m["funnel"][2].update(dropped=4), "at gate 'not excluded'"),
        (lambda m: m["tasks"][0].update(band="rarely"), "cannot be in the pool"),
        (lambda m: m["tasks"][0].update(k=9), "9 passes of 8"),
        (lambda m: m["outside"][0].update(split="train"), "outside the pool"),
        (lambda m: m.pop("seed"), "field seed"),
    ],
)
def test_a_spoilt_manifest_names_file_and_field(tmp_path, change, says):
    path = select().write(tmp_path / "pool.json")
    raw = json.loads(path.read_text())
    change(raw)
    path.write_text(json.dumps(raw))
    with pytest.raises(StudyError, match=says) as caught:
        s.load_pool(path)
    assert str(path) in str(caught.value)


def test_missing_or_torn_manifest(tmp_path):
    with pytest.raises(StudyError, match="run the select stage"):
        s.load_pool(tmp_path / "none.json")
    (tmp_path / "torn.json").write_text('{"tasks": [')
    with pytest.raises(StudyError, match="not JSON"):
        s.load_pool(tmp_path / "torn.json")


def test_mistyped_exclusion_and_empty_pool_are_refused():
    with pytest.raises(StudyError, match="b.py:t33"):
        select(exclude=["b.py:t33"])
    with pytest.raises(StudyError, match="no task is left.*solved by the reference policy: 0 of 8"):
        select(solvable=[])
    with pytest.raises(StudyError, match="test_fraction"):
        select(test_fraction=1.0)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("xyz"), st.integers(0, 8)), min_size=1, max_size=60),
    st.floats(0, 0.9),
    st.integers(0, 1000),
)
def test_split_is_stratified_and_independent_of_row_order(tasks, fraction, seed):
    frame = table([(f"f.py:t{i:03}", domain, k, 8) for i, (domain, k) in enumerate(tasks)])
    split = s.split_stratified(frame, test_fraction=fraction, seed=seed)
    assert (split == "test").sum() == int(fraction * len(frame) + 0.5)
    for _, rows in frame.groupby(["domain", "band"]):
        assert abs((split[rows.index] == "test").sum() - fraction * len(rows)) < 1 + 1e-9
    shuffled = frame.sample(frac=1, random_state=1)
    assert (s.split_stratified(shuffled, test_fraction=fraction, seed=seed)[frame.index] == split).all()


def test_seed_moves_the_split():
    frame = table([(f"f.py:t{i:03}", "x", 4, 8) for i in range(40)])
    first, second = (s.split_stratified(frame, test_fraction=0.5, seed=seed) for seed in (0, 1))
    assert (first != second).any()


def test_default_bands_keep_the_three_middle_ones():
    assert [b.name for b in DEFAULT_BANDS if b.keep] == ["hard", "medium", "often"]
