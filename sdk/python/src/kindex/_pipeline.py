"""Everything behind a run: its spool, and what delivers it. Made at `init`, and anew in a forked child."""

from __future__ import annotations

import threading
import time

from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from . import _folder
from ._config import Config
from ._courier import Courier
from ._cut import Limits
from ._delivery import DeadSpool, Delivery
from ._protocol import Transport
from ._register import Registrar
from ._runfile import RunFile
from ._spool import Spool
from ._threads import Heartbeat, Sender, Uploader
from ._transport import open_transport
from ._uuid7 import Uuid7
from ._warn import Warner

new_id = Uuid7()


def limits_of(config: Config) -> Limits:
    return Limits(config.batch_points, config.batch_bytes)


def deliver_dead(
    folders: List[_folder.SpoolFolder], runfile: RunFile, config: Config, warner: Warner
) -> List[Delivery]:
    """The deliveries of spools that dead processes left behind. One that cannot be read is left as it is."""
    found: List[Delivery] = []
    for folder in folders:
        try:
            source = DeadSpool(folder.path)
            found.append(Delivery(folder, source, limits_of(config), config.fsync, runfile.next_sequence, new_id))
        except OSError as error:
            folder.lock.release()
            warner("spool", f"run {folder.run_id}: the spool {folder.path} cannot be read, and is left: {error}")
    return found


class Left(NamedTuple):
    """What became of the points of a run so far."""

    delivered: int
    left: int
    dropped: int
    set_aside: int


class Pipeline:
    """Spool, delivery and threads of one run in one process."""

    def __init__(self, meta: Dict[str, Any], config: Config, warner: Warner, forked: bool = False) -> None:
        self._meta = meta
        self._config = config
        self._warner = warner
        self._root = Path(config.dir)
        self.run_id = str(meta["run_id"])
        self.runfile = RunFile(self._root, self.run_id, lambda problem: warner("run file", problem))
        self._forked = forked
        self._close_lock = threading.Lock()
        self._is_closed = False
        self._registrar: Optional[Registrar] = None
        self._deliveries: List[Delivery] = []
        self._is_online = config.mode == "online"
        orphans = _folder.adopt_run(self._root, self.run_id) if self._is_online and not forked else []
        self.folder = _folder.create(self._root, meta, str(new_id()))
        self._sender: Optional[Sender] = None
        self._threads: List[Any] = []
        self.heartbeat: Optional[Heartbeat] = None
        self.courier: Optional[Courier] = None
        self.spool = Spool(
            self.folder.path,
            config.segment_bytes,
            config.spool_bytes,
            config.batch_points,
            config.batch_bytes,
            self.wake_sender,
            lambda reason: warner("drop", f"run {self.run_id}: points are dropped: {reason}"),
        )
        sequence = self.runfile.next_sequence
        self.delivery = Delivery(self.folder, self.spool, limits_of(config), config.fsync, sequence, new_id)
        if self._is_online:
            self._start(orphans, forked)

    def _start(self, orphans: List[_folder.SpoolFolder], forked: bool) -> None:
        config, warner = self._config, self._warner
        deliveries = [*deliver_dead(orphans, self.runfile, config, warner), self.delivery]
        transport = open_transport(config, forked)
        registrar = Registrar(self._meta, self.runfile, warner)
        # The parent has registered the run, or does so.
        registrar.is_registered = forked
        courier = Courier(self.run_id, deliveries, transport, registrar, self.runfile, config, warner)
        sender = Sender(courier, self.delivery, transport, config, warner)
        self.courier, self._sender = courier, sender
        self._threads.append(sender)
        self._registrar, self._deliveries = registrar, deliveries
        courier.on_artifact = self.start_uploader
        if not forked:
            courier.before_finish = self._adopt_children
            ways = open_transport(config, forked)
            self.heartbeat = Heartbeat(self.run_id, ways, registrar, config, warner, self._server_seen)
            self._threads.append(self.heartbeat)
        for thread in list(self._threads):
            thread.start()

    def _adopt_children(self) -> List[Delivery]:
        found = _folder.adopt_run(self._root, self.run_id)
        return deliver_dead(found, self.runfile, self._config, self._warner)

    def start_uploader(self) -> None:
        """Have a thread that uploads, and let it look. Called where a thread may still be started."""
        if self.courier is None or self._registrar is None:
            return
        uploader = next((thread for thread in self._threads if isinstance(thread, Uploader)), None)
        if uploader is None:
            transport: Transport = open_transport(self._config, self._forked)
            uploader = Uploader(
                self.courier,
                self._deliveries,
                transport,
                self._registrar,
                self._config,
                self._warner,
                self.wake_sender,
            )
            self._threads.append(uploader)
            uploader.start()
        uploader.wake()

    def wake_sender(self) -> None:
        if self._sender is not None:
            self._sender.wake()

    def _server_seen(self) -> None:
        if self.courier is not None and self.courier.failures:
            self.courier.retry_now()
        self.wake_sender()

    def left(self) -> Left:
        """An honest count: what the server answered, what waits here, what was dropped, what it refused."""
        delivered, aside = self.delivery.delivered, self.delivery.set_aside
        waiting = self.spool.points_total - delivered - aside
        return Left(delivered, waiting, self.spool.points_dropped, aside)

    def wait(self, is_done: Callable[[], bool], timeout_s: float, report: Callable[[], None]) -> bool:
        """Wait until all is done, with a report now and then. False when the time is over."""
        if self._sender is None or self.courier is None:
            return is_done()
        deadline = time.monotonic() + timeout_s
        self._sender.finish()
        while not is_done():
            rest = deadline - time.monotonic()
            if rest <= 0:
                return False
            with self.courier.progress:
                self.courier.progress.wait(min(rest, 0.25))
            report()
        return True

    def resume_rhythm(self) -> None:
        """Nobody waits any more: batches and pauses as usual."""
        if self._sender is not None:
            self._sender.resume_rhythm()

    def left_by_others(self) -> int:
        """Points of the run that dead processes left and this one has not delivered."""
        return sum(one.left().points for one in list(self._deliveries) if one.is_dead)

    def close(self) -> None:
        """Stop the threads and leave what is not answered to the next process."""
        if self._sender is not None:
            # A request may be under way: the files are closed, and their lock is released, when it has ended.
            self._sender.on_end = self._close_files
        self.spool.close()
        for thread in list(self._threads):
            thread.stop()
        if self._sender is None or not self._sender.is_alive():
            self._close_files()

    def _close_files(self) -> None:
        with self._close_lock:
            if self._is_closed:
                return
            self._is_closed = True
        ended = self.courier is not None and self.courier.has_finished
        for delivery in [self.delivery, *(one for one in self._deliveries if one.is_dead)]:
            if delivery.is_answered():
                delivery.remove()
            else:
                delivery.close()
                ended = False
        if ended:
            self.runfile.remove()

    def abandon(self) -> None:
        """In a forked child: leave files and lock to the parent."""
        self.delivery.close()


