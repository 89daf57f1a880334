"""Several processes: killed at any moment, sharing a folder, forked. What `log` returned from is delivered once."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Dict, Union

import pytest

import kindex
from kindex import _folder
from kindex._cli import main
from peer import Peer, until
from real import Real
from trainers import Trainer

Options = Dict[str, Any]
KILLS = int(os.environ.get("KINDEX_KILLS", "20"))


def sync(options: Options) -> int:
    return main(["sync", options["dir"], "--url", options["url"], "--transport", "rest"])


def test_kill_nine_after_log_returned_loses_no_cut_batch(
    server: Union[Peer, Real], server_options: Options, tmp_path: Path
) -> None:
    """Runs are killed at random moments and continued; the server is away for a third of the time."""
    if isinstance(server, Real) and "KINDEX_KILLS" not in os.environ:
        pytest.skip("it takes long: KINDEX_KILLS says how often")
    seed = int(os.environ.get("KINDEX_SEED", random.randrange(1 << 32)))
    chance = random.Random(seed)
    print(f"KINDEX_SEED={seed}")
    runs = [f"run-{index}" for index in range(4)]
    logs = {run_id: tmp_path / run_id for run_id in runs}
    first = {run_id: 0 for run_id in runs}
    kills = 0
    while kills < KILLS:
        trainers = []
        for run_id in runs:
            options = {**server_options, "run_id": run_id, "batch_points": chance.choice([7, 100, 1_000])}
            trainers.append(Trainer(options, logs[run_id], first[run_id], 10_000_000))
        for trainer in trainers:
            trainer.begins(kills // len(runs) + 1)
        if chance.random() < 0.33:
            server.stop()
        time.sleep(chance.random() * 0.25)
        for run_id, trainer in zip(runs, trainers):
            trainer.kill()
            kills += 1
            # The step after the last may be stored too: it was in `log`, or had just left it.
            first[run_id] = max(trainer.steps(), default=-1) + 2
        server.stop()
        server.start()
        if isinstance(server, Peer):
            _crash(server, Path(server_options["dir"]))
    assert sync(server_options) == 0
    for run_id in runs:
        acknowledged = {int(line) for line in logs[run_id].read_text().split() if line != "ready"}
        if isinstance(server, Real):
            # A number that was given to a batch and died with its process keeps later batches waiting for 30 seconds.
            until(lambda: set(server.series(run_id, "loss")) >= acknowledged)
        loss, steps = _whole_series(server, run_id)
        assert set(loss) >= acknowledged, f"lost {sorted(acknowledged - set(loss))[:5]}"
        # What was stored and not acknowledged was in `log` when the process died.
        assert len(set(loss) - acknowledged) <= KILLS
        assert all(value == 1 / (step + 1) for step, value in loss.items())
        assert all(value == step for step, value in steps.items())
        if isinstance(server, Peer):
            assert server.run(run_id).accepted == len(server.run(run_id).points)
    assert _folder.listed(Path(server_options["dir"])) == []


def _crash(server: Peer, folder: Path) -> None:
    """Five silent minutes pass for the runs whose newest token had been stored when their trainer was killed.

    A run whose token was lost on the way is registered again before that time is over, which gives it a new one.
    """
    for run_id, stored in server.store.runs.items():
        state = _folder.read_json(folder / "runs" / f"{run_id}.json")
        if state.get("resume_token") == stored.token:
            stored.status = "crashed"


def _whole_series(server: Union[Peer, Real], run_id: str) -> "tuple[Dict[int, float], Dict[int, float]]":
    return server.series(run_id, "loss"), server.series(run_id, "step")


def test_two_processes_share_a_spool_folder(peer: Peer, options: Options, tmp_path: Path) -> None:
    peer.stop()
    one = Trainer({**options, "run_id": "one"}, tmp_path / "one", 0, 500, "--forever")
    two = Trainer({**options, "run_id": "two"}, tmp_path / "two", 0, 500, "--forever")
    until(lambda: len(one.steps()) == len(two.steps()) == 500)
    before = {path: path.stat().st_mtime_ns for path in Path(options["dir"]).rglob("*.seg")}
    # Nobody delivers what a living process writes.
    peer.start()
    assert sync(options) == 0
    assert len(_folder.listed(Path(options["dir"]))) == 2 and len(before) >= 2
    one.kill()
    assert sync(options) == 0
    assert len(peer.series("one", "loss")) == 500
    until(lambda: peer.status("two") == "running" and len(peer.series("two", "loss")) == 500)
    two.kill()
    sync(options)
    for run_id in ("one", "two"):
        assert peer.run(run_id).accepted == 1_000


def test_a_spool_is_deleted_in_one_step(
    peer: Peer, options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process may look while the files go, one after the other."""
    root, seen = Path(options["dir"]), []
    remove = shutil.rmtree

    def look(path: Path, ignore_errors: bool) -> None:
        seen.append((list((root / "spools").glob("*--*")), (path / "lock").exists()))
        remove(path, ignore_errors=ignore_errors)

    monkeypatch.setattr(_folder.shutil, "rmtree", look)
    run = kindex.init(**options)
    run.log({"a": 1})
    assert run.finish().complete
    assert seen == [([], True)]


def test_a_spool_whose_process_died_while_it_was_deleted_is_deleted_at_the_next_start(
    peer: Peer, options: Options
) -> None:
    gone = Path(options["dir"]) / "spools" / ".01890000-0000-7000-8000-000000000000.gone"
    gone.mkdir(parents=True)
    (gone / "00000001.seg").write_bytes(bytes(100))
    assert kindex.init(**options).finish().complete
    assert not gone.exists()


def test_a_spool_that_cannot_be_read_keeps_no_others(
    peer: Peer, options: Options, capsys: pytest.CaptureFixture[str]
) -> None:
    for step in range(3):
        text = f"run = kindex.init(run_id='torn', mode='offline', **options)\nrun.log({{'a': 1}}, step={step})"
        script(f"import os\n{text}\nos._exit(0)", options)
    torn = _folder.listed(Path(options["dir"]))[1] / "journal.0"
    torn.unlink()
    torn.mkdir()
    assert sync(options) == 1
    assert "1 spools cannot be read" in capsys.readouterr().out
    assert set(peer.series("torn", "a")) == {0, 2}
    # Nothing else of it was touched: it can be read once the disk is repaired.
    torn.rmdir()
    assert sync(options) == 0
    assert set(peer.series("torn", "a")) == {0, 1, 2}


def test_two_syncs_at_once_deliver_everything_once(peer: Peer, options: Options) -> None:
    for index in range(6):
        run = kindex.init(run_id=f"r{index}", mode="offline", **options)
        for step in range(200):
            run.log({"a": step})
        run.finish()
    threads = [threading.Thread(target=sync, args=(options,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(peer.run(f"r{index}").accepted == 200 for index in range(6))
    assert all(peer.status(f"r{index}") == "finished" for index in range(6))


def _child(run: kindex.Run, count: int, explicit: bool) -> None:
    for step in range(count):
        run.log({"child": step}, step=step)
    if explicit:
        run.finish()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_never_sends_the_parents_records(peer: Peer, options: Options) -> None:
    peer.stop()
    run = kindex.init(**options)
    for step in range(300):
        run.log({"parent": step}, step=step)
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=_child, args=(run, 50, False)) for _ in range(2)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [0, 0]
    # The children are gone and left a spool each; the parent's own is untouched.
    assert len(_folder.listed(Path(options["dir"]))) == 3
    peer.start()
    for step in range(300, 350):
        run.log({"parent": step}, step=step)
    report = run.finish()
    assert report.complete
    stored = peer.run(run.run_id)
    assert stored.accepted == 350 + 2 * 50
    assert len(peer.series(run.run_id, "parent")) == 350 and len(peer.series(run.run_id, "child")) == 50
    assert _folder.listed(Path(options["dir"])) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_that_finishes_delivers_its_part_and_leaves_the_run_open(peer: Peer, options: Options) -> None:
    run = kindex.init(**options)
    run.log({"parent": 1})
    assert run.flush()
    context = multiprocessing.get_context("fork")
    child = context.Process(target=_child, args=(run, 50, True))
    child.start()
    child.join()
    assert child.exitcode == 0
    assert len(peer.series(run.run_id, "child")) == 50 and peer.status(run.run_id) == "running"
    run.log({"parent": 2})
    assert run.finish().complete and peer.status(run.run_id) == "finished"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_that_logs_nothing_leaves_nothing(peer: Peer, options: Options) -> None:
    run = kindex.init(**options)
    run.log({"parent": 1})
    child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(0,))
    child.start()
    child.join()
    assert child.exitcode == 0 and len(_folder.listed(Path(options["dir"]))) == 1
    assert run.finish().complete


def script(text: str, options: Options) -> "subprocess.CompletedProcess[str]":
    lines = f"import json, kindex\noptions = json.loads({json.dumps(json.dumps(options))})\n{text}"
    return subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, timeout=100)


def test_a_program_that_never_calls_finish_is_finished_at_its_end(peer: Peer, options: Options) -> None:
    done = script("run = kindex.init(run_id='forgot', **options)\nrun.log({'a': 1})", options)
    assert done.returncode == 0, done.stderr
    assert peer.status("forgot") == "finished" and peer.series("forgot", "a") == {0: 1.0}


def test_a_program_that_dies_of_an_error_ends_as_failed(peer: Peer, options: Options) -> None:
    done = script("run = kindex.init(run_id='died', **options)\nrun.log({'a': 1})\nraise KeyError('x')", options)
    assert done.returncode == 1 and "KeyError" in done.stderr
    assert peer.status("died") == "failed" and peer.series("died", "a") == {0: 1.0}


def test_progress_and_an_honest_count_are_printed(options: Options, peer: Peer) -> None:
    peer.stop()
    text = "run = kindex.init(run_id='left', **options)\nfor i in range(5): run.log({'a': i})\nrun.finish(timeout=2.6)"
    done = script(text, {**options, "quiet": False})
    assert done.returncode == 0
    assert "5 points left to send" in done.stderr and "5 points and its end are left" in done.stderr
    assert "kindex-runs sync" in done.stderr
