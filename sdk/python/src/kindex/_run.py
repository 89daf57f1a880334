"""A run as its user sees it. After `init`, nothing here raises because of the server, the disk or a bad value."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
import weakref
from types import TracebackType
from typing import Any, Dict, Mapping, NamedTuple, Optional, Sequence, Tuple, Type, Union

from . import _values
from ._config import Config
from ._folder import release_in_child
from ._pipeline import Pipeline, new_id
from ._protocol import ARTIFACT_TYPES
from ._records import ARTIFACT, FINISH, PARAMS, TAGS, encode_operation
from ._spool import RECORD_POINTS_MAX, Pack, Spool, packer
from ._warn import Warner, logger

_PARAMS_PER_RECORD = 50
_TYPES = ", ".join(ARTIFACT_TYPES)
_END_STATUSES = ("finished", "failed", "killed")
_PROGRESS_PAUSE_S = 2.0


class FinishReport(NamedTuple):
    """What `finish` left behind."""

    #: Whether the server knows all of the run and its end.
    complete: bool
    #: Points that the server has answered.
    points_delivered: int
    #: Points that wait in the spool for `kindex-runs sync` or the next start.
    points_left: int
    #: Points that had no room in the spool, and are lost.
    points_dropped: int
    #: Points that the server refused for good, kept in files.
    points_set_aside: int


class Run:
    """A run that is being logged. Made by `kindex.init`."""

    def __init__(self, meta: Dict[str, Any], config: Config) -> None:
        self._meta = meta
        self._config = config
        self._warner = Warner()
        self._params: Dict[str, str] = {}
        self._report: Optional[FinishReport] = None
        self._packers: Dict[Tuple[str, ...], Pack] = {}
        self._forked = False
        self._fork_lock = threading.Lock()
        self._opens_later = False
        self._pipeline: Optional[Pipeline] = None
        #: The spool while there is nothing to look after before writing into it.
        self._open_spool: Optional[Spool] = None
        if config.mode != "disabled":
            self._use(self._open())
            _live.add(self)

    @property
    def run_id(self) -> str:
        """The id of the run, the same online and offline."""
        return str(self._meta["run_id"])

    @property
    def project(self) -> str:
        return str(self._meta["project"])

    @property
    def name(self) -> str:
        return str(self._meta["name"])

    @property
    def is_finished(self) -> bool:
        """Whether `finish` was called."""
        return self._report is not None

    @property
    def is_offline(self) -> bool:
        """Whether the server does not take data now: offline mode, or an outage."""
        courier = self._pipeline.courier if self._pipeline else None
        return courier is None or bool(courier.failures)

    @property
    def is_ended_by_server(self) -> bool:
        """Whether somebody ended the run on the server, for example with `kindex runs kill`."""
        heartbeat = self._pipeline.heartbeat if self._pipeline else None
        return bool(heartbeat and heartbeat.ended_by_server)

    def log(self, metrics: Mapping[str, Any], step: Optional[int] = None, timestamp: Any = None) -> None:
        """Log values at a step.

        Without a step it is the one after the highest so far. The timestamp is seconds since 1970 or a `datetime`;
        without one it is now. What has returned from here survives the death of the process. Never raises; what is
        no number is left out with a warning.
        """
        try:
            time_us = time.time_ns() // 1000
            if timestamp is not None:
                time_us, problem = _values.time_us_of(timestamp, time_us)
                self._complain("timestamp", problem)
            if step is not None and (type(step) is not int or step < 0 or step > 1 << 62):
                step, problem = _values.step_of(step)
                if problem:
                    self._complain("step", problem + ": its points are left out")
                    return
            spool = self._open_spool
            if spool is None:
                pipeline = self._writable()
                if pipeline is None:
                    return
                spool = pipeline.spool
            names = tuple(metrics)
            pack = self._packers.get(names)
            if pack is not None:
                try:
                    spool.points(names, step, time_us, pack(*metrics.values()))
                    return
                except Exception:  # noqa: BLE001 - one value is not a number: the careful way finds it
                    pass
            self._log_carefully(spool, dict(metrics), step, time_us)
        except Exception as error:  # noqa: BLE001 - logging never ends a training
            self._complain("log", f"log: {type(error).__name__}: {error}")

    def _log_carefully(self, spool: Spool, metrics: Dict[Any, Any], step: Optional[int], time_us: int) -> None:
        good: Dict[str, float] = {}
        for name, value in metrics.items():
            problem = _values.names_error((name,))
            number: Optional[float] = None
            if not problem:
                number, problem = _values.value_of(name, value)
            if number is None:
                self._complain(f"metric {name!r:.60}", problem + "; it is left out")
            else:
                good[name] = number
        names = tuple(good)
        if names == tuple(metrics) and len(names) <= RECORD_POINTS_MAX and len(self._packers) < 10_000:
            self._packers[names] = packer(len(names))
        for at in range(0, len(names), RECORD_POINTS_MAX):
            part = names[at : at + RECORD_POINTS_MAX]
            if step is None:
                step = spool.next_step
            spool.points(part, step, time_us, packer(len(part))(*(good[name] for name in part)))

    def log_params(self, params: Mapping[str, Any]) -> None:
        """Log parameters. Nested ones become `outer.inner`. The first value of a parameter is kept. Never raises."""
        try:
            good, problems = _values.params_of(params)
            for problem in problems:
                self._complain("params", problem + "; it is left out")
            new: Dict[str, str] = {}
            for name, value in good.items():
                if self._params.setdefault(name, value) != value:
                    kept = f"parameter {name} keeps its first value {self._params[name]!r:.60}"
                    self._complain(f"param {name}", kept)
                elif name not in new:
                    new[name] = value
            names = list(new)
            for at in range(0, len(names), _PARAMS_PER_RECORD):
                part = {name: new[name] for name in names[at : at + _PARAMS_PER_RECORD]}
                self._operation(PARAMS, {"params": part})
        except Exception as error:  # noqa: BLE001
            self._complain("params", f"log_params: {type(error).__name__}: {error}")

    def log_tags(self, tags: Mapping[str, Any], remove: Sequence[str] = ()) -> None:
        """Set tags, and remove those whose keys are in `remove`. Never raises."""
        try:
            good, problems = _values.tags_of(tags)
            for problem in problems:
                self._complain("tags", problem + "; it is left out")
            if good or remove:
                self._operation(TAGS, {"tags": good, "remove": [str(key) for key in remove]})
        except Exception as error:  # noqa: BLE001
            self._complain("tags", f"log_tags: {type(error).__name__}: {error}")

    def log_artifact(self, path: Union[str, "os.PathLike[str]"], name: str = "", type: str = "other") -> None:
        """Upload a file, or all files of a folder, in the background. They must stay as they are until `finish`.

        The name is the file's own unless given; the types are model, dataset, image, audio, video, table, code and
        other. Never raises.
        """
        try:
            if type not in ARTIFACT_TYPES:
                self._complain("artifact", f"artifact type {type!r} is not one of {_TYPES}: other is used")
                type = "other"
            pipeline = self._writable()
            if pipeline is not None:
                pipeline.start_uploader()
            full = os.path.abspath(os.fspath(path))
            name = name or os.path.basename(full)
            if os.path.isdir(full):
                files = sorted(os.path.join(folder, one) for folder, _, found in os.walk(full) for one in found)
                for one in files:
                    relative = os.path.relpath(one, full).replace(os.sep, "/")
                    self._operation(ARTIFACT, {"path": one, "name": f"{name}/{relative}", "type": type})
            elif os.path.isfile(full):
                self._operation(ARTIFACT, {"path": full, "name": name, "type": type})
            else:
                self._complain("artifact", f"artifact {full} is not a file; it is left out")
        except Exception as error:  # noqa: BLE001
            self._complain("artifact", f"log_artifact: {error.__class__.__name__}: {error}")

    def flush(self, timeout: Optional[float] = None) -> bool:
        """Send what was logged so far and wait for the answers. False when the time is over. Never raises."""
        pipeline = self._pipeline
        if pipeline is None or self._config.mode != "online":
            return pipeline is None
        done = pipeline.wait(pipeline.delivery.is_answered, self._wait_seconds(timeout), lambda: None)
        pipeline.resume_rhythm()
        return done

    def finish(
        self,
        status: str = "finished",
        timeout: Optional[float] = None,
        exit_code: Optional[int] = None,
        error_message: str = "",
    ) -> FinishReport:
        """End the run: `finished`, `failed` or `killed`.

        Waits up to `timeout` seconds (the option `finish_seconds`) for the server; then says what is left, which
        stays in the spool for `kindex-runs sync` or the next start. In a forked child it ends the child's part
        alone. Never raises.
        """
        if self._report is not None:
            return self._report
        if status not in _END_STATUSES:
            self._complain("finish", f"status {status!r} is not one of {', '.join(_END_STATUSES)}: failed is used")
            status = "failed"
        if self._pipeline is None:
            self._report = FinishReport(True, 0, 0, 0, 0)
            return self._report
        if not self._forked:
            body = {"status": status, "exit_code": exit_code, "error_message": error_message[:1000]}
            self._operation(FINISH, body)
        self._report = FinishReport(False, 0, 0, 0, 0)
        self._open_spool = None
        try:
            self._report = self._end(self._pipeline, self._wait_seconds(timeout))
        except Exception as error:  # noqa: BLE001
            self._complain("finish", f"finish: {type(error).__name__}: {error}")
        _live.discard(self)
        return self._report

    def _end(self, pipeline: Pipeline, timeout_s: float) -> FinishReport:
        courier = pipeline.courier
        progress = _Progress(self, pipeline)
        if courier is None:
            complete = False
        elif self._forked:
            complete = pipeline.wait(pipeline.delivery.is_answered, timeout_s, progress)
        else:
            complete = pipeline.wait(lambda: courier.has_finished, timeout_s, progress)
        left = pipeline.left()
        if not complete:
            left = left._replace(left=left.left + pipeline.left_by_others())
        pipeline.close()
        report = FinishReport(complete, *left)
        if left.dropped:
            logger.warning("run %s: %d points had no room in the spool and are lost", self.run_id, left.dropped)
        if not complete:
            reason = f" ({courier.last_error})" if courier and courier.last_error else ""
            logger.warning(
                "run %s: %d points%s are left in %s%s. The next start delivers them, or: kindex-runs sync",
                self.run_id,
                left.left,
                "" if self._forked else " and its end",
                self._config.dir,
                reason,
            )
        return report

    def __enter__(self) -> "Run":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        if kind is None:
            self.finish("finished")
        else:
            self.finish("failed", error_message=f"{kind.__name__}: {error}")

    def _open(self) -> Optional[Pipeline]:
        try:
            meta = {**self._meta, "pid": os.getpid(), "forked": self._forked}
            return Pipeline(meta, self._config, self._warner, self._forked)
        except OSError as error:
            logger.warning("nothing is logged: no spool can be made in %s: %s", self._config.dir, error)
            return None

    def _wait_seconds(self, timeout: Optional[float]) -> float:
        return self._config.finish_seconds if timeout is None else max(0.0, timeout)

    def _operation(self, kind: int, body: Dict[str, Any]) -> None:
        pipeline = self._writable()
        if pipeline is not None and pipeline.spool.operation(encode_operation(kind, body)):
            pipeline.wake_sender()

    def _writable(self) -> Optional[Pipeline]:
        if self._report is not None:
            self._complain("finished", "the run has finished: nothing more is logged")
            return None
        if self._opens_later:
            with self._fork_lock:
                if self._opens_later:
                    self._opens_later = False
                    self._use(self._open())
        return self._pipeline

    def _use(self, pipeline: Optional[Pipeline]) -> None:
        self._pipeline = pipeline
        self._open_spool = pipeline.spool if pipeline else None

    def after_fork_in_child(self) -> None:
        """The child leaves the parent's spool alone. Its first call of `log` opens one of its own."""
        self._fork_lock = threading.Lock()
        if self._pipeline is not None:
            self._pipeline.abandon()
            self._use(None)
            self._opens_later = True
        self._forked = True

    def _complain(self, kind: str, problem: str) -> None:
        if problem:
            self._warner(kind, f"run {self.run_id}: {problem}")


class _Progress:
    """Prints how far the delivery is, every two seconds, to stderr."""

    def __init__(self, run: Run, pipeline: Pipeline) -> None:
        self._run = run
        self._pipeline = pipeline
        self._next = time.monotonic() + _PROGRESS_PAUSE_S

    def __call__(self) -> None:
        if self._run._config.quiet or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _PROGRESS_PAUSE_S
        left = self._pipeline.left()
        error = self._pipeline.courier.last_error if self._pipeline.courier else ""
        state = f"; {error}" if error else ""
        print(f"kindex: run {self._run.run_id}: {left.left} points left to send{state}", file=sys.stderr)


_live: "weakref.WeakSet[Run]" = weakref.WeakSet()


def _finish_all() -> None:
    """At the end of the program: a run that was not finished ends as the program does."""
    failed = getattr(sys, "last_type", None) is not None
    for run in list(_live):
        run.finish("failed" if failed else "finished", error_message=str(getattr(sys, "last_value", "") or ""))


def _after_fork_in_child() -> None:
    new_id.after_fork_in_child()
    release_in_child()
    for run in list(_live):
        run.after_fork_in_child()


atexit.register(_finish_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
