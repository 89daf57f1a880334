"""The command `kindex-runs` as people use it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, Dict

import pytest

import kindex
from kindex._cli import main
from peer import Peer, Refused, free_port, spools, until

Options = Dict[str, Any]


def offline_run(options: Options, run_id: str = "waits") -> None:
    run = kindex.init(run_id=run_id, mode="offline", **options)
    run.log({"loss": 0.5, "odd": math.nan}, step=3, timestamp=0)
    run.log_tags({"k": "v"})
    run.finish()


def test_status_shows_what_waits(options: Options, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", options["dir"]]) == 0
    assert "nothing waits" in capsys.readouterr().out
    offline_run(options)
    live = kindex.init(run_id="live", mode="offline", **options)
    live.log({"loss": 1.0})
    assert main(["status", options["dir"]]) == 0
    out = capsys.readouterr().out
    assert "waits  tests  2 points, 2 other records  its process has ended" in out
    assert "live  tests  1 points, 0 other records  process" in out and "kindex-runs sync" in out


def test_status_counts_only_what_is_not_answered(
    peer: Peer, options: Options, capsys: pytest.CaptureFixture[str]
) -> None:
    run = kindex.init(run_id="half", **options)
    run.log({"loss": 1.0})
    assert run.flush()
    peer.stop()
    run.log({"loss": 2.0})
    run.finish(timeout=0)
    assert main(["status", options["dir"]]) == 0
    assert "half  tests  1 points, 1 other records" in capsys.readouterr().out


def test_export_prints_what_waits_as_json_lines(options: Options, capsys: pytest.CaptureFixture[str]) -> None:
    offline_run(options)
    offline_run(options, "second")
    assert main(["export", options["dir"], "--run", "waits"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == {
        "run_id": "waits",
        "name": "loss",
        "step": 3,
        "value": 0.5,
        "timestamp": "1970-01-01T00:00:00.000000Z",
    }
    assert lines[1]["value"] == "NaN" and lines[2]["tags"] == {"k": "v"}
    assert {line["run_id"] for line in lines} == {"waits"}


def test_sync_says_what_it_did_and_why_something_is_left(
    peer: Peer, options: Options, capsys: pytest.CaptureFixture[str]
) -> None:
    offline_run(options)
    dead = f"http://127.0.0.1:{free_port()}"
    arguments = ["sync", options["dir"], "--transport", "rest"]
    assert main([*arguments, "--url", dead, "--timeout", "0.1"]) == 1
    captured = capsys.readouterr()
    assert "2 points and 2 other records left" in captured.out and "ConnectionRefusedError" in captured.out
    assert "kindex-runs doctor" in captured.err
    assert main([*arguments, "--url", peer.url]) == 0
    assert "waits: 2 points delivered" in capsys.readouterr().out
    assert main([*arguments, "--url", peer.url]) == 0
    assert "nothing to deliver" in capsys.readouterr().out


def test_sync_goes_to_the_server_that_a_run_was_logged_for(peer: Peer, options: Options) -> None:
    offline_run(options)
    assert main(["sync", options["dir"], "--transport", "rest"]) == 0
    assert peer.status("waits") == "finished"


def test_what_is_left_of_a_run_that_cannot_be_resumed_becomes_a_new_run(
    peer: Peer, options: Options, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    run = kindex.init(run_id="old", name="first", tags={"t": "1"}, **options)
    run.log({"loss": 1.0})
    assert run.flush()
    peer.run("old").status = "crashed"
    expired = Refused(403, "PERMISSION_DENIED", "RESUME_TOKEN_EXPIRED")
    peer.fault = lambda path, body: expired if body.get("resume_token") else None
    run.log({"loss": 2.0})
    until(lambda: any("kindex-runs sync --as-new" in record.getMessage() for record in caplog.records))
    assert run.finish(timeout=0).points_left == 1
    arguments = ["sync", options["dir"], "--transport", "rest", "--url", peer.url]
    assert main(arguments) == 1
    captured = capsys.readouterr()
    assert "old: 0 points delivered, 1 points and 1 other records left" in captured.out
    assert "RESUME_TOKEN_EXPIRED" in captured.out and "kindex-runs sync --as-new" in captured.err
    assert peer.status("old") == "crashed" and len(peer.store.runs) == 1
    assert main([*arguments, "--as-new"]) == 0
    (new,) = [one for one in peer.store.runs.values() if one.run_id != "old"]
    assert f"{new.run_id} (a new run with what was left of old): 1 points delivered" in capsys.readouterr().out
    assert peer.series(new.run_id, "loss") == {1: 2.0} and peer.series("old", "loss") == {0: 1.0}
    assert (new.status, new.name, new.tags, new.order) == ("finished", "first", {"t": "1"}, [None])
    assert peer.store.inits[-1]["parent_run_id"] == "old"
    assert spools(options) == [] and list((Path(options["dir"]) / "runs").glob("*.json")) == []


def test_as_new_changes_nothing_for_a_run_that_can_be_resumed(peer: Peer, options: Options) -> None:
    offline_run(options)
    assert main(["sync", options["dir"], "--transport", "rest", "--url", peer.url, "--as-new"]) == 0
    assert list(peer.store.runs) == ["waits"] and peer.status("waits") == "finished"


def test_doctor_finds_what_is_wrong(
    peer: Peer, options: Options, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["doctor", options["dir"], "--transport", "rest"]
    assert main([*arguments, "--url", peer.url]) == 0
    assert "answers and takes the key" in capsys.readouterr().out
    peer.store.key = "right"
    assert main([*arguments, "--url", peer.url]) == 1
    assert "KINDEX_RUNS_API_KEY" in capsys.readouterr().out
    assert main([*arguments, "--url", f"http://127.0.0.1:{free_port()}"]) == 1
    assert "is the server running" in capsys.readouterr().out
    monkeypatch.setenv("KINDEX_RUNS_MODE", "offline")
    assert main([*arguments, "--url", peer.url, "--api-key", "right"]) == 1
    assert "nothing is sent" in capsys.readouterr().out


def test_doctor_finds_a_folder_that_cannot_be_written(
    peer: Peer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main(["doctor", str(tmp_path / "file" / "x"), "--transport", "rest", "--url", peer.url]) == 1
    assert "KINDEX_RUNS_DIR" in capsys.readouterr().out


def test_a_wrong_option_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sync", "--url", "localhost"]) == 2
    assert "it must be a URL such as http://127.0.0.1:3002" in capsys.readouterr().err
    with pytest.raises(SystemExit) as stopped:
        main(["nonsense"])
    assert stopped.value.code == 2
