"""The server of the tests, and options that make a run quick."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Iterator

import pytest

import kindex
from peer import Peer


@pytest.fixture
def peer() -> Iterator[Peer]:
    """A running server."""
    found = Peer()
    found.start()
    yield found
    found.fault = None
    found.stop()


@pytest.fixture
def options(peer: Peer, tmp_path: Path) -> Dict[str, Any]:
    """Options of a run that sends to the server of the test and retries quickly."""
    return {
        "project": "tests",
        "url": peer.url,
        "dir": str(tmp_path / "spool"),
        "transport": "rest",
        "batch_seconds": 0.1,
        "retry_seconds": 0.02,
        "retry_seconds_max": 0.1,
        "connect_seconds": 2,
        "request_seconds": 5,
        "segment_bytes": 1 << 20,
        "finish_seconds": 20,
        "quiet": True,
    }


@pytest.fixture(autouse=True)
def no_run_is_left() -> Iterator[None]:
    """A test that fails leaves no thread that sends."""
    yield
    from kindex import _run

    for run in list(_run._live):
        run.finish("failed", timeout=0)
    kindex._current = None
