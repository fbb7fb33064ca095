"""The failures that a child reports."""

from service.errors import ServiceError

MAX_TEXT = 2000
MAX_VIOLATIONS = 20


def describe(error: ServiceError) -> tuple[str, str, list[tuple[str, str, str]]]:
    """Return code, message and violations of a failure, as text that can be encoded."""
    violations = [
        (_printable(violation.location), _printable(violation.message), violation.rule or "")
        for violation in error.violations[:MAX_VIOLATIONS]
    ]
    return error.code(), _printable(error.message), violations


def _printable(text: str) -> str:
    """Return text that can be encoded; names in an uploaded file may hold anything."""
    return text[:MAX_TEXT].encode(errors="replace").decode()
