"""UUIDs of version 7 (RFC 9562): ascending within a process even when the clock stands still or steps back."""

from __future__ import annotations

import os
import threading
import time
import uuid
from typing import Callable

_COUNTER_BITS = 74
_COUNTER_MASK = (1 << _COUNTER_BITS) - 1


def compose(milliseconds: int, counter: int) -> uuid.UUID:
    """Put a Unix time in milliseconds and a 74-bit counter into the layout of version 7."""
    high = (milliseconds & ((1 << 48) - 1)) << 80
    version = 0x7 << 76
    rand_a = ((counter >> 62) & 0xFFF) << 64
    variant = 0b10 << 62
    return uuid.UUID(int=high | version | rand_a | variant | (counter & ((1 << 62) - 1)))


class Uuid7:
    """A generator whose ids ascend strictly.

    The counter starts at a random number in each millisecond, its top bit clear so that it cannot overflow, and
    goes up by one for every further id of that millisecond.
    """

    def __init__(
        self,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        random: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self._clock_ms = clock_ms
        self._random = random
        self._lock = threading.Lock()
        self._last_ms = -1
        self._counter = 0

    def __call__(self) -> uuid.UUID:
        with self._lock:
            now = self._clock_ms()
            if now > self._last_ms:
                self._last_ms = now
                self._counter = int.from_bytes(self._random(10), "big") & (_COUNTER_MASK >> 1)
            else:
                self._counter += 1
            return compose(self._last_ms, self._counter)

    def after_fork_in_child(self) -> None:
        """Never continue the parent's counter, nor wait for a lock that one of its threads held."""
        self._lock = threading.Lock()
        self._last_ms = -1
