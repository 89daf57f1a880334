"""`log` and its kin on one process: never raise, never block, keep what is right, count what is lost."""

from __future__ import annotations

import datetime
import errno
import itertools
import logging
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any, Dict, List

import pytest

import kindex
from kindex import _segment, _spool, _values
from kindex._inspect import records_of
from kindex import _folder
from peer import Peer, until

Options = Dict[str, Any]


@pytest.fixture
def offline(tmp_path: Path) -> Options:
    return {"project": "tests", "mode": "offline", "dir": str(tmp_path), "segment_bytes": 1 << 20, "quiet": True}


def records(options: Options) -> List[Dict[str, Any]]:
    return [record for path in _folder.listed(Path(options["dir"])) for record in records_of(path)]


def points(options: Options) -> Dict[Any, Any]:
    return {(one["name"], one["step"]): one["value"] for one in records(options) if "name" in one and "step" in one}


class Explodes:
    def __float__(self) -> float:
        raise RuntimeError("no value today")


def test_log_never_raises_and_keeps_the_good_values(offline: Options, caplog: pytest.LogCaptureFixture) -> None:
    run = kindex.init(**offline)
    bad: List[Any] = [
        {"a": "text", "ok": 1},
        {"a": None, "ok": 2},
        {"a": Explodes(), "ok": 3},
        {"a": [1], "ok": 4},
        {"": 1, "ok": 5},
        {"1st": 1, "ok": 6},
        {"x" * 257: 1, "ok": 7},
        {7: 1, "ok": 8},
        {"a": 10**400, "ok": 9},
        {"a": 1 + 2j, "ok": 10},
        {"naïve": 1, "ok": 11},
        {"a\0b": 1, "ok": 12},
        {"a\n": 1, "ok": 13},
    ]
    for step, one in enumerate(bad):
        run.log(one, step=step)
    for one in (None, 7, "text", [1, 2]):
        run.log(one)  # type: ignore[arg-type]
    run.log({})
    run.finish()
    found = points(offline)
    assert {key: value for key, value in found.items() if key[0] == "ok"} == {
        ("ok", step): step + 1 for step in range(len(bad))
    }
    assert not any(name != "ok" for name, _ in found)
    assert caplog.records


def test_numbers_of_other_libraries_are_numbers(offline: Options) -> None:
    class Scalar:
        def __float__(self) -> float:
            return 2.5

    from decimal import Decimal
    from fractions import Fraction

    run = kindex.init(**offline)
    run.log({"a": Scalar(), "b": Decimal("0.5"), "c": Fraction(1, 4), "d": True, "e": 3})
    run.finish()
    assert points(offline) == {("a", 0): 2.5, ("b", 0): 0.5, ("c", 0): 0.25, ("d", 0): 1.0, ("e", 0): 3.0}


def test_a_bad_step_leaves_its_points_out_and_nothing_else(offline: Options) -> None:
    run = kindex.init(**offline)
    for step in (-1, 1 << 63, 1.5, "3", float("nan"), float("inf")):
        run.log({"bad": 1}, step=step)  # type: ignore[arg-type]
    run.log({"good": 1}, step=2.0)  # type: ignore[arg-type]
    run.log({"good": 1}, step=1 << 61)
    run.finish()
    assert set(points(offline)) == {("good", 2), ("good", 1 << 61)}


def test_a_missing_step_is_the_one_after_the_highest(offline: Options) -> None:
    run = kindex.init(**offline)
    run.log({"a": 1})
    run.log({"a": 1}, step=10)
    run.log({"a": 1}, step=3)
    run.log({"a": 1})
    run.finish()
    assert sorted(step for _, step in points(offline)) == [0, 3, 10, 11]


def test_zero_is_a_timestamp(offline: Options) -> None:
    run = kindex.init(**offline)
    run.log({"a": 1}, timestamp=0.0)
    run.log({"a": 1}, timestamp=datetime.datetime(2020, 1, 2, tzinfo=datetime.timezone.utc))
    for odd in ("soon", float("nan"), 1e300, -1e300):
        run.log({"a": 1}, timestamp=odd)
    run.finish()
    times = [one["timestamp"] for one in records(offline) if "timestamp" in one]
    assert times[:2] == ["1970-01-01T00:00:00.000000Z", "2020-01-02T00:00:00.000000Z"]
    now = time.strftime("%Y", time.gmtime())
    assert all(one.startswith(now) for one in times[2:]) and len(times) == 6


def test_a_parameter_keeps_its_first_value(offline: Options, caplog: pytest.LogCaptureFixture) -> None:
    run = kindex.init(config={"lr": 0.1}, **offline)
    run.log_params({"lr": 0.2, "b": None, "c": True})
    run.log_params({"lr": 0.1})
    run.log_params({"big": "x" * 5000, "bad name": 1})
    run.finish()
    merged: Dict[str, str] = {}
    for one in records(offline):
        merged.update(one.get("params", {}))
    assert merged == {"lr": "0.1", "b": "null", "c": "true"}
    assert any("keeps its first value" in record.getMessage() for record in caplog.records)


def test_tags_outside_the_rules_are_left_out(offline: Options) -> None:
    run = kindex.init(tags={"ok": 1, "mlrun.x": 1, "a b": 1}, **offline)
    run.log_tags({"k": "v" * 2000, "ü": 1, "fine": 2}, remove=["ok"])
    run.finish()
    (tags,) = [one for one in records(offline) if "tags" in one]
    assert tags["tags"] == {"fine": "2"} and tags["remove"] == ["ok"]


@pytest.mark.parametrize("project", ["", "BAD NAME!", "1a", "mlrun-x", "system-x", "a" * 129, "a\n"])
def test_a_wrong_project_is_told_at_once(project: str, offline: Options) -> None:
    with pytest.raises(ValueError, match="project"):
        kindex.init(**{**offline, "project": project})


@pytest.mark.parametrize("run_id", ["a/b", "..", "a b", "x" * 65, "ü"])
def test_a_wrong_run_id_is_told_at_once(run_id: str, offline: Options) -> None:
    with pytest.raises(ValueError, match="run_id"):
        kindex.init(run_id=run_id, **offline)


def test_names_follow_the_rules_of_the_server() -> None:
    for good in ("a", "train/loss", "A.b-c_d/9", "x" * 256):
        assert _values.names_error((good,)) == ""
    for bad in ("", "9a", "_mlrun.x", "x" * 257, "a b", "a:b"):
        assert _values.names_error((bad,)) != ""


def test_after_finish_nothing_is_logged_and_nothing_raised(offline: Options) -> None:
    run = kindex.init(**offline)
    first = run.finish()
    run.log({"a": 1})
    run.log_params({"a": 1})
    assert run.finish("failed") == first and points(offline) == {}


def test_shortcuts_without_a_run_warn_and_do_nothing(caplog: pytest.LogCaptureFixture) -> None:
    kindex.log({"a": 1})
    kindex.log_params({"a": 1})
    kindex.log_tags({"a": 1})
    kindex.log_artifact("/nowhere")
    assert kindex.finish() is None
    assert any("kindex.init" in record.getMessage() for record in caplog.records)


def test_a_failing_block_ends_the_run_as_failed(peer: Peer, options: Options) -> None:
    with pytest.raises(ZeroDivisionError):
        with kindex.init(**options) as run:
            run.log({"a": 1})
            raise ZeroDivisionError("oops")
    assert peer.status(run.run_id) == "failed"
    assert peer.bodies("finish")[0]["error_message"] == "ZeroDivisionError: oops"
    with kindex.init(**options) as run:
        run.log({"a": 1})
    assert peer.status(run.run_id) == "finished"


def test_many_threads_log_at_once_and_lose_nothing(offline: Options) -> None:
    run = kindex.init(**offline)

    def work(thread: int) -> None:
        for step in range(500):
            run.log({f"t{thread}": step, "shared": thread}, step=step)
            run.log({"auto": 1})

    threads = [threading.Thread(target=work, args=(index,)) for index in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert run.finish().points_left == 6 * 500 * 3
    found = points(offline)
    for thread in range(6):
        assert [found[f"t{thread}", step] for step in range(500)] == list(range(500))
    assert sum(1 for name, _ in found if name == "auto") == 3_000


def test_a_signal_handler_may_log_in_the_middle_of_log(offline: Options) -> None:
    run = kindex.init(**offline)
    handled: List[int] = []
    numbers = itertools.count()

    def handler(*_: Any) -> None:
        step = next(numbers)
        handled.append(step)
        run.log({"handler": step}, step=step)

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        for step in range(20_000):
            run.log({"loop": step}, step=step)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    run.finish()
    found = points(offline)
    assert handled
    assert sum(1 for name, _ in found if name == "loop") == 20_000
    assert sum(1 for name, _ in found if name == "handler") == len(handled)


def test_what_a_signal_handler_deferred_is_written_by_the_call_that_it_interrupted(tmp_path: Path) -> None:
    spool = _spool.Spool(tmp_path, 1 << 20, 1 << 24, 1_000, 1 << 20, lambda: None, lambda _: None)
    one = _spool.packer(1)
    assert spool.points(("a",), 0, 0, one(1.0))
    put = spool._put_points

    def interrupted(*record: Any) -> bool:
        # A handler runs on the thread that it interrupts, which holds the lock and is at its work.
        spool._put_points = put  # type: ignore[method-assign]
        assert spool.points(("handler",), 1, 0, one(2.0))
        return put(*record)

    spool._put_points = interrupted  # type: ignore[method-assign]
    assert spool.points(("a",), 1, 0, one(3.0))
    assert spool.points_total == 3, "nothing waits for the next call"
    spool.close()


def test_a_full_segment_is_unmapped_by_another_thread(offline: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: List[int] = []
    close = _segment.Segment.close

    def noted(segment: _segment.Segment) -> None:
        closed.append(threading.get_ident())
        close(segment)

    monkeypatch.setattr(_segment.Segment, "close", noted)
    run = kindex.init(**{**offline, "spool_bytes": 64 << 20})
    for step in range(80_000):
        run.log({"a": step}, step=step)
    until(lambda: len(closed) >= 2)
    assert threading.get_ident() not in closed
    run.finish()


def test_the_spool_stops_at_its_limit(offline: Options, caplog: pytest.LogCaptureFixture) -> None:
    run = kindex.init(**{**offline, "spool_bytes": 3 << 20})
    for step in range(80_000):
        run.log({"a": step, "b": step}, step=step)
    size = sum(one.stat().st_size for one in Path(offline["dir"]).rglob("*.seg"))
    assert size <= 3 << 20
    assert any("no room" in record.getMessage() for record in caplog.records), "warned at once"
    report = run.finish()
    assert report.points_dropped > 0 and report.points_left + report.points_dropped == 160_000
    assert any("are lost" in record.getMessage() for record in caplog.records), "and at finish"
    # The newest are dropped: what is kept is the beginning, without a gap.
    steps = sorted(step for name, step in points(offline) if name == "a")
    assert steps == list(range(len(steps))) and len(steps) * 2 == report.points_left


def test_a_full_disk_drops_and_recovers_when_there_is_room(
    peer: Peer, options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    allocate = _segment.allocate
    full = threading.Event()

    def refuse(fd: int, size: int) -> None:
        if full.is_set():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        allocate(fd, size)

    monkeypatch.setattr(_segment, "allocate", refuse)
    run = kindex.init(**options)
    full.set()
    steps = 0
    while run._pipeline.left().dropped == 0:  # type: ignore[union-attr]
        run.log({"a": steps}, step=steps)
        steps += 1
    full.clear()
    until(lambda: bool(run.log({"late": 1}, step=1) or run._pipeline.spool._reserve))  # type: ignore[union-attr]
    run.log({"end": 1}, step=7)
    report = run.finish()
    assert report.complete and report.points_dropped >= 1
    assert peer.series(run.run_id, "end") == {7: 1.0}
    stored = peer.series(run.run_id, "a")
    assert stored == {step: float(step) for step in range(len(stored))} and len(stored) >= steps - 2


def test_a_folder_that_cannot_be_written_costs_the_data_and_not_the_training(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    run = kindex.init(project="tests", dir=str(blocked / "x"))
    run.log({"a": 1})
    run.log_params({"a": 1})
    run.finish()
    assert any("nothing is logged" in record.getMessage() for record in caplog.records)


def test_a_million_calls_in_a_loop_drop_nothing(peer: Peer, options: Options) -> None:
    """A tenth of a million here, to keep the tests short; `benchmarks/loop.py` has them all."""
    peer.stop()
    run = kindex.init(**options)
    for step in range(100_000):
        run.log({"a": step, "b": 0.5, "c": -1.0}, step=step)
    left = run._pipeline.left()  # type: ignore[union-attr]
    assert left.dropped == 0 and left.left == 300_000
    report = run.finish(timeout=0)
    assert report.points_left == 300_000 and report.points_dropped == 0


def test_a_writer_that_overtakes_the_keeper_makes_room_itself(
    offline: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_spool.Spool, "_keep", lambda spool: None)
    run = kindex.init(**offline)
    for step in range(50_000):
        run.log({"a": step}, step=step)
    assert run.finish().points_dropped == 0


def test_a_log_handler_that_raises_never_reaches_the_training(offline: Options) -> None:
    class Broken(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise RuntimeError("broken handler")

    logger = logging.getLogger("kindex")
    broken = Broken()
    logger.addHandler(broken)
    try:
        run = kindex.init(**offline)
        run.log({"a": "text"})
        run.log({"a": 1})
    finally:
        logger.removeHandler(broken)
    run.finish()
    assert points(offline) == {("a", 0): 1.0}
