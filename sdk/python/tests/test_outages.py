"""The server is away, slow, or its answers are lost: nothing is lost, nothing is stored twice, nothing blocks."""

from __future__ import annotations

import json
import threading
import time
from typing import Any, Dict, Union

import pytest

import kindex
from peer import Peer, free_port, spools, until
from real import Real

Server = Union[Peer, Real]
Options = Dict[str, Any]


def test_an_offline_start_keeps_its_run_id_and_delivers_everything(server: Server, server_options: Options) -> None:
    server.stop()
    run = kindex.init(run_id="wanted-id", **server_options)
    for step in range(45):
        run.log({"a": step, "b": -step})
    until(lambda: run.is_offline)
    server.start()
    for step in range(45, 90):
        run.log({"a": step, "b": -step})
    assert run.finish().complete
    assert run.run_id == "wanted-id"
    assert server.series("wanted-id", "a") == {step: float(step) for step in range(90)}
    assert server.series("wanted-id", "b") == {step: -float(step) for step in range(90)}
    assert server.status("wanted-id") == "finished"


def test_a_short_outage_loses_nothing_and_ends_online(server: Server, server_options: Options) -> None:
    run = kindex.init(**server_options)
    for step in range(50):
        run.log({"loss": step})
    assert run.flush()
    server.stop()
    for step in range(50, 100):
        run.log({"loss": step})
    until(lambda: run.is_offline)
    server.start()
    for step in range(100, 150):
        run.log({"loss": step})
    until(lambda: not run.is_offline)
    assert run.finish().complete
    assert server.series(run.run_id, "loss") == {step: float(step) for step in range(150)}


def test_a_lost_answer_stores_each_point_once(peer: Peer, options: Options) -> None:
    seen: Dict[str, int] = {}

    def lose_twice(path: str, body: Dict[str, Any]) -> Any:
        if path.endswith("batch"):
            seen[body["batch_id"]] = seen.get(body["batch_id"], 0) + 1
            return ("drop-answer", "reset")[seen[body["batch_id"]] - 1] if seen[body["batch_id"]] <= 2 else None
        return None

    peer.fault = lose_twice
    run = kindex.init(batch_points=50, **options)
    for step in range(300):
        run.log({"loss": step})
    assert run.finish().complete
    stored = peer.run(run.run_id)
    assert stored.accepted == len(stored.points) == 300
    assert all(count >= 3 for count in seen.values()) and len(seen) >= 6


def test_finish_survives_an_outage(server: Server, server_options: Options, caplog: pytest.LogCaptureFixture) -> None:
    from kindex._cli import main

    run = kindex.init(**server_options)
    run.log({"loss": 1.0})
    assert run.flush()
    server.stop()
    run.log({"loss": 2.0})
    began = time.monotonic()
    report = run.finish(timeout=0.3)
    # A request is given up after 30 seconds, and `finish` after 60 of its own accord.
    assert time.monotonic() - began < 25
    assert not report.complete and report.points_left == 1
    assert any("1 points and its end are left" in record.getMessage() for record in caplog.records)
    server.start()
    assert server.status(run.run_id) == "running"
    assert main(["sync", server_options["dir"], "--url", server.url, "--transport", "rest"]) == 0
    assert server.status(run.run_id) == "finished"
    assert server.series(run.run_id, "loss") == {0: 1.0, 1: 2.0}
    assert spools(server_options) == []


def test_the_next_start_of_any_process_delivers_what_was_left(peer: Peer, options: Options) -> None:
    peer.stop()
    left = kindex.init(run_id="left", **options)
    left.log({"loss": 1.0})
    left.log_params({"lr": 1})
    assert not left.finish(timeout=0).complete
    peer.start()
    other = kindex.init(run_id="other", **options)
    until(lambda: peer.status("left") == "finished")
    assert peer.series("left", "loss") == {0: 1.0} and peer.params("left") == {"lr": "1"}
    assert other.finish().complete


def test_what_belongs_to_another_server_is_not_adopted(peer: Peer, options: Options) -> None:
    foreign = kindex.init(run_id="foreign", **{**options, "url": f"http://127.0.0.1:{free_port()}"})
    foreign.log({"loss": 1.0})
    foreign.finish(timeout=0)
    run = kindex.init(**options)
    until(lambda: not any(thread.name == "kindex-adopter" for thread in threading.enumerate()))
    assert run.finish().complete
    assert peer.status("foreign") == "unknown" and len(spools(options)) == 1


def test_a_replay_uses_the_stored_batch_id(peer: Peer, options: Options) -> None:
    from kindex._cli import main

    peer.fault = lambda path, body: "drop-answer" if path.endswith("batch") else None
    run = kindex.init(batch_points=10, **options)
    for step in range(10):
        run.log({"loss": step})
    until(lambda: len(peer.bodies("batch")) >= 2)
    assert not run.finish(timeout=0).complete
    peer.fault = None
    assert main(["sync", options["dir"], "--url", peer.url, "--transport", "rest"]) == 0
    sent = peer.bodies("batch")
    assert len({body["batch_id"] for body in sent}) == 1 and len({body["seq"] for body in sent}) == 1
    assert len({json.dumps(body["metrics"]) for body in sent}) == 1
    assert peer.run(run.run_id).accepted == 10


def test_a_slow_server_never_slows_log(peer: Peer, options: Options) -> None:
    hold = threading.Event()
    peer.fault = lambda path, body: hold.wait(60) and None
    run = kindex.init(**options)
    began = time.monotonic()
    for step in range(2_000):
        run.log({"loss": step})
    # A request is given up after 30 seconds.
    assert time.monotonic() - began < 20
    hold.set()
    assert run.finish().complete
    assert peer.run(run.run_id).accepted == 2_000


def test_offline_mode_opens_no_connection_and_sync_delivers(server: Server, server_options: Options) -> None:
    from kindex._cli import main

    run = kindex.init(run_id="offline-run", name="n", mode="offline", **server_options)
    for step in range(3_000):
        run.log({"loss": step}, timestamp=0.0)
    report = run.finish()
    assert not report.complete and report.points_left == 3_000
    assert server.status("offline-run") == "unknown"
    assert main(["sync", server_options["dir"], "--url", server.url, "--transport", "rest"]) == 0
    assert server.series("offline-run", "loss") == {step: float(step) for step in range(3_000)}
    assert server.status("offline-run") == "finished"
    assert main(["sync", server_options["dir"], "--url", server.url]) == 0
