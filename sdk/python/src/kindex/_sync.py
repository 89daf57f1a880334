"""Delivers what dead processes left behind: in the background at `init`, and with `kindex-runs sync`."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Callable, List, NamedTuple, Optional

from . import _folder
from ._config import Config
from ._courier import Courier
from ._pipeline import deliver_dead, new_id
from ._register import Registrar
from ._runfile import RunFile
from ._threads import Uploader, Worker
from ._transport import open_transport
from ._warn import Warner


_ADOPT_ATTEMPTS = 4
_ADOPT_PAUSE_S = 60.0


class Outcome(NamedTuple):
    """What became of the spools of one run."""

    run_id: str
    delivered: int
    set_aside: int
    points_left: int
    operations_left: int
    #: Spools that cannot be read, with unknown contents.
    spools_unread: int
    error: str
    #: Whether the server no longer lets the run be resumed from here.
    is_lost: bool = False
    #: The run that was lost, of which this one has what was left.
    continues: str = ""

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left here."""
        return not (self.points_left or self.operations_left or self.spools_unread)


#: Given how many attempts failed in a row and how long to wait: returns False to give up, else waits.
MayRetry = Callable[[int, float], bool]


def deliver_run(folders: List[_folder.SpoolFolder], config: Config, warner: Warner, may_retry: MayRetry) -> Outcome:
    """Deliver the spools of one run, which this process has locked, and unlock them."""
    meta, run_id = folders[0].meta, folders[0].run_id
    runfile = RunFile(Path(config.dir), run_id, lambda problem: warner("run file", problem))
    deliveries = deliver_dead(folders, runfile, config, warner)
    all_deliveries = list(deliveries)
    before = sum(one.delivered for one in deliveries), sum(one.set_aside for one in deliveries)
    transport = open_transport(config)
    registrar = Registrar(meta, runfile, warner)
    courier = Courier(run_id, deliveries, transport, registrar, runfile, config, warner)
    uploads = open_transport(config)
    uploader = Uploader(courier, deliveries, uploads, registrar, config, warner, lambda: None)
    try:
        while deliveries:
            pause = courier.step()
            failures = courier.failures
            if pause is None:
                pause = uploader.turn()
                failures = uploader.failures
            if pause is None or registrar.is_lost or (pause > 0 and not may_retry(failures, pause)):
                break
    finally:
        transport.close()
        uploads.close()
    left = [one.left() for one in deliveries]
    for one in deliveries:
        one.close()
    if courier.has_finished and not deliveries:
        runfile.remove()
    return Outcome(
        run_id,
        sum(one.delivered for one in all_deliveries) - before[0],
        sum(one.set_aside for one in all_deliveries) - before[1],
        sum(one.points for one in left),
        sum(one.operations for one in left),
        len(folders) - len(all_deliveries),
        courier.last_error,
        registrar.is_lost,
    )


def _as_new_run(root: Path, lost: str, warner: Warner) -> List[_folder.SpoolFolder]:
    """Make the spools of a lost run that nobody owns those of a new one, and lock them. Errors: `OSError`."""
    run_id = str(new_id())
    folders = [_folder.move_to_run(folder, run_id) for folder in _folder.adopt_run(root, lost)]
    if folders:
        # Their batches have numbers of the lost run.
        RunFile(root, run_id, lambda problem: warner("run file", problem)).set_unordered()
    if lost not in run_ids(root):
        RunFile(root, lost, lambda problem: warner("run file", problem)).remove()
    return folders


def run_ids(root: Path) -> List[str]:
    """The runs that have a spool here, the oldest first."""
    return list(dict.fromkeys(path.name.rsplit("--", 1)[0] for path in _folder.listed(root)))


class Adopter(Worker):
    """Delivers what was left behind for the server of this process, run by run, while the training goes on."""

    def __init__(self, config: Config, warner: Warner, own_run: str) -> None:
        super().__init__("kindex-adopter", warner)
        self._config = config
        self._own_run = own_run

    def turn(self) -> Optional[float]:
        root, something_left = Path(self._config.dir), False
        for run_id in run_ids(root):
            if run_id == self._own_run or self._stopping:
                continue
            mine = [folder for folder in _folder.adopt_run(root, run_id) if self._is_ours(folder)]
            if mine:
                outcome = deliver_run(mine, self._config, self._warner, self._may_retry)
                something_left |= not outcome.is_complete
        self._stopping |= not something_left
        return _ADOPT_PAUSE_S if something_left else 0.0

    def _is_ours(self, folder: _folder.SpoolFolder) -> bool:
        if folder.meta.get("url") == self._config.url:
            return True
        folder.lock.release()
        return False

    def _may_retry(self, failures: int, pause: float) -> bool:
        """A few attempts for each run, so that one that cannot be delivered does not keep the others."""
        if failures > _ADOPT_ATTEMPTS:
            return False
        self.wait(pause)
        return not self._stopping


def sync(
    config: Config,
    warner: Warner,
    report: Callable[[Outcome], None],
    timeout_s: float,
    is_url_given: bool = True,
    as_new: bool = False,
) -> List[Outcome]:
    """Deliver every spool that no process owns. Gives up on a run when nothing answers for `timeout_s`.

    Unless an address is given, a run goes to the server that it was logged for. With `as_new`, what is left of a run
    that cannot be resumed becomes a new run. Errors: `OSError`.
    """
    root = Path(config.dir)
    outcomes: List[Outcome] = []
    for run_id in run_ids(root):
        folders = _folder.adopt_run(root, run_id)
        if not folders:
            continue
        since: List[float] = []

        def may_retry(failures: int, pause: float) -> bool:
            now = time.monotonic()
            if failures <= 1 or not since:
                since[:] = [now]
            if now + pause - since[0] > timeout_s:
                return False
            time.sleep(pause)
            return True

        url = str(folders[0].meta.get("url") or config.url)
        target = config if is_url_given else replace(config, url=url)
        outcome = deliver_run(folders, target, warner, may_retry)
        if as_new and outcome.is_lost:
            folders = _as_new_run(root, run_id, warner)
            outcome = deliver_run(folders, target, warner, may_retry)._replace(continues=run_id) if folders else outcome
        outcomes.append(outcome)
        report(outcome)
    return outcomes
