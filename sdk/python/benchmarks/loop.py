"""A tight loop of calls while the server is away for a while: nothing may be dropped.

    python benchmarks/loop.py [--calls 1000000] [--outage-s 60] [--kindex target/release/kindex]

Without a binary a small server of the tests answers. Either is away for the first seconds. The exit code is 1 when a
point is missing or stored twice. With the binary, what it has stored is verified too.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Union

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import kindex  # noqa: E402
from peer import Peer  # noqa: E402
from real import Real  # noqa: E402

_NAMES = 3


def run(server: Union[Peer, Real], folder: Path, calls: int, outage_s: float) -> bool:
    """Whether all that was logged is stored once."""
    opened = kindex.init(
        project="bench", url=server.url, dir=str(folder / "spool"), transport="rest", retry_seconds_max=2, quiet=True
    )
    began = time.monotonic()
    back = threading.Timer(outage_s, server.start)
    back.start()
    for step in range(calls):
        opened.log({"loss": 1.0 / (step + 1), "accuracy": step * 0.001, "lr": 3e-4}, step=step)
    logged = time.monotonic()
    back.join()
    returned = time.monotonic()
    report = opened.finish(timeout=1_800)
    ended = time.monotonic()
    expected = _NAMES * calls
    print(f"{calls} calls in {logged - began:.1f} s, {(logged - began) / calls * 1e6:.1f} us each")
    print(f"the server was away for the first {returned - began:.1f} s")
    print(f"delivered {report.points_delivered} of {expected} points {ended - returned:.1f} s after it was back")
    print(f"dropped {report.points_dropped}, left {report.points_left}, set aside {report.points_set_aside}")
    if isinstance(server, Real):
        stored = int(server.shown(opened.run_id)["metrics_count"])
        server.verify()
    else:
        stored = server.run(opened.run_id).accepted
    print(f"stored {stored}")
    return report.complete and report.points_delivered == stored == expected


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--outage-s", type=float, default=60.0)
    parser.add_argument("--kindex", help="a binary whose runs service is the server")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        server: Union[Peer, Real] = Real(options.kindex, place / "server") if options.kindex else Peer()
        try:
            return 0 if run(server, place, options.calls, options.outage_s) else 1
        finally:
            server.stop()


if __name__ == "__main__":
    sys.exit(main())
