"""A new domain works as it is written: its own tests pass, its replay is clean, its study loads."""

from __future__ import annotations

import argparse
import subprocess
import sys

import pytest

from tbstudy.config import load_study
from tbstudy.errors import StudyError
from tbstudy.scaffold import cli
from tbstudy.scaffold.dataset import write_domain
from tbstudy.tasks.loader import load_dataset, load_list


@pytest.fixture(scope="module")
def domain(tmp_path_factory):
    out = tmp_path_factory.mktemp("own") / "tool_desk"
    write_domain("tool_desk", out)
    return out


def test_the_dataset_loads_and_its_lists_are_disjoint(domain):
    tasks = load_dataset(domain).tasks
    lists = {which: set(load_list(domain / "lists" / f"{which}.yaml")) for which in ("candidates", "benchmark")}
    assert lists["candidates"] | lists["benchmark"] == set(tasks) and len(tasks) == 12
    assert len(lists["candidates"]) == 8 and not lists["candidates"] & lists["benchmark"]
    for task in tasks.values():
        assert task.user_context and task.world_state["tool_desk"]["golden_test_case"]["tool_interactions"]


def test_twins_read_alike_until_the_item_is_looked_up(domain):
    tasks = load_dataset(domain).tasks
    for template, twins in (("lend", ("free", "lent")), ("deposit", ("needed", "not_needed"))):
        first, second = (tasks[f"tool_desk_{template}.py:test_{twin}_0"] for twin in twins)
        assert first.query == second.query
        rows = [t.world_state["tool_desk"]["data_patch"]["items"][0] for t in (first, second)]
        assert sum(rows[0][k] != rows[1][k] for k in ("title", "status", "deposit", "days")) == 1


def test_its_own_tests_pass(domain):
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(domain / "tests")],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout


def test_its_server_speaks_mcp_to_anyone(domain):
    import asyncio

    from mcp import StdioServerParameters
    from mcp.client.session import ClientSession
    from mcp.client.stdio import stdio_client

    async def talk():
        start = StdioServerParameters(command=sys.executable, args=["-m", "tool_desk_server"], cwd=str(domain))
        async with stdio_client(start) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            return [tool.name for tool in (await session.list_tools()).tools]

    assert "lend_item" in asyncio.run(talk())


def test_its_study_loads(domain):
    study = load_study(domain.parent / "tool_desk.yaml")
    assert study.config.policy.endpoint.base_url == "http://127.0.0.1:8000/v1"
    assert study.path(study.config.dataset) == domain and len(study.rollout_hash()) == 16


def test_the_command_refuses_what_it_would_spoil(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    parser = argparse.ArgumentParser()
    cli.add_parser(parser.add_subparsers())

    def new(*arguments):
        args = parser.parse_args(["new-domain", *arguments])
        return args.run(args)

    assert new("library") == 0 and "next: tbstudy replay library" in capsys.readouterr().out
    with pytest.raises(StudyError, match="library exists and is not an empty folder"):
        new("library")
    (tmp_path / "other.yaml").write_text("mine")
    with pytest.raises(StudyError, match="other.yaml exists"):
        new("library", "--out", "other")
    for name in ("Library", "my-domain", "1st", "class", "../x", ""):
        with pytest.raises(StudyError, match="cannot name a domain"):
            new(name)
    assert not (tmp_path / "other").exists()
