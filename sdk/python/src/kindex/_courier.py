"""Delivers the spools of one run over a transport: one request at each step. Has no thread and never sleeps."""

from __future__ import annotations

import math
import struct
import threading
import time
from pathlib import Path
from random import random
from typing import Callable, Dict, List, Optional, Tuple

from . import _json
from ._classify import Decision, Detail, Refusal, Registration, backoff_s, classify, classify_registration
from ._config import Config
from ._delivery import Delivery
from ._folder import write_private
from ._journal import DELIVERED, SET_ASIDE, Item
from ._protocol import Batch, Finish, Transport
from ._records import ARTIFACT, FINISH, PARAMS, TAGS, Points
from ._register import Registrar
from ._runfile import RunFile
from ._warn import Warner

#: How often InitRun may follow the refusal of one item before it is set aside.
_REGISTRATIONS_MAX = 5
_HOLD_S = 30.0
_Key = Tuple[int, int]
_NAN_BYTES = struct.pack("<d", math.nan)
_KINDS = {PARAMS: "params", TAGS: "tags", ARTIFACT: "artifact", FINISH: "finish"}


class Courier:
    """Sends what the deliveries hold, the oldest first: those of dead processes, then that of this one."""

    def __init__(
        self,
        run_id: str,
        deliveries: List[Delivery],
        transport: Transport,
        registrar: Registrar,
        runfile: RunFile,
        config: Config,
        warner: Warner,
        chance: Callable[[], float] = random,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.run_id = run_id
        self._deliveries = deliveries
        self._transport = transport
        self._registrar = registrar
        self._runfile = runfile
        self._config = config
        self._warner = warner
        self._chance = chance
        self._clock = clock
        self._not_before = 0.0
        self._registrations: Dict[_Key, int] = {}
        self.pause_max_s = config.retry_seconds_max
        self.failures = 0
        self.last_error = ""
        self.has_finished = False
        self.on_artifact: Callable[[], None] = lambda: None
        self.before_finish: Callable[[], List[Delivery]] = lambda: []
        self.progress = threading.Condition()

    def step(self) -> Optional[float]:
        """Send one item. The seconds to wait before the next step; `None` when there is nothing to send."""
        pause = self._not_before - self._clock()
        if pause > 0:
            return pause
        try:
            return self._send_next()
        except Refusal as refusal:
            follows = classify_registration(refusal, False)
            return self._wait(refusal, follows in (Registration.HOLD, Registration.LOST))
        except OSError as error:
            self._runfile.set_unordered()
            return self._wait(Refusal("INTERNAL", f"the spool: {error}", reached=False), False)

    def retry_now(self) -> None:
        """Forget the pause: the server was seen, or the user waits."""
        self._not_before = 0.0

    def _send_next(self) -> Optional[float]:
        if any(not one.is_dead for one in self._deliveries) or not self._runfile.is_registered():
            self._registrar.register(self._transport)
        for delivery in list(self._deliveries):
            item = delivery.next_item()
            if delivery.next_artifact() is not None:
                self.on_artifact()
            if item is None:
                self._retire(delivery)
                continue
            if item.kind == FINISH:
                if self._adopts_more():
                    return 0.0
                if delivery.is_dead and not all(one.is_dead for one in self._deliveries):
                    # A process of this machine goes on with the run: its own FinishRun counts.
                    self.answered(delivery, item, ())
                    continue
            self._registrar.register(self._transport)
            return self._send(delivery, item)
        return None

    def _retire(self, delivery: Delivery) -> None:
        """Delete what a dead process left behind once all of it is answered."""
        if delivery.is_dead and delivery.is_answered():
            self._deliveries.remove(delivery)
            delivery.remove()

    def _adopts_more(self) -> bool:
        """Before the run ends: what its children left behind comes first."""
        found = self.before_finish()
        self._deliveries[:0] = found
        return bool(found)

    def _send(self, delivery: Delivery, item: Item) -> float:
        try:
            warnings = self._request(delivery, item)
        except Refusal as refusal:
            return self._refused(delivery, item, refusal)
        except FileNotFoundError:
            # A segment is deleted when all of it is answered: a power loss took the note of it.
            warnings = ()
        self.answered(delivery, item, warnings)
        return 0.0

    def _request(self, delivery: Delivery, item: Item) -> Tuple[Detail, ...]:
        if item.points:
            sequence = item.sequence if item.sequence and self._runfile.is_ordered() else None
            batch = Batch(self.run_id, str(item.batch_id), sequence, delivery.points(item))
            return self._transport.log_metrics(batch).warnings
        body = delivery.operation(item)
        if item.kind == PARAMS:
            return self._transport.log_params(self.run_id, body["params"])
        if item.kind == TAGS:
            return self._transport.log_tags(self.run_id, body["tags"], body["remove"])
        if item.kind == FINISH:
            status, error = str(body["status"]), str(body.get("error_message", ""))
            return self._transport.finish_run(Finish(self.run_id, status, body.get("exit_code"), error))
        raise Refusal("INVALID_ARGUMENT", f"unknown record of kind {item.kind}")

    def answered(self, delivery: Delivery, item: Item, warnings: Tuple[Detail, ...]) -> None:
        """The server took the item."""
        delivery.done(item, DELIVERED)
        self._settled(delivery, item)
        for warning in warnings:
            if warning.code != "DUPLICATE_BATCH":
                self._warner(warning.code or warning.message, f"server: {warning.code} {warning.message}")

    def _settled(self, delivery: Delivery, item: Item) -> None:
        key = _key(delivery, item)
        self._registrations.pop(key, None)
        self.failures, self.last_error = 0, ""
        with self.progress:
            self.has_finished = self.has_finished or item.kind == FINISH
            self.progress.notify_all()

    def _refused(self, delivery: Delivery, item: Item, refusal: Refusal) -> float:
        decision = classify(refusal)
        key = _key(delivery, item)
        if decision in (Decision.REGISTER, Decision.RESUME):
            count = self._registrations[key] = self._registrations.get(key, 0) + 1
            if count <= _REGISTRATIONS_MAX and not self._registrar.has_ended:
                self._registrar.again()
                return 0.0 if count == 1 else self._wait(refusal, False)
            decision = Decision.SET_ASIDE
        if decision is Decision.SET_ASIDE and self._is_stored_already(delivery, item, refusal):
            self.answered(delivery, item, ())
            return 0.0
        if decision is Decision.SET_ASIDE:
            self.set_aside(delivery, item, refusal)
            return 0.0
        return self._wait(refusal, decision is Decision.HOLD)

    def _is_stored_already(self, delivery: Delivery, item: Item, refusal: Refusal) -> bool:
        """JSON has one NaN: a batch that came over gRPC with another one conflicts with itself over REST."""
        if refusal.code != "ALREADY_EXISTS" or not item.points:
            return False
        return any(_is_odd_nan(value) for record in delivery.points(item) for value in record.values)

    def set_aside(self, delivery: Delivery, item: Item, refusal: Refusal) -> None:
        """Write what can never succeed to a file that people can read, and go on. Errors: `OSError`."""
        folder = Path(self._config.dir) / "rejected" / self.run_id
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = folder / f"{item.batch_id}.json"
        content: Dict[str, object] = {"reason": str(refusal), "run_id": self.run_id, "batch_id": str(item.batch_id)}
        if item.points:
            content["metrics"] = [point for record in delivery.points(item) for point in _readable(record)]
        else:
            content["operation"] = delivery.operation(item)
            content["kind"] = _KINDS.get(item.kind, "")
        write_private(path, content)
        if item.points:
            # The server would wait for the number that is missing now.
            self._runfile.set_unordered()
        delivery.done(item, SET_ASIDE)
        self._settled(delivery, item)
        what = _what(item)
        self._warner("set aside", f"run {self.run_id}: the server refused {what}: {refusal}. It is kept in {path}")

    def _wait(self, refusal: Refusal, hold: bool) -> float:
        config, most = self._config, min(self._config.retry_seconds_max, self.pause_max_s)
        pause = backoff_s(self.failures, config.retry_seconds, most, self._chance(), refusal.retry_after_s)
        if hold:
            pause = max(pause, min(_HOLD_S, most))
            remedy = "until this is fixed"
            if self._registrar.is_lost:
                remedy = "and can be stored as a new run once this one has ended: kindex-runs sync --as-new"
            self._warner("hold", f"run {self.run_id}: {refusal}. Its data waits in {config.dir} {remedy}")
        elif self.failures in (2, 20):
            self._warner("offline", f"run {self.run_id}: {refusal}. Logging goes on into {config.dir}; retrying")
        self.failures += 1
        self.last_error = str(refusal)
        self._not_before = self._clock() + pause
        return pause


def _key(delivery: Delivery, item: Item) -> _Key:
    return id(delivery), item.number


def _what(item: Item) -> str:
    return f"a batch of {item.points} points" if item.points else f"an operation ({_KINDS.get(item.kind, '?')})"


def _readable(record: Points) -> List[Dict[str, object]]:
    time_text = _json.rfc3339(record.time_us)
    return [
        {"name": name, "step": record.step, "value": _json.readable(value), "timestamp": time_text}
        for name, value in zip(record.names, record.values)
    ]


def _is_odd_nan(value: float) -> bool:
    return value != value and struct.pack("<d", value) != _NAN_BYTES
