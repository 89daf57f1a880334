"""What to do with a refusal. Pure: a refusal in, a decision out. The canonical gRPC codes serve both transports."""

from __future__ import annotations

import enum
from typing import Mapping, NamedTuple, Optional, Tuple


class Detail(NamedTuple):
    """A warning or an error of the server: `ErrorDetail` of the protocol."""

    code: str
    message: str
    field: str = ""
    severity: str = ""


class Refusal(Exception):
    """The server, or the way to it, did not take a request."""

    def __init__(
        self,
        code: str,
        message: str,
        details: Tuple[Detail, ...] = (),
        retry_after_s: Optional[float] = None,
        reached: bool = True,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details
        self.retry_after_s = retry_after_s
        #: Whether a server answered at all.
        self.reached = reached

    def has(self, *codes: str) -> bool:
        """Whether the server named one of the codes."""
        return any(detail.code in codes for detail in self.details) or any(code in self.message for code in codes)

    def __str__(self) -> str:
        named = ", ".join(detail.code for detail in self.details if detail.code)
        return f"{self.code}{f' ({named})' if named else ''}: {self.message}"


class Decision(enum.Enum):
    """What follows a refusal."""

    RETRY = "send it again after a pause"
    REGISTER = "the server does not know the run: InitRun, then send it again"
    RESUME = "the run is crashed: InitRun with the resume token, then send it again"
    HOLD = "nothing can be sent until somebody acts: keep it in the spool, try again now and then"
    SET_ASIDE = "this request can never succeed: write it to a file and go on"


_RETRY = frozenset(
    (
        "UNAVAILABLE",
        "RESOURCE_EXHAUSTED",
        "DEADLINE_EXCEEDED",
        "INTERNAL",
        "UNKNOWN",
        "ABORTED",
        "CANCELLED",
        "UNIMPLEMENTED",
    )
)
_HOLD = frozenset(("UNAUTHENTICATED", "PERMISSION_DENIED"))
_TOKEN_REFUSED = ("RESUME_TOKEN_REQUIRED", "RESUME_TOKEN_INVALID", "RESUME_TOKEN_EXPIRED", "RESUME_TOKEN_USED")

_CODE_OF_STATUS: Mapping[int, str] = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    408: "DEADLINE_EXCEEDED",
    409: "ALREADY_EXISTS",
    412: "FAILED_PRECONDITION",
    413: "INVALID_ARGUMENT",
    422: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


def code_of_status(status: int) -> str:
    """The canonical code of an HTTP status."""
    if status in _CODE_OF_STATUS:
        return _CODE_OF_STATUS[status]
    if status >= 500:
        return "INTERNAL"
    return "INVALID_ARGUMENT" if 400 <= status < 500 else "UNKNOWN"


def classify(refusal: Refusal) -> Decision:
    """What follows the refusal of a batch, of parameters, tags, an artifact or of FinishRun.

    A key that is missing, expired or too narrow is corrected outside of the run, so that its refusals never cost data.
    """
    if refusal.code in _RETRY:
        return Decision.RETRY
    if refusal.code in _HOLD:
        return Decision.HOLD
    if refusal.code == "NOT_FOUND":
        return Decision.REGISTER
    if refusal.code == "FAILED_PRECONDITION" and refusal.has("RUN_CRASHED"):
        return Decision.RESUME
    return Decision.SET_ASIDE


class Registration(enum.Enum):
    """What follows a refused InitRun."""

    RETRY = "again after a pause"
    WITHOUT_TOKEN = "the server does not know the run of the token: register it anew"
    ENDED = "the run has ended: what the server already has is still answered"
    LOST = "the run is crashed and cannot be resumed from here: what is left can only become a new run"
    HOLD = "nothing can be sent until somebody acts"


def classify_registration(refusal: Refusal, with_token: bool) -> Registration:
    """What follows the refusal of InitRun."""
    if refusal.code in _RETRY:
        return Registration.RETRY
    if refusal.code == "NOT_FOUND" and with_token:
        return Registration.WITHOUT_TOKEN
    if refusal.code in ("FAILED_PRECONDITION", "PERMISSION_DENIED") and refusal.has(*_TOKEN_REFUSED):
        return Registration.LOST
    if refusal.code == "FAILED_PRECONDITION":
        return Registration.ENDED
    return Registration.HOLD


def backoff_s(attempt: int, first_s: float, most_s: float, chance: float, asked_s: Optional[float]) -> float:
    """The pause before the next attempt: doubled each time, shortened by up to half by `chance` in 0 to 1.

    A pause that the server asked for is kept in full.
    """
    grown = min(most_s, first_s * float(2 ** min(attempt, 20)))
    return max(grown * (1 - chance / 2), asked_s or 0.0)
