"""The command `kindex-runs`: deliver what is left, show what is there, find out why nothing arrives."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

from . import _doctor, _folder
from ._config import Config, environment_name, load
from ._inspect import SpoolStatus, records_of, status_of
from ._sync import Outcome, sync
from ._warn import Warner


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Run the command. Returns the exit code: 0 when all is well, 1 when something is left or wrong, 2 for misuse."""
    options = _parser().parse_args(arguments)
    try:
        config = load(
            {
                "dir": getattr(options, "folder", None),
                "url": options.url,
                "grpc": options.grpc,
                "api_key": options.api_key,
                "transport": options.transport,
            }
        )
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    command = {"sync": _sync, "status": _status, "doctor": _check, "export": _export}[options.command]
    return command(config, options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="kindex-runs", description="Runs that were logged on this machine.")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--url", help="REST address of the server (KINDEX_RUNS_URL; for sync, that of the run)")
    common.add_argument("--grpc", help="gRPC address of the server (KINDEX_RUNS_GRPC)")
    common.add_argument("--api-key", help="key of the server (KINDEX_RUNS_API_KEY)")
    common.add_argument("--transport", help="auto, grpc or rest (KINDEX_RUNS_TRANSPORT)")
    folder = argparse.ArgumentParser(add_help=False)
    folder.add_argument("folder", nargs="?", help="folder of the spool (KINDEX_RUNS_DIR, ~/.kindex/runs)")
    commands = parser.add_subparsers(dest="command", required=True)
    syncing = commands.add_parser("sync", parents=[common, folder], help="deliver what ended processes left behind")
    syncing.add_argument("--timeout", type=float, default=60.0, help="seconds to wait for a silent server (60)")
    syncing.add_argument(
        "--as-new", action="store_true", help="store what is left of a run that cannot be resumed as a new run"
    )
    commands.add_parser("status", parents=[common, folder], help="show what waits in the folder")
    commands.add_parser("doctor", parents=[common, folder], help="check folder, server and key")
    exporting = commands.add_parser("export", parents=[common, folder], help="print what waits, as JSON lines")
    exporting.add_argument("--run", help="this run alone")
    return parser


def _sync(config: Config, options: argparse.Namespace) -> int:
    def report(outcome: Outcome) -> None:
        left = outcome.points_left or outcome.operations_left
        print(
            outcome.run_id
            + (f" (a new run with what was left of {outcome.continues})" if outcome.continues else "")
            + f": {outcome.delivered} points delivered"
            + (f", {outcome.set_aside} refused by the server" if outcome.set_aside else "")
            + (f", {outcome.points_left} points and {outcome.operations_left} other records left" if left else "")
            + (f", {outcome.spools_unread} spools cannot be read" if outcome.spools_unread else "")
            + (f": {outcome.error}" if outcome.error else "")
        )

    try:
        is_url_given = bool(options.url or os.environ.get(environment_name("url")))
        outcomes = sync(config, Warner(), report, options.timeout, is_url_given, options.as_new)
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2 if isinstance(error, ValueError) else 1
    if not outcomes:
        print(f"nothing to deliver in {config.dir}")
    left = [outcome for outcome in outcomes if not outcome.is_complete]
    lost = sum(outcome.is_lost for outcome in left)
    if lost:
        advice = "To store what is left of them as new runs: kindex-runs sync --as-new"
        print(f"{lost} runs cannot be resumed any more. {advice}", file=sys.stderr)
    if len(left) > lost:
        print(f"{len(left) - lost} runs are not complete. Why: kindex-runs doctor --url {config.url}", file=sys.stderr)
    return 1 if left or any(outcome.set_aside for outcome in outcomes) else 0


def _status(config: Config, options: argparse.Namespace) -> int:
    found: List[SpoolStatus] = [status_of(path) for path in _folder.listed(Path(config.dir))]
    if not found:
        print(f"nothing waits in {config.dir}")
    for one in found:
        owner = f"process {one.pid} writes it" if one.is_live else "its process has ended"
        damaged = f", {one.damaged} unreadable stretches" if one.damaged else ""
        print(f"{one.run_id}  {one.project}  {one.points} points, {one.operations} other records{damaged}  {owner}")
    rejected = sorted((Path(config.dir) / "rejected").glob("*/*.json"))
    if rejected:
        print(f"{len(rejected)} requests that the server refused are kept in {rejected[0].parent.parent}")
    if any(not one.is_live for one in found):
        print("deliver them: kindex-runs sync")
    return 0


def _check(config: Config, options: argparse.Namespace) -> int:
    findings = _doctor.examine(config)
    for finding in findings:
        print(f"{'ok   ' if finding.is_good else 'WRONG'}  {finding.what}")
        if finding.remedy:
            print(f"       {finding.remedy}")
    return 0 if all(finding.is_good for finding in findings) else 1


def _export(config: Config, options: argparse.Namespace) -> int:
    for path in _folder.listed(Path(config.dir)):
        if options.run and path.name.rsplit("--", 1)[0] != options.run:
            continue
        for record in records_of(path):
            line: Dict[str, Any] = record
            print(json.dumps(line))
    return 0


if __name__ == "__main__":
    sys.exit(main())
