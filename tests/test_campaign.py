"""A campaign's records file, keys, servers' code and search service."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import threading
import time
from pathlib import Path

import pytest
import yaml

from tbstudy import campaign, cli
from tbstudy.config import Study, load_study
from tbstudy.errors import StudyError
from tbstudy.policies.scripted import golden_policy
from tbstudy.processes import exclusive
from tbstudy.reward.verdict import Verdict
from tbstudy.sandbox.episode import Episode
from tbstudy.sandbox.search import check_search, serve
from tbstudy.scaffold.dataset import write_domain
from tbstudy.store import read_lines

ROOT = Path(__file__).parents[1]


@pytest.fixture
def study(tmp_path):
    return load_study(ROOT / "configs" / "laptop.yaml", tmp_path / "study")


def play(study: Study, count: int = 2) -> campaign.CampaignResult:
    return campaign.run_campaign(study, campaign.load_tasks(study, "candidates")[:count], 1, study.folder / "r.jsonl",
                                 name="base", stage="probe", policy=golden_policy())


def test_a_torn_line_is_cut_reported_and_played_again(study):
    assert (play(study).played, play(study).torn_bytes) == (2, 0)
    first, second = (study.folder / "r.jsonl").read_bytes().splitlines(keepends=True)
    (study.folder / "r.jsonl").write_bytes(first + second[:500])
    again = play(study)
    assert (again.stored, again.played, again.torn_bytes) == (1, 1, 500)
    assert len(list(read_lines(study.folder / "r.jsonl"))) == 2


def test_a_line_that_another_process_is_writing_is_left_alone(study):
    play(study)
    file = study.folder / "r.jsonl"
    first, second = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(first)
    begun, looked = threading.Event(), threading.Event()

    def write():
        with exclusive(study.folder), file.open("ab", buffering=0) as out:
            out.write(second[:500])
            begun.set()
            looked.wait(60)
            time.sleep(0.5)  # by now the campaign has opened the file and waits for the folder
            out.write(second[500:])

    writer = threading.Thread(target=write)
    writer.start()
    begun.wait(60)
    looked.set()
    result = play(study)
    writer.join()
    assert (result.stored, result.played, result.torn_bytes) == (2, 0, 0)
    assert file.read_bytes() == first + second


def test_a_verdict_survives_a_difference_that_no_record_can_hold(study):
    task = campaign.load_tasks(study, "candidates")[0]
    deep: object = "end"
    for _ in range(62):
        deep = [deep]
    diff = [{"kind": "wrong", "table": "t", "row": 1, "expected": {"a": 1}, "found": {"a": deep}}]
    verdict = Verdict(passed=False, reward=0.0, reason="differs", diff=diff)
    record = campaign.to_record(Episode(task, 0), verdict, "base", "c0")
    assert not record["is_system_error"] and record["test_result"]["result"] is False
    [stored] = record["test_result"]["metadata"]["diff"]
    assert stored["expected"] == {"a": 1} and "deep" in stored["found"] and json.loads(json.dumps(stored)) == stored


@pytest.fixture
def searching(tmp_path):
    """A study whose tool server says that it needs Typesense."""
    write_domain("library", tmp_path / "library")
    servers = tmp_path / "library" / "servers.yaml"
    raw = yaml.safe_load(servers.read_text())
    raw["servers"]["library"]["env"] = {"TYPESENSE_API_KEY": "Fake"}
    servers.write_text(yaml.safe_dump(raw))
    config = yaml.safe_load((tmp_path / "library.yaml").read_text()) | {"root": str(tmp_path)}
    config["policy"]["endpoint"].pop("api_key_env", None)
    (tmp_path / "library.yaml").write_text(yaml.safe_dump(config))
    return load_study(tmp_path / "library.yaml", tmp_path / "study", sandbox__transport="process")


@pytest.fixture
def search_port():
    """The stand-in, in a thread of its own; its port."""
    loop, ready = asyncio.new_event_loop(), threading.Event()
    found = []

    async def run():
        async with await serve(port=0) as server:
            found.append(server.sockets[0].getsockname()[1])
            ready.set()
            await server.serve_forever()

    def work():
        with contextlib.suppress(asyncio.CancelledError):
            loop.run_until_complete(run())

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait(30)
    yield found[0]
    loop.call_soon_threadsafe(lambda: [task.cancel() for task in asyncio.all_tasks(loop)])
    thread.join(30)


def test_a_missing_search_service_stops_a_campaign_before_its_first_session(searching, monkeypatch):
    monkeypatch.setattr(campaign, "check_search", functools.partial(check_search, port=1))
    with pytest.raises(StudyError, match="no search service at 127.0.0.1:1, which library need"):
        play(searching)
    assert not (searching.folder / "r.jsonl").exists()


def test_a_server_that_changed_between_two_commands_stops_the_second(study):
    play(study)
    note = study.folder / "servers.json"
    assert set(json.loads(note.read_text())) == {"telecom"}, "the servers of the tasks that were played"
    note.write_text(note.read_text().replace('"sha256": "', '"sha256": "0'))
    assert play(study).played == 0, "nothing is missing, nothing is mixed"
    with pytest.raises(StudyError, match="server 'telecom': its code"):
        play(study, 3)
    assert len(list(read_lines(study.folder / "r.jsonl"))) == 2


def test_results_with_the_search_stand_in_are_labelled(searching, monkeypatch, search_port, tmp_path, capsys):
    monkeypatch.setattr(campaign, "check_search", functools.partial(check_search, port=search_port))
    assert play(searching).played == 2 and play(searching, 3).played == 1
    [service] = campaign.search_services(searching.folder)
    assert service["canonical"] is False
    assert "Not canonical" in campaign.search_note([service]) and campaign.search_note([]) == ""
    elsewhere = tmp_path / "elsewhere" / "r.jsonl"
    tasks = campaign.load_tasks(searching, "candidates")[:1]
    campaign.run_campaign(searching, tasks, 1, elsewhere, name="base", stage="probe", policy=golden_policy())
    for command in ("evaluate", "analyse"):
        assert cli.main([command, str(elsewhere)]) == 0
        assert f"{elsewhere.parent}: Not canonical: the tool servers searched with" in capsys.readouterr().out
