"""A tight loop of calls while the server is away for a while: nothing may be dropped.

    python benchmarks/loop.py [--calls 1000000] [--outage-s 60] [--url http://127.0.0.1:3002]

Without a URL a small server of the tests answers, and is away for the first seconds. Prints the time of the loop, that
of the delivery, and what was dropped; the exit code is 1 when a point is missing.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import kindex  # noqa: E402
from peer import Peer  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--outage-s", type=float, default=60.0)
    parser.add_argument("--url", help="a running server, without an outage")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    peer = Peer()
    if not options.url:
        threading.Timer(options.outage_s, peer.start).start()
    with tempfile.TemporaryDirectory() as folder:
        url = options.url or peer.url
        run = kindex.init(project="bench", url=url, dir=folder, transport="rest", retry_seconds_max=2)
        began = time.monotonic()
        for step in range(options.calls):
            run.log({"loss": 1.0 / (step + 1), "accuracy": step * 0.001, "lr": 3e-4}, step=step)
        logged = time.monotonic()
        report = run.finish(timeout=1_800)
        ended = time.monotonic()
    expected = 3 * options.calls
    print(f"{options.calls} calls in {logged - began:.1f} s, {(logged - began) / options.calls * 1e6:.1f} us each")
    print(f"delivered {report.points_delivered} of {expected} points {ended - logged:.1f} s after the last call")
    print(f"dropped {report.points_dropped}, left {report.points_left}, set aside {report.points_set_aside}")
    stored = expected if options.url else peer.run(run.run_id).accepted
    return 0 if report.complete and report.points_delivered == stored == expected else 1


if __name__ == "__main__":
    sys.exit(main())
