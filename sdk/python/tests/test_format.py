"""The bytes of spool and journal: whatever happens to them, only what was hit is lost."""

from __future__ import annotations

import struct
import uuid
from pathlib import Path
from typing import List

from hypothesis import given, settings
from hypothesis import strategies as st

from kindex._frames import frame, scan
from kindex._journal import DELIVERED, SET_ASIDE, Item, Journal, State, encode_cut, encode_done, read_journal
from kindex._records import POINTS, decode_operation, decode_points, decode_shape, encode_operation, encode_points
from kindex._records import PARAMS, encode_shape
from kindex._segment import START, Segment, read_extent
from kindex._spool import packer

payloads = st.lists(st.binary(min_size=1, max_size=80), min_size=1, max_size=12)
SLOW = settings(deadline=None, max_examples=150)


def laid(parts: List[bytes]) -> bytes:
    return b"".join(frame(one) for one in parts)


@SLOW
@given(payloads, st.integers(0, 200))
def test_what_is_written_reads_back_up_to_the_zeros(parts: List[bytes], zeros: int) -> None:
    found = scan(laid(parts) + bytes(zeros))
    assert [one.payload for one in found.frames] == parts
    assert found.damaged == 0
    assert found.end == len(laid(parts))


@SLOW
@given(payloads, st.data())
def test_a_truncation_loses_only_what_was_cut_off(parts: List[bytes], data: st.DataObject) -> None:
    whole = laid(parts)
    at = data.draw(st.integers(0, len(whole)))
    kept, length = [], 0
    for one in parts:
        length += len(frame(one))
        if length <= at:
            kept.append(one)
    for rest in (whole[:at], whole[:at] + bytes(len(whole) - at)):
        found = [one.payload for one in scan(rest).frames]
        # Zeros that follow may complete a frame that ended with zeros.
        assert found[: len(kept)] == kept
        assert found == parts[: len(found)]


@SLOW
@given(payloads, st.data())
def test_a_flipped_bit_loses_only_the_record_that_it_hit(parts: List[bytes], data: st.DataObject) -> None:
    whole = bytearray(laid(parts))
    bit = data.draw(st.integers(0, len(whole) * 8 - 1))
    whole[bit // 8] ^= 1 << bit % 8
    hit, stop = 0, 0
    for index, one in enumerate(parts):
        stop += len(frame(one))
        if bit // 8 < stop:
            hit = index
            break
    found = scan(bytes(whole) + bytes(16))
    assert [one.payload for one in found.frames] == parts[:hit] + parts[hit + 1 :]
    assert found.damaged == 1


@SLOW
@given(st.binary(max_size=400))
def test_garbage_is_never_read_as_records_and_never_raises(garbage: bytes) -> None:
    found = scan(garbage)
    assert all(frame(one.payload) == garbage[one.start : one.stop] for one in found.frames)


@SLOW
@given(st.lists(st.integers(0, (1 << 64) - 1), min_size=1, max_size=6), st.integers(0, (1 << 63) - 1))
def test_every_double_comes_back_to_the_bit(bits: List[int], step: int) -> None:
    raw = struct.pack(f"<{len(bits)}Q", *bits)
    values = struct.unpack(f"<{len(bits)}d", raw)
    names = tuple(f"m{index}" for index in range(len(bits)))
    shape, read = decode_shape(encode_shape(7, names))
    record = decode_points(encode_points(7, step, -5, packer(len(values))(*values)), {shape: read})
    assert struct.pack(f"<{len(bits)}d", *record.values) == raw
    assert (record.names, record.step, record.time_us) == (names, step, -5)


def test_operations_keep_any_text() -> None:
    body = {"params": {"a": "ü\ud800\0\"", "b": ""}}
    assert decode_operation(encode_operation(PARAMS, body))["params"]["a"].startswith("ü")


def test_a_record_whose_header_was_not_written_yet_is_not_there(tmp_path: Path) -> None:
    segment = Segment(tmp_path / "1.seg", 1 << 20)
    segment.begin(1)
    assert segment.append(b"whole")
    segment._map[segment.end + 8 : segment.end + 12] = b"half"
    segment.close()
    extent = read_extent(tmp_path / "1.seg")
    assert extent is not None
    found = scan(extent.path.read_bytes()[: extent.end], START)
    assert [one.payload for one in found.frames] == [b"whole"]


def test_a_segment_refuses_what_does_not_fit_and_keeps_the_rest(tmp_path: Path) -> None:
    segment = Segment(tmp_path / "1.seg", 1 << 20)
    segment.begin(3)
    assert not segment.append(bytes(1 << 20))
    assert segment.append(b"x" * ((1 << 20) - START - 8))
    assert not segment.append(b"y")
    segment.close()
    extent = read_extent(tmp_path / "1.seg")
    assert extent is not None and extent.end == 1 << 20 and extent.order == 3


def item(number: int, points: int = 10) -> Item:
    return Item(number, POINTS, 1, number * 100, number * 100 + 100, points, uuid.uuid4(), number)


def test_a_journal_knows_after_a_restart_what_is_open(tmp_path: Path) -> None:
    journal = Journal(tmp_path, False)
    first, second, third = item(1), item(2), item(3, 7)
    for one in (first, second, third):
        journal.cut(one)
    journal.done(1, DELIVERED)
    journal.done(3, SET_ASIDE)
    again = Journal(tmp_path, False)
    assert again.state.open == {2: second}
    assert again.state.progress.delivered == 10 and again.state.progress.set_aside == 7
    assert again.state.progress.offset == third.stop and again.state.progress.number == 4


def test_a_journal_stays_small_over_many_batches(tmp_path: Path) -> None:
    journal = Journal(tmp_path, False, 4096)
    open_one = item(1)
    journal.cut(open_one)
    for number in range(2, 2_000):
        journal.cut(item(number))
        journal.done(number, DELIVERED)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) == 2 * 4096
    again = Journal(tmp_path, False, 4096)
    assert list(again.state.open) == [1] and again.state.open[1] == open_one
    assert again.state.progress.delivered == 1_998 * 10


def test_a_journal_grows_when_much_is_open(tmp_path: Path) -> None:
    journal = Journal(tmp_path, False, 4096)
    for number in range(1, 500):
        journal.cut(item(number))
    state = read_journal(tmp_path)
    assert state is not None and len(state.open) == 499


@SLOW
@given(st.integers(0, 400))
def test_a_torn_journal_keeps_all_but_its_last_record(at: int) -> None:
    records = [encode_cut(item(1)), encode_cut(item(2)), encode_done(1, DELIVERED), encode_cut(item(3))]
    data = laid(records)[:at]
    state = State()
    for one in scan(data).frames:
        state.apply(one.payload)
    whole = State()
    for payload in records[: len(scan(data).frames)]:
        whole.apply(payload)
    assert state.open == whole.open and state.progress == whole.progress
