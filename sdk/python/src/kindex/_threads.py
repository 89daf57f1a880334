"""The threads of a run: sender, uploader and heartbeat. They wake, let the courier take a step, and wait."""

from __future__ import annotations

import threading
import time
from queue import Empty, SimpleQueue
from typing import Callable, List, Optional

from . import _artifact
from ._classify import Decision, Refusal, backoff_s, classify
from ._config import Config
from ._courier import Courier
from ._delivery import Delivery
from ._protocol import Transport
from ._register import Registrar
from ._warn import Warner

_FINISHING_PAUSE_S = 2.0
_ARTIFACT_ATTEMPTS = 5


class Worker(threading.Thread):
    """A daemon thread that works until it is told to stop. An error in a turn is logged, never the end of it."""

    def __init__(self, name: str, warner: Warner) -> None:
        super().__init__(name=name, daemon=True)
        self._warner = warner
        # Its `put` may be interrupted by a signal handler that wakes the thread too; that of an event may not.
        self._calls: "SimpleQueue[None]" = SimpleQueue()
        self._is_called = False
        self._stopping = False

    def wake(self) -> None:
        """Take a turn now."""
        if not self._is_called:
            self._is_called = True
            self._calls.put(None)

    def wait(self, pause: Optional[float]) -> None:
        """Sleep until woken, at most for the pause."""
        try:
            self._calls.get(timeout=pause)
        except Empty:
            return
        self._is_called = False

    def stop(self, wait_s: float = 1.0) -> None:
        """Stop after the turn that is under way."""
        self._stopping = True
        self._calls.put(None)
        if self.is_alive() and threading.current_thread() is not self:
            self.join(wait_s)

    def run(self) -> None:
        while not self._stopping:
            try:
                pause = self.turn()
            except Exception as error:  # noqa: BLE001 - nothing may end the delivery
                self._warner("worker", f"{self.name}: {type(error).__name__}: {error}")
                pause = 1.0
            if pause is None or pause > 0:
                self.wait(pause)
        self.clean_up()

    def turn(self) -> Optional[float]:
        """Do some work. The seconds until the next turn; `None`: when woken."""
        raise NotImplementedError

    def clean_up(self) -> None:
        """Runs when the thread ends."""


class Sender(Worker):
    """Sends batches as they fill up, and what there is every `batch_seconds`."""

    def __init__(
        self, courier: Courier, delivery: Delivery, transport: Transport, config: Config, warner: Warner
    ) -> None:
        super().__init__("kindex-sender", warner)
        self._courier = courier
        self._delivery = delivery
        self._transport = transport
        self._config = config
        self._next_flush = time.monotonic() + config.batch_seconds
        self.is_finishing = False
        self.on_end: Callable[[], None] = lambda: None

    def turn(self) -> Optional[float]:
        now = time.monotonic()
        if now >= self._next_flush:
            self._next_flush = now + self._config.batch_seconds
            self._delivery.request_flush()
        pause = self._courier.step()
        if self.is_finishing and pause is not None:
            return min(pause, _FINISHING_PAUSE_S)
        rest = max(0.001, self._next_flush - now)
        return rest if pause is None else min(pause, rest)

    def finish(self) -> None:
        """From now on somebody waits: send at once, and retry often."""
        self.is_finishing = True
        self._courier.pause_max_s = _FINISHING_PAUSE_S
        self._delivery.request_flush()
        self._courier.retry_now()
        self.wake()

    def resume_rhythm(self) -> None:
        """Nobody waits any more: batches and pauses as usual."""
        self.is_finishing = False
        self._courier.pause_max_s = self._config.retry_seconds_max

    def clean_up(self) -> None:
        self._transport.close()
        self.on_end()


class Uploader(Worker):
    """Uploads artifacts, so that a large file never delays a point."""

    def __init__(
        self,
        courier: Courier,
        deliveries: List[Delivery],
        transport: Transport,
        registrar: Registrar,
        config: Config,
        warner: Warner,
        on_done: Callable[[], None],
    ) -> None:
        super().__init__("kindex-uploader", warner)
        self._courier = courier
        self._deliveries = deliveries
        self._transport = transport
        self._uploads = _artifact.Uploads(transport, config)
        self._registrar = registrar
        self._config = config
        self._on_done = on_done
        self.failures = 0

    def turn(self) -> Optional[float]:
        for delivery in list(self._deliveries):
            item = delivery.next_artifact()
            if item is None:
                continue
            try:
                self._registrar.register(self._transport)
                warnings = self._uploads.send(self._courier.run_id, delivery.operation(item))
            except _artifact.FileChanged as error:
                self._courier.set_aside(delivery, item, Refusal("NOT_FOUND", f"artifact: {error}"))
            except Refusal as refusal:
                if not self._is_hopeless(refusal):
                    return self._wait(refusal)
                self._courier.set_aside(delivery, item, refusal)
            else:
                self._courier.answered(delivery, item, warnings)
            self.failures = 0
            self._on_done()
            return 0.0
        return None

    def _is_hopeless(self, refusal: Refusal) -> bool:
        """Whether another attempt is in vain: also where a server has no artifacts at all."""
        decision = classify(refusal)
        unknown = decision in (Decision.REGISTER, Decision.RESUME) or refusal.code == "UNIMPLEMENTED"
        return decision is Decision.SET_ASIDE or (unknown and self.failures >= _ARTIFACT_ATTEMPTS)

    def _wait(self, refusal: Refusal) -> float:
        if classify(refusal) in (Decision.REGISTER, Decision.RESUME):
            self._registrar.again()
        config = self._config
        pause = backoff_s(self.failures, config.retry_seconds, config.retry_seconds_max, 0.5, refusal.retry_after_s)
        self.failures += 1
        self._warner("artifact", f"run {self._courier.run_id}: artifact: {refusal}; retrying")
        return pause

    def clean_up(self) -> None:
        self._transport.close()


class Heartbeat(Worker):
    """Keeps the run alive while nothing is logged, and refreshes the resume token once a day."""

    def __init__(
        self,
        run_id: str,
        transport: Transport,
        registrar: Registrar,
        config: Config,
        warner: Warner,
        on_alive: Callable[[], None],
    ) -> None:
        super().__init__("kindex-heartbeat", warner)
        self._run_id = run_id
        self._transport = transport
        self._registrar = registrar
        self._config = config
        self._on_alive = on_alive
        self._next = time.monotonic() + config.heartbeat_seconds
        self.ended_by_server = False

    def turn(self) -> Optional[float]:
        now = time.monotonic()
        if now < self._next:
            return self._next - now
        self._next = now + self._config.heartbeat_seconds
        if self._registrar.is_registered and not self.ended_by_server:
            self._beat()
        return self._config.heartbeat_seconds

    def _beat(self) -> None:
        try:
            if self._transport.heartbeat(self._run_id):
                self._registrar.again()
                self._registrar.register(self._transport)
            self._registrar.refresh_token(self._transport)
            self._on_alive()
        except Refusal as refusal:
            if refusal.code == "NOT_FOUND":
                self._registrar.again()
                self._on_alive()
            elif refusal.code == "FAILED_PRECONDITION":
                self.ended_by_server = True
                self._warner("ended", f"run {self._run_id} was ended on the server: {refusal}")

    def clean_up(self) -> None:
        self._transport.close()


