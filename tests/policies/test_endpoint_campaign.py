"""A probe of a new domain against a real server: tokens counted, faults retried or set apart, then a histogram."""

from __future__ import annotations

import json
import random
import re
from collections import Counter

import pytest
from model_server import ModelServer, hang, said, status, torn

from tbstudy import campaign
from tbstudy.config import load_study
from tbstudy.evaluation.attempts import read_attempts
from tbstudy.report.explorer import probe_view
from tbstudy.scaffold.dataset import write_domain


class Desk:
    """Plays the desk of the scaffolded domain with a skill that depends on the item; draws are seeded."""

    def __init__(self):
        self.rng = random.Random(1)

    def __call__(self, body: dict) -> dict:
        talk = body["messages"]
        users = " ".join(m["content"] for m in talk if m["role"] == "user")
        known = re.search(r"full name is ([A-Za-z ]+)\..*item number is (I-(\d+))", users)
        if known is None:
            return {"role": "assistant", "content": "What is your full name and your item number?"}
        member, item, number = known.groups()
        answers = [json.loads(m["content"]) for m in talk if m["role"] == "tool" if m["content"].startswith("{")]
        calls = sum(len(m.get("tool_calls") or ()) for m in talk)
        if not calls:
            return self._call("get_item", item_id=item)
        entry = answers[0]
        able = self.rng.random() < int(number) % 6 / 4
        todo = []
        if entry["deposit"] and able:
            todo.append(("take_deposit", {"item_id": item, "amount": 20}))
        if entry["status"] == "free" or not able:
            todo.append(("lend_item", {"item_id": item, "member": member, "days": entry["days"] if able else 9}))
        else:
            todo.append(("join_waiting_list", {"item_id": item, "member": member}))
        if calls - 1 < len(todo):
            name, arguments = todo[calls - 1]
            return self._call(name, **arguments)
        return {"role": "assistant", "content": "That is done. <DONE>"}

    @staticmethod
    def _call(name: str, **arguments) -> dict:
        return {"role": "assistant", "content": "", "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}]}


@pytest.fixture
def study(tmp_path):
    write_domain("library", tmp_path / "library")

    def load(url: str, **changes):
        changes = {"policy__endpoint__base_url": url, "probe__attempts": 6, **changes}
        return load_study(tmp_path / "library.yaml", **changes)
    return load


def probe(study, repair: bool = False):
    tasks = campaign.load_tasks(study, "candidates")
    path = study.folder / "probe.jsonl"
    result = campaign.run_campaign(study, tasks, study.config.probe.attempts, path, name="base", stage="probe",
                                   repair=repair)
    return result, read_attempts(path)


def test_a_probe_ends_in_a_histogram_with_every_token_counted(study, no_pauses):
    with ModelServer(None, script=Desk()) as server:
        # Trouble along the way; each of these is retried.
        server.faults = [None, status(429, Retry_After="1"), None, status(500), said("{"), torn, None, status(503)]
        result, attempts = probe(study(server.url))
        answered = len(server.seen) - 5
    assert (result.wanted, result.played, result.system_errors) == (48, 48, 0)
    assert attempts.policy_input_tokens.sum() == 100 * answered
    assert attempts.policy_output_tokens.sum() == 10 * answered
    assert not attempts.system_error.any() and 0 < attempts.passed.sum() < 48
    view = probe_view(attempts)
    assert set(view.table.n) == {6} and len(set(view.table.k)) > 2, "difficulty varies"
    assert sum(bar.get_height() for bar in view.figure().axes[0].patches) == 8
    assert server.most <= 4, "concurrency of the configuration"


def test_what_cannot_be_retried_is_a_system_error_and_repair_plays_it_again(study, no_pauses):
    with ModelServer(None, script=Desk()) as server:
        server.faults = [status(500)] * 6 + [None, hang(30)] + [said("no json", "text/plain")] * 6
        one = study(server.url, probe__attempts=5, policy__endpoint__concurrency=1,
                    policy__endpoint__timeout_seconds=5.0)
        result, attempts = probe(one)
        assert result.system_errors == attempts.system_error.sum() == 2
        assert set(attempts.error_type[attempts.system_error]) == {"policy"}
        assert not attempts.passed[attempts.system_error].any() and attempts.reward[attempts.system_error].isna().all()
        table = probe_view(attempts).table
        assert Counter(table.n) == Counter({5: 7, 3: 1}) and table.system_errors.sum() == 2, "never failures"
        again, attempts = probe(one)
        assert (again.played, again.system_errors) == (0, 2)
        repaired, attempts = probe(one, repair=True)
        assert (repaired.played, repaired.system_errors) == (2, 0)
    assert len(attempts) == 42


def test_a_context_overflow_is_a_judged_attempt_under_its_own_name(study, no_pauses):
    with ModelServer(None, script=Desk()) as server:
        overflow = status(400, "This model's maximum context length is 4096 tokens.")
        server.faults = [None, None, overflow]
        result, attempts = probe(study(server.url, probe__attempts=1, policy__endpoint__concurrency=1))
        records = [json.loads(line) for line in result.path.read_text().splitlines()]
    cut = [r for r in records if "context_overflow" in r["metadata"].get("warnings", ())]
    assert len(cut) == 1 and cut[0]["finish_reason"] == "agent_limit" and result.system_errors == 0
    assert cut[0]["test_result"]["result"] is False


def test_a_real_model_that_knows_nothing_of_the_domain(study, tiny_brain):
    with ModelServer(tiny_brain, raw="text") as server:
        one = study(server.url, probe__attempts=2,
                    policy__sampling={"max_turn_tokens": 12, "max_episode_tokens": 3500})
        result, attempts = probe(one)
    assert result.system_errors == 0 and attempts.policy_output_tokens.between(1, 12 * 40).all()
    assert (attempts.policy_input_tokens > 100).all()
