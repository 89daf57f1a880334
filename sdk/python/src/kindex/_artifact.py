"""Uploads artifacts: opens one, PUTs the file as it is on disk, finalizes it. The file is read twice, in blocks."""

from __future__ import annotations

import hashlib
import http.client
import mimetypes
import os
from typing import Any, BinaryIO, Callable, Dict, Iterator, Optional, Tuple
from urllib.parse import urlsplit

from ._classify import Decision, Detail, Refusal, classify, code_of_status
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


class _Opened:
    """An upload that the server has opened for an artifact."""

    def __init__(self, artifact: Artifact, place: Upload) -> None:
        self.artifact = artifact
        self.place = place
        self.is_sent = False


class Uploads:
    """Uploads artifacts one at a time. The next attempt continues the same upload, so that failures leave none open."""

    def __init__(self, transport: Transport, config: Config) -> None:
        self._transport = transport
        self._config = config
        self._opened: Optional[_Opened] = None

    def send(self, run_id: str, body: Dict[str, Any]) -> Tuple[Detail, ...]:
        """Upload the artifact of an `ARTIFACT` record. Errors: `Refusal`, `FileChanged`."""
        path = str(body["path"])
        try:
            size, checksum = os.path.getsize(path), md5_of(path)
        except OSError as error:
            raise FileChanged(f"{path}: {error.strerror}") from error
        artifact = Artifact(run_id, str(body["name"]), str(body["type"]), mime_type(path), size, checksum)
        opened = self._open(artifact)
        try:
            if not opened.is_sent:
                _put(opened.place, self._config, path)
                opened.is_sent = True
        except Refusal as refusal:
            if classify(refusal) is Decision.RETRY:
                raise
            return self._finalize_after(opened, refusal)
        return self._finalize(opened)

    def _open(self, artifact: Artifact) -> _Opened:
        if self._opened is not None and self._opened.artifact != artifact:
            try:
                self._finalize(self._opened)
            except Refusal:
                # What was not sent is given up by this: the server deletes it.
                self._opened = None
        if self._opened is None:
            self._opened = _Opened(artifact, self._transport.create_upload(artifact))
        return self._opened

    def _finalize(self, opened: _Opened) -> Tuple[Detail, ...]:
        """A lost answer is asked for again: a repeat is answered with the stored result."""
        artifact = opened.artifact
        try:
            warnings = _twice_if_lost(
                lambda: self._transport.finalize_upload(opened.place.upload_id, artifact.size_bytes, artifact.md5_hex)
            )
        except Refusal as refusal:
            if classify(refusal) not in (Decision.RETRY, Decision.HOLD):
                self._opened = None
            raise
        self._opened = None
        return warnings

    def _finalize_after(self, opened: _Opened, refusal: Refusal) -> Tuple[Detail, ...]:
        """The address takes no file, perhaps as it has one whose answer was lost. Otherwise the upload is given up."""
        try:
            return self._finalize(opened)
        except Refusal:
            self._opened = None
        if classify(refusal) is Decision.HOLD:
            # The address has expired: the next attempt asks for another one.
            refusal.code = "UNAVAILABLE"
        raise refusal


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
        message = f"upload of {path}: HTTP status {answer.status} {reason}"
        raise Refusal(code_of_status(answer.status), message)


def _names_length(headers: Dict[str, str]) -> bool:
    return any(name.lower() == "content-length" for name in headers)


def _twice_if_lost(finalize: Callable[[], Tuple[Detail, ...]]) -> Tuple[Detail, ...]:
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
