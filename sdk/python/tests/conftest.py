"""The server of the tests, and options that make a run quick."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Dict, Iterator, Union

import pytest

import kindex
from kindex import _run
from peer import Peer
from real import Real, binary
from trainers import Trainer


@pytest.fixture
def peer() -> Iterator[Peer]:
    """A running server whose faults a test can choose."""
    found = Peer()
    found.start()
    yield found
    found.fault = None
    found.stop()


@pytest.fixture
def real(tmp_path: Path) -> Iterator[Real]:
    """The real server, running, where `KINDEX_BIN` names it."""
    if not binary():
        assert "kindex" not in os.environ.get("KINDEX_REQUIRE", "").split(","), "KINDEX_BIN names no binary"
        pytest.skip("KINDEX_BIN names no binary")
    found = Real(binary(), tmp_path / "server")
    found.start()
    yield found
    found.stop()


@pytest.fixture(params=["peer", "real"])
def server(request: pytest.FixtureRequest) -> Union[Peer, Real]:
    """Each running server in turn: the one with faults, which has none here, and the real one."""
    found = request.getfixturevalue(request.param)
    assert isinstance(found, (Peer, Real))
    return found


def quick(url: str, folder: Path) -> Dict[str, Any]:
    """Options of a run that sends to the server of the test and retries quickly."""
    return {
        "project": "tests",
        "url": url,
        "dir": str(folder),
        "transport": "rest",
        "batch_seconds": 0.1,
        "retry_seconds": 0.02,
        "retry_seconds_max": 0.1,
        "connect_seconds": 10,
        "request_seconds": 30,
        "segment_bytes": 1 << 20,
        "finish_seconds": 60,
        "quiet": True,
    }


@pytest.fixture
def options(peer: Peer, tmp_path: Path) -> Dict[str, Any]:
    """Quick options for the server with faults."""
    return quick(peer.url, tmp_path / "spool")


@pytest.fixture
def server_options(server: Union[Peer, Real], tmp_path: Path) -> Dict[str, Any]:
    """Quick options for whichever server runs."""
    return quick(server.url, tmp_path / "spool")


@pytest.fixture(autouse=True)
def no_run_is_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tests see no option of the caller's, and one that fails leaves no thread that sends."""
    for name in list(os.environ):
        if name.startswith("KINDEX_RUNS_"):
            monkeypatch.delenv(name)
    yield
    for run in list(_run._live):
        run.finish("failed", timeout=0)
    kindex._current = None


@pytest.fixture(autouse=True)
def no_trainer_is_left() -> Iterator[None]:
    """Also where a test fails."""
    yield
    for trainer in Trainer.started:
        trainer.kill()
    Trainer.started.clear()
