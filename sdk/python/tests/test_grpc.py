"""gRPC against a server of the protocol, and the way from gRPC to REST and back."""

from __future__ import annotations

import hashlib
import math
import struct
import threading
from concurrent import futures
from typing import Any, Callable, Dict, Iterator, List

import pytest

grpc = pytest.importorskip("grpc")

import kindex  # noqa: E402
from kindex import _transport  # noqa: E402
from kindex._classify import Refusal  # noqa: E402
from kindex._config import load  # noqa: E402
from kindex._grpc import Grpc  # noqa: E402
from kindex._protocol import ARTIFACT_TYPES, STATUSES  # noqa: E402
from kindex._wire import Message, data, integer, text  # noqa: E402
from peer import Peer, Refused, free_port, until  # noqa: E402

Options = Dict[str, Any]
_CODES = {
    "NOT_FOUND": grpc.StatusCode.NOT_FOUND,
    "FAILED_PRECONDITION": grpc.StatusCode.FAILED_PRECONDITION,
    "ALREADY_EXISTS": grpc.StatusCode.ALREADY_EXISTS,
    "INVALID_ARGUMENT": grpc.StatusCode.INVALID_ARGUMENT,
    "RESOURCE_EXHAUSTED": grpc.StatusCode.RESOURCE_EXHAUSTED,
    "PERMISSION_DENIED": grpc.StatusCode.PERMISSION_DENIED,
    "UNAUTHENTICATED": grpc.StatusCode.UNAUTHENTICATED,
}


class GrpcPeer:
    """The gRPC side of a `Peer`: the same store."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.port = free_port()
        self.calls: List[str] = []
        self.fault: Callable[[str], Any] = lambda method: None
        self._server: Any = None

    @property
    def target(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        self._server = grpc.server(futures.ThreadPoolExecutor(4))
        methods = {
            name: grpc.unary_unary_rpc_method_handler(self._handler(name))
            for name in (
                "InitRun",
                "LogMetrics",
                "LogParams",
                "LogTags",
                "CreateArtifactUpload",
                "FinalizeArtifactUpload",
                "Heartbeat",
                "FinishRun",
            )
        }
        handler = grpc.method_handlers_generic_handler("mlrun.v1.IngestService", methods)
        self._server.add_generic_rpc_handlers((handler,))
        assert self._server.add_insecure_port(self.target) == self.port
        self._server.start()

    def stop(self) -> None:
        self._server.stop(None).wait()

    def _handler(self, name: str) -> Callable[[bytes, Any], bytes]:
        def answer(content: bytes, context: Any) -> bytes:
            self.calls.append(name)
            try:
                fault = self.fault(name)
                if isinstance(fault, Refused):
                    raise fault
                with self.peer.store.lock:
                    found: bytes = getattr(self, name)(Message(content), context)
                if fault == "drop-answer":
                    context.abort(grpc.StatusCode.UNAVAILABLE, "lost")
                return found
            except Refused as refused:
                info = data(1, text(1, "type.googleapis.com/google.rpc.ErrorInfo")[2:])
                info = text(1, "type.googleapis.com/google.rpc.ErrorInfo") + data(2, text(1, refused.reason))
                status = data(3, info)
                if refused.retry_after:
                    delay = data(1, integer(1, int(refused.retry_after)))
                    status += data(3, text(1, "type.googleapis.com/google.rpc.RetryInfo") + data(2, delay))
                context.set_trailing_metadata((("grpc-status-details-bin", status),))
                context.abort(_CODES[refused.code], "refused")
                raise

        return answer

    def InitRun(self, request: Message, context: Any) -> bytes:
        if self.peer.store.key:
            sent = dict(context.invocation_metadata()).get("authorization")
            if sent != f"Bearer {self.peer.store.key}":
                raise Refused(401, "UNAUTHENTICATED", "KEY_UNKNOWN")
        tags = {one.text(1): one.text(2) for one in request.messages(5)}
        body = {"project": request.message(1).text(1), "run_id": request.text(2), "name": request.text(3), "tags": tags}
        answer = self.peer.store.init({**body, "resume_token": request.text(9)})
        return data(1, text(1, answer["run_id"])) + text(2, answer["resume_token"]) + integer(4, answer["resumed"])

    def LogMetrics(self, request: Message, context: Any) -> bytes:
        run = self.peer.store.run(request.message(1).text(1))
        points = []
        for one in request.message(2).messages(1):
            stamp = one.message(4)
            points.append((one.text(1), one.integer(2), one.double(3), (stamp.integer(1), stamp.integer(2))))
        bits = [(name, step, struct.pack("<d", value), time) for name, step, value, time in points]
        digest = hashlib.sha256(repr(bits).encode()).hexdigest()
        sequence = request.integer(4) if request.has(4) else None
        answer = self.peer.store.apply(run, request.text(3), digest, sequence, points)
        return integer(1, answer["accepted"]) + integer(2, answer.get("deduplicated_points", 0))

    def LogParams(self, request: Message, context: Any) -> bytes:
        params = [{"name": one.text(1), "value": one.text(2)} for one in request.messages(2)]
        self.peer.store.params(request.message(1).text(1), {"params": params})
        return integer(1, len(params))

    def LogTags(self, request: Message, context: Any) -> bytes:
        tags = [{"key": one.text(1), "value": one.text(2)} for one in request.messages(2)]
        self.peer.store.tags(request.message(1).text(1), {"tags": tags, "remove_keys": request.texts(3)})
        return b""

    def CreateArtifactUpload(self, request: Message, context: Any) -> bytes:
        metadata = request.message(2)
        kinds = {number: name for name, number in ARTIFACT_TYPES.items()}
        body = {
            "name": metadata.text(1),
            "type": kinds[metadata.integer(2)],
            "mime_type": metadata.text(3),
            "size_bytes": metadata.integer(4),
            "md5_checksum": metadata.text(5),
        }
        found = self.peer.store.create_upload(request.message(1).text(1), {"metadata": body}, self.peer.url)
        headers = b"".join(data(4, text(1, key) + text(2, value)) for key, value in found["required_headers"].items())
        return text(1, found["upload_id"]) + text(2, found["presigned_url"]) + headers

    def FinalizeArtifactUpload(self, request: Message, context: Any) -> bytes:
        body = {"actual_size_bytes": request.integer(2), "md5_checksum": request.text(3)}
        self.peer.store.finalize(request.text(1), body)
        return b""

    def Heartbeat(self, request: Message, context: Any) -> bytes:
        return integer(2, self.peer.store.beat(request.message(1).text(1))["request_resync"])

    def FinishRun(self, request: Message, context: Any) -> bytes:
        names = {number: name for name, number in STATUSES.items()}
        self.peer.store.finish(request.message(1).text(1), {"status": names[request.integer(2)]})
        return b""


@pytest.fixture
def both(peer: Peer) -> Iterator[GrpcPeer]:
    found = GrpcPeer(peer)
    found.start()
    yield found
    found.stop()


@pytest.fixture
def grpc_options(both: GrpcPeer, options: Options) -> Options:
    return {**options, "grpc": both.target, "transport": "grpc"}


def test_a_whole_run_goes_over_grpc(both: GrpcPeer, peer: Peer, grpc_options: Options, tmp_path: Any) -> None:
    (tmp_path / "file").write_text("x")
    values = {0: 0.5, 1: math.inf, 2: -math.inf, 3: -0.0, 4: 5e-324}
    odd = struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000123))[0]
    run = kindex.init(**{**grpc_options, "heartbeat_seconds": 0.05}, tags={"t": "1"}, config={"lr": 0.1})
    for step, value in values.items():
        run.log({"loss": value}, step=step)
    run.log({"loss": odd}, step=5)
    run.log_tags({"u": "2"}, remove=["t"])
    run.log_artifact(tmp_path / "file", type="code")
    until(lambda: run.run_id in peer.store.runs and peer.run(run.run_id).heartbeats > 0)
    assert run.finish().complete
    stored = peer.run(run.run_id)
    assert stored.params == {"lr": "0.1"} and stored.tags == {"u": "2"} and stored.artifacts == {"file": b"x"}
    for step, value in values.items():
        assert stored.points["loss", step][0] == struct.pack("<d", value)
    assert stored.points["loss", 5][0] == struct.pack("<Q", 0xFFF8000000000123)
    assert stored.status == "finished" and stored.order == [1] and peer.requests == []


def test_a_lost_answer_over_grpc_stores_each_point_once(both: GrpcPeer, peer: Peer, grpc_options: Options) -> None:
    both.fault = lambda name: "drop-answer" if name == "LogMetrics" and both.calls.count(name) % 2 else None
    run = kindex.init(**{**grpc_options, "batch_points": 10})
    for step in range(50):
        run.log({"loss": step})
    assert run.finish().complete
    assert peer.run(run.run_id).accepted == 50 and both.calls.count("LogMetrics") >= 10


def test_retry_info_is_honored(both: GrpcPeer, grpc_options: Options) -> None:
    transport = Grpc(load(grpc_options, {}))
    both.fault = lambda name: Refused(429, "RESOURCE_EXHAUSTED", "BUSY", "5")
    with pytest.raises(Refusal) as refused:
        transport.heartbeat("x")
    assert refused.value.retry_after_s == 5 and refused.value.has("BUSY") and refused.value.reached
    transport.close()


def test_a_crashed_run_is_resumed_over_grpc(both: GrpcPeer, peer: Peer, grpc_options: Options) -> None:
    run = kindex.init(**grpc_options)
    run.log({"loss": 1.0})
    assert run.flush()
    peer.run(run.run_id).status = "crashed"
    run.log({"loss": 2.0})
    assert run.finish().complete and len(peer.series(run.run_id, "loss")) == 2


def test_rest_is_used_when_grpc_is_unreachable_with_the_same_ids(
    both: GrpcPeer, peer: Peer, grpc_options: Options
) -> None:
    """The answer is lost over gRPC, and the same batch goes over REST: stored once although both have it."""
    both.fault = lambda name: "drop-answer" if name == "LogMetrics" else None
    peer.store.batch = _as_grpc_hashes(peer)  # type: ignore[method-assign]
    run = kindex.init(**{**grpc_options, "transport": "auto"})
    for step in range(20):
        run.log({"loss": step})
    assert run.finish().complete
    assert peer.run(run.run_id).accepted == 20
    assert "LogMetrics" in both.calls and peer.bodies("batch")


def _as_grpc_hashes(peer: Peer) -> Callable[[Dict[str, Any]], Dict[str, Any]]:
    """The content of a batch is the same over both transports: hash the REST body as the gRPC side does."""
    import calendar
    import time

    def batch(body: Dict[str, Any]) -> Dict[str, Any]:
        points = []
        for one in body["metrics"]:
            seconds = calendar.timegm(time.strptime(one["timestamp"][:19], "%Y-%m-%dT%H:%M:%S"))
            nanos = int(one["timestamp"][20:26]) * 1000
            points.append((one["name"], one["step"], float(one["value"]), (seconds, nanos)))
        bits = [(name, step, struct.pack("<d", value), stamp) for name, step, value, stamp in points]
        digest = hashlib.sha256(repr(bits).encode()).hexdigest()
        return peer.store.apply(peer.store.run(body["run_id"]), body["batch_id"], digest, body.get("seq"), points)

    return batch


def test_a_nan_with_a_payload_survives_the_change_to_rest(both: GrpcPeer, peer: Peer, grpc_options: Options) -> None:
    both.fault = lambda name: "drop-answer" if name == "LogMetrics" else None
    peer.store.batch = _as_grpc_hashes(peer)  # type: ignore[method-assign]
    odd = struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000123))[0]
    run = kindex.init(**{**grpc_options, "transport": "auto"})
    run.log({"loss": odd, "other": 1.0})
    report = run.finish()
    assert report.complete and report.points_set_aside == 0 and report.points_delivered == 2
    assert peer.run(run.run_id).points["loss", 0][0] == struct.pack("<Q", 0xFFF8000000000123)


def test_no_grpc_server_at_all_means_rest(peer: Peer, options: Options) -> None:
    run = kindex.init(**{**options, "transport": "auto", "grpc": f"127.0.0.1:{free_port()}"})
    run.log({"loss": 1.0})
    assert run.finish().complete and peer.status(run.run_id) == "finished"


def test_grpc_is_tried_again_after_a_while() -> None:
    class Way:
        def __init__(self, name: str) -> None:
            self.name, self.calls, self.down = name, 0, False

        def heartbeat(self, run_id: str) -> bool:
            self.calls += 1
            if self.down:
                raise Refusal("UNAVAILABLE", "down", reached=False)
            return False

    now = [0.0]
    first, second = Way("grpc"), Way("rest")
    either = _transport.Either(first, second, lambda: now[0])  # type: ignore[arg-type]
    first.down = True
    either.heartbeat("r")
    either.heartbeat("r")
    assert (first.calls, second.calls, either.name) == (1, 2, "rest")
    first.down = False
    now[0] = _transport.GRPC_PAUSE_S + 1
    either.heartbeat("r")
    assert (first.calls, second.calls, either.name) == (2, 2, "grpc")


def test_the_key_goes_as_metadata(both: GrpcPeer, peer: Peer, grpc_options: Options) -> None:
    peer.store.key = "secret"
    run = kindex.init(**grpc_options, api_key="secret")
    until(lambda: run.run_id in peer.store.runs)
    run.finish()


def test_a_forked_child_uses_rest_while_the_parent_uses_grpc(both: GrpcPeer, options: Options) -> None:
    config = load({**options, "grpc": both.target, "transport": "auto"}, {})
    assert _transport.open_transport(config, forked=True).name == "rest"
    assert threading.active_count() > 0
