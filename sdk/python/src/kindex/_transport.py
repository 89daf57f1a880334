"""Which transport is used: gRPC where it is installed and reachable, REST otherwise. The ids are the same over both."""

from __future__ import annotations

import time
from typing import Callable, Dict, List, Optional, Tuple, TypeVar

from ._classify import Detail, Refusal
from ._config import Config
from ._grpc import Grpc, is_installed
from ._protocol import Artifact, Batch, BatchAnswer, Finish, InitAnswer, InitRun, Transport, Upload
from ._rest import Rest

_T = TypeVar("_T")

#: How long REST is used before gRPC is tried again.
GRPC_PAUSE_S = 300.0


def open_transport(config: Config, forked: bool = False) -> Transport:
    """The transport that the configuration asks for.

    A forked child is given REST: grpcio does not survive a fork of a process that used it.
    Errors: `ValueError` when gRPC is asked for and is not installed.
    """
    if config.transport == "rest" or forked:
        return Rest(config)
    if config.transport == "grpc":
        if not is_installed():
            raise ValueError("kindex: transport=grpc needs grpcio: pip install 'kindex[grpc]'")
        return Grpc(config)
    return Either(Grpc(config), Rest(config)) if is_installed() else Rest(config)


class Either:
    """gRPC first; the same request over REST when no gRPC server is reached, and REST from then on for a while."""

    def __init__(self, grpc: Transport, rest: Transport, clock: Callable[[], float] = time.monotonic) -> None:
        self._grpc, self._rest = grpc, rest
        self._clock = clock
        self._rest_until: Optional[float] = None

    @property
    def name(self) -> str:
        return self._rest.name if self._prefers_rest() else self._grpc.name

    def init_run(self, request: InitRun) -> InitAnswer:
        return self._ask(lambda way: way.init_run(request))

    def log_metrics(self, batch: Batch) -> BatchAnswer:
        return self._ask(lambda way: way.log_metrics(batch))

    def log_params(self, run_id: str, params: Dict[str, str]) -> Tuple[Detail, ...]:
        return self._ask(lambda way: way.log_params(run_id, params))

    def log_tags(self, run_id: str, tags: Dict[str, str], remove: List[str]) -> Tuple[Detail, ...]:
        return self._ask(lambda way: way.log_tags(run_id, tags, remove))

    def create_upload(self, artifact: Artifact) -> Upload:
        return self._ask(lambda way: way.create_upload(artifact))

    def finalize_upload(self, upload_id: str, size_bytes: int, md5_hex: str) -> Tuple[Detail, ...]:
        return self._ask(lambda way: way.finalize_upload(upload_id, size_bytes, md5_hex))

    def heartbeat(self, run_id: str) -> bool:
        return self._ask(lambda way: way.heartbeat(run_id))

    def finish_run(self, request: Finish) -> Tuple[Detail, ...]:
        return self._ask(lambda way: way.finish_run(request))

    def close(self) -> None:
        self._grpc.close()
        self._rest.close()

    def _prefers_rest(self) -> bool:
        return self._rest_until is not None and self._clock() < self._rest_until

    def _ask(self, ask: Callable[[Transport], _T]) -> _T:
        if self._prefers_rest():
            return ask(self._rest)
        try:
            answer = ask(self._grpc)
            self._rest_until = None
            return answer
        except Refusal as refusal:
            if refusal.reached:
                raise
        answer = ask(self._rest)
        self._rest_until = self._clock() + GRPC_PAUSE_S
        return answer
