"""The requests and answers of the ingest service, and what a transport offers. Knows no encoding."""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Protocol, Tuple

from ._classify import Detail
from ._records import Points


class SystemInfo(NamedTuple):
    hostname: str
    os: str
    python_version: str
    cpu_count: int
    memory_bytes: int


class InitRun(NamedTuple):
    project: str
    run_id: str
    name: str
    description: str
    tags: Dict[str, str]
    parent_run_id: str
    resume_token: str
    system: SystemInfo


class InitAnswer(NamedTuple):
    run_id: str
    resume_token: str
    resumed: bool
    warnings: Tuple[Detail, ...]


class Batch(NamedTuple):
    run_id: str
    batch_id: str
    sequence: Optional[int]
    points: List[Points]


class BatchAnswer(NamedTuple):
    accepted: int
    deduplicated: int
    warnings: Tuple[Detail, ...]


class Artifact(NamedTuple):
    run_id: str
    name: str
    type: str
    mime_type: str
    size_bytes: int
    md5_hex: str


class Upload(NamedTuple):
    upload_id: str
    url: str
    headers: Dict[str, str]


class Finish(NamedTuple):
    run_id: str
    status: str
    exit_code: Optional[int]
    error_message: str


#: Status and artifact type by name, as REST has them, with their numbers in protobuf.
STATUSES = {"running": 1, "finished": 2, "failed": 3, "crashed": 4, "killed": 5}
ARTIFACT_TYPES = {
    "unspecified": 0,
    "model": 1,
    "dataset": 2,
    "image": 3,
    "audio": 4,
    "video": 5,
    "table": 6,
    "code": 7,
    "other": 99,
}


class Transport(Protocol):
    """One way to the server. Every method raises `Refusal` and nothing else. Not shared between threads."""

    @property
    def name(self) -> str: ...

    def init_run(self, request: InitRun) -> InitAnswer: ...

    def log_metrics(self, batch: Batch) -> BatchAnswer: ...

    def log_params(self, run_id: str, params: Dict[str, str]) -> Tuple[Detail, ...]: ...

    def log_tags(self, run_id: str, tags: Dict[str, str], remove: List[str]) -> Tuple[Detail, ...]: ...

    def create_upload(self, artifact: Artifact) -> Upload: ...

    def finalize_upload(self, upload_id: str, size_bytes: int, md5_hex: str) -> Tuple[Detail, ...]: ...

    def heartbeat(self, run_id: str) -> bool: ...

    def finish_run(self, request: Finish) -> Tuple[Detail, ...]: ...

    def close(self) -> None: ...
