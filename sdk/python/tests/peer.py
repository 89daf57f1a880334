"""A small server of the protocol for tests: REST, in memory, with the rules that a client can notice.

The ledger knows batch ids and the hash of their content; runs have their states; faults are planted by `fault`.
It keeps what it knows when it is stopped and started again.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import math
import re
import socket
import struct
import threading
import time
import uuid
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Tuple

from kindex import _folder

END = ("finished", "failed", "killed")


class Refused(Exception):
    def __init__(self, status: int, code: str, reason: str, retry_after: str = "") -> None:
        super().__init__(reason)
        self.status, self.code, self.reason, self.retry_after = status, code, reason, retry_after


@dataclass
class StoredRun:
    run_id: str
    project: str
    tags: Dict[str, str]
    status: str = "running"
    token: str = ""
    generation: int = 0
    points: Dict[Tuple[str, int], Tuple[bytes, Any]] = field(default_factory=dict)
    accepted: int = 0
    ledger: Dict[str, Tuple[str, int]] = field(default_factory=dict)
    order: List[Optional[int]] = field(default_factory=list)
    params: Dict[str, str] = field(default_factory=dict)
    artifacts: Dict[str, bytes] = field(default_factory=dict)
    artifacts_max: int = 10_000
    heartbeats: int = 0
    name: str = ""


def read_value(value: Any) -> float:
    named = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
    if isinstance(value, str):
        if value not in named:
            raise Refused(400, "INVALID_ARGUMENT", "BAD_VALUE")
        return named[value]
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise Refused(400, "INVALID_ARGUMENT", "BAD_VALUE")
    return float(value)


def strict_json(content: bytes) -> Any:
    def no_constant(text: str) -> Any:
        raise Refused(400, "INVALID_ARGUMENT", f"bare {text}")

    return json.loads(content, parse_constant=no_constant)


class Store:
    """What the server knows. All methods are called with the lock held."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.runs: Dict[str, StoredRun] = {}
        self.uploads: Dict[str, Dict[str, Any]] = {}
        self.inits: List[Dict[str, Any]] = []
        self.key = ""

    def run(self, run_id: str) -> StoredRun:
        if run_id not in self.runs:
            raise Refused(404, "NOT_FOUND", "RUN_NOT_FOUND")
        return self.runs[run_id]

    def init(self, body: Dict[str, Any]) -> Dict[str, Any]:
        self.inits.append(body)
        if not re.fullmatch(r"[a-z][a-z0-9_-]{0,127}", body["project"]):
            raise Refused(400, "INVALID_ARGUMENT", "INVALID_PROJECT")
        run_id, token = body.get("run_id") or str(uuid.uuid4()), body.get("resume_token")
        run = self.runs.get(run_id)
        resumed = run is not None
        if run is None:
            if token:
                raise Refused(404, "NOT_FOUND", "RUN_NOT_FOUND")
            run = self.runs[run_id] = StoredRun(run_id, body["project"], dict(body.get("tags", {})))
            run.name = body.get("name", "")
        if run.status in END:
            raise Refused(412, "FAILED_PRECONDITION", "RUN_TERMINAL")
        if run.status == "crashed":
            if not token:
                raise Refused(412, "FAILED_PRECONDITION", "RESUME_TOKEN_REQUIRED")
            if token != run.token:
                raise Refused(403, "PERMISSION_DENIED", "RESUME_TOKEN_INVALID")
            run.status = "running"
        run.generation += 1
        run.token = f"token-{run_id}-{run.generation}"
        return {"run_id": run_id, "offline": False, "resume_token": run.token, "resumed": resumed, "warnings": []}

    def batch(self, body: Dict[str, Any]) -> Dict[str, Any]:
        run, batch_id = self.run(body["run_id"]), body.get("batch_id")
        if not batch_id:
            raise Refused(400, "INVALID_ARGUMENT", "BATCH_ID_REQUIRED")
        sent = body["metrics"]
        points = [(one["name"], int(one["step"]), read_value(one["value"]), one.get("timestamp")) for one in sent]
        digest = hashlib.sha256(
            repr([(name, step, struct.pack("<d", value), time) for name, step, value, time in points]).encode()
        ).hexdigest()
        return self.apply(run, batch_id, digest, body.get("seq"), points)

    def apply(
        self,
        run: StoredRun,
        batch_id: str,
        digest: str,
        sequence: Optional[int],
        points: List[Tuple[str, int, float, Any]],
    ) -> Dict[str, Any]:
        if batch_id in run.ledger:
            if run.ledger[batch_id][0] != digest:
                raise Refused(409, "ALREADY_EXISTS", "BATCH_ID_CONFLICT")
            warning = {"code": "DUPLICATE_BATCH", "message": "", "field": "", "severity": "WARNING"}
            return {"accepted": 0, "duplicate": True, "deduplicated_points": len(points), "warnings": [warning]}
        if run.status != "running":
            reason = "RUN_CRASHED" if run.status == "crashed" else "RUN_TERMINAL"
            raise Refused(412, "FAILED_PRECONDITION", reason)
        run.ledger[batch_id] = (digest, len(points))
        run.order.append(sequence)
        run.accepted += len(points)
        for name, step, value, timestamp in points:
            run.points[name, step] = (struct.pack("<d", value), timestamp)
        return {"status": "ok", "accepted": len(points), "duplicate": False, "warnings": []}

    def params(self, run_id: str, body: Dict[str, Any]) -> Dict[str, Any]:
        run = self.run(run_id)
        if run.status != "running":
            raise Refused(412, "FAILED_PRECONDITION", "RUN_" + ("CRASHED" if run.status == "crashed" else "TERMINAL"))
        for one in body["params"]:
            run.params.setdefault(one["name"], one["value"])
        return {"accepted_count": len(body["params"])}

    def tags(self, run_id: str, body: Dict[str, Any]) -> Dict[str, Any]:
        run = self.run(run_id)
        run.tags.update({one["key"]: one["value"] for one in body["tags"]})
        for key in body.get("remove_keys", []):
            run.tags.pop(key, None)
        return {}

    def beat(self, run_id: str) -> Dict[str, Any]:
        run = self.run(run_id)
        if run.status in END:
            raise Refused(412, "FAILED_PRECONDITION", "RUN_TERMINAL")
        run.heartbeats += 1
        return {"request_resync": run.status == "crashed"}

    def finish(self, run_id: str, body: Dict[str, Any]) -> Dict[str, Any]:
        run = self.run(run_id)
        if body["status"] not in END:
            raise Refused(400, "INVALID_ARGUMENT", "BAD_STATUS")
        if run.status in END and run.status != body["status"]:
            raise Refused(412, "FAILED_PRECONDITION", "RUN_TERMINAL")
        if run.status == "crashed" and body["status"] == "finished":
            raise Refused(412, "FAILED_PRECONDITION", "RUN_CRASHED")
        run.status = body["status"]
        return {"status": "ok"}

    def create_upload(self, run_id: str, body: Dict[str, Any], base: str) -> Dict[str, Any]:
        run = self.run(run_id)
        if len(run.artifacts) >= run.artifacts_max:
            raise Refused(412, "FAILED_PRECONDITION", "TOO_MANY")
        metadata, upload_id = body["metadata"], uuid.uuid4().hex
        md5 = base64.b64encode(bytes.fromhex(metadata["md5_checksum"])).decode()
        headers = {
            "Content-Type": metadata["mime_type"],
            "Content-Length": str(metadata["size_bytes"]),
            "Content-MD5": md5,
        }
        self.uploads[upload_id] = {"run": run_id, "metadata": metadata, "headers": headers, "content": None}
        return {"upload_id": upload_id, "presigned_url": f"{base}/put/{upload_id}?s=1", "required_headers": headers}

    def finalize(self, upload_id: str, body: Dict[str, Any]) -> Dict[str, Any]:
        if upload_id not in self.uploads:
            raise Refused(404, "NOT_FOUND", "UPLOAD_NOT_FOUND")
        upload = self.uploads[upload_id]
        content = upload["content"]
        if content is None or len(content) != body["actual_size_bytes"]:
            del self.uploads[upload_id]
            raise Refused(412, "FAILED_PRECONDITION", "UPLOAD_MISSING")
        if hashlib.md5(content).hexdigest() != body["md5_checksum"]:
            raise Refused(400, "INVALID_ARGUMENT", "CHECKSUM_MISMATCH")
        self.run(upload["run"]).artifacts[upload["metadata"]["name"]] = content
        return {"artifact": upload["metadata"]}

    def post(self, path: str, body: Dict[str, Any], base: str) -> Dict[str, Any]:
        parts = path.split("/")[3:]
        if parts == ["runs"]:
            return self.init(body)
        if parts == ["ingest", "batch"]:
            return self.batch(body)
        if parts[0] == "artifacts" and parts[2] == "finalize":
            return self.finalize(parts[1], body)
        if parts[0] == "runs" and parts[2] == "artifacts":
            return self.create_upload(parts[1], body, base)
        action = {"params": self.params, "tags": self.tags, "finish": self.finish}.get(parts[2])
        if action:
            return action(parts[1], body)
        if parts[2] == "heartbeat":
            return self.beat(parts[1])
        raise Refused(404, "NOT_FOUND", "no such route")


#: A fault sees (path, body) before anything is done. It may return "drop-answer", "reset", a Refused to raise, or None.
Fault = Callable[[str, Dict[str, Any]], Any]


class Peer:
    """The server with its listener."""

    def __init__(self) -> None:
        self.store = Store()
        self.fault: Optional[Fault] = None
        #: Sees the path of a PUT. It may return the status to answer with in place of taking the file.
        self.put_fault: Optional[Callable[[str], Optional[int]]] = None
        self.requests: List[Tuple[str, Dict[str, Any]]] = []
        self.headers: List[Dict[str, str]] = []
        self.port = free_port()
        self._server: Optional[ThreadingHTTPServer] = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        peer = self

        class Handler(_Handler):
            owner = peer

        self._server = _Server(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            for connection in list(self._server.open_connections):
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue
            self._server = None

    def run(self, run_id: str) -> StoredRun:
        return self.store.runs[run_id]

    def series(self, run_id: str, name: str) -> Dict[int, float]:
        """The values of a series by step."""
        points = dict(self.run(run_id).points)
        return {step: struct.unpack("<d", bits)[0] for (one, step), (bits, _) in points.items() if one == name}

    def status(self, run_id: str) -> str:
        return self.run(run_id).status if run_id in self.store.runs else "unknown"

    def params(self, run_id: str) -> Dict[str, str]:
        return dict(self.run(run_id).params)

    def bodies(self, path_end: str) -> List[Dict[str, Any]]:
        return [body for path, body in list(self.requests) if path.endswith(path_end)]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, *arguments: Any) -> None:
        self.open_connections: set = set()
        super().__init__(*arguments)

    def handle_error(self, *_: Any) -> None:
        return None


class _Handler(BaseHTTPRequestHandler):
    owner: Peer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self) -> None:
        super().setup()
        self.server.open_connections.add(self.connection)

    def finish(self) -> None:
        self.server.open_connections.discard(self.connection)
        super().finish()

    def log_message(self, *_: Any) -> None:
        return None

    def do_PUT(self) -> None:
        upload = self.owner.store.uploads[self.path.split("/")[2].split("?")[0]]
        content = self.rfile.read(int(self.headers["Content-Length"]))
        fault = self.owner.put_fault(self.path) if self.owner.put_fault else None
        if fault:
            self._answer(fault, {})
            return
        named = all(self.headers.get(key) == value for key, value in upload["headers"].items())
        if named:
            upload["content"] = content
        self._answer(200 if named else 403, {})

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            content = gzip.decompress(content)
        owner = self.owner
        try:
            body = strict_json(content)
            owner.requests.append((self.path, body))
            owner.headers.append(dict(self.headers))
            fault = owner.fault(self.path, body) if owner.fault else None
            if isinstance(fault, Refused):
                raise fault
            if fault == "reset":
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.close_connection = True
                self.connection.close()
                return
            with owner.store.lock:
                if owner.store.key and self.headers.get("Authorization") != f"Bearer {owner.store.key}":
                    raise Refused(401, "UNAUTHENTICATED", "KEY_UNKNOWN")
                answer = owner.store.post(self.path, body, owner.url)
            if fault == "drop-answer":
                self.close_connection = True
                self.connection.close()
                return
            self._answer(200, answer)
        except Refused as refused:
            detail = {"code": refused.reason, "message": refused.reason, "field": "", "severity": "ERROR"}
            error = {"code": refused.code, "message": refused.reason, "details": [detail]}
            self._answer(refused.status, {"error": error}, refused.retry_after)

    def _answer(self, status: int, body: Dict[str, Any], retry_after: str = "") -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        if retry_after:
            self.send_header("Retry-After", retry_after)
        self.end_headers()
        self.wfile.write(content)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(condition: Callable[[], bool], timeout_s: float = 60.0) -> None:
    """Wait for a condition of another thread or process."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "the condition never came true"
        threading.Event().wait(0.01)


def spools(options: Dict[str, Any]) -> List[Path]:
    """The runs that wait in the folder of the options."""
    return _folder.listed(Path(options["dir"]))
