"""Log a run to Kindex: metrics, parameters, tags and artifacts.

    import kindex

    run = kindex.init(project="mnist")
    run.log({"loss": 0.5, "accuracy": 0.8})

`log` stores its values in a memory-mapped file and returns; a thread sends them. What it has returned from survives
the death of the process and an outage of the server.
"""

from __future__ import annotations

import time
from typing import Any, Mapping, Optional, Sequence

from . import _values
from ._config import Config, load
from ._pipeline import new_id
from ._run import FinishReport, Run
from ._sync import Adopter
from ._version import VERSION as __version__
from ._warn import Warner, logger

__all__ = [
    "Config",
    "FinishReport",
    "Run",
    "finish",
    "get_run",
    "init",
    "log",
    "log_artifact",
    "log_params",
    "log_tags",
]

_current: Optional[Run] = None
_warner = Warner()


def init(
    project: Optional[str] = None,
    name: str = "",
    run_id: Optional[str] = None,
    tags: Optional[Mapping[str, Any]] = None,
    config: Optional[Mapping[str, Any]] = None,
    description: str = "",
    parent_run_id: str = "",
    **options: Any,
) -> Run:
    """Begin a run, or continue the one with this `run_id`. Returns at once: the server is told in the background.

    `config` are the parameters of the run. `options` are those of `Config`, such as `url`, `api_key` or `mode`; each
    can be given by the environment, for example `KINDEX_RUNS_URL`.

    Errors: `ValueError` for a wrong project, run id or option. Neither the server nor the disk makes it fail.
    """
    global _current
    settings = load({"project": project, "run_id": run_id, **options})
    chosen = settings.run_id or str(new_id())
    problem = "" if settings.mode == "disabled" else _values.project_error(settings.project)
    problem = problem or _values.run_id_error(chosen)
    if problem:
        raise ValueError(f"kindex: {problem}")
    good_tags, problems = _values.tags_of(tags or {})
    for one in problems:
        _warner(one, f"run {chosen}: {one}; it is left out")
    meta = {
        "run_id": chosen,
        "project": settings.project,
        "name": str(name)[:256],
        "description": str(description)[:4096],
        "tags": good_tags,
        "parent_run_id": str(parent_run_id),
        "url": settings.url,
        "created_at": time.time(),
        "sdk": f"python {__version__}",
    }
    run = Run(meta, settings)
    if settings.mode == "online":
        Adopter(settings, _warner, chosen).start()
        logger.info("run %s is sent to %s", chosen, settings.url)
    if config:
        run.log_params(config)
    _current = run
    return run


def get_run() -> Optional[Run]:
    """The run of the latest `init`."""
    return _current


def _or_warn() -> Optional[Run]:
    if _current is None:
        _warner("no run", "there is no run: call kindex.init(project=...) first")
    return _current


def log(metrics: Mapping[str, Any], step: Optional[int] = None, timestamp: Any = None) -> None:
    """`Run.log` of the current run."""
    run = _current or _or_warn()
    if run is not None:
        run.log(metrics, step, timestamp)


def log_params(params: Mapping[str, Any]) -> None:
    """`Run.log_params` of the current run."""
    run = _or_warn()
    if run is not None:
        run.log_params(params)


def log_tags(tags: Mapping[str, Any], remove: Sequence[str] = ()) -> None:
    """`Run.log_tags` of the current run."""
    run = _or_warn()
    if run is not None:
        run.log_tags(tags, remove)


def log_artifact(path: Any, name: str = "", type: str = "other") -> None:
    """`Run.log_artifact` of the current run."""
    run = _or_warn()
    if run is not None:
        run.log_artifact(path, name, type)


def finish(status: str = "finished", timeout: Optional[float] = None) -> Optional[FinishReport]:
    """`Run.finish` of the current run."""
    run = _or_warn()
    return run.finish(status, timeout) if run is not None else None
