"""Artifacts: uploaded in the background, verified, retried, and never in the way of a point."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any, Dict

import kindex
from peer import Peer, Refused, until

Options = Dict[str, Any]


def test_an_artifact_is_uploaded_and_verified(peer: Peer, options: Options, tmp_path: Path) -> None:
    content = bytes(range(256)) * 9_000
    (tmp_path / "model.bin").write_bytes(content)
    (tmp_path / "empty.txt").write_bytes(b"")
    run = kindex.init(**options)
    run.log_artifact(tmp_path / "model.bin", name="models/best ü.bin", type="model")
    run.log_artifact(str(tmp_path / "empty.txt"))
    assert run.finish().complete
    assert peer.run(run.run_id).artifacts == {"models/best ü.bin": content, "empty.txt": b""}
    (first, second) = sorted(peer.bodies("/artifacts"), key=lambda body: body["metadata"]["name"], reverse=True)
    assert first["metadata"]["type"] == "ARTIFACT_TYPE_MODEL" and first["metadata"]["size_bytes"] == len(content)
    assert second["metadata"]["type"] == "ARTIFACT_TYPE_OTHER" and second["metadata"]["mime_type"] == "text/plain"


def test_the_files_of_a_folder_are_uploaded_under_its_name(peer: Peer, options: Options, tmp_path: Path) -> None:
    (tmp_path / "out" / "deep").mkdir(parents=True)
    (tmp_path / "out" / "a").write_text("1")
    (tmp_path / "out" / "deep" / "b").write_text("2")
    run = kindex.init(**options)
    run.log_artifact(tmp_path / "out", name="results")
    assert run.finish().complete
    assert peer.run(run.run_id).artifacts == {"results/a": b"1", "results/deep/b": b"2"}


def test_an_upload_never_delays_a_point(peer: Peer, options: Options, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    hold = threading.Event()
    peer.fault = lambda path, body: hold.wait(60) and None if path.endswith("/artifacts") else None
    run = kindex.init(**options)
    run.log_artifact(tmp_path / "file")
    run.log({"loss": 1.0})
    assert run.flush(1.0) is False, "the artifact is under way"
    # On a busy machine, the point may need longer than that. The request for the artifact is given up after 30 seconds.
    until(lambda: run.run_id in peer.store.runs and peer.series(run.run_id, "loss") == {0: 1.0}, 25)
    # The end of the run waits for the artifact.
    threading.Timer(0.3, hold.set).start()
    assert run.finish().complete
    assert peer.run(run.run_id).artifacts == {"file": b"x"} and peer.status(run.run_id) == "finished"
    paths = [path.rsplit("/", 1)[1] for path, _ in peer.requests]
    assert paths.index("finalize") < paths.index("finish") and paths.count("finish") == 1


def test_an_upload_is_retried_after_faults(peer: Peer, options: Options, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    faults = iter([Refused(503, "UNAVAILABLE", "DOWN"), "reset", None, "drop-answer", "drop-answer"])
    peer.fault = lambda path, body: next(faults, None) if "artifacts" in path else None
    run = kindex.init(**options)
    run.log_artifact(tmp_path / "file")
    assert run.finish().complete
    assert peer.run(run.run_id).artifacts == {"file": b"x"}


def test_a_file_that_vanished_is_set_aside_and_the_run_ends(peer: Peer, options: Options, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    run = kindex.init(mode="offline", run_id="gone", **options)
    run.log_artifact(tmp_path / "file")
    run.log({"loss": 1.0})
    run.finish()
    (tmp_path / "file").unlink()
    from kindex._cli import main

    main(["sync", options["dir"], "--url", peer.url, "--transport", "rest"])
    assert peer.status("gone") == "finished" and peer.series("gone", "loss") == {0: 1.0}
    (kept,) = (Path(options["dir"]) / "rejected" / "gone").glob("*.json")
    content = json.loads(kept.read_text())
    assert content["kind"] == "artifact" and "No such file" in content["reason"]


def test_an_artifact_outlives_its_process(peer: Peer, options: Options, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    peer.stop()
    run = kindex.init(run_id="later", **options)
    run.log_artifact(tmp_path / "file")
    run.log({"loss": 1.0})
    assert not run.finish(timeout=0.2).complete
    peer.start()
    from kindex._cli import main

    assert main(["sync", options["dir"], "--url", peer.url, "--transport", "rest"]) == 0
    assert peer.run("later").artifacts == {"file": b"x"} and peer.status("later") == "finished"


def test_what_is_no_file_is_warned_about(peer: Peer, options: Options, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    run = kindex.init(**options)
    began = time.monotonic()
    run.log_artifact(tmp_path / "missing")
    run.log_artifact(tmp_path / "file", type="nonsense")
    run.log_artifact(None)  # type: ignore[arg-type]
    assert time.monotonic() - began < 5
    assert run.finish().complete
    assert peer.run(run.run_id).artifacts == {"file": b"x"}
    until(lambda: peer.status(run.run_id) == "finished")


def test_a_server_without_artifacts_does_not_keep_the_run_from_ending(
    peer: Peer, options: Options, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("x")
    peer.fault = lambda path, body: Refused(501, "UNIMPLEMENTED", "NO") if path.endswith("/artifacts") else None
    run = kindex.init(**options)
    run.log_artifact(tmp_path / "file")
    assert run.finish().complete and peer.status(run.run_id) == "finished"
    assert len(list((Path(options["dir"]) / "rejected" / run.run_id).glob("*.json"))) == 1


def test_an_artifact_over_the_limit_of_the_run_is_set_aside_and_the_others_are_uploaded(
    peer: Peer, options: Options, tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    for name in ("a", "b", "c", "d"):
        (tmp_path / "out" / name).write_text(name)
    run = kindex.init(**options)
    run.log({"loss": 1.0})
    assert run.flush()
    peer.run(run.run_id).artifacts_max = 3
    run.log_artifact(tmp_path / "out")
    assert run.finish().complete and peer.status(run.run_id) == "finished"
    assert peer.run(run.run_id).artifacts == {"out/a": b"a", "out/b": b"b", "out/c": b"c"}
    (kept,) = (Path(options["dir"]) / "rejected" / run.run_id).glob("*.json")
    content = json.loads(kept.read_text())
    assert content["operation"]["name"] == "out/d" and "TOO_MANY" in content["reason"]


def test_a_file_that_did_not_arrive_is_sent_again_to_the_same_upload(
    peer: Peer, options: Options, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("x")
    faults = iter([503, 502, 500])
    peer.put_fault = lambda path: next(faults, None)
    run = kindex.init(**options)
    run.log_artifact(tmp_path / "file")
    assert run.finish().complete
    assert peer.run(run.run_id).artifacts == {"file": b"x"}
    assert len(peer.bodies("/artifacts")) == 1 and next(faults, None) is None


def test_an_upload_whose_address_has_expired_is_given_up_for_another(
    peer: Peer, options: Options, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("x")
    faults = iter([403, 403])
    peer.put_fault = lambda path: next(faults, None)
    run = kindex.init(**options)
    run.log_artifact(tmp_path / "file")
    assert run.finish().complete
    assert peer.run(run.run_id).artifacts == {"file": b"x"}
    assert len(peer.bodies("/artifacts")) == 3
    assert len(peer.store.uploads) == 1, "what was not sent is given up: the server has nothing of it"


def test_a_file_that_arrived_with_a_lost_answer_is_one_artifact(
    peer: Peer, options: Options, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("x")
    statuses = iter([503, 403])

    def take_it_nevertheless(path: str) -> Any:
        status = next(statuses, None)
        if status == 503:
            peer.store.uploads[path.split("/")[2].split("?")[0]]["content"] = b"x"
        return status

    peer.put_fault = take_it_nevertheless
    run = kindex.init(**options)
    run.log_artifact(tmp_path / "file")
    assert run.finish().complete
    assert peer.run(run.run_id).artifacts == {"file": b"x"} and len(peer.bodies("/artifacts")) == 1
