"""Every failure the service reports, free of HTTP.

ServiceError
├── InvalidInput            what the caller sent breaks a rule
│   ├── MalformedRequest    it cannot be read at all: no JSON, no multipart
│   ├── InvalidConfig
│   ├── InvalidDataset
│   ├── InvalidOnnxModel
│   ├── FindingRefused      something looks wrong that the caller wants no calibration of
│   ├── UnsupportedFormat   a media type or file format that is not read
│   ├── NotAcceptable       it is offered in other formats than those that are accepted
│   ├── TooLarge            a size, a count or a length above its limit
│   │   └── HeadersTooLarge
│   └── RequestTimeout      it did not arrive in time
├── Unauthenticated         nobody knows who asks
├── Forbidden               who asks may not do this
│   ├── UnknownHost         it was sent to a name that is not the service's
│   └── ForeignSite         a page of another site had a browser send it
├── NotFound
├── MethodNotAllowed        it is there, and answers other methods
├── Conflict                the thing is not in a state that allows this
├── Overloaded              a limit of the server, worth trying again later
│   ├── StorageFull
│   │   └── StorageLimitReached   a tenant has stored as much as it may
│   ├── OnnxModelQuarantined  its processes died or hung again and again
│   ├── TooManyConnections  no more are taken just now
│   ├── OutcomeUnknown      the database went away while it was told to keep something
│   └── TooManyRequests     what arrives is more than can be taken now
│       ├── RequestLimitReached   a tenant sends more requests than it may
│       ├── RowLimitReached       and more rows
│       ├── JobLimitReached       and has as many jobs unfinished as it may
│       ├── QueueShareTaken       and as much waiting as leaves room for others
│       └── TooManyBadKeys        an address has sent key after key that is none
├── ArtifactDamaged         a stored file is missing, or is not what was stored
└── InferenceFailed         the ONNX model did not answer
    ├── OnnxModelCrashed
    ├── DeadlineExceeded
    ├── SandboxUnavailable  the kernel cannot lock in the process that would run it
    └── ProviderMismatch    it answers otherwise than where it was calibrated

A leaf is added here and nowhere else: ``code`` is derived from its name, and the HTTP layer maps
the nearest known ancestor to a status.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Self


class ModelRule(StrEnum):
    """One rule that a model has to keep."""

    # The file.
    NOT_ONNX = "not-onnx"
    ORT_FORMAT = "ort-format"
    NOT_TEXT = "not-text"
    TOO_MANY_PARTS = "too-many-parts"
    TOO_DEEP = "too-deep"
    FILE_TOO_LARGE = "file-too-large"
    # Its versions.
    IR_TOO_NEW = "ir-too-new"
    OPSET_TOO_NEW = "opset-too-new"
    OPSET_TOO_OLD = "opset-too-old"
    # Its nodes and functions.
    NAME_TWICE = "name-twice"
    OPERATOR_NOT_ALLOWED = "operator-not-allowed"
    TOO_MANY_NODES = "too-many-nodes"
    FUNCTION_TWICE = "function-twice"
    FUNCTION_CALLS_ITSELF = "function-calls-itself"
    FUNCTION_TAKES_GRAPH = "function-takes-graph"
    FUNCTION_NOT_INLINED = "function-not-inlined"
    # Weights in files beside it.
    EXTERNAL_PATH = "external-path"
    EXTERNAL_REFERENCE = "external-reference"
    EXTERNAL_MISSING = "external-missing"
    EXTERNAL_BOUNDS = "external-bounds"
    EXTERNAL_TOO_LARGE = "external-too-large"
    # What it takes.
    NAMES_TOO_LONG = "names-too-long"
    NO_INPUT = "no-input"
    INPUT_TYPE = "input-type"
    INPUT_SHAPE = "input-shape"
    RESERVED_NAME = "reserved-name"
    # What it gives.
    NO_OUTPUT = "no-output"
    NO_SCORES = "no-scores"
    SEVERAL_SCORES = "several-scores"
    # ONNX Runtime takes it.
    NOT_LOADED = "not-loaded"
    NOT_IMPLEMENTED = "not-implemented"
    TOO_MUCH_MEMORY = "too-much-memory"
    TOO_SLOW = "too-slow"
    CRASHED = "crashed"
    # It answers the first rows.
    RUN_FAILED = "run-failed"
    OUTPUT_SHAPE = "output-shape"
    OUTPUT_ROWS = "output-rows"
    TOO_MANY_CLASSES = "too-many-classes"
    NOT_FINITE = "not-finite"
    NOT_A_DISTRIBUTION = "not-a-distribution"
    ANSWERS_DIFFER = "answers-differ"
    ROWS_MIXED = "rows-mixed"
    RANDOM = "random"
    # It suits the measures that run it with noise, and the other members of an ensemble.
    NOISE = "noise"
    MEMBERS_DIFFER = "members-differ"


SHOWN_CHARACTERS = 120


@dataclass(frozen=True)
class Violation:
    """One broken rule: where it is (part, array, row or field) and what was expected there.

    ``rule`` is its stable name, where rules of a kind have one: those of ONNX models.
    """

    location: str
    message: str
    rule: ModelRule | None = None


class ServiceError(Exception):
    """A failure with a sentence for the caller and, where it helps, the places at fault."""

    def __init__(self, message: str, violations: Sequence[Violation] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.violations = tuple(violations)

    @classmethod
    def code(cls) -> str:
        """Return the stable name of this kind of failure, such as ``invalid-dataset``."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", cls.__name__).lower()

    @classmethod
    def title(cls) -> str:
        """Return the same name for a reader, such as ``Invalid dataset``."""
        words = cls.code().replace("-", " ").replace("onnx", "ONNX")
        return words[0].upper() + words[1:]

    @classmethod
    def at(cls, location: str, message: str, *, rule: ModelRule | None = None) -> Self:
        """Build the error of a single violation."""
        return cls(f"{location}: {message}", [Violation(location, message, rule)])


class InvalidInput(ServiceError):
    """What the caller sent breaks a rule."""


class MalformedRequest(InvalidInput):
    """The request cannot be read at all."""


class InvalidConfig(InvalidInput):
    """The calibration's configuration breaks a rule."""


class InvalidDataset(InvalidInput):
    """A calibration or evaluation set breaks a rule."""


class InvalidOnnxModel(InvalidInput):
    """The ONNX model is no classifier this service can serve; `because` says by which rule."""

    @classmethod
    def because(cls, rule: ModelRule, message: str, *, location: str = "model") -> Self:
        """Build the error of a model that breaks a rule."""
        return cls.at(location, message, rule=rule)


class FindingRefused(InvalidInput):
    """Something looks wrong, and the caller asked for no calibration then."""


class UnsupportedFormat(InvalidInput):
    """The media type or file format is not one that is read here."""


class NotAcceptable(InvalidInput):
    """No format that the caller takes is one that this is written in."""


class TooLarge(InvalidInput):
    """A size, a count or a length is above its limit."""


class HeadersTooLarge(TooLarge):
    """The request line and the headers are longer than they may be."""


class RequestTimeout(InvalidInput):
    """The request did not arrive in the time it may take."""


class Unauthenticated(ServiceError):
    """A key is asked for, and none that is good was sent."""


class Forbidden(ServiceError):
    """The key that was sent may not do this."""


class UnknownHost(Forbidden):
    """The request was sent to a name that this service does not have."""


class ForeignSite(Forbidden):
    """A page of another site had a browser send the request."""


class NotFound(ServiceError):
    """There is no such thing, or it belongs to somebody else."""


class MethodNotAllowed(ServiceError):
    """What is asked for answers other methods: ``allowed``."""

    def __init__(self, allowed: Sequence[str]) -> None:
        self.allowed = ", ".join(sorted(allowed))
        super().__init__(f"This path answers {self.allowed}.")


class Conflict(ServiceError):
    """The thing is not in a state that allows this."""


class Overloaded(ServiceError):
    """A limit of the server; the same request may succeed ``retry_after`` seconds later."""

    def __init__(
        self, message: str, violations: Sequence[Violation] = (), *, retry_after: int = 5
    ) -> None:
        super().__init__(message, violations)
        self.retry_after = retry_after


class OnnxModelQuarantined(Overloaded):
    """The processes of an ONNX model died or hung again and again; it is left alone for a while."""


class TooManyConnections(Overloaded):
    """As many connections are busy as may be at a time."""


class OutcomeUnknown(Overloaded):
    """The database went away while it was told to keep something: it may have done so."""


class StorageFull(Overloaded):
    """No space is left where uploads and results are kept."""


class StorageLimitReached(StorageFull):
    """A tenant has stored as much as it may; what it deletes, and jobs that end, make room."""


@dataclass(frozen=True)
class Quota:
    """What somebody may use: so much of what is named, in so many seconds or at a time."""

    name: str
    amount: int
    seconds: int | None = None


class TooManyRequests(Overloaded):
    """More is asked at once than can be taken; the same request may succeed later.

    ``quota`` is what is used up, where that is somebody's own.
    """

    def __init__(
        self,
        message: str,
        violations: Sequence[Violation] = (),
        *,
        retry_after: int = 5,
        quota: Quota | None = None,
    ) -> None:
        super().__init__(message, violations, retry_after=retry_after)
        self.quota = quota


class RequestLimitReached(TooManyRequests):
    """A tenant has sent as many requests as it may in a second."""


class RowLimitReached(TooManyRequests):
    """A tenant has asked for as many rows as it may in a minute."""


class JobLimitReached(TooManyRequests):
    """A tenant has as many jobs queued or running as it may."""


class QueueShareTaken(TooManyRequests):
    """A tenant has so much waiting that the rest of the room is left to others."""


class TooManyBadKeys(TooManyRequests):
    """One address has sent as many keys that are none as it may in a minute."""


class ArtifactDamaged(ServiceError):
    """A stored file is missing, or is not what was stored."""


class InferenceFailed(ServiceError):
    """The ONNX model did not answer."""


class OnnxModelCrashed(InferenceFailed):
    """The process that ran the ONNX model died.

    ``is_from_outside`` tells of one that was killed by somebody else than the service.
    """

    def __init__(
        self, message: str, violations: Sequence[Violation] = (), *, is_from_outside: bool = False
    ) -> None:
        super().__init__(message, violations)
        self.is_from_outside = is_from_outside


class DeadlineExceeded(InferenceFailed):
    """The ONNX model took longer than it may."""


class SandboxUnavailable(InferenceFailed):
    """The process of an ONNX model cannot be locked in on this machine, and none runs without."""


class ProviderMismatch(InferenceFailed):
    """The ONNX model answers otherwise with this execution provider than with the calibration's."""


def shown(text: str) -> str:
    """Return a caller's text as it may stand in a message: quoted, escaped, not too long."""
    return ascii(text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "…")


def problem(
    code: str, title: str, detail: str, violations: Sequence[Violation] = ()
) -> dict[str, object]:
    """Return a problem; HTTP adds its status."""
    return {
        "type": f"urn:howsure:problem:{code}",
        "title": title,
        "detail": detail,
        "errors": [_entry(found) for found in violations],
    }


def _entry(found: Violation) -> dict[str, str]:
    entry = {"location": found.location, "message": found.message}
    return entry if found.rule is None else {**entry, "rule": found.rule.value}


def problem_of(error: Exception) -> dict[str, object]:
    """Return the problem that an exception is: no traceback, no path of this machine."""
    if isinstance(error, ServiceError):
        return problem(error.code(), error.title(), error.message, error.violations)
    return problem(
        "internal-error",
        "Internal error",
        "The service failed in a way it should not; its log holds the reason.",
    )
