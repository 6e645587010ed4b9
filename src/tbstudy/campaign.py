"""Many episodes: which attempts are missing, who plays them, and the records they leave.

The local policy plays *waves*, fixed sets of attempts of one domain, in worker processes. A wave's samples depend on
its members alone, so a campaign that was killed plays its unfinished waves again whole and stores what was missing:
the final records are those of an undisturbed run. Other policies play attempt by attempt.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import multiprocessing
import os
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tbstudy import secrets
from tbstudy.config import Study
from tbstudy.errors import StudyError, SystemFault
from tbstudy.policies.client import Meter, attempt_usage
from tbstudy.processes import die_with_parent, exclusive
from tbstudy.reward.checks import CheckRunner
from tbstudy.reward.verdict import Verdict
from tbstudy.sandbox import transports
from tbstudy.sandbox.arguments import MAX_DEPTH, depth
from tbstudy.sandbox.base import Sandbox
from tbstudy.sandbox.episode import Episode, judge_episode, run_episode
from tbstudy.sandbox.search import check_search
from tbstudy.sandbox.server_code import note_servers
from tbstudy.sandbox.servers import ServerSpec, read_servers
from tbstudy.sandbox.users import ScriptedUser, User
from tbstudy.store import RecordStore, as_line, write_atomic
from tbstudy.tasks.loader import Dataset, load_dataset, load_list
from tbstudy.tasks.model import Task

if TYPE_CHECKING:
    from tbstudy.policies.base import Policy

Attempt = tuple[str, int]  # uid, repetition
Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class CampaignResult:
    """What a call of `run_campaign` did: attempts asked for, already stored, played now, and system errors left."""

    wanted: int
    stored: int
    played: int
    system_errors: int
    torn_bytes: int
    path: Path


def load_tasks(study: Study, which: str) -> list[Task]:
    """The tasks of a list of the configuration, `candidates` or `benchmark`."""
    uids = load_list(study.existing(which))
    tasks = load_dataset(study.existing("dataset"), uids).tasks
    return [tasks[uid] for uid in uids]


def open_sandbox(study: Study) -> Sandbox:
    """The configured way to run the dataset's tool servers."""
    config = study.config.sandbox
    return transports.open_sandbox(config.transport, servers_of(study), call_seconds=config.call_seconds,
                                   proxy_url=config.proxy_url)


def servers_of(study: Study) -> dict[str, ServerSpec]:
    """The tool servers of the study's dataset by name, in the configured interpreter; notes the keys they are given."""
    python = study.config.sandbox.python
    return read_servers(study.existing("servers"), None if python == "{python}" else python)


#: What search services a study's tool servers have found; not there where they need none.
SEARCH = "search.json"


def note_backend(study: Study, tasks: Sequence[Task], store: Path | None = None) -> None:
    """Note in the study's folder what stands behind the tasks' tools: the servers' code, and the search service that
    they find, where they need one, which is also noted beside `store`, the file that attempts go to.

    Raises:
        StudyError: the code is not that of the attempts in the folder, or the search service does not answer.
    """
    used = {name for task in tasks for name in task.world_state}
    servers = [server for name, server in servers_of(study).items() if name in used]
    transport = study.config.sandbox.transport
    note_servers(servers, transport, study.folder, store)
    if transport not in ("forked", "process") or (found := check_search(servers)) is None:
        return
    for folder in {study.folder, study.folder if store is None else store.parent}:
        if found not in (before := search_services(folder)):
            write_atomic(folder / SEARCH, (json.dumps([*before, found], indent=1) + "\n").encode())


def search_services(folder: Path) -> list[dict[str, Any]]:
    """The search services that a study's episodes found, as `note_backend` noted them: service, address, canonical.

    Raises:
        StudyError: the note cannot be read.
    """
    file = folder / SEARCH
    try:
        return json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    except ValueError as error:
        raise StudyError(f"{file}: not JSON ({error}); remove it if no tool server of this study needs a search "
                         "service") from None


def search_note(services: Sequence[dict[str, Any]]) -> str:
    """A sentence where one of them is not the one that results are compared by; else nothing."""
    standins = [s["service"] for s in services if not s["canonical"]]
    return f"Not canonical: the tool servers searched with {standins[0]}, not Typesense." if standins else ""


def note_keys(study: Study) -> None:
    """Note the keys that worker processes will use, so that this one, which writes what they send, takes them out."""
    c = study.config
    for endpoint in (c.policy.endpoint, c.user.endpoint, c.judge.endpoint):
        if endpoint is not None and endpoint.api_key_env and (key := os.environ.get(endpoint.api_key_env)):
            secrets.use(key)
    servers_of(study)  # notes those that the servers' settings name


def open_user(study: Study, meter: Meter | None = None) -> User:
    """The configured simulated user; what it costs goes to `meter`."""
    if study.config.user.kind == "scripted":
        return ScriptedUser()
    from tbstudy.sandbox.endpoint_user import EndpointUser

    return EndpointUser.from_config(study.config.user, meter)


def open_checks(study: Study, meter: Meter | None = None) -> CheckRunner:
    """Checks with the configured judge."""
    config = study.config.judge
    if config.endpoint is None:
        return CheckRunner()
    from tbstudy.reward.endpoint_judge import JudgeClient

    return CheckRunner(judge=JudgeClient(config.endpoint, temperature=config.temperature, meter=meter))


async def play(task: Task, repetition: int, *, policy: Policy, sandbox: Sandbox, user: User | None,
               checks: CheckRunner) -> tuple[Episode, Verdict | None]:
    """One attempt and its verdict; the verdict is None when the attempt is a system error before the check."""
    episode = await run_episode(task, repetition, policy=policy, sandbox=sandbox, user=user)
    if episode.conversation is None and hasattr(policy, "leave"):
        policy.leave()  # the session failed before the conversation opened: the wave must not wait for it
    if episode.fault is not None:
        return episode, None
    with attempt_usage() as judged:
        verdict = await judge_episode(episode, checks)
    if verdict is not None:
        episode.usage += judged
    return episode, verdict


#: Names in a record's metadata that a task's tags cannot take.
_OWN = frozenset({"repetition", "policy", "scenario", "domain", "test_case_file", "test_case_name", "config_hash",
                  "interpretation_warnings", "seconds", "warnings", "error"})


def to_record(episode: Episode, verdict: Verdict | None, policy: str, config_hash: str) -> dict[str, Any]:
    """The stored form of an attempt (field names of ThinkingBox's `tb infer` where they exist)."""
    task, fault = episode.task, episode.fault
    labels = dict(tag.split(":", 1) for tag in _labels(task) if ":" in tag)
    meta: dict[str, Any] = {
        "repetition": episode.repetition, "policy": policy, "scenario": task.scenario, "domain": task.domain,
        "test_case_file": task.uid.split(":")[0], "test_case_name": task.function,
        # A tag such as `policy:x` must not change whose attempt this is.
        **{name: value for name, value in labels.items() if name not in _OWN},
        "config_hash": config_hash, "interpretation_warnings": len(episode.warnings),
        "seconds": round(episode.seconds, 4)}
    if episode.warnings:
        meta["warnings"] = sorted(set(episode.warnings))
    if fault is not None:
        meta["error"] = {"type": fault.cause, "message": str(fault)}
    result = None
    if verdict is not None:
        result = {"result": verdict.passed, "reward": verdict.reward, "is_system_error": verdict.system_error,
                  "tb": "", "metadata": {"reason": verdict.reason, "diff": _storable(verdict.diff)}}
        if verdict.system_error:
            meta["error"] = {"type": verdict.cause or "check", "message": verdict.reason}
    record = {"uid": task.uid, "metadata": meta, "is_system_error": fault is not None,
              "finish_reason": episode.finish_reason, "test_result": result, "messages": episode.messages,
              "usage": [u.record() for u in episode.usage],
              "tokens": {"generated": sum(u.output_tokens for u in episode.usage if u.role == "policy")}}
    try:
        as_line(record)
    except (TypeError, ValueError, RecursionError) as error:
        # Effects or a check's notes that JSON cannot hold: whoever made them is out of order.
        meta["error"] = {"type": "check", "message": f"the attempt cannot be recorded: {type(error).__name__}: {error}"}
        record |= {"is_system_error": True, "test_result": None}
    return record


def _storable(diff: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Differences whose values nest deeper than a record may, as text: a policy that writes such a value has its
    verdict all the same."""
    if depth(diff) <= MAX_DEPTH:
        return diff
    return [{name: f"nested {found} deep" if (found := depth(value)) > MAX_DEPTH - 8 else value
             for name, value in entry.items()} if isinstance(entry, dict) else entry for entry in diff]


def _labels(task: Task) -> list[str]:
    found = task.tags.get("labels") or task.tags.get("tags") or ()
    return [str(tag) for tag in found]


# waves -------------------------------------------------------------------------------------------------------------


def waves(tasks: Sequence[Task], repetitions: int, size: int) -> list[tuple[Attempt, ...]]:
    """All attempts in fixed sets of at most `size`, one domain each."""
    by_domain: dict[str, list[Attempt]] = {}
    for task in sorted(tasks, key=lambda t: (t.domain, t.uid)):
        by_domain.setdefault(task.domain, []).extend((task.uid, r) for r in range(repetitions))
    return [tuple(keys[i:i + size]) for keys in by_domain.values() for i in range(0, len(keys), size)]


class WavePlayer:
    """Everything one process needs to play waves with the local policy; `like` lends its dataset, tool servers and
    checks, which a process needs once.
    """

    def __init__(self, study: Study, checkpoint: Path, name: str, seed: int, config_hash: str = "",
                 like: WavePlayer | None = None):
        import torch

        from tbstudy.policies.local import LocalPolicy
        from tbstudy.policies.sampler import Sampling

        torch.set_num_threads(1)  # processes, not threads: the products are small
        s = study.config.policy.sampling
        self.study, self.name, self.config_hash = study, name, config_hash
        self.policy = LocalPolicy.load(
            checkpoint, name=name, seed=seed, max_turn_tokens=s.max_turn_tokens, max_tokens=s.max_episode_tokens,
            sampling=Sampling(s.temperature, s.top_k, s.top_p))
        if like is not None:
            self.dataset, self.sandbox, self.user, self.checks = like.dataset, like.sandbox, like.user, like.checks
            return
        self.dataset: Dataset = load_dataset(study.existing("dataset"))
        self.sandbox, self.user, self.checks = open_sandbox(study), open_user(study), open_checks(study)

    def play(self, attempts: Sequence[Attempt]) -> list[tuple[Episode, Verdict | None]]:
        """Play one wave; results in the order of `attempts`."""

        async def all_of_them() -> list[tuple[Episode, Verdict | None]]:
            self.policy.start_wave(len(attempts))
            return await asyncio.gather(*(
                play(self.dataset.tasks[uid], repetition, policy=self.policy, sandbox=self.sandbox, user=self.user,
                     checks=self.checks) for uid, repetition in attempts))

        return asyncio.run(all_of_them())

    def records(self, attempts: Sequence[Attempt]) -> list[dict[str, Any]]:
        """Play one wave and return its records."""
        return [to_record(e, v, self.name, self.config_hash) for e, v in self.play(attempts)]


_Part = tuple[Path, str, int, str]  # checkpoint, name, seed, config_hash: what differs between a study's campaigns
_study: Study | None = None
_player: tuple[_Part, WavePlayer] | None = None


def _start_worker(study: Study) -> None:
    global _study
    die_with_parent()
    _study = study


def _play_wave(part: _Part, attempts: tuple[Attempt, ...]) -> list[dict[str, Any]]:
    global _player
    assert _study is not None
    if _player is None or _player[0] != part:
        _player = part, WavePlayer(_study, *part, like=_player and _player[1])
    return _player[1].records(attempts)


class Workers:
    """The processes that play a study's waves. As a context they serve one campaign after the other: starting a
    process takes as long as hundreds of episodes. They start when there is something to play.
    """

    def __init__(self, study: Study):
        self.study, self._pool, self._size = study, None, 0

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._pool is not None:
            with _one_thread():
                self._pool.shutdown(wait=True, cancel_futures=kind is not None)

    def submit(self, part: _Part, todo: Sequence[tuple[Attempt, ...]]) -> set[Future]:
        """Have waves played; as many processes as the configuration says, or as there are waves."""
        size = min(self.study.config.policy.workers, len(todo))
        if self._pool is not None and size > self._size:
            self._pool.shutdown(wait=True)
            self._pool = None
        if self._pool is None:
            # Workers are spawned: forking a process that has used torch's threads is not safe.
            self._size = size
            self._pool = ProcessPoolExecutor(size, multiprocessing.get_context("spawn"), _start_worker, (self.study,))
        with _one_thread():  # they start while work is handed out
            return {self._pool.submit(_play_wave, part, wave) for wave in todo}


# campaigns ---------------------------------------------------------------------------------------------------------


def run_campaign(study: Study, tasks: Sequence[Task], repetitions: int, store: Path, *, name: str,
                 checkpoint: Path | None = None, stage: str, repair: bool = False,
                 progress: Progress = lambda n: None, policy: Policy | None = None, at_once: int = 1,
                 workers: Workers | None = None) -> CampaignResult:
    """Play every missing attempt of `tasks` x `repetitions` by the policy `name` into `store`.

    `checkpoint` (default: the configured one) is the local policy's folder; `stage` separates the random numbers of
    stages. `progress` is called with the number of attempts that are stored, also for those found there. `policy`
    plays instead of the configured one (a scripted one, for instance), `at_once` attempts at a time. `workers` are
    processes to share with other campaigns.

    Raises:
        StudyError: the store holds another configuration's records, or a worker process died.
    """
    config_hash = study.rollout_hash(checkpoint)
    wanted = {(name, task.uid, r) for task in tasks for r in range(repetitions)}
    # Only who holds the folder may repair the file: another process may be writing its last line.
    records = RecordStore(store, name, config_hash, look=True)
    with contextlib.ExitStack() as stack:
        if wanted - records.done(repair):
            # A run that was killed may have left a process that is still writing: wait for it, then look again.
            stack.enter_context(exclusive(store.parent))
            records = RecordStore(store, name, config_hash)
        done = records.done(repair) & wanted
        progress(len(done))
        missing = wanted - done
        if not missing:
            return CampaignResult(len(wanted), len(done), 0, len(records.failed & wanted), records.torn, store)
        note_keys(study)
        note_backend(study, tasks, store)
        if policy is None and study.config.policy.kind == "local":
            todo = [w for w in waves(tasks, repetitions, study.config.policy.wave)
                    if any((name, *attempt) in missing for attempt in w)]
            part = checkpoint or study.checkpoint, name, stage_seed(study.config.seed, stage, name), config_hash
            with contextlib.nullcontext(workers) if workers is not None else Workers(study) as pool:
                _run_waves(pool, part, todo, records, missing, progress)
        else:
            if policy is None:
                policy = _endpoint_policy(study, name, stage)
                at_once = study.config.policy.endpoint.concurrency
            _run_to_end(_run_each(study, tasks, records, missing, name, config_hash, progress, policy, at_once))
    return CampaignResult(len(wanted), len(done), len(missing), len(records.failed & wanted), records.torn, store)


def _run_waves(pool: Workers, part: _Part, todo: list[tuple[Attempt, ...]], records: RecordStore,
               missing: set[tuple[str, str, int]], progress: Progress) -> None:
    name = part[1]
    try:
        running = pool.submit(part, todo)
        while running:
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                new = [r for r in future.result() if (name, r["uid"], r["metadata"]["repetition"]) in missing]
                records.append(new)
                progress(len(new))
    except BrokenProcessPool:
        raise StudyError(f"a worker process playing {name!r} died (killed, or out of memory); start again to "
                         "continue, with policy.workers: 1 if memory is short") from None


def _endpoint_policy(study: Study, name: str, stage: str) -> Policy:
    from tbstudy.policies.endpoint import EndpointPolicy

    return EndpointPolicy.from_config(study.config.policy, name=name, seed=stage_seed(study.config.seed, stage, name))


async def _run_each(study: Study, tasks: Sequence[Task], records: RecordStore, missing: set[tuple[str, str, int]],
                    name: str, config_hash: str, progress: Progress, policy: Policy, at_once: int) -> None:
    by_uid = {t.uid: t for t in tasks}
    meter = getattr(policy, "meter", None)
    sandbox, user, checks = open_sandbox(study), open_user(study, meter), open_checks(study, meter)
    todo = iter(sorted(missing))

    async def play_on() -> None:
        # One at a time from the common queue: what waits costs nothing but its key, however long the campaign is.
        for _, uid, repetition in todo:
            episode, verdict = await play(by_uid[uid], repetition, policy=policy, sandbox=sandbox, user=user,
                                          checks=checks)
            records.append([to_record(episode, verdict, name, config_hash)])
            progress(1)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(at_once, len(missing))):
                group.create_task(play_on())
    except* StudyError as errors:  # a spent budget, a wrong key: what is finished is stored
        raise _first(errors) from None
    except* SystemFault as faults:
        raise StudyError(f"campaign stopped: {_first(faults)}") from None
    finally:
        async with contextlib.AsyncExitStack() as ends:  # one that fails to end keeps no other from it
            ends.callback(checks.close)
            for end in (sandbox, checks.model, user, policy):
                if hasattr(end, "close"):
                    ends.push_async_callback(end.close)


def _run_to_end(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine, in a thread of its own where this one has a running loop, as a notebook's kernel does."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(work)
        return
    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Task]] = []

    async def known() -> None:
        running.append((asyncio.get_running_loop(), asyncio.current_task()))
        await work

    with ThreadPoolExecutor(1) as thread:
        future = thread.submit(asyncio.run, known())
        try:
            future.result()
        except BaseException:
            if running and not future.done():  # interrupted: what is finished is stored, the rest is given up
                loop, task = running[0]
                loop.call_soon_threadsafe(task.cancel)
            raise


def _first(errors: BaseExceptionGroup) -> BaseException:
    first = errors.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


def stage_seed(seed: int, *names: str) -> int:
    """A seed of its own for each stage and policy, derived from the study's."""
    return int.from_bytes(hashlib.sha256("|".join((str(seed), *names)).encode()).digest()[:6], "big")


class _one_thread:
    """Workers inherit single-threaded linear algebra: with one process a core, threads only get in the way."""

    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")

    def __enter__(self) -> None:
        self.before = {n: os.environ.get(n) for n in self.names}
        os.environ.update({n: "1" for n in self.names})

    def __exit__(self, *_: object) -> None:
        for n, value in self.before.items():
            if value is None:
                os.environ.pop(n, None)
            else:
                os.environ[n] = value

