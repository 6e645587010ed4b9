"""`tbstudy replay` and `tbstudy search-service`."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from pathlib import Path

from tbstudy.errors import StudyError
from tbstudy.sandbox.search import HOST, PORT, check_search, serve


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Add both commands; each sets `run`, a function from parsed arguments to an exit code."""
    p = subparsers.add_parser(
        "replay", help="play a dataset's golden tool calls and report what its checks notice",
        description="Golden calls should pass; no call, a dropped, repeated or stray write should fail. Lists what a "
                    "task's check is blind to. Exit code 1 when a golden replay fails or anything is a system error.")
    p.add_argument("dataset", type=Path, help="folder with agent/, scenario/ and test_case/")
    p.add_argument("--list", type=Path, help="YAML list of uids (default: all tasks)")
    p.add_argument("--servers", type=Path, help="servers.yaml (default: in the dataset, or in ../servers)")
    p.add_argument("--transport", default=None, choices=("inprocess", "forked", "process", "http", "proxy"),
                   help="default: inprocess where all servers can, else forked")
    p.add_argument("--python", help="interpreter for {python} in servers.yaml (default: this one)")
    p.add_argument("--proxy-url", help="URL of a ThinkingBox session proxy, for --transport proxy")
    p.add_argument("--clock", help="what forked servers read as now, e.g. 2025-10-01T13:00:00Z")
    p.add_argument("--variants", default="golden,noop,dropped,repeated,stray",
                   help="comma-separated; also: rewritten (default: %(default)s)")
    p.add_argument("--judge", default="yes", choices=("yes", "no", "none"),
                   help="what the scripted judge answers (default: yes); none: a question is a system error")
    p.add_argument("--concurrency", type=int, default=4, help="sessions at once (default: %(default)s)")
    p.add_argument("--call-seconds", type=float, default=30.0, help="limit of a tool call (default: %(default)s)")
    p.add_argument("--json", type=Path, help="write the whole report there")
    p.add_argument("--against", type=Path,
                   help="an earlier report; a difference in verdict or state hash, or nothing to compare, is an error")
    p.set_defaults(run=replay)

    p = subparsers.add_parser(
        "search-service", help="a stand-in for Typesense, for replay and development",
        description="Serves the part of Typesense's API that the benchmark's tool servers use, over SQLite FTS5. "
                    "Rankings differ from Typesense's: results obtained with it are not canonical.")
    p.add_argument("--host", default=HOST, help="default: %(default)s")
    p.add_argument("--port", type=int, default=PORT, help="default: %(default)s")
    p.set_defaults(run=search_service)


def replay(args: argparse.Namespace) -> int:
    """Run `tbstudy replay`."""
    from tbstudy.reward.checks import CheckRunner
    from tbstudy.reward.judge import ScriptedJudge
    from tbstudy.sandbox.replay import VARIANTS, Replay, Trial, compare
    from tbstudy.sandbox.servers import read_servers
    from tbstudy.sandbox.transports import open_sandbox
    from tbstudy.tasks.loader import load_dataset

    variants = [v.strip() for v in args.variants.split(",")]
    if unknown := [v for v in variants if v not in VARIANTS]:
        raise StudyError(f"unknown variants {', '.join(unknown)}; known: {', '.join(VARIANTS)}")
    data = load_dataset(args.dataset, args.list)
    places = [args.servers] if args.servers else [args.dataset / "servers.yaml",
                                                 args.dataset.parent / "servers" / "servers.yaml"]
    path = next((p for p in places if p.is_file()), places[0])
    servers = read_servers(path, args.python)
    used = {name: s for name, s in servers.items() if any(name in t.world_state for t in data.tasks.values())}
    transport = args.transport or ("inprocess" if used and all(s.in_process for s in used.values()) else "forked")
    search = check_search(used.values()) if transport in ("forked", "process") else None
    domains = ", ".join(f"{name} {count}" for name, count in data.by_domain().items())
    print(f"{len(data.tasks)} tasks ({domains}) over {transport}" + (
        f"; search by {search['service']}" + ("" if search["canonical"] else ", not canonical") if search else ""))

    def progress(trial: Trial) -> None:
        nonlocal done
        done += 1
        if sys.stderr.isatty():
            print(f"\r{done} trials, last {trial.uid} {trial.variant:<10}", end="", file=sys.stderr, flush=True)
        elif done % 500 == 0:
            print(f"{done} trials", file=sys.stderr, flush=True)

    async def run() -> tuple[Report, list[str]]:
        sandbox = open_sandbox(transport, used, proxy_url=args.proxy_url, call_seconds=args.call_seconds,
                               clock=args.clock)
        judge = None if args.judge == "none" else ScriptedJudge(default=args.judge.title())
        try:
            with CheckRunner(judge=judge, timeout=30) as runner:
                report = await Replay(sandbox, runner, args.concurrency, progress).run(data.tasks.values(), variants)
        finally:
            await sandbox.close()
        return report, getattr(sandbox, "notes", [])

    from tbstudy.sandbox.replay import Report

    done = 0
    report, notes = asyncio.run(run())
    if sys.stderr.isatty():
        print(file=sys.stderr)
    print(report.table())
    for note in notes:
        print(f"note: {note}")
    if args.json:
        args.json.write_text(json.dumps({"dataset": data.root.name, "transport": transport, "search": search,
                                         "clock": args.clock, "notes": notes, **report.as_json()}, indent=1))
    alike = True
    if args.against:
        theirs = json.loads(args.against.read_text())["trials"]
        differences = compare(report, theirs)
        compared = len({t.key for t in report.trials} & {(t["uid"], t["variant"], t["what"]) for t in theirs})
        print(f"\n{len(differences)} differences from {args.against} in {compared} trials"
              + (f"; {len(report.trials) - compared} trials are not there" if compared < len(report.trials) else ""))
        print("\n".join(differences[:100]))
        alike = compared > 0 and not differences
    return 0 if report.sound and alike else 1


def search_service(args: argparse.Namespace) -> int:
    """Run `tbstudy search-service` until interrupted."""
    async def run() -> None:
        server = await serve(args.host, args.port)
        print(f"search service at http://{args.host}:{args.port}: a stand-in for Typesense, not canonical", flush=True)
        async with server:
            await server.serve_forever()

    try:
        asyncio.run(run())
    except KeyboardInterrupt:
        pass
    return 0
