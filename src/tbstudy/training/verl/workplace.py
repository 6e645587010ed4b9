"""What the episodes of one process share: tasks, tool servers, simulated user and checks, as the run says.

Every agent-loop worker is a process of its own with one event loop; it makes its `Workplace` on the first episode.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from typing import Any

from tbstudy.errors import StudyError, SystemFault
from tbstudy.interpreter import Trajectory
from tbstudy.policies.client import Client, Endpoint
from tbstudy.reward.checks import CheckRunner
from tbstudy.reward.judge import EndpointJudge
from tbstudy.reward.verdict import Verdict
from tbstudy.sandbox.endpoint_user import EndpointUser
from tbstudy.sandbox.episode import Episode, judge_episode
from tbstudy.sandbox.servers import read_servers
from tbstudy.sandbox.transports import open_sandbox
from tbstudy.sandbox.users import ScriptedUser, User
from tbstudy.selection import load_pool
from tbstudy.tasks.loader import load_dataset
from tbstudy.tasks.model import Task
from tbstudy.training.verl.config import EndpointSection, Run, load_run
from tbstudy.training.verl.overrides import RUN_VARIABLE


class Workplace:
    """`sandbox`, `user` and `checks` of a run; `free` bounds how many sessions are open at once.

    Raises:
        StudyError: the pool, the dataset or the servers file is wrong, or a variable with a URL or key is not set.
    """

    def __init__(self, run: Run):
        c = run.config
        self.run = run
        pool = load_pool(run.path(c.data.pool))
        uids = sorted({*pool.uids(c.data.split), *pool.uids(c.data.validation)})
        self._tasks = load_dataset(run.path(c.data.dataset), uids, agent=c.data.agent).tasks
        s = c.sandbox
        self.sandbox = open_sandbox(
            s.transport, read_servers(run.path(c.data.servers), s.python), proxy_url=s.proxy_url,
            start_seconds=s.start_seconds, call_seconds=s.call_seconds, session_seconds=s.session_seconds)
        self.user: User = ScriptedUser()
        if c.user.kind == "endpoint":
            assert c.user.endpoint is not None
            temperature = c.user.endpoint.temperature
            self.user = EndpointUser(endpoint(c.user.endpoint, "user"),
                                     **({} if temperature is None else {"temperature": temperature}))
        self._judge = Client(endpoint(c.judge, "judge"), "judge") if c.judge is not None else None
        asked = None
        if self._judge is not None and c.judge is not None:
            options = {} if c.judge.temperature is None else {"temperature": c.judge.temperature}
            asked = EndpointJudge(self._judge.text, **options)
        self.checks = CheckRunner(judge=asked)
        self.free = asyncio.Semaphore(s.concurrency)

    def task(self, uid: str) -> Task:
        """A task of the pool.

        Raises:
            StudyError: it is not in the splits that this run uses.
        """
        if uid not in self._tasks:
            raise StudyError(f"{uid}: not in the splits {self.run.config.data.split} and "
                             f"{self.run.config.data.validation} of {self.run.path(self.run.config.data.pool)}")
        return self._tasks[uid]

    async def prompt_lengths(self, tokenizer: Any, uids: Iterable[str]) -> dict[str, int]:
        """Tokens of each task's first prompt by uid; one session is started for each scenario.

        Raises:
            StudyError, SystemFault: a session cannot be started or its tools cannot be read.
        """
        tools: dict[str, list[dict[str, Any]]] = {}
        lengths = {}
        for uid in uids:
            task = self.task(uid)
            if task.scenario not in tools:
                async with self.sandbox.session(task) as session:
                    tools[task.scenario] = await session.tools()
            messages = [*({"role": "system", "content": text} for text in task.system if text), *task.history,
                        {"role": "user", "content": task.query}]
            lengths[uid] = len(Trajectory(tokenizer, tools[task.scenario], messages).prompt_ids)
        return lengths

    async def judge(self, episode: Episode) -> Verdict | None:
        """The verdict on an episode, None where it has a fault. A check that cannot be run, or a verdict that is a
        system error, becomes the episode's fault, as in a campaign.

        Raises:
            StudyError: no attempt can be judged.
            OSError: the disk is full.
        """
        if episode.fault is not None:
            return None
        verdict = await judge_episode(episode, self.checks)
        if verdict is not None and verdict.system_error:
            episode.fault = SystemFault(verdict.cause or "check", verdict.reason)
        return verdict

    async def close(self) -> None:
        """End the tool servers and the checks' processes, drop connections."""
        self.checks.close()
        await self.sandbox.close()
        for client in (self.user, self._judge):
            close = getattr(client, "close", None)
            if close is not None:
                await close()


def endpoint(section: EndpointSection, role: str) -> Endpoint:
    """The endpoint that a section describes, its URL taken from the environment where the section says so.

    Raises:
        StudyError: the variable is not set or holds no URL.
    """
    url = section.base_url
    if url is None:
        url = os.environ.get(section.base_url_env or "")
        if not url:
            raise StudyError(f"{role}: the environment variable {section.base_url_env} (its URL) is not set")
    return Endpoint.of({"base_url": url, "model": section.model, "api_key_env": section.api_key_env,
                        "concurrency": section.concurrency, "timeout_seconds": section.timeout_seconds})


_places: dict[tuple[str, int, int], Workplace] = {}


def current() -> Workplace:
    """This process' workplace for the run that the environment names.

    Raises:
        StudyError: the variable is not set, or as for `Workplace`.
    """
    file = os.environ.get(RUN_VARIABLE)
    if not file:
        raise StudyError(f"the environment variable {RUN_VARIABLE} is not set: start the trainer with `tbstudy launch`")
    key = (file, os.getpid(), id(asyncio.get_running_loop()))
    if key not in _places:
        _places[key] = Workplace(load_run(file))
    return _places[key]


