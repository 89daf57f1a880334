"""The server refuses, warns or has changed its mind: what it does not take is kept, and the run goes on."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any, Dict, List

import pytest

import kindex
from kindex._config import load
from kindex._register import Registrar
from kindex._rest import Rest
from kindex._runfile import RunFile
from kindex._warn import Warner
from peer import Peer, Refused, until

Options = Dict[str, Any]


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


def test_retry_after_is_honored(peer: Peer, options: Options) -> None:
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


def test_a_run_that_was_killed_by_hand_is_noticed(peer: Peer, options: Options) -> None:
    run = kindex.init(**{**options, "heartbeat_seconds": 0.05})
    until(lambda: run.run_id in peer.store.runs)
    assert not run.is_ended_by_server
    peer.run(run.run_id).status = "killed"
    until(lambda: run.is_ended_by_server)
    run.finish(timeout=1)


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


def test_that_a_run_keeps_its_tags_is_said_at_its_first_registration_only(peer: Peer, options: Options) -> None:
    said: List[str] = []
    apply = peer.store.init

    def with_warning(body: Dict[str, Any]) -> Dict[str, Any]:
        return {**apply(body), "warnings": [{"code": "RUN_ATTRIBUTE_KEPT", "message": "tags"}]}

    peer.store.init = with_warning  # type: ignore[method-assign]
    config = load(options)
    runfile = RunFile(Path(config.dir), "kept", said.append)

    class Recorder(Warner):
        def __call__(self, kind: str, message: str) -> None:
            said.append(kind)

    registrar = Registrar({"project": "tests", "run_id": "kept", "tags": {"a": "1"}}, runfile, Recorder())
    for _ in range(3):
        registrar.register(Rest(config))
        registrar.again()
    assert said == ["RUN_ATTRIBUTE_KEPT"] and len(peer.store.inits) == 3


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
