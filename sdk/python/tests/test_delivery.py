"""Runs against a server with faults: nothing is lost, nothing is stored twice, nothing blocks."""

from __future__ import annotations

import json
import math
import struct
import threading
import time
from pathlib import Path
from typing import Any, Dict, List, Union

import pytest

import kindex
from kindex import _folder
from peer import Peer, Refused, free_port, until
from real import Real

Server = Union[Peer, Real]
Options = Dict[str, Any]


def spools(options: Options) -> List[Path]:
    return _folder.listed(Path(options["dir"]))


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


def test_one_nan_never_costs_its_neighbours(server: Server, server_options: Options) -> None:
    odd = {7: math.nan, 50: math.inf, 51: -math.inf, 52: -0.0, 53: 1e308}
    run = kindex.init(**server_options)
    for step in range(200):
        run.log({"loss": odd.get(step, float(step))})
    assert run.finish().complete
    series = server.series(run.run_id, "loss")
    assert len(series) == 200 and math.isnan(series[7])
    for step in range(200):
        shown = isinstance(server, Peer) or math.isfinite(odd.get(step, 0.0))
        if step != 7 and shown:
            assert struct.pack("<d", series[step]) == struct.pack("<d", odd.get(step, float(step)))


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


def test_a_refused_batch_is_set_aside_and_the_run_goes_on(
    peer: Peer, options: Options, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse_one(path: str, body: Dict[str, Any]) -> Any:
        hit = path.endswith("batch") and any(point["step"] == 5 for point in body["metrics"])
        return Refused(400, "INVALID_ARGUMENT", "BAD_BATCH") if hit else None

    peer.fault = refuse_one
    run = kindex.init(batch_points=10, **options)
    for step in range(50):
        run.log({"loss": step})
    report = run.finish()
    assert report.complete and report.points_set_aside == 10 and report.points_delivered == 40
    assert sorted(peer.series(run.run_id, "loss")) == list(range(10, 50))
    (kept,) = (Path(options["dir"]) / "rejected" / run.run_id).glob("*.json")
    content = json.loads(kept.read_text())
    assert "BAD_BATCH" in content["reason"] and [point["step"] for point in content["metrics"]] == list(range(10))
    assert kept.stat().st_mode & 0o777 == 0o600
    assert any(str(kept) in record.getMessage() for record in caplog.records)
    assert not run.is_offline
    # What follows a gap goes without a number, so that the server does not wait for the missing one.
    assert peer.bodies("batch")[0]["seq"] == 1 and all("seq" not in body for body in peer.bodies("batch")[1:])


def test_a_terminal_error_keeps_the_data_readable(peer: Peer, options: Options) -> None:
    run = kindex.init(**options)
    run.log({"loss": 1.0})
    assert run.flush()
    peer.run(run.run_id).status = "killed"
    run.log({"loss": math.nan}, step=7)
    report = run.finish()
    assert report.points_set_aside == 1 and report.points_left == 0
    texts = [json.loads(one.read_text()) for one in (Path(options["dir"]) / "rejected" / run.run_id).glob("*.json")]
    (metrics,) = [text["metrics"] for text in texts if "metrics" in text]
    assert (metrics[0]["step"], metrics[0]["value"]) == (7, "NaN")


def test_finish_survives_an_outage(server: Server, server_options: Options, caplog: pytest.LogCaptureFixture) -> None:
    from kindex._cli import main

    run = kindex.init(**server_options)
    run.log({"loss": 1.0})
    assert run.flush()
    server.stop()
    run.log({"loss": 2.0})
    began = time.monotonic()
    report = run.finish(timeout=0.3)
    assert time.monotonic() - began < 5
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


def test_retry_after_is_honoured(peer: Peer, options: Options) -> None:
    times: List[float] = []

    def busy_once(path: str, body: Dict[str, Any]) -> Any:
        if path.endswith("batch"):
            times.append(time.monotonic())
            return Refused(429, "RESOURCE_EXHAUSTED", "BUSY", "0.5") if len(times) == 1 else None
        return None

    peer.fault = busy_once
    run = kindex.init(**{**options, "batch_points": 1})
    run.log({"loss": 1.0})
    until(lambda: len(times) == 2)
    assert times[1] - times[0] >= 0.5
    assert run.finish().complete


def test_a_run_that_the_server_forgot_is_registered_again(peer: Peer, options: Options) -> None:
    run = kindex.init(**options)
    run.log({"loss": 1.0})
    assert run.flush()
    with peer.store.lock:
        peer.store.runs.clear()
    run.log({"loss": 2.0}, step=1)
    assert run.finish().complete
    assert peer.series(run.run_id, "loss") == {1: 2.0}


def test_a_crashed_run_is_resumed_with_its_token(peer: Peer, options: Options) -> None:
    run = kindex.init(**options)
    run.log({"loss": 1.0})
    assert run.flush()
    (state,) = (Path(options["dir"]) / "runs").glob("*.json")
    assert state.stat().st_mode & 0o777 == 0o600
    token = json.loads(state.read_text())["resume_token"]
    assert token == peer.run(run.run_id).token
    peer.run(run.run_id).status = "crashed"
    run.log({"loss": 2.0})
    assert run.finish().complete
    assert peer.series(run.run_id, "loss") == {0: 1.0, 1: 2.0}
    assert peer.store.inits[-1]["resume_token"] == token
    assert json.dumps(token) not in "".join(open(one).read() for one in Path(options["dir"]).rglob("run.json"))


def test_a_quiet_run_stays_alive(peer: Peer, options: Options) -> None:
    run = kindex.init(**{**options, "heartbeat_seconds": 0.05})
    until(lambda: run.run_id in peer.store.runs and peer.run(run.run_id).heartbeats >= 3)
    assert peer.bodies("batch") == []
    peer.run(run.run_id).status = "crashed"
    # The answer asks for a resync: the run is resumed although nothing is logged.
    until(lambda: peer.run(run.run_id).status == "running")
    assert run.finish().complete


def test_a_run_that_was_killed_by_hand_is_noticed(peer: Peer, options: Options) -> None:
    run = kindex.init(**{**options, "heartbeat_seconds": 0.05})
    until(lambda: run.run_id in peer.store.runs)
    assert not run.is_ended_by_server
    peer.run(run.run_id).status = "killed"
    until(lambda: run.is_ended_by_server)
    run.finish(timeout=1)


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


def test_a_wrong_key_costs_nothing_and_the_right_one_delivers(
    peer: Peer, options: Options, caplog: pytest.LogCaptureFixture
) -> None:
    peer.store.key = "right"
    run = kindex.init(**options, api_key="wrong")
    run.log({"loss": 1.0})
    until(lambda: any("KEY_UNKNOWN" in record.getMessage() for record in caplog.records))
    assert run.finish(timeout=0.1).points_left == 1
    from kindex._cli import main

    arguments = ["sync", options["dir"], "--url", peer.url, "--transport", "rest"]
    assert main([*arguments, "--api-key", "right"]) == 0
    assert peer.series(run.run_id, "loss") == {0: 1.0}


def test_warnings_of_the_server_are_logged_and_never_raised(
    peer: Peer, options: Options, caplog: pytest.LogCaptureFixture
) -> None:
    apply = peer.store.batch

    def with_warning(body: Dict[str, Any]) -> Dict[str, Any]:
        return {**apply(body), "warnings": [{"code": "CLOCK_SKEW", "message": "2 points"}]}

    peer.store.batch = with_warning  # type: ignore[method-assign]
    run = kindex.init(batch_points=1, **options)
    for step in range(20):
        run.log({"loss": step})
    assert run.finish().complete
    found = [record for record in caplog.records if "CLOCK_SKEW" in record.getMessage()]
    assert len(found) == 1


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


def test_a_slow_server_never_slows_log(peer: Peer, options: Options) -> None:
    hold = threading.Event()
    peer.fault = lambda path, body: hold.wait(10) and None
    run = kindex.init(**options)
    began = time.monotonic()
    for step in range(2_000):
        run.log({"loss": step})
    assert time.monotonic() - began < 2
    hold.set()
    assert run.finish().complete
    assert peer.run(run.run_id).accepted == 2_000


def test_an_answer_of_another_protocol_is_retried(peer: Peer, options: Options) -> None:
    apply, calls = peer.store.batch, []

    def odd_once(body: Dict[str, Any]) -> Any:
        calls.append(body)
        found = apply(body)
        return ["not", "an", "object"] if len(calls) == 1 else found

    peer.store.batch = odd_once  # type: ignore[method-assign]
    run = kindex.init(**options)
    run.log({"loss": 1.0})
    assert run.finish().complete
    assert len(calls) == 2 and peer.run(run.run_id).accepted == 1


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
