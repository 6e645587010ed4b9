import pytest
from campaign_records import campaign, record, write
from hypothesis import given
from hypothesis import strategies as st

from tbstudy.errors import StudyError
from tbstudy.evaluation import check_coverage, load_campaign, load_campaigns, read_attempts
from tbstudy.evaluation.coverage import scored

UIDS = ["a.py:t1", "a.py:t2", "b.py:t1"]


def good():
    return campaign(dict.fromkeys(UIDS, 1), 4)


def faults_of(tmp_path, records, tail=""):
    torn = []
    table = read_attempts(write(tmp_path / "c.jsonl", records, tail), on_torn=torn.append)
    return check_coverage(table, UIDS, 4, torn=torn)


def test_exact_coverage(tmp_path):
    cover = faults_of(tmp_path, good())
    assert cover.complete and cover.faults() == {} and cover.label() == "12 of 12 keys"
    assert (cover.expected, cover.recorded) == (12, 12)


@pytest.mark.parametrize(
    ("name", "spoil", "says"),
    [
        ("missing", lambda r: r.pop(5), "1: a.py:t2 #1"),
        ("duplicate", lambda r: r.append(record("b.py:t1", 3, False)), "1: b.py:t1 #3"),
        ("unexpected", lambda r: r.append(record("z.py:t9", 0)), "1: z.py:t9 #0"),
        ("unexpected", lambda r: r.append(record("a.py:t1", 4)), "1: a.py:t1 #4"),
        ("system_errors", lambda r: r.__setitem__(0, record("a.py:t1", 0, broken=True)), "1: a.py:t1 #0"),
        ("mixed_policies", lambda r: r.__setitem__(0, record("a.py:t1", 0, policy="other")), "base, other"),
        ("mixed_configs", lambda r: r[0]["metadata"].update(config_hash="fedcba9876543210"), "fedcba9876543210"),
    ],
)
def test_every_fault_is_detected_by_name_and_refused(tmp_path, name, spoil, says):
    records = good()
    spoil(records)
    cover = faults_of(tmp_path, records)
    assert list(cover.faults()) == [name]
    assert says in cover.faults()[name]
    with pytest.raises(StudyError, match=name):
        cover.require()
    assert "INCOMPLETE" in cover.label()


def test_torn_line_is_a_fault_with_the_key_it_lost(tmp_path):
    records = good()
    del records[-1]
    cover = faults_of(tmp_path, records, tail='{"uid": "b.py:t1", "meta')
    assert list(cover.faults()) == ["missing", "torn"]
    assert "b.py:t1 #3" in cover.faults()["missing"] and "torn last line" in cover.faults()["torn"]


def test_a_repaired_key_is_complete_and_said_to_be_repaired(tmp_path):
    records = [record("a.py:t1", 0, broken=True), *good()]
    cover = faults_of(tmp_path, records)
    assert cover.complete and cover.repaired == (("a.py:t1", 0),)
    assert cover.table().set_index("check").loc["repaired", "keys"] == 1


def test_to_run_is_missing_and_system_error_keys(tmp_path):
    records = good()
    records[0] = record("a.py:t1", 0, broken=True)
    del records[6]
    assert faults_of(tmp_path, records).to_run() == (("a.py:t1", 0), ("a.py:t2", 2))


@given(st.sets(st.tuples(st.sampled_from(UIDS), st.integers(0, 3)), min_size=1), st.randoms())
def test_missing_is_the_set_difference(keys, random):
    import pandas as pd

    keys = sorted(keys)
    random.shuffle(keys)
    table = pd.DataFrame(keys, columns=["uid", "repetition"]).assign(
        policy="p", config_hash="", system_error=False, passed=True
    )
    cover = check_coverage(table, UIDS, 4)
    everything = {(uid, r) for uid in UIDS for r in range(4)}
    assert set(cover.missing) == everything - set(keys)
    assert cover.recorded + len(cover.missing) == cover.expected


def test_scores_are_refused_unless_asked_and_then_labelled(tmp_path):
    path = write(tmp_path / "c.jsonl", good()[:-1])
    with pytest.raises(StudyError, match="no score for policy 'base': a score needs .* for each of 12 keys"):
        load_campaign(path, uids=UIDS, repeats=4)
    allowed = load_campaign(path, uids=UIDS, repeats=4, allow_incomplete=True)
    assert allowed.label.startswith("base: INCOMPLETE: 11 of 12 keys; missing 1: b.py:t1 #3")


def test_duplicates_are_refused_even_when_incompleteness_is_allowed(tmp_path):
    path = write(tmp_path / "c.jsonl", [*good(), record("b.py:t1", 3, False)])
    with pytest.raises(StudyError, match="duplicate"):
        load_campaign(path, uids=UIDS, repeats=4, allow_incomplete=True)
    table = read_attempts(path)
    with pytest.raises(StudyError, match="duplicate"):
        scored(table, check_coverage(table, UIDS, 4), allow_incomplete=True)


def test_one_of_several_policies(tmp_path):
    path = write(tmp_path / "c.jsonl", [*good(), *campaign(dict.fromkeys(UIDS, 2), 4, policy="trained")])
    with pytest.raises(StudyError, match="mixed_policies"):
        load_campaign(path)
    trained = load_campaign(path, policy="trained", uids=UIDS, repeats=4)
    assert trained.attempts.passed.sum() == 6 and trained.k == 4
    with pytest.raises(StudyError, match="no attempt of policy 'third'; recorded are base, trained"):
        load_campaign(path, policy="third")


def test_inferred_plan_is_labelled_and_two_files_of_one_policy_are_refused(tmp_path):
    path = write(tmp_path / "c.jsonl", good())
    assert "plan inferred" in load_campaign(path).label
    twin = write(tmp_path / "d.jsonl", good())
    with pytest.raises(StudyError, match="already read"):
        load_campaigns([path, twin])
    with pytest.raises(StudyError, match="no attempt recorded"):
        load_campaign(write(tmp_path / "e.jsonl", []))
