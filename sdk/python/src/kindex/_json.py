"""Requests as REST bodies and answers from them. Pure: no connection."""

from __future__ import annotations

import json
import math
import time
from typing import Any, Dict, Iterator, List, Optional, Tuple

from ._classify import Detail, Refusal, code_of_status
from ._protocol import Artifact, Batch, BatchAnswer, Finish, InitAnswer, InitRun, Upload


def rfc3339(time_us: int) -> str:
    """A time in microseconds since 1970 as RFC 3339 in UTC."""
    seconds, rest = divmod(time_us, 1_000_000)
    day = time.gmtime(seconds)
    return (
        f"{day.tm_year:04}-{day.tm_mon:02}-{day.tm_mday:02}T"
        f"{day.tm_hour:02}:{day.tm_min:02}:{day.tm_sec:02}.{rest:06}Z"
    )


def number(value: float) -> str:
    """A double as JSON: the shortest text that reads back to the same double, or the name of what is not finite."""
    if math.isfinite(value):
        return repr(value)
    return '"NaN"' if value != value else '"Infinity"' if value > 0 else '"-Infinity"'


def readable(value: float) -> object:
    """A value for a JSON encoder: a number, or the name of what is not finite."""
    return value if math.isfinite(value) else number(value).strip('"')


def _points(batch: Batch) -> Iterator[str]:
    quoted: Dict[str, str] = {}
    for record in batch.points:
        rest = f',"step":{record.step},"timestamp":"{rfc3339(record.time_us)}"}}'
        for name, value in zip(record.names, record.values):
            if name not in quoted:
                quoted[name] = json.dumps(name)
            yield f'{{"name":{quoted[name]},"value":{number(value)}{rest}'


def batch_body(batch: Batch) -> bytes:
    """The body of `POST /api/v1/ingest/batch`."""
    head: Dict[str, Any] = {"run_id": batch.run_id, "batch_id": batch.batch_id}
    if batch.sequence is not None:
        head["seq"] = batch.sequence
    return (json.dumps(head)[:-1] + ',"params":[],"tags":[],"metrics":[' + ",".join(_points(batch)) + "]}").encode()


def init_body(request: InitRun) -> bytes:
    body: Dict[str, Any] = {"project": request.project, "run_id": request.run_id, "tags": request.tags}
    optional = {
        "name": request.name,
        "description": request.description,
        "parent_run_id": request.parent_run_id,
        "resume_token": request.resume_token,
    }
    body.update({key: value for key, value in optional.items() if value})
    body["system_info"] = request.system._asdict()
    return json.dumps(body).encode()


def params_body(params: Dict[str, str]) -> bytes:
    return json.dumps({"params": [{"name": name, "value": value} for name, value in params.items()]}).encode()


def tags_body(tags: Dict[str, str], remove: List[str]) -> bytes:
    listed = [{"key": key, "value": value} for key, value in tags.items()]
    return json.dumps({"tags": listed, "remove_keys": remove}).encode()


def artifact_body(artifact: Artifact) -> bytes:
    metadata = {
        "name": artifact.name,
        "type": f"ARTIFACT_TYPE_{artifact.type.upper()}",
        "mime_type": artifact.mime_type,
        "size_bytes": artifact.size_bytes,
        "md5_checksum": artifact.md5_hex,
    }
    return json.dumps({"metadata": metadata, "expected_size_bytes": artifact.size_bytes}).encode()


def finalize_body(size_bytes: int, md5_hex: str) -> bytes:
    return json.dumps({"actual_size_bytes": size_bytes, "md5_checksum": md5_hex}).encode()


def heartbeat_body(now_us: int) -> bytes:
    return json.dumps({"client_time": rfc3339(now_us)}).encode()


def finish_body(request: Finish) -> bytes:
    body: Dict[str, Any] = {"status": request.status}
    if request.exit_code is not None:
        body["exit_code"] = request.exit_code
    if request.error_message:
        body["error_message"] = request.error_message
    return json.dumps(body).encode()


def details(listed: Any) -> Tuple[Detail, ...]:
    """Warnings: objects, or texts as older servers have them."""
    found = []
    for one in listed if isinstance(listed, list) else []:
        if isinstance(one, dict):
            texts = [str(one.get(key) or "") for key in ("code", "message", "field", "severity")]
            found.append(Detail(*texts))
        else:
            found.append(Detail("", str(one)))
    return tuple(found)


def warnings(answer: Dict[str, Any]) -> Tuple[Detail, ...]:
    return details(answer.get("warnings"))


def init_answer(answer: Dict[str, Any]) -> InitAnswer:
    token = str(answer.get("resume_token") or "")
    return InitAnswer(str(answer["run_id"]), token, bool(answer.get("resumed")), warnings(answer))


def batch_answer(answer: Dict[str, Any]) -> BatchAnswer:
    accepted = int(answer.get("accepted_points", answer.get("accepted", 0)))
    return BatchAnswer(accepted, int(answer.get("deduplicated_points", 0)), warnings(answer))


def upload(answer: Dict[str, Any]) -> Upload:
    headers = answer.get("required_headers") or {}
    return Upload(str(answer["upload_id"]), str(answer["presigned_url"]), {str(k): str(v) for k, v in headers.items()})


def object_of(content: bytes) -> Dict[str, Any]:
    """The JSON object of an answer. Errors: `ValueError`."""
    body = json.loads(content or b"{}")
    if not isinstance(body, dict):
        raise ValueError("the answer is not a JSON object")
    return body


def refusal(status: int, content: bytes, retry_after: Optional[str]) -> Refusal:
    """The refusal of an HTTP status with the error body `{"error":{"code","message","details"}}` or any other."""
    code, message, listed = code_of_status(status), "", ()  # type: Tuple[str, str, Tuple[Detail, ...]]
    try:
        error = object_of(content)["error"]
        message, listed = str(error.get("message", "")), details(error.get("details"))
        word = str(error.get("code", ""))
        if word and word != code and not any(detail.code == word for detail in listed):
            listed += (Detail(word, message),)
    except (ValueError, KeyError, AttributeError):
        message = content[:300].decode("utf-8", "replace").strip()
    return Refusal(code, message or f"HTTP status {status}", listed, seconds(retry_after))


def seconds(retry_after: Optional[str]) -> Optional[float]:
    """`Retry-After` in seconds; the date form and nonsense count as absent."""
    try:
        wait = float(retry_after or "")
    except ValueError:
        return None
    return wait if 0 <= wait <= 86_400 else None
