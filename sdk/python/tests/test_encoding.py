"""What goes over the wire: protobuf by hand and JSON, both to the bit."""

from __future__ import annotations

import json
import math
import struct
import time
from typing import List

from hypothesis import given, settings
from hypothesis import strategies as st

from kindex import _json, _proto
from kindex._classify import Detail
from kindex._protocol import Batch
from kindex._records import Points, wire_bytes
from kindex._wire import Message, data, integer, present, text, varint

CASES = [0.0, -0.0, math.inf, -math.inf, 5e-324, 1.7976931348623157e308, 0.1, -1.5]


def batch(values: List[float], step: int = 3, time_us: int = 1_700_000_000_123_456) -> Batch:
    names = tuple(f"m{index}" for index in range(len(values)))
    return Batch("run", "0190", 4, [Points(names, step, time_us, tuple(values))])


def test_numbers_are_encoded_as_protobuf_has_them() -> None:
    assert varint(0) == b"\0" and varint(300) == b"\xac\x02"
    assert len(varint(-1)) == 10
    assert integer(1, 150) == b"\x08\x96\x01" and integer(1, 0) == b"" and present(1, 0) == b"\x08\0"
    assert text(2, "testing") == b"\x12\x07testing" and data(3, b"") == b"\x1a\0"
    assert Message(integer(5, -7)).integer(5) == -7


@settings(deadline=None)
@given(st.lists(st.integers(0, (1 << 64) - 1), min_size=1, max_size=5), st.integers(0, (1 << 63) - 1))
def test_protobuf_carries_every_double_to_the_bit(bits: List[int], step: int) -> None:
    values = list(struct.unpack(f"<{len(bits)}d", struct.pack(f"<{len(bits)}Q", *bits)))
    request = Message(_proto.log_metrics(batch(values, step)))
    points = request.message(2).messages(1)
    assert [struct.pack("<d", point.double(3)) for point in points] == [struct.pack("<d", value) for value in values]
    assert all(point.integer(2) == step for point in points)
    assert (request.message(1).text(1), request.text(3), request.integer(4)) == ("run", "0190", 4)


def test_times_agree_on_both_transports() -> None:
    for time_us in (0, 1, -1, -62_135_596_800_000_000, 253_402_300_799_999_999, 1_700_000_000_123_456):
        stamp = Message(_proto.timestamp(time_us))
        assert stamp.integer(1) * 1_000_000 + stamp.integer(2) // 1000 == time_us
        assert 0 <= stamp.integer(2) < 10**9
        assert _json.rfc3339(time_us).endswith(f".{time_us % 1_000_000:06}Z")
    assert _json.rfc3339(0) == "1970-01-01T00:00:00.000000Z"
    assert _json.rfc3339(-62_135_596_800_000_000).startswith("0001-01-01T00:00:00")


def test_json_names_what_is_not_finite_and_keeps_the_sign_of_zero() -> None:
    body = _json.batch_body(batch([math.nan] + CASES))

    def never(constant: str) -> float:
        raise AssertionError(f"bare {constant}")

    read = [point["value"] for point in json.loads(body, parse_constant=never)["metrics"]]
    assert read[0] == "NaN" and read[3:5] == ["Infinity", "-Infinity"]
    for value, found in zip(CASES, read[1:]):
        if math.isfinite(value):
            assert struct.pack("<d", float(found)) == struct.pack("<d", value)


@settings(deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False), st.text(min_size=1, max_size=30))
def test_json_carries_every_finite_double_and_every_name(value: float, name: str) -> None:
    one = Batch("r", "b", None, [Points((name,), 0, 0, (value,))])
    read = json.loads(_json.batch_body(one).decode())
    assert struct.pack("<d", float(read["metrics"][0]["value"])) == struct.pack("<d", value)
    assert read["metrics"][0]["name"] == name
    assert "seq" not in read


def test_the_estimate_of_a_point_is_never_too_small() -> None:
    names = ("a", "train/loss" * 20, "é" * 60)
    record = Points(names, (1 << 63) - 1, 253_402_300_799_999_999, (0.1, 0.2, 0.3))
    request = Message(_proto.log_metrics(Batch("r", "b", 1, [record])))
    assert len(request.data(2)) <= wire_bytes(names)


def test_a_refusal_is_read_with_details_and_retry_info() -> None:
    delay = data(1, integer(1, 5) + integer(2, 500_000_000))
    retry = text(1, "type.googleapis.com/google.rpc.RetryInfo") + data(2, delay)
    error = text(1, "type.googleapis.com/mlrun.v1.ErrorDetail") + data(2, text(1, "RUN_CRASHED") + integer(4, 2))
    info = text(1, "type.googleapis.com/google.rpc.ErrorInfo") + data(2, text(1, "BUSY"))
    found = _proto.refusal("UNAVAILABLE", "no", data(3, retry) + data(3, error) + data(3, info))
    assert found.retry_after_s == 5.5 and found.has("RUN_CRASHED") and found.has("BUSY")
    assert _proto.refusal("INTERNAL", "no", b"\xff\xff").code == "INTERNAL"


def test_a_refusal_over_rest_is_read_whatever_its_body_is() -> None:
    body = b'{"error":{"code":"FAILED_PRECONDITION","message":"m","details":[{"code":"RUN_TERMINAL"}]}}'
    found = _json.refusal(412, body, "3")
    assert (found.code, found.retry_after_s) == ("FAILED_PRECONDITION", 3.0) and found.has("RUN_TERMINAL")
    assert _json.refusal(400, b'{"error":{"code":"BAD_NAME","message":"m"}}', None).has("BAD_NAME")
    for garbage in (b"", b"<html>502</html>", b"[]", b'{"error":7}', b"\xff"):
        assert _json.refusal(502, garbage, "soon").code == "INTERNAL"
    assert _json.details(["text", {"code": "A"}, None])[:2] == (Detail("", "text"), Detail("A", ""))


def test_a_time_is_the_same_as_the_library_has_it() -> None:
    now = time.time_ns() // 1000
    assert _json.rfc3339(now)[:19] == time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now // 1_000_000))
