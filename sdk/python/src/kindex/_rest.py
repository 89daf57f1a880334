"""REST over the standard library: one kept connection, gzip, time limits."""

from __future__ import annotations

import gzip
import http.client
import socket
import time
from typing import Any, Callable, Dict, List, Optional, Tuple, TypeVar
from urllib.parse import quote, urlsplit

from . import _json
from ._classify import Detail, Refusal
from ._config import Config
from ._protocol import Artifact, Batch, BatchAnswer, Finish, InitAnswer, InitRun, Upload

_T = TypeVar("_T")
_ANSWER_BYTES_MAX = 8 * 1024 * 1024


def connect(url: str, connect_s: float, request_s: float) -> http.client.HTTPConnection:
    """An open connection to the host of a URL. Errors: `OSError`."""
    parts = urlsplit(url)
    make = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = make(parts.hostname or "", parts.port, timeout=connect_s)
    connection.connect()
    connection.sock.settimeout(request_s)
    connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


class Rest:
    """The REST transport."""

    name = "rest"

    def __init__(self, config: Config) -> None:
        self._config = config
        self._base = urlsplit(config.url).path.rstrip("/") + "/api/v1"
        self._connection: Optional[http.client.HTTPConnection] = None

    def init_run(self, request: InitRun) -> InitAnswer:
        return self._ask("/runs", _json.init_body(request), _json.init_answer)

    def log_metrics(self, batch: Batch) -> BatchAnswer:
        return self._ask("/ingest/batch", _json.batch_body(batch), _json.batch_answer)

    def log_params(self, run_id: str, params: Dict[str, str]) -> Tuple[Detail, ...]:
        return self._ask(f"/runs/{quote(run_id)}/params", _json.params_body(params), _json.warnings)

    def log_tags(self, run_id: str, tags: Dict[str, str], remove: List[str]) -> Tuple[Detail, ...]:
        return self._ask(f"/runs/{quote(run_id)}/tags", _json.tags_body(tags, remove), _json.warnings)

    def create_upload(self, artifact: Artifact) -> Upload:
        return self._ask(f"/runs/{quote(artifact.run_id)}/artifacts", _json.artifact_body(artifact), _json.upload)

    def finalize_upload(self, upload_id: str, size_bytes: int, md5_hex: str) -> Tuple[Detail, ...]:
        path = f"/artifacts/{quote(upload_id, safe='')}/finalize"
        return self._ask(path, _json.finalize_body(size_bytes, md5_hex), _json.warnings)

    def heartbeat(self, run_id: str) -> bool:
        body = _json.heartbeat_body(time.time_ns() // 1000)
        return self._ask(f"/runs/{quote(run_id)}/heartbeat", body, lambda answer: bool(answer.get("request_resync")))

    def finish_run(self, request: Finish) -> Tuple[Detail, ...]:
        return self._ask(f"/runs/{quote(request.run_id)}/finish", _json.finish_body(request), _json.warnings)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _ask(self, path: str, body: bytes, read: Callable[[Dict[str, Any]], _T]) -> _T:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._config.api_key:
            headers["Authorization"] = f"Bearer {self._config.api_key}"
        if len(body) >= self._config.gzip_bytes:
            body = gzip.compress(body, compresslevel=3)
            headers["Content-Encoding"] = "gzip"
        try:
            status, content, retry_after = self._exchange(path, body, headers)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise Refusal("UNAVAILABLE", f"{self._config.url}: {reason}", reached=False) from error
        if not 200 <= status < 300:
            raise _json.refusal(status, content, retry_after)
        try:
            return read(_json.object_of(content))
        except (ValueError, KeyError, TypeError) as error:
            self.close()
            message = f"{self._config.url} sent an answer that is not of this protocol: {error}"
            raise Refusal("UNKNOWN", message) from error

    def _exchange(self, path: str, body: bytes, headers: Dict[str, str]) -> Tuple[int, bytes, Optional[str]]:
        fresh = self._connection is None
        try:
            return self._exchange_once(path, body, headers)
        except (http.client.RemoteDisconnected, ConnectionError):
            # A kept connection may have been closed meanwhile. Every request here may be sent twice.
            self.close()
            if fresh:
                raise
        return self._exchange_once(path, body, headers)

    def _exchange_once(self, path: str, body: bytes, headers: Dict[str, str]) -> Tuple[int, bytes, Optional[str]]:
        if self._connection is None:
            config = self._config
            self._connection = connect(config.url, config.connect_seconds, config.request_seconds)
        self._connection.request("POST", self._base + path, body, headers)
        answer = self._connection.getresponse()
        content = answer.read(_ANSWER_BYTES_MAX)
        if not answer.isclosed() or answer.will_close:
            self.close()
        return answer.status, content, answer.getheader("Retry-After")
