"""What is sent when, in which pieces and in which order."""

from __future__ import annotations

import math
import struct
import threading
import time
from pathlib import Path
from typing import Any, Dict, List, Union

import kindex
from peer import Peer, Refused, spools, until
from real import Real

Server = Union[Peer, Real]
Options = Dict[str, Any]


def test_two_lines_log_a_run(server: Server, server_options: Options) -> None:
    run = kindex.init(**server_options, config={"lr": 0.1, "optimizer": {"name": "adam", "betas": [0.9, 0.99]}})
    for step in range(100):
        kindex.log({"loss": 1 / (step + 1)})
    report = kindex.finish()
    assert report is not None and report.complete and report.points_delivered == 100 and report.points_left == 0
    assert server.series(run.run_id, "loss") == {step: 1 / (step + 1) for step in range(100)}
    assert server.params(run.run_id) == {"lr": "0.1", "optimizer.name": "adam", "optimizer.betas": "[0.9, 0.99]"}
    assert server.status(run.run_id) == "finished"
    assert spools(server_options) == []


def test_one_nan_never_costs_its_neighbors(server: Server, server_options: Options) -> None:
    odd = {7: math.nan, 50: math.inf, 51: -math.inf, 52: -0.0, 53: 1e308}
    run = kindex.init(**server_options)
    for step in range(200):
        run.log({"loss": odd.get(step, float(step))})
    assert run.finish().complete
    series = server.series(run.run_id, "loss")
    assert len(series) == 200 and math.isnan(series[7])
    for step in range(200):
        if step != 7:
            assert struct.pack("<d", series[step]) == struct.pack("<d", odd.get(step, float(step)))


def test_a_batch_is_stored_before_it_is_sent(peer: Peer, options: Options) -> None:
    stored: List[bool] = []

    def look(path: str, body: Dict[str, Any]) -> Any:
        if path.endswith("batch"):
            (spool,) = spools(options)
            import uuid

            wanted = uuid.UUID(body["batch_id"]).bytes
            stored.append(any(wanted in one.read_bytes() for one in spool.glob("journal.*")))
        return None

    peer.fault = look
    run = kindex.init(batch_points=5, **options)
    for step in range(20):
        run.log({"loss": step})
    assert run.finish().complete
    assert len(stored) >= 4 and all(stored)


def test_batch_ids_are_of_version_7_and_sequences_count_from_one(peer: Peer, options: Options) -> None:
    import uuid

    run = kindex.init(batch_points=10, **options)
    for step in range(100):
        run.log({"loss": step})
    assert run.finish().complete
    sent = peer.bodies("batch")
    assert [body["seq"] for body in sent] == list(range(1, len(sent) + 1))
    ids = [uuid.UUID(body["batch_id"]) for body in sent]
    assert all(one.version == 7 for one in ids) and ids == sorted(ids)


def test_delivered_events_are_not_replayed(peer: Peer, options: Options) -> None:
    peer.fault = lambda path, body: Refused(503, "UNAVAILABLE", "DOWN") if len(peer.requests) in range(2, 6) else None
    run = kindex.init(batch_points=10, **options)
    for step in range(50):
        run.log({"loss": step})
    assert run.flush()
    before = len(peer.run(run.run_id).ledger)
    run.log({"loss": 0.0}, step=50)
    assert run.finish().complete
    stored = peer.run(run.run_id)
    assert stored.accepted == 51 and len(stored.ledger) == before + 1
    answered = [body["batch_id"] for body in peer.bodies("batch")]
    assert answered[-1] not in answered[:-1]


def test_a_point_waits_no_longer_than_the_flush_interval(peer: Peer, options: Options) -> None:
    run = kindex.init(**{**options, "batch_seconds": 0.2})
    run.log({"loss": 1.0})
    until(lambda: run.run_id in peer.store.runs and bool(peer.run(run.run_id).points), 5)
    run.finish()


def test_a_full_batch_goes_at_once(peer: Peer, options: Options) -> None:
    run = kindex.init(**{**options, "batch_seconds": 1000, "batch_points": 100})
    for step in range(100):
        run.log({"loss": step})
    until(lambda: run.run_id in peer.store.runs and len(peer.run(run.run_id).points) == 100)
    run.log({"loss": 1.0})
    assert run.finish().complete
    assert [len(body["metrics"]) for body in peer.bodies("batch")] == [100, 1]


def test_a_batch_of_many_bytes_goes_at_once(peer: Peer, options: Options) -> None:
    run = kindex.init(**{**options, "batch_seconds": 1000, "batch_points": 10_000, "batch_bytes": 20_000})
    wide = {f"m{index:03}" + "x" * 200: index for index in range(100)}
    run.log(wide)
    until(lambda: run.run_id in peer.store.runs and len(peer.run(run.run_id).points) == 100)
    run.finish()


def test_a_call_with_too_many_metrics_is_split_and_keeps_one_step(peer: Peer, options: Options) -> None:
    run = kindex.init(**{**options, "batch_points": 10_000})
    run.log({f"m{index}": index for index in range(12_345)})
    run.log({"after": 1.0})
    assert run.finish().complete
    stored = peer.run(run.run_id)
    assert len(stored.points) == 12_346 and {step for name, step in stored.points if name != "after"} == {0}
    assert ("after", 1) in stored.points
    assert all(len(body["metrics"]) <= 10_000 for body in peer.bodies("batch"))


def test_a_quiet_run_stays_alive(peer: Peer, options: Options) -> None:
    run = kindex.init(**{**options, "heartbeat_seconds": 0.05})
    until(lambda: run.run_id in peer.store.runs and peer.run(run.run_id).heartbeats >= 3)
    assert peer.bodies("batch") == []
    peer.run(run.run_id).status = "crashed"
    # The answer asks for a resync: the run is resumed although nothing is logged.
    until(lambda: peer.run(run.run_id).status == "running")
    assert run.finish().complete


def test_a_token_is_refreshed_when_it_is_a_day_old(peer: Peer, options: Options) -> None:
    run = kindex.init(**{**options, "heartbeat_seconds": 0.05})
    until(lambda: run.run_id in peer.store.runs and peer.run(run.run_id).heartbeats >= 1)
    assert peer.run(run.run_id).generation == 1
    pipeline = run._pipeline
    assert pipeline is not None
    pipeline.runfile.store_token(pipeline.runfile.token(), time.time() - 25 * 3600)
    until(lambda: peer.run(run.run_id).generation == 2)
    until(lambda: pipeline.runfile.token() == peer.run(run.run_id).token)
    assert pipeline.runfile.token_age_s(time.time()) < 3600
    run.finish()


def test_everything_is_delivered_in_its_order(peer: Peer, options: Options) -> None:
    peer.stop()
    run = kindex.init(**options)
    run.log_params({"a": 1})
    run.log({"x": 1.0})
    run.log_tags({"t": "1"})
    run.log({"x": 2.0})
    run.log_tags({}, remove=["t"])
    peer.start()
    assert run.finish("failed").complete
    paths = [path.rsplit("/", 1)[1] for path, _ in peer.requests]
    assert paths == ["runs", "params", "batch", "tags", "batch", "tags", "finish"]
    assert peer.run(run.run_id).tags == {} and peer.status(run.run_id) == "failed"


def test_disabled_mode_does_nothing_at_all(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    run = kindex.init(mode="disabled", dir=str(tmp_path / "none"))
    run.log({"loss": 1.0})
    run.log_params({"a": 1})
    assert run.flush() and run.finish().complete
    assert not (tmp_path / "none").exists()
    assert set(threading.enumerate()) <= before


def test_a_run_that_is_continued_keeps_its_sequence(peer: Peer, options: Options) -> None:
    first = kindex.init(run_id="again", **options)
    first.log({"loss": 1.0})
    assert first.flush()
    pipeline = first._pipeline
    assert pipeline is not None
    pipeline.close()
    second = kindex.init(run_id="again", **options)
    second.log({"loss": 2.0}, step=1)
    assert second.finish().complete
    assert [body["seq"] for body in peer.bodies("batch")] == [1, 2]
    assert peer.series("again", "loss") == {0: 1.0, 1: 2.0}


def test_a_run_that_another_machine_counts_goes_without_sequence(peer: Peer, options: Options) -> None:
    elsewhere = kindex.init(run_id="shared", **options)
    elsewhere.log({"a": 1.0})
    assert elsewhere.flush()
    here = kindex.init(run_id="shared", **{**options, "dir": options["dir"] + "-2"})
    here.log({"b": 1.0})
    assert here.flush()
    assert "seq" not in peer.bodies("batch")[-1]
    assert here.finish().complete
