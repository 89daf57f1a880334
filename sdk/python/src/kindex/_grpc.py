"""gRPC over `grpcio`, an extra of the package. The messages are encoded by `_proto`, so that no stubs are needed."""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import _proto
from ._classify import Detail, Refusal
from ._config import Config, grpc_is_secure, grpc_target
from ._protocol import Artifact, Batch, BatchAnswer, Finish, InitAnswer, InitRun, Upload
from ._wire import Message

_SERVICE = "/mlrun.v1.IngestService/"
_DETAILS = "grpc-status-details-bin"


def is_installed() -> bool:
    """Whether `pip install kindex[grpc]` was done."""
    try:
        import grpc  # noqa: F401
    except ImportError:
        return False
    return True


class Grpc:
    """The gRPC transport."""

    name = "grpc"

    def __init__(self, config: Config) -> None:
        import grpc

        self._grpc: Any = grpc
        self._config = config
        self._target = grpc_target(config)
        self._metadata: List[Tuple[str, str]] = []
        if config.api_key:
            self._metadata.append(("authorization", f"Bearer {config.api_key}"))
        # A global pool of subchannels would keep the backoff of an earlier failure.
        options = [
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.min_reconnect_backoff_ms", int(config.connect_seconds * 1000)),
        ]
        if grpc_is_secure(config):
            self._channel: Any = grpc.secure_channel(self._target, grpc.ssl_channel_credentials(), options)
        else:
            self._channel = grpc.insecure_channel(self._target, options)
        self._calls: Dict[str, Callable[..., bytes]] = {}

    def init_run(self, request: InitRun) -> InitAnswer:
        return _proto.init_answer(self._ask("InitRun", _proto.init_run(request)))

    def log_metrics(self, batch: Batch) -> BatchAnswer:
        return _proto.batch_answer(self._ask("LogMetrics", _proto.log_metrics(batch)))

    def log_params(self, run_id: str, params: Dict[str, str]) -> Tuple[Detail, ...]:
        return self._warnings("LogParams", _proto.log_params(run_id, params), 3)

    def log_tags(self, run_id: str, tags: Dict[str, str], remove: List[str]) -> Tuple[Detail, ...]:
        return self._warnings("LogTags", _proto.log_tags(run_id, tags, remove), 3)

    def create_upload(self, artifact: Artifact) -> Upload:
        return _proto.upload(self._ask("CreateArtifactUpload", _proto.create_upload(artifact)))

    def finalize_upload(self, upload_id: str, size_bytes: int, md5_hex: str) -> Tuple[Detail, ...]:
        return self._warnings("FinalizeArtifactUpload", _proto.finalize_upload(upload_id, size_bytes, md5_hex), 2)

    def heartbeat(self, run_id: str) -> bool:
        answer = self._ask("Heartbeat", _proto.heartbeat(run_id, time.time_ns() // 1000))
        return bool(Message(answer).integer(2))

    def finish_run(self, request: Finish) -> Tuple[Detail, ...]:
        return self._warnings("FinishRun", _proto.finish_run(request), 5)

    def close(self) -> None:
        self._channel.close()

    def _warnings(self, method: str, request: bytes, field: int) -> Tuple[Detail, ...]:
        return _proto.warnings(Message(self._ask(method, request)), field)

    def _ask(self, method: str, request: bytes) -> bytes:
        call = self._calls.get(method)
        if call is None:
            call = self._calls[method] = self._channel.unary_unary(_SERVICE + method)
        try:
            return call(request, timeout=self._config.request_seconds, metadata=self._metadata)
        except self._grpc.RpcError as error:
            raise self._refusal(error) from error
        except ValueError as error:
            raise Refusal("UNAVAILABLE", f"{self._target}: {error}", reached=False) from error

    def _refusal(self, error: Any) -> Refusal:
        details: Optional[bytes] = None
        for key, value in error.trailing_metadata() or ():
            if key == _DETAILS:
                details = value
        found = _proto.refusal(error.code().name, error.details() or "", details)
        found.reached = found.code not in ("UNAVAILABLE", "DEADLINE_EXCEEDED", "UNIMPLEMENTED", "UNKNOWN")
        found.message = f"{self._target}: {found.message}"
        return found
