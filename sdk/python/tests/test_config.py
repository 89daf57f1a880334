"""The options: where they come from, what is wrong with them, and that each one changes something."""

from __future__ import annotations

import dataclasses
import json
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict

import pytest

import kindex
from kindex import _config, _delivery, _grpc, _threads, _transport
from kindex._config import Config, environment_name, grpc_is_secure, grpc_target, load
from peer import Peer, free_port, until

Options = Dict[str, Any]


def test_an_argument_wins_over_the_environment_and_that_over_the_default() -> None:
    environment = {"KINDEX_RUNS_BATCH_POINTS": "7", "KINDEX_RUNS_URL": "http://env:1"}
    config = load({"batch_points": 9, "url": None}, environment)
    assert (config.batch_points, config.url, config.batch_seconds) == (9, "http://env:1", 5.0)
    assert load({}, {"KINDEX_RUNS_BATCH_POINTS": ""}).batch_points == 1_000


def test_every_wrong_option_is_told_with_its_source_and_what_is_allowed() -> None:
    environment = {"KINDEX_RUNS_MODE": "onlin", "KINDEX_RUNS_BATCH_POINTS": "many", "KINDEX_RUNS_FSYNC": "perhaps"}
    with pytest.raises(ValueError) as error:
        load({"url": "localhost:3002", "spool_bytes": "-1", "colour": "red", "batch_seconds": "nan"}, environment)
    text = str(error.value)
    for part in (
        "KINDEX_RUNS_MODE='onlin': it must be one of online, offline, disabled",
        "KINDEX_RUNS_BATCH_POINTS='many'",
        "KINDEX_RUNS_FSYNC='perhaps'",
        "argument url='localhost:3002'",
        "argument spool_bytes='-1'",
        "argument batch_seconds='nan'",
        "there is no option colour",
    ):
        assert part in text


def test_sizes_and_flags_are_read_as_people_write_them() -> None:
    config = load({"spool_bytes": "64MiB", "segment_bytes": "2m", "quiet": "Yes", "fsync": False}, {})
    assert (config.spool_bytes, config.segment_bytes, config.quiet, config.fsync) == (64 << 20, 2 << 20, True, False)
    assert load({"api_key": "secret"}, {}).api_key == "secret"


def test_the_address_of_grpc_follows_that_of_rest() -> None:
    assert grpc_target(load({"url": "http://host:3002"}, {})) == "host:50051"
    assert grpc_target(load({"grpc": "grpcs://other:1"}, {})) == "other:1"
    assert grpc_is_secure(load({"url": "https://host"}, {})) and grpc_is_secure(load({"grpc": "grpcs://h:1"}, {}))
    assert not grpc_is_secure(load({"url": "https://host", "grpc": "grpc://h:1"}, {}))


def logged(options: Options, **more: Any) -> kindex.Run:
    run = kindex.init(**{**options, **more})
    for step in range(20):
        run.log({"loss": step})
    return run


def sizes(peer: Peer) -> "list[int]":
    return [len(body["metrics"]) for body in peer.bodies("batch")]


def changes_url(peer: Peer, options: Options) -> None:
    assert not logged(options, url=f"http://127.0.0.1:{free_port()}").finish(timeout=0.1).complete
    assert peer.requests == []


def changes_grpc(peer: Peer, options: Options) -> None:
    assert grpc_target(load({"grpc": "h:7"}, {})) == "h:7" != grpc_target(load({}, {}))


def changes_api_key(peer: Peer, options: Options) -> None:
    peer.store.key = "secret"
    assert logged(options, api_key="secret").finish().complete
    assert all(headers["Authorization"] == "Bearer secret" for headers in peer.headers)


def changes_dir(peer: Peer, options: Options) -> None:
    logged(options, dir=options["dir"] + "-else", mode="offline").finish()
    assert list(Path(options["dir"] + "-else").rglob("*.seg")) and not Path(options["dir"]).exists()


def changes_mode(peer: Peer, options: Options) -> None:
    logged(options, mode="offline").finish()
    assert peer.requests == []


def changes_transport(peer: Peer, options: Options) -> None:
    assert _transport.open_transport(load({"transport": "rest"}, {})).name == "rest"
    if _grpc.is_installed():
        assert _transport.open_transport(load({"transport": "grpc"}, {})).name == "grpc"
        assert isinstance(_transport.open_transport(load({}, {})), _transport.Either)


def changes_project(peer: Peer, options: Options) -> None:
    run = logged(options, project="other")
    assert run.finish().complete and peer.run(run.run_id).project == "other"


def changes_run_id(peer: Peer, options: Options) -> None:
    assert logged(options, run_id="mine").finish().complete and peer.status("mine") == "finished"


def changes_batch_points(peer: Peer, options: Options) -> None:
    assert logged(options, batch_points=5, batch_seconds=100).finish().complete and sizes(peer) == [5, 5, 5, 5]


def changes_batch_bytes(peer: Peer, options: Options) -> None:
    assert logged(options, batch_bytes=100, batch_seconds=100).finish().complete and max(sizes(peer)) <= 3


def changes_batch_seconds(peer: Peer, options: Options) -> None:
    logged(options, batch_seconds=1000)
    run = logged(options, batch_seconds=0.05)
    until(lambda: run.run_id in peer.store.runs and len(peer.run(run.run_id).points) == 20)
    assert {body["run_id"] for body in peer.bodies("batch")} == {run.run_id}


def changes_heartbeat_seconds(peer: Peer, options: Options) -> None:
    run = logged(options, heartbeat_seconds=0.05)
    until(lambda: run.run_id in peer.store.runs and peer.run(run.run_id).heartbeats > 2)


def changes_finish_seconds(peer: Peer, options: Options) -> None:
    peer.stop()
    began = time.monotonic()
    logged(options, finish_seconds=0.5).finish()
    assert 0.4 < time.monotonic() - began < 20


def changes_request_seconds(peer: Peer, options: Options) -> None:
    hold = threading.Event()
    peer.fault = lambda path, body: hold.wait(30) and None
    run = logged(options, request_seconds=0.1)
    until(lambda: run.is_offline and len(peer.requests) > 1)
    hold.set()


def changes_connect_seconds(peer: Peer, options: Options) -> None:
    given = []
    from kindex import _rest

    def connect(url: str, connect_s: float, request_s: float) -> Any:
        given.append((connect_s, request_s))
        raise OSError("no")

    before, _rest.connect = _rest.connect, connect  # type: ignore[assignment]
    try:
        run = logged(options, connect_seconds=1.25, request_seconds=2.5)
        until(lambda: (1.25, 2.5) in given)
        run.finish(timeout=0.2)
    finally:
        _rest.connect = before


def count_of_retries(peer: Peer, options: Options, at_least: int, **more: Any) -> int:
    peer.stop()
    seen = []
    from kindex import _courier

    before = _courier.backoff_s

    def watch(*arguments: Any) -> float:
        seen.append(arguments)
        return before(*arguments)

    _courier.backoff_s = watch
    try:
        logged(options, **more)
        until(lambda: len(seen) >= at_least)
        threading.Event().wait(0.5)
    finally:
        _courier.backoff_s = before
    return len(seen)


def changes_retry_seconds(peer: Peer, options: Options) -> None:
    assert count_of_retries(peer, options, 1, retry_seconds=100, retry_seconds_max=100) == 1


def changes_retry_seconds_max(peer: Peer, options: Options) -> None:
    assert count_of_retries(peer, options, 2, retry_seconds=100, retry_seconds_max=0.05) > 1


def changes_spool_bytes(peer: Peer, options: Options) -> None:
    run = kindex.init(**{**options, "mode": "offline", "spool_bytes": 1 << 20})
    for step in range(40_000):
        run.log({"loss": step})
    assert run.finish().points_dropped > 0


def changes_segment_bytes(peer: Peer, options: Options) -> None:
    logged(options, mode="offline", segment_bytes=3 << 20).finish()
    assert {one.stat().st_size for one in Path(options["dir"]).rglob("*.seg")} == {3 << 20}


def changes_fsync(peer: Peer, options: Options) -> None:
    synced = []
    before = _delivery.sync
    _delivery.sync = lambda path: synced.append(path)  # type: ignore[assignment]
    try:
        assert logged(options, fsync=False).finish().complete and synced == []
        assert logged(options).finish().complete and synced != []
    finally:
        _delivery.sync = before


def changes_gzip_bytes(peer: Peer, options: Options) -> None:
    assert logged(options, gzip_bytes=1).finish().complete
    assert all(headers.get("Content-Encoding") == "gzip" for headers in peer.headers)
    peer.headers.clear()
    assert logged(options, gzip_bytes=1 << 30).finish().complete
    assert not any("Content-Encoding" in headers for headers in peer.headers)


def changes_quiet(peer: Peer, options: Options) -> None:
    from kindex import _run

    peer.stop()
    run = logged(options, quiet=False)
    assert run._pipeline is not None
    progress = _run._Progress(run, run._pipeline)
    progress._next = 0.0
    progress()
    assert progress._next > 0


CASES: Dict[str, Callable[[Peer, Options], None]] = {
    name[len("changes_") :]: case for name, case in list(globals().items()) if name.startswith("changes_")
}


@pytest.mark.parametrize("option", [option.name for option in dataclasses.fields(Config)])
def test_every_documented_option_changes_something(option: str, peer: Peer, options: Options) -> None:
    CASES[option](peer, options)


def test_the_readme_lists_every_option_with_its_default() -> None:
    text = (Path(__file__).parent.parent / "README.md").read_text()
    for option in dataclasses.fields(Config):
        assert f"| `{option.name}` | `{environment_name(option.name)}` |" in text, option.name


def test_the_environment_alone_is_enough(peer: Peer, options: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in options.items():
        monkeypatch.setenv(environment_name(name), str(value))
    monkeypatch.setenv("KINDEX_RUNS_RUN_ID", "from-environment")
    kindex.init()
    kindex.log({"loss": 1.0})
    report = kindex.finish()
    assert report is not None and report.complete and peer.status("from-environment") == "finished"


def test_the_key_is_in_no_file(peer: Peer, options: Options) -> None:
    peer.stop()
    logged(options, api_key="very-secret").finish(timeout=0.1)
    files = [one for one in Path(options["dir"]).rglob("*") if one.is_file()]
    assert files and not any(b"very-secret" in one.read_bytes() for one in files)
    assert json.dumps(_config.environment_name("url")) and _threads
