"""A failure as plain data: what a calibration keeps, and callers are answered with."""

from collections.abc import Sequence

from service.errors import ServiceError, Violation


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
