"""All failures that the service reports, independent of HTTP.

ServiceError
├── InvalidInput            the input breaks a rule
│   ├── MalformedRequest    it cannot be parsed, such as invalid JSON or multipart
│   ├── InvalidConfig
│   ├── InvalidDataset
│   ├── InvalidOnnxModel
│   ├── FindingRefused      a check found a problem that the caller chose to refuse
│   ├── UnsupportedFormat   an unsupported media type or file format
│   ├── NotAcceptable       the response exists in no format that the caller accepts
│   ├── TooLarge            a size, a count or a length above its limit
│   │   └── HeadersTooLarge
│   └── RequestTimeout      the request did not arrive in time
├── Unauthenticated         the request has no valid API key
├── Forbidden               the API key does not allow this
│   ├── UnknownHost         the host name is not one of the service
│   └── ForeignSite         a browser sent the request for a page of another site
├── NotFound
├── MethodNotAllowed        the path supports other methods
├── Conflict                the state of the resource does not allow this
├── Overloaded              a limit of the server; a retry may succeed
│   ├── StorageFull
│   │   └── StorageLimitReached   a tenant has reached its storage limit
│   ├── OnnxModelQuarantined  its processes crashed or hung repeatedly
│   ├── TooManyConnections  the server has no free connection
│   ├── OutcomeUnknown      the database failed during a commit
│   └── TooManyRequests     requests arrive faster than they can be handled
│       ├── RequestLimitReached   a tenant has reached its limit of requests,
│       ├── RowLimitReached       its limit of rows,
│       ├── JobLimitReached       its limit of unfinished jobs,
│       └── ShareTaken            or its share of what tenants share
├── ArtifactDamaged         a stored file or row is missing or changed
└── InferenceFailed         the ONNX model returned no result
    ├── OnnxModelCrashed
    ├── DeadlineExceeded
    ├── SandboxUnavailable  the kernel does not support the sandbox
    └── ProviderMismatch    the provider gives other results than the one of the calibration

To add a failure, add a class here. ``code`` is derived from its name, and the HTTP layer maps the
nearest known ancestor to a status.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from typing import Self


class ModelRule(StrEnum):
    """A rule for ONNX models."""

    # The file.
    NOT_ONNX = "not-onnx"
    ORT_FORMAT = "ort-format"
    NOT_TEXT = "not-text"
    TOO_MANY_PARTS = "too-many-parts"
    TOO_DEEP = "too-deep"
    FILE_TOO_LARGE = "file-too-large"
    # Versions.
    IR_TOO_NEW = "ir-too-new"
    OPSET_TOO_NEW = "opset-too-new"
    OPSET_TOO_OLD = "opset-too-old"
    # Nodes and functions.
    NAME_TWICE = "name-twice"
    OPERATOR_NOT_ALLOWED = "operator-not-allowed"
    TOO_MANY_NODES = "too-many-nodes"
    FUNCTION_TWICE = "function-twice"
    FUNCTION_CALLS_ITSELF = "function-calls-itself"
    FUNCTION_TAKES_GRAPH = "function-takes-graph"
    FUNCTION_NOT_INLINED = "function-not-inlined"
    # External weights.
    EXTERNAL_PATH = "external-path"
    EXTERNAL_REFERENCE = "external-reference"
    EXTERNAL_MISSING = "external-missing"
    EXTERNAL_BOUNDS = "external-bounds"
    EXTERNAL_TOO_LARGE = "external-too-large"
    # Inputs.
    NAMES_TOO_LONG = "names-too-long"
    NAMES_UNPRINTABLE = "names-unprintable"
    NO_INPUT = "no-input"
    INPUT_TYPE = "input-type"
    INPUT_SHAPE = "input-shape"
    RESERVED_NAME = "reserved-name"
    # Outputs.
    NO_OUTPUT = "no-output"
    NO_SCORES = "no-scores"
    SEVERAL_SCORES = "several-scores"
    # Loading in ONNX Runtime.
    NOT_LOADED = "not-loaded"
    NOT_IMPLEMENTED = "not-implemented"
    TOO_MUCH_MEMORY = "too-much-memory"
    TOO_SLOW = "too-slow"
    CRASHED = "crashed"
    # The first rows.
    RUN_FAILED = "run-failed"
    OUTPUT_SHAPE = "output-shape"
    OUTPUT_ROWS = "output-rows"
    TOO_MANY_CLASSES = "too-many-classes"
    NOT_FINITE = "not-finite"
    NOT_A_DISTRIBUTION = "not-a-distribution"
    UNCLEAR_KIND = "unclear-kind"
    LABELS_DIFFER = "labels-differ"
    ANSWERS_DIFFER = "answers-differ"
    ROWS_MIXED = "rows-mixed"
    RANDOM = "random"
    # Measures with noise, and ensembles.
    NOISE = "noise"
    MEMBERS_DIFFER = "members-differ"


SHOWN_CHARACTERS = 120


@dataclass(frozen=True)
class Violation:
    """A broken rule: its location (part, array, row or field) and what was expected there.

    ``rule`` is the stable name of a rule for ONNX models; other rules have none.
    """

    location: str
    message: str
    rule: ModelRule | None = None


class ServiceError(Exception):
    """A failure with a sentence for the caller and, if known, the locations at fault."""

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
        """Return the name for people, such as ``Invalid dataset``."""
        words = cls.code().replace("-", " ").replace("onnx", "ONNX")
        return words[0].upper() + words[1:]

    @classmethod
    def at(cls, location: str, message: str, *, rule: ModelRule | None = None) -> Self:
        """Build the error of a single violation."""
        return cls(f"{location}: {message}", [Violation(location, message, rule)])


class InvalidInput(ServiceError):
    """The input breaks a rule."""


class MalformedRequest(InvalidInput):
    """The request cannot be parsed."""


class InvalidConfig(InvalidInput):
    """The calibration's configuration breaks a rule."""


class InvalidDataset(InvalidInput):
    """A calibration or evaluation set breaks a rule."""


class InvalidOnnxModel(InvalidInput):
    """The service cannot serve the ONNX model; `because` takes the broken rule."""

    @classmethod
    def because(cls, rule: ModelRule, message: str, *, location: str = "model") -> Self:
        """Build the error of a model that breaks a rule."""
        return cls.at(location, message, rule=rule)


class FindingRefused(InvalidInput):
    """A check found a problem that the caller chose to refuse."""


class UnsupportedFormat(InvalidInput):
    """The service does not support the media type or file format."""


class NotAcceptable(InvalidInput):
    """The response exists in no format that the caller accepts."""


class TooLarge(InvalidInput):
    """A size, a count or a length is above its limit."""


class HeadersTooLarge(TooLarge):
    """The request line and headers are too long."""


class RequestTimeout(InvalidInput):
    """The request did not arrive in time."""


class Unauthenticated(ServiceError):
    """The request has no valid API key, and one is needed."""


class Forbidden(ServiceError):
    """The API key does not allow this."""


class UnknownHost(Forbidden):
    """The host name of the request is not one of the service."""


class ForeignSite(Forbidden):
    """A browser sent the request for a page of another site."""


class NotFound(ServiceError):
    """The resource does not exist, or it belongs to another tenant."""


class MethodNotAllowed(ServiceError):
    """The path supports other methods: ``allowed``."""

    def __init__(self, allowed: Sequence[str]) -> None:
        self.allowed = ", ".join(sorted(allowed))
        super().__init__(f"This path supports {self.allowed}.")


class Conflict(ServiceError):
    """The state of the resource does not allow this."""


class Overloaded(ServiceError):
    """A limit of the server; the request may succeed after ``retry_after`` seconds."""

    def __init__(
        self, message: str, violations: Sequence[Violation] = (), *, retry_after: int = 5
    ) -> None:
        super().__init__(message, violations)
        self.retry_after = retry_after


class OnnxModelQuarantined(Overloaded):
    """The processes of an ONNX model crashed or hung repeatedly, so it is blocked for a while."""


class TooManyConnections(Overloaded):
    """All connections are busy."""


class OutcomeUnknown(Overloaded):
    """The database failed during a commit, so the change may be stored or not."""


class StorageFull(Overloaded):
    """The storage of uploads and results is full."""


class StorageLimitReached(StorageFull):
    """A tenant has reached its storage limit; deletions and the end of jobs free space."""


@dataclass(frozen=True)
class Quota:
    """A limit: the amount of a named thing, per ``seconds`` or at a time."""

    name: str
    amount: int
    seconds: int | None = None


class TooManyRequests(Overloaded):
    """Too many requests at once; a retry may succeed.

    ``quota`` is the limit that was reached, if it belongs to one tenant or address.
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
    """A tenant has reached its limit of requests per second."""


class RowLimitReached(TooManyRequests):
    """A tenant has reached its limit of rows per minute."""


class JobLimitReached(TooManyRequests):
    """A tenant has reached its limit of queued and running jobs."""


class ShareTaken(TooManyRequests):
    """A tenant holds its share of a limited amount; the rest is reserved for others."""


class ArtifactDamaged(ServiceError):
    """A stored file or row is missing or changed."""


class InferenceFailed(ServiceError):
    """The ONNX model returned no result."""


class OnnxModelCrashed(InferenceFailed):
    """The process that ran the ONNX model died.

    ``is_from_outside`` is true if something other than the service killed it.
    """

    def __init__(
        self, message: str, violations: Sequence[Violation] = (), *, is_from_outside: bool = False
    ) -> None:
        super().__init__(message, violations)
        self.is_from_outside = is_from_outside


class DeadlineExceeded(InferenceFailed):
    """The ONNX model exceeded its time limit."""


class SandboxUnavailable(InferenceFailed):
    """The machine does not support the sandbox, and no ONNX model runs without it."""


class ProviderMismatch(InferenceFailed):
    """The ONNX model gives other results with this provider than with the calibration's."""


def shown(text: str) -> str:
    """Return a caller's text for a message: quoted, escaped and shortened."""
    return ascii(text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "…")


# Comparing names takes longer than most requests, so long ones are not compared.
COMPARED_CHARACTERS = 50


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown name: the nearest known one, if one is near."""
    if len(name) > COMPARED_CHARACTERS:
        return ""
    nearest = get_close_matches(name, known, n=1)
    return f"; did you mean {shown(nearest[0])}?" if nearest else ""


def problem(
    code: str, title: str, detail: str, violations: Sequence[Violation] = ()
) -> dict[str, object]:
    """Return a problem without its HTTP status."""
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
    """Return the problem of an exception, without traceback or paths of this machine."""
    if isinstance(error, ServiceError):
        return problem(error.code(), error.title(), error.message, error.violations)
    return problem(
        "internal-error",
        "Internal error",
        "The service failed unexpectedly; its log contains the reason.",
    )
