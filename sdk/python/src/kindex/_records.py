"""What the payloads of the spool mean. Pure: bytes to records and back.

A segment explains itself: the names of a `POINTS` record are in a `SHAPE` record before it in the same segment.
Values are the eight bytes of the double, so that NaN payloads, infinities and -0.0 come back to the bit.
"""

from __future__ import annotations

import json
import struct
from typing import Any, Dict, NamedTuple, Sequence, Tuple

SHAPE = 1
POINTS = 2
PARAMS = 3
TAGS = 4
ARTIFACT = 5
FINISH = 6

OPERATIONS = (PARAMS, TAGS, ARTIFACT, FINISH)

_SHAPE_HEAD = struct.Struct("<BI")
POINTS_HEAD = struct.Struct("<BIqq")

#: Bytes of a point in protobuf beside its name, at most: tags, lengths, step, value and timestamp.
_POINT_WIRE_BYTES = 44


class Points(NamedTuple):
    """The points of one call of `log`: one value for each name."""

    names: Tuple[str, ...]
    step: int
    time_us: int
    values: Tuple[float, ...]


def encode_shape(shape: int, names: Sequence[str]) -> bytes:
    return _SHAPE_HEAD.pack(SHAPE, shape) + "\0".join(names).encode()


def decode_shape(payload: bytes) -> Tuple[int, Tuple[str, ...]]:
    _, shape = _SHAPE_HEAD.unpack_from(payload)
    return shape, tuple(payload[_SHAPE_HEAD.size :].decode(errors="replace").split("\0"))


def encode_points(shape: int, step: int, time_us: int, values: bytes) -> bytes:
    return POINTS_HEAD.pack(POINTS, shape, step, time_us) + values


def shape_of(payload: bytes) -> int:
    """The shape that a `POINTS` payload refers to."""
    return int.from_bytes(payload[1:5], "little")


def point_count(payload: bytes) -> int:
    return (len(payload) - POINTS_HEAD.size) // 8


def decode_points(payload: bytes, shapes: Dict[int, Tuple[str, ...]]) -> Points:
    """The points of a payload; `KeyError` where its shape is unknown."""
    _, shape, step, time_us = POINTS_HEAD.unpack_from(payload)
    values = struct.unpack_from(f"<{point_count(payload)}d", payload, POINTS_HEAD.size)
    return Points(shapes[shape], step, time_us, values)


def encode_operation(kind: int, body: Dict[str, Any]) -> bytes:
    return bytes([kind]) + json.dumps(body, separators=(",", ":")).encode("utf-8", "replace")


def decode_operation(payload: bytes) -> Dict[str, Any]:
    body = json.loads(payload[1:])
    if not isinstance(body, dict):
        raise ValueError("an operation is a JSON object")
    return body


def wire_bytes(names: Sequence[str]) -> int:
    """The most that one point for each of the names takes in protobuf."""
    return sum(len(name.encode()) + _POINT_WIRE_BYTES for name in names)
