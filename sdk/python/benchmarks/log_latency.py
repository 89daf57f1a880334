"""How long `log` takes: percentiles of calls with three metrics, with the server fast, slow and away.

    python benchmarks/log_latency.py [--calls 100000] [--pace-us 200] [--url http://127.0.0.1:3002]

Without a URL a small server of the tests answers. The pace is the pause between calls, busy as a trainer is; 0 is a
tight loop. The row `nothing` is a call that only packs three numbers: what it takes above a microsecond is the
machine's share in the other rows. Prints a line for each case; the exit code is 1 when a 99th percentile is above 20
microseconds.
"""

from __future__ import annotations

import argparse
import logging
import struct
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from typing import Callable, Dict, List, Tuple

import kindex

TESTS = Path(__file__).resolve().parent.parent / "tests"
MARK_US = 20.0


def percentile(ordered: List[int], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] / 1000


def nothing(metrics: Dict[str, float]) -> None:
    struct.pack("<3d", *metrics.values())


def times(log: Callable[[Dict[str, float]], None], calls: int, pace_us: float) -> List[int]:
    clock, took = time.perf_counter_ns, []
    for step in range(calls):
        begin = clock()
        log({"loss": 1.0 / (step + 1), "accuracy": step * 0.001, "learning_rate": 3e-4})
        end = clock()
        took.append(end - begin)
        while clock() - end < pace_us * 1000:
            pass
    return sorted(took)


def measure(calls: int, pace_us: float, url: str, mode: str) -> Tuple[List[int], kindex.FinishReport]:
    with tempfile.TemporaryDirectory() as folder:
        run = kindex.init(project="bench", url=url, dir=folder, mode=mode, quiet=True, transport="rest")
        return times(run.log, calls, pace_us), run.finish(timeout=2)


def show(name: str, took: List[int], dropped: object = "", left: object = "") -> float:
    p99 = percentile(took, 0.99)
    middle = f"{percentile(took, 0.5):8.1f} {p99:8.1f} {percentile(took, 0.999):9.1f} {took[-1] / 1000:9.1f}"
    print(f"{name:8} {middle} {dropped:>8} {left:>9}", flush=True)
    return p99


def server(delay_s: float) -> Tuple["subprocess.Popen[str]", str]:
    """The server of the tests in a process of its own, so that it does not share the interpreter lock."""
    code = f"""
        import sys, time
        sys.path.insert(0, {str(TESTS)!r})
        from peer import Peer
        peer = Peer()
        peer.fault = lambda path, body: time.sleep({delay_s})
        peer.start()
        print(peer.url, flush=True)
        sys.stdin.read()
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--pace-us", type=float, default=200.0)
    parser.add_argument("--url", help="a running server, instead of that of the tests")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    failed = False
    print(f"{'server':8} {'p50 us':>8} {'p99 us':>8} {'p99.9 us':>9} {'max us':>9} {'dropped':>8} {'left':>9}")
    show("nothing", times(nothing, options.calls, options.pace_us))
    for name, delay_s in (("fast", 0.0), ("slow", 0.5), ("away", None), ("offline", None)):
        process = None
        url = options.url or "http://127.0.0.1:1"
        if delay_s is not None and not options.url:
            process, url = server(delay_s)
        if name == "away":
            url = "http://127.0.0.1:1"
        took, report = measure(options.calls, options.pace_us, url, "offline" if name == "offline" else "online")
        if process is not None:
            process.terminate()
            process.wait()
        failed |= show(name, took, report.points_dropped, report.points_left) > MARK_US
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
