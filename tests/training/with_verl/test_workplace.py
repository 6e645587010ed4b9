"""Judging an episode of a verl run: what cannot be judged is a system error, what nobody can judge stops the run."""

from __future__ import annotations

import asyncio
import errno
import resource

import pytest

from tbstudy.errors import StudyError
from tbstudy.policies.scripted import golden_policy
from tbstudy.sandbox.episode import run_episode
from tbstudy.training.verl.config import load_run
from tbstudy.training.verl.reward import KEY, compute_score, verdict_fields
from tbstudy.training.verl.workplace import Workplace

UID = "telecom_plan_change.py:test_001"


def judged(small_config, before=lambda place: None):
    """A golden episode and its verdict; `before` runs between the two."""
    async def go():
        place = Workplace(load_run(small_config))
        try:
            episode = await run_episode(place.task(UID), 0, policy=golden_policy(), sandbox=place.sandbox,
                                        user=place.user)
            assert episode.fault is None
            before(place)
            return episode, await place.judge(episode)
        finally:
            await place.close()

    return asyncio.run(go())


def test_an_episode_that_can_be_judged_has_its_verdict(small_config):
    episode, verdict = judged(small_config)
    assert episode.fault is None and verdict.passed


def test_a_check_that_cannot_be_run_is_a_system_error_also_in_validation(small_config):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    def no_more_files(place):
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))  # those that are open stay open

    try:
        episode, verdict = judged(small_config, no_more_files)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert verdict is None and episode.fault.cause == "check"
    assert "the check could not be run: OSError" in str(episode.fault)
    fields = verdict_fields(episode, verdict, validating=True)
    assert fields[KEY]["system_error"] and compute_score("telecom", "", "", fields)["system_error"] == 1.0


@pytest.mark.parametrize("error", [StudyError("no judge"), OSError(errno.ENOSPC, "disk full")], ids=["study", "disk"])
def test_what_stops_every_attempt_goes_through(small_config, monkeypatch, error):
    async def refuse(*_):
        raise error

    with pytest.raises(type(error)):
        judged(small_config, lambda place: monkeypatch.setattr(place.checks, "judge", refuse))
