"""The real server over both transports: killed, restarted, resumed, and asked for what it has."""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import Any, Dict

import pytest

import kindex
from conftest import quick
from kindex._cli import main
from peer import spools, until
from real import Real
from trainers import Trainer

Options = Dict[str, Any]


@pytest.fixture(params=["rest", "grpc"])
def real_options(real: Real, request: pytest.FixtureRequest, tmp_path: Path) -> Options:
    """Quick options for each transport."""
    if request.param == "grpc":
        pytest.importorskip("grpc")
    return {**quick(real.url, tmp_path / "spool"), "transport": request.param, "grpc": real.grpc}


def bits(value: float) -> bytes:
    return struct.pack("<d", value)


def test_a_whole_run_is_stored_as_it_was_logged(real: Real, real_options: Options, tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(bytes(range(256)) * 1_000)
    (tmp_path / "empty").write_bytes(b"")
    run = kindex.init(run_id="whole", name="first", tags={"t": "1"}, config={"lr": 0.1}, **real_options)
    values = {0: 0.1, 1: math.inf, 2: -math.inf, 3: -0.0, 4: 1e308, 5: math.nan, 6: 2.0**-1074}
    for step, value in values.items():
        run.log({"loss": value, "acc": step}, step=step)
    run.log_params({"seed": 7, "lr": 0.2})
    run.log_tags({"u": "2"}, remove=["t"])
    run.log_artifact(tmp_path / "model.bin", name="models/best.bin", type="model")
    run.log_artifact(tmp_path / "empty")
    report = run.finish()
    assert report.complete and report.points_delivered == 14
    stored = real.series("whole", "loss")
    expected = {**values, 6: 0.0}
    assert {step: bits(value) for step, value in stored.items() if step != 5} == {
        step: bits(value) for step, value in expected.items() if step != 5
    }
    assert math.isnan(stored[5])
    shown = real.shown("whole")
    assert (shown["status"], shown["name"], shown["metrics_count"]) == ("finished", "first", 14)
    assert shown["params"] == {"lr": "0.1", "seed": "7"} and shown["tags"] == {"u": "2"}
    assert real.artifacts("whole") == {"models/best.bin": bytes(range(256)) * 1_000, "empty": b""}
    assert spools(real_options) == []


def test_a_server_that_is_killed_while_runs_are_logged_loses_and_doubles_nothing(
    real: Real, real_options: Options
) -> None:
    run = kindex.init(run_id="killed", **{**real_options, "batch_points": 50})
    for step in range(600):
        run.log({"a": step, "b": -step})
        if step % 300 == 150:
            real.stop()
        if step % 300 == 299:
            until(lambda: run.is_offline)
            real.start()
    assert run.finish().complete
    assert real.series("killed", "a") == {step: float(step) for step in range(600)}
    assert real.series("killed", "b") == {step: -float(step) for step in range(600)}
    assert real.shown("killed")["metrics_count"] == 1_200, "each point was accepted once"
    real.stop()
    real.verify()


def test_a_trainer_that_is_killed_is_continued_under_its_id(real: Real, tmp_path: Path) -> None:
    options = {**quick(real.url, tmp_path / "spool"), "run_id": "continued"}
    log = tmp_path / "acknowledged"
    first = 0
    for _ in range(2):
        trainer = Trainer(options, log, first, 10_000_000)
        until(lambda: max(trainer.steps(), default=-1) >= first + 200)
        trainer.kill()
        first = max(trainer.steps()) + 2
    last = Trainer(options, log, first, 50)
    assert last.process.wait(60) == 0
    assert main(["sync", options["dir"], "--url", real.url, "--transport", "rest"]) == 0
    acknowledged = {int(line) for line in log.read_text().split() if line != "ready"}
    # Numbers that were given to batches and died with their process keep later batches waiting for 30 seconds, or
    # until the run ends, which it has.
    stored = real.series("continued", "loss")
    assert set(stored) >= acknowledged and len(set(stored) - acknowledged) <= 2
    assert all(value == 1 / (step + 1) for step, value in stored.items())
    assert real.status("continued") == "finished"


def test_a_crashed_run_is_resumed_and_keeps_what_it_had(real: Real, real_options: Options) -> None:
    run = kindex.init(run_id="crashed", config={"lr": 0.1}, **{**real_options, "heartbeat_seconds": 0.2})
    run.log({"loss": 1.0}, step=0)
    assert run.flush()
    real.crash("crashed")
    until(lambda: real.status("crashed") == "running")
    run.log({"loss": 2.0}, step=1)
    assert run.finish().complete
    assert real.series("crashed", "loss") == {0: 1.0, 1: 2.0}
    assert real.params("crashed") == {"lr": "0.1"} and real.status("crashed") == "finished"


def test_a_run_that_was_killed_by_hand_is_noticed(real: Real, real_options: Options) -> None:
    run = kindex.init(run_id="stopped", **{**real_options, "heartbeat_seconds": 0.2})
    run.log({"loss": 1.0})
    assert run.flush()
    arguments = ["runs", "kill", "stopped", "--yes", "--url", real.url]
    assert real.command(arguments) == 0
    until(lambda: run.is_ended_by_server)
    run.finish(timeout=1)
    assert real.status("stopped") == "killed"


def test_a_wrong_key_costs_nothing_and_the_right_one_delivers(
    real: Real, real_options: Options, caplog: pytest.LogCaptureFixture
) -> None:
    right = real.key("ingest")
    run = kindex.init(run_id="keyed", api_key="mlrun_wrong", **real_options)
    run.log({"loss": 1.0})
    until(lambda: any("KEY_INVALID" in record.getMessage() for record in caplog.records))
    assert run.finish(timeout=0.1).points_left == 1
    arguments = ["sync", real_options["dir"], "--url", real.url, "--transport", "rest", "--api-key", right]
    assert main(arguments) == 0
    real.stop()
    real.verify()
    assert right not in real.log() and "mlrun_wrong" not in real.log()
