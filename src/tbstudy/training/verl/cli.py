"""`tbstudy launch|ray|checkpoint|serve|plan`: the reference run from the command line."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import Any

from tbstudy.errors import StudyError


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Add the five commands; each one's `run` default takes the parsed arguments and returns the exit code."""
    launch = subparsers.add_parser(
        "launch", help="train with verl", description="Check everything, then run verl's trainer to its end. The same "
        "command resumes. Overrides are verl's own settings in Hydra's grammar and win over the configuration.")
    _config(launch)
    launch.add_argument("overrides", nargs="*", metavar="key=value", help="verl settings")
    launch.add_argument("--dry-run", action="store_true",
                        help="print the command and what can be checked without Ray or a GPU")
    launch.add_argument("--check", action="store_true", help="run the whole preflight and start nothing")
    launch.set_defaults(run=run_launch)
    _intermixed(launch)

    ray = subparsers.add_parser("ray", help="start this machine's part of the cluster, or wait for all of it")
    ray.add_argument("role", choices=("head", "worker", "status"))
    _config(ray)
    ray.add_argument("--address", metavar="HOST[:PORT]", help="the head, for a worker")
    ray.add_argument("--node-ip", metavar="IP", help="this node's address where it has several")
    ray.add_argument("--wait", type=float, default=600.0, metavar="SECONDS", help="how long status waits")
    ray.add_argument("--dry-run", action="store_true", help="print the command")
    ray.set_defaults(run=run_ray)

    checkpoint = subparsers.add_parser("checkpoint", help="look at verl's checkpoints, or merge one")
    checkpoint.add_argument("action", choices=("verify", "merge", "resume-point"))
    checkpoint.add_argument("folder", type=Path, help="global_step_<N>, or the folder that holds them")
    checkpoint.add_argument("--out", type=Path, metavar="FOLDER", help="merge: the Hugging Face folder to write")
    checkpoint.add_argument("--tokenizer", type=Path, metavar="FOLDER",
                            help="merge: the base model, whose tokenizer files are taken unchanged")
    checkpoint.add_argument("--world", type=int, metavar="N", help="ranks that the shards must be of")
    checkpoint.set_defaults(run=run_checkpoint)

    serve = subparsers.add_parser("serve", help="serve a merged checkpoint for the evaluation")
    _config(serve)
    serve.add_argument("--model", type=Path, metavar="FOLDER", help="the merged checkpoint (default: model.path)")
    serve.add_argument("--vllm", default="vllm", metavar="PATH", help="the vllm executable")
    serve.add_argument("--host", default="127.0.0.1", help="the proxy's address")
    serve.add_argument("--upstream", metavar="URL", help="with --proxy-only: a server elsewhere (without /v1)")
    serve.add_argument("--proxy-only", action="store_true", help="the server runs already")
    serve.add_argument("--dry-run", action="store_true", help="print the commands")
    serve.set_defaults(run=run_serve)

    plan = subparsers.add_parser("plan", help="what a run will need, on paper")
    _config(plan)
    plan.add_argument("--pool", type=Path, metavar="POOL.json", help="instead of data.pool")
    plan.add_argument("--parameters", type=float, metavar="N", help="of the model, when its folder is not here")
    from tbstudy.training.verl.assumptions import Assumptions

    for name, default in Assumptions.__dataclass_fields__.items():
        plan.add_argument(f"--{name.replace('_', '-')}", type=float, default=default.default, metavar="X",
                          help=f"assumption (default {default.default:g})")
    plan.set_defaults(run=run_plan)


def _config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config", type=Path, metavar="CONFIG.yaml")
    parser.add_argument("--set", action="append", default=[], metavar="section.key=value", dest="changes",
                        help="change the configuration (value in YAML)")


def _intermixed(parser: argparse.ArgumentParser) -> None:
    """Let options stand between positionals: `launch CONFIG --dry-run key=value`."""
    plain = parser.parse_known_args

    def parse(args: Any = None, namespace: Any = None) -> Any:
        parser.parse_known_args = plain  # type: ignore[method-assign]  # which the intermixed parser itself calls
        try:
            return parser.parse_known_intermixed_args(args, namespace)
        finally:
            parser.parse_known_args = parse  # type: ignore[method-assign]

    parser.parse_known_args = parse  # type: ignore[method-assign]


def _load(options: argparse.Namespace) -> Any:
    from tbstudy.config import parse_changes
    from tbstudy.training.verl.config import load_run

    return load_run(options.config, parse_changes(options.changes))


def run_launch(options: argparse.Namespace) -> int:
    """Print the dry run, check, or train. Raises StudyError when a rule fails."""
    from tbstudy.training.verl import launch, preflight

    run = _load(options)
    if options.dry_run:
        print(launch.dry_run(run, options.overrides))
        return 0
    if options.check:
        launch.check_overrides(options.overrides)
        findings = preflight.on_paper(run) + preflight.on_machine(run, extra=options.overrides)
        print(preflight.text(findings))
        return 0 if all(finding.ok for finding in findings) else 1
    return launch.launch(run, options.overrides)


def run_ray(options: argparse.Namespace) -> int:
    """Start a node or wait for the cluster."""
    from tbstudy.training.verl import nodes

    run = _load(options)
    if options.role != "status":
        return nodes.start(run, options.role, options.address, options.node_ip, options.dry_run)
    found = nodes.wait(run, options.wait)
    print(f"{sum(found)} GPUs on {len(found)} nodes ({', '.join(map(str, found))}): ready for {run.config.run}")
    return 0


def run_checkpoint(options: argparse.Namespace) -> int:
    """Verify (exit code 1 when incomplete), merge, or print the step that a run would resume from."""
    from tbstudy.training.verl import checkpoints

    folder: Path = options.folder
    single = folder.name.startswith("global_step_")
    if options.action == "merge":
        if options.out is None:
            raise StudyError("checkpoint merge needs --out, the folder to write")
        if not single:
            point = checkpoints.resume_point(folder, options.world)
            if point is None:
                raise StudyError(f"{folder}: no complete checkpoint to merge")
            folder = point.folder
        print(checkpoints.merge(folder, options.out, options.tokenizer))
        return 0
    if options.action == "resume-point":
        point = checkpoints.resume_point(folder, options.world)
        problem = checkpoints.latest_problem(folder, options.world)
        print(point.folder if point else "none: the run would start from scratch")
        if problem:
            raise StudyError(problem)
        return 0
    found = [checkpoints.verify(folder, options.world)] if single else [
        checkpoints.verify(folder / f"global_step_{step}", options.world) for step in checkpoints.steps(folder)]
    if not found:
        raise StudyError(f"{folder}: no checkpoints (global_step_<N>) in it")
    for checkpoint in found:
        state = "complete" if checkpoint.complete else "INCOMPLETE: " + "; ".join(checkpoint.problems)
        print(f"step {checkpoint.step} ({checkpoint.world} ranks): {state}")
    return 0 if all(checkpoint.complete for checkpoint in found) else 1


def run_serve(options: argparse.Namespace) -> int:
    """Print the commands, run the proxy, or run both."""
    from tbstudy.evaluation import serve

    run = _load(options)
    model = options.model or run.path(run.config.model.path)
    if options.dry_run:
        print(serve.dry_run(run, model))
        return 0
    if options.proxy_only:
        serve.run_proxy(run, options.host, options.upstream)
        return 0
    return serve.serve(run, model, options.vllm, options.host)


def run_plan(options: argparse.Namespace) -> int:
    """Print topology, memory, the rollout forecast and what follows from the assumptions."""
    from tbstudy.selection import load_pool
    from tbstudy.training.verl import forecast

    run = _load(options)
    given = forecast.Assumptions(**{name: getattr(options, name)
                                    for name in forecast.Assumptions.__dataclass_fields__})
    tables = forecast.tables(run, load_pool(options.pool or run.path(run.config.data.pool)), given, options.parameters)
    print(f"{run.config.run} ({shlex.quote(str(run.file))})")
    for title, table in tables.items():
        print(f"\n{title}\n\n{table.to_markdown(index=False, floatfmt=',.6g')}")
    return 0
