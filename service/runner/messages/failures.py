"""Failures that a child process reports."""

from typing import NoReturn

import msgspec

from service import errors
from service.errors import InvalidInput, ModelRule, ServiceError, Violation
from service.runner.messages.convert import FieldError, convert
from service.runner.messages.frames import Frame

FAILURES: dict[str, type[ServiceError]] = {
    kind.code(): kind
    for kind in (
        errors.InvalidInput,
        errors.MalformedRequest,
        errors.UnsupportedFormat,
        errors.InvalidConfig,
        errors.InvalidDataset,
        errors.InvalidOnnxModel,
        errors.TooLarge,
        errors.InferenceFailed,
        errors.DeadlineExceeded,
        errors.SandboxUnavailable,
    )
}
MAX_VIOLATIONS = 20


class Failure(msgspec.Struct, frozen=True):
    """Code, message, and violations as location, message and rule."""

    code: str
    message: str
    violations: list[tuple[str, str, str]]


def raise_failure(answer: Frame, *, invalid: type[InvalidInput]) -> NoReturn:
    """Raise the failure that a child reports; ``invalid`` replaces `InvalidInput`.

    Raises
    ------
    FieldError
        If a child may not report such a failure.
    """
    error = error_of(answer.fields)
    if type(error) is InvalidInput:
        raise invalid(error.message, error.violations)
    raise error


def error_of(fields: object) -> ServiceError:
    """Return the error that a child reports.

    Raises
    ------
    FieldError
        If a child may not report such a failure.
    """
    failure = convert(fields, Failure)
    try:
        return FAILURES[failure.code](
            failure.message,
            [
                Violation(location, sentence, ModelRule(rule) if rule else None)
                for location, sentence, rule in failure.violations[:MAX_VIOLATIONS]
            ],
        )
    except (KeyError, ValueError) as error:
        raise FieldError(f"a failure: {error}") from error
