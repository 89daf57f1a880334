"""Requests as messages of `mlrun.v1` and answers from them, with the field numbers of its proto files. Pure."""

from __future__ import annotations

from typing import Dict, List, Optional, Sequence, Tuple

from ._classify import Detail, Refusal
from ._protocol import ARTIFACT_TYPES, STATUSES, Artifact, Batch, BatchAnswer, Finish, InitAnswer, InitRun, Upload
from ._wire import Message, data, double, integer, present, text, varint

#: Tag of `MetricBatch.points`.
_POINT = b"\x0a"
_SEVERITIES = {1: "WARNING", 2: "ERROR"}


def timestamp(time_us: int) -> bytes:
    """`google.protobuf.Timestamp`."""
    seconds, rest = divmod(time_us, 1_000_000)
    return integer(1, seconds) + integer(2, rest * 1000)


def wrapped(value: str) -> bytes:
    """`RunId` and `ProjectId`."""
    return text(1, value)


def pairs(field: int, values: Dict[str, str]) -> bytes:
    """Repeated `Parameter` or `Tag`."""
    return b"".join(data(field, text(1, key) + text(2, value)) for key, value in values.items())


def init_run(request: InitRun) -> bytes:
    system = request.system
    info = (
        text(1, system.hostname)
        + text(2, system.os)
        + text(3, system.python_version)
        + integer(5, system.cpu_count)
        + integer(6, system.memory_bytes)
    )
    return (
        data(1, wrapped(request.project))
        + text(2, request.run_id)
        + text(3, request.name)
        + text(4, request.description)
        + pairs(5, request.tags)
        + data(6, info)
        + text(8, request.parent_run_id)
        + text(9, request.resume_token)
    )


def log_metrics(batch: Batch) -> bytes:
    points: List[bytes] = []
    encoded: Dict[str, bytes] = {}
    for record in batch.points:
        step, time = integer(2, record.step), data(4, timestamp(record.time_us))
        rest = len(step) + len(time)
        for name, value in zip(record.names, record.values):
            named = encoded.get(name)
            if named is None:
                named = encoded[name] = text(1, name)
            number = double(3, value)
            points += (_POINT, varint(len(named) + len(number) + rest), named, step, number, time)
    sequence = b"" if batch.sequence is None else present(4, batch.sequence)
    return data(1, wrapped(batch.run_id)) + data(2, b"".join(points)) + text(3, batch.batch_id) + sequence


def log_params(run_id: str, params: Dict[str, str]) -> bytes:
    return data(1, wrapped(run_id)) + pairs(2, params)


def log_tags(run_id: str, tags: Dict[str, str], remove: Sequence[str]) -> bytes:
    return data(1, wrapped(run_id)) + pairs(2, tags) + b"".join(data(3, key.encode()) for key in remove)


def create_upload(artifact: Artifact) -> bytes:
    metadata = (
        text(1, artifact.name)
        + integer(2, ARTIFACT_TYPES[artifact.type])
        + text(3, artifact.mime_type)
        + integer(4, artifact.size_bytes)
        + text(5, artifact.md5_hex)
    )
    return data(1, wrapped(artifact.run_id)) + data(2, metadata) + integer(3, artifact.size_bytes)


def finalize_upload(upload_id: str, size_bytes: int, md5_hex: str) -> bytes:
    return text(1, upload_id) + integer(2, size_bytes) + text(3, md5_hex)


def heartbeat(run_id: str, now_us: int) -> bytes:
    return data(1, wrapped(run_id)) + data(2, timestamp(now_us))


def finish_run(request: Finish) -> bytes:
    exit_code = b"" if request.exit_code is None else present(3, request.exit_code)
    status = integer(2, STATUSES[request.status])
    return data(1, wrapped(request.run_id)) + status + exit_code + text(4, request.error_message)


def detail(message: Message) -> Detail:
    severity = _SEVERITIES.get(message.integer(4), "")
    return Detail(message.text(1), message.text(2), message.text(3), severity)


def warnings(answer: Message, field: int) -> Tuple[Detail, ...]:
    return tuple(detail(one) for one in answer.messages(field))


def init_answer(content: bytes) -> InitAnswer:
    answer = Message(content)
    run_id = answer.message(1).text(1)
    return InitAnswer(run_id, answer.text(2), bool(answer.integer(4)), warnings(answer, 5))


def batch_answer(content: bytes) -> BatchAnswer:
    answer = Message(content)
    return BatchAnswer(answer.integer(1), answer.integer(2), warnings(answer, 3))


def upload(content: bytes) -> Upload:
    answer = Message(content)
    headers = {entry.text(1): entry.text(2) for entry in answer.messages(4)}
    return Upload(answer.text(1), answer.text(2), headers)


def refusal(code: str, message: str, status_details: Optional[bytes]) -> Refusal:
    """The refusal of a gRPC status with the `google.rpc.Status` of `grpc-status-details-bin`."""
    listed: List[Detail] = []
    wait: Optional[float] = None
    try:
        for entry in Message(status_details or b"").messages(3):
            kind, body = entry.text(1).rsplit("/", 1)[-1], entry.message(2)
            if kind == "google.rpc.RetryInfo":
                delay = body.message(1)
                wait = delay.integer(1) + delay.integer(2) / 1e9
            elif kind == "google.rpc.ErrorInfo":
                listed.append(Detail(body.text(1), message))
            elif kind == "mlrun.v1.ErrorDetail":
                listed.append(detail(body))
    except ValueError:
        listed.append(Detail("", "the details of the error could not be read"))
    return Refusal(code, message, tuple(listed), wait)
