"""Uploads one artifact: opens it, PUTs the file as it is on disk, finalizes it. The file is read twice, in blocks."""

from __future__ import annotations

import hashlib
import http.client
import mimetypes
import os
from typing import Any, BinaryIO, Callable, Dict, Iterator, Tuple
from urllib.parse import urlsplit

from ._classify import Detail, Refusal, code_of_status
from ._config import Config
from ._protocol import Artifact, Transport, Upload
from ._rest import connect

_BLOCK_BYTES = 1 << 20


class FileChanged(Exception):
    """The file is not there any more, or not as it was when it was logged."""


def md5_of(path: str) -> str:
    """The MD5 of a file in hex. Errors: `OSError`."""
    with open(path, "rb") as file:
        return _md5(_blocks(file))


def mime_type(name: str) -> str:
    return mimetypes.guess_type(name)[0] or "application/octet-stream"


def upload(transport: Transport, config: Config, run_id: str, body: Dict[str, Any]) -> Tuple[Detail, ...]:
    """Upload the artifact of an `ARTIFACT` record. Errors: `Refusal`, `FileChanged`."""
    path = str(body["path"])
    try:
        size, checksum = os.path.getsize(path), md5_of(path)
    except OSError as error:
        raise FileChanged(f"{path}: {error.strerror}") from error
    name = str(body["name"])
    artifact = Artifact(run_id, name, str(body["type"]), mime_type(path), size, checksum)
    place = transport.create_upload(artifact)
    _put(place, config, path)
    return _finalize_with_retry(lambda: transport.finalize_upload(place.upload_id, size, checksum))


def _put(place: Upload, config: Config, path: str) -> None:
    parts = urlsplit(place.url)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    try:
        connection = connect(place.url, config.connect_seconds, config.request_seconds)
        with open(path, "rb") as file:
            try:
                length = {} if _names_length(place.headers) else {"Content-Length": str(os.path.getsize(path))}
                connection.request("PUT", target, file, {**place.headers, **length})
                answer = connection.getresponse()
                reason = answer.read(300).decode("utf-8", "replace").strip()
            finally:
                connection.close()
    except (OSError, http.client.HTTPException) as error:
        raise Refusal("UNAVAILABLE", f"upload of {path}: {type(error).__name__} {error}", reached=False) from error
    if not 200 <= answer.status < 300:
        # A signed URL that has expired is replaced by a new one: that is what a retry asks for.
        code = "UNAVAILABLE" if answer.status in (401, 403) else code_of_status(answer.status)
        raise Refusal(code, f"upload of {path}: HTTP status {answer.status} {reason}")


def _names_length(headers: Dict[str, str]) -> bool:
    return any(name.lower() == "content-length" for name in headers)


def _finalize_with_retry(finalize: Callable[[], Tuple[Detail, ...]]) -> Tuple[Detail, ...]:
    """A lost answer of finalize is asked for again: a repeat is answered with the stored result."""
    try:
        return finalize()
    except Refusal as refusal:
        if refusal.reached:
            raise
        return finalize()


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    while True:
        block = file.read(_BLOCK_BYTES)
        if not block:
            return
        yield block


def _md5(blocks: Iterator[bytes]) -> str:
    digest = hashlib.md5()
    for block in blocks:
        digest.update(block)
    return digest.hexdigest()
