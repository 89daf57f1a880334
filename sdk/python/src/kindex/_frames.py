"""The framing of the spool and of its journal: length, CRC-32, payload. Pure: knows bytes, no files.

A frame is complete only when its header is: writers store the payload first and the header last, so that a process
killed in between leaves a zero header, which reads as the end. Damage costs the frames that it hit and no others.
"""

from __future__ import annotations

import struct
import zlib
from typing import List, NamedTuple, Optional

HEAD = struct.Struct("<II")
HEAD_BYTES = HEAD.size
PAYLOAD_BYTES_MAX = 16 * 1024 * 1024


class Frame(NamedTuple):
    """A complete frame and where it lies."""

    start: int
    stop: int
    payload: bytes


class Scan(NamedTuple):
    """What a scan found: the frames, where the next one would begin, and how many stretches were unreadable."""

    frames: List[Frame]
    end: int
    damaged: int


def frame(payload: bytes) -> bytes:
    """The frame of a payload."""
    return HEAD.pack(len(payload), zlib.crc32(payload)) + payload


def _frame_at(data: bytes, at: int) -> Optional[Frame]:
    if at + HEAD_BYTES > len(data):
        return None
    length, checksum = HEAD.unpack_from(data, at)
    stop = at + HEAD_BYTES + length
    if not 0 < length <= PAYLOAD_BYTES_MAX or stop > len(data):
        return None
    payload = data[at + HEAD_BYTES : stop]
    return Frame(at, stop, payload) if zlib.crc32(payload) == checksum else None


def scan(data: bytes, at: int = 0) -> Scan:
    """Read all frames from `at` on. Never raises, whatever the bytes are."""
    frames: List[Frame] = []
    damaged = 0
    used = len(data.rstrip(b"\0"))
    while True:
        found = _frame_at(data, at)
        if found is None:
            if at >= used:
                return Scan(frames, at, damaged)
            found = _next_frame(data, at + 1, used)
            damaged += 1
            if found is None:
                return Scan(frames, used, damaged)
        frames.append(found)
        at = found.stop


def _next_frame(data: bytes, at: int, used: int) -> Optional[Frame]:
    """The first complete frame beyond a damaged stretch."""
    while at < used:
        found = _frame_at(data, at)
        if found is not None:
            return found
        at += 1
    return None
