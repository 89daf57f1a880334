"""Messages to the user: through the logger `kindex`, each kind at most once in ten seconds, with a count of others."""

from __future__ import annotations

import logging
import time
from typing import Callable, Dict, Tuple

logger = logging.getLogger("kindex")

_PAUSE_S = 10.0
_KINDS_MAX = 1_000


class Warner:
    """Warns without flooding. Safe to call from any thread; never raises."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, pause_s: float = _PAUSE_S) -> None:
        self._clock = clock
        self._pause_s = pause_s
        self._seen: Dict[str, Tuple[float, int]] = {}

    def __call__(self, kind: str, message: str) -> None:
        """Log a warning unless one of its kind was logged just now."""
        try:
            now = self._clock()
            last, hidden = self._seen.get(kind, (None, 0))
            if last is not None and now - last < self._pause_s:
                self._seen[kind] = (last, hidden + 1)
                return
            if len(self._seen) >= _KINDS_MAX:
                self._seen.clear()
            self._seen[kind] = (now, 0)
            more = f" ({hidden} more like this)" if hidden else ""
            logger.warning("%s%s", message, more)
        except Exception:  # noqa: BLE001 - a broken log handler must not reach the training loop
            return
