"""The part of the protobuf encoding that `mlrun.v1` needs. Pure; knows no message."""

from __future__ import annotations

import struct
from typing import Dict, Iterator, List, Tuple, Union

Value = Union[int, bytes]

_DOUBLE = struct.Struct("<d")


def varint(number: int) -> bytes:
    """A number of up to 64 bits; a negative one takes ten bytes, as int64 has it."""
    return _VARINTS[number] if 0 <= number < len(_VARINTS) else _varint(number)


def _varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


_VARINTS = [_varint(number) for number in range(1024)]
_ZERO = bytes(8)


def integer(field: int, number: int) -> bytes:
    """An int32, int64, bool or enum that differs from its default."""
    return varint(field << 3) + varint(number) if number else b""


def present(field: int, number: int) -> bytes:
    """An `optional` integer, written even when it is 0."""
    return varint(field << 3) + varint(number)


def double(field: int, number: float) -> bytes:
    """A double to the bit. +0.0 is the default and is left out, -0.0 is not."""
    packed = _DOUBLE.pack(number)
    return _VARINTS[field << 3 | 1] + packed if packed != _ZERO else b""


def data(field: int, content: bytes) -> bytes:
    """Length-delimited content, written even when it is empty: a message."""
    return varint(field << 3 | 2) + varint(len(content)) + content


def text(field: int, content: str) -> bytes:
    """A string that differs from its default."""
    return data(field, content.encode("utf-8", "replace")) if content else b""


def _read_varint(content: bytes, at: int) -> Tuple[int, int]:
    number = shift = 0
    while True:
        if at >= len(content) or shift > 63:
            raise ValueError("truncated or overlong varint")
        byte = content[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7


def fields(content: bytes) -> Iterator[Tuple[int, Value]]:
    """The fields of a message in the order of the wire. Errors: `ValueError` for what is no message."""
    at = 0
    while at < len(content):
        key, at = _read_varint(content, at)
        kind = key & 7
        if kind == 0:
            number, at = _read_varint(content, at)
            yield key >> 3, number
            continue
        if kind == 2:
            length, at = _read_varint(content, at)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            raise ValueError(f"wire type {kind}")
        if at + length > len(content):
            raise ValueError("truncated field")
        yield key >> 3, content[at : at + length]
        at += length


class Message:
    """A decoded message: fields by number, with protobuf's defaults."""

    def __init__(self, content: bytes) -> None:
        self._fields: Dict[int, List[Value]] = {}
        for number, value in fields(content):
            self._fields.setdefault(number, []).append(value)

    def has(self, field: int) -> bool:
        return field in self._fields

    def integer(self, field: int) -> int:
        value = self._fields.get(field, [0])[-1]
        if not isinstance(value, int):
            raise ValueError(f"field {field} is not an integer")
        return value - (1 << 64) if value >> 63 else value

    def double(self, field: int) -> float:
        value = self._fields.get(field, [bytes(8)])[-1]
        return float(_DOUBLE.unpack(value)[0]) if isinstance(value, bytes) else 0.0

    def data(self, field: int) -> bytes:
        value = self._fields.get(field, [b""])[-1]
        return value if isinstance(value, bytes) else b""

    def text(self, field: int) -> str:
        return self.data(field).decode("utf-8", "replace")

    def message(self, field: int) -> "Message":
        return Message(self.data(field))

    def messages(self, field: int) -> List["Message"]:
        return [Message(value) for value in self._fields.get(field, []) if isinstance(value, bytes)]

    def texts(self, field: int) -> List[str]:
        values = self._fields.get(field, [])
        return [value.decode("utf-8", "replace") for value in values if isinstance(value, bytes)]
