"""The failures that a child reports."""

from service.errors import ServiceError
from service.runner.messages.failures import (
    MAX_FAILURE_BYTES,
    MAX_TEXT_BYTES,
    MAX_VIOLATIONS,
    Failure,
)


def describe(error: ServiceError) -> Failure:
    """Return a failure as text that can be encoded, with as many violations as it may have."""
    message = _printable(error.message)
    left = MAX_FAILURE_BYTES - len(message.encode())
    violations = []
    for violation in error.violations[:MAX_VIOLATIONS]:
        location, sentence = _printable(violation.location), _printable(violation.message)
        left -= len(location.encode()) + len(sentence.encode())
        if left < 0:
            break
        violations.append((location, sentence, violation.rule or ""))
    return Failure(error.code(), message, violations)


def _printable(text: str) -> str:
    """Return text that can be encoded; names in an uploaded file may hold anything."""
    return text.encode(errors="replace")[:MAX_TEXT_BYTES].decode(errors="ignore")
