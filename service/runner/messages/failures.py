"""Failures that a child process reports."""

from typing import Annotated, NoReturn, TypeAlias

import msgspec
from msgspec import Meta

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
MAX_TEXT_BYTES = 2000
# Of a message and all violations together; the first violation always fits.
MAX_FAILURE_BYTES = 10_000

Text: TypeAlias = Annotated[str, Meta(max_length=MAX_TEXT_BYTES)]


class Failure(msgspec.Struct, frozen=True):
    """Code, message, and violations as location, message and rule."""

    code: Text
    message: Text
    violations: Annotated[list[tuple[Text, Text, Text]], Meta(max_length=MAX_VIOLATIONS)]

    def __post_init__(self) -> None:
        texts = [text for location, sentence, _ in self.violations for text in (location, sentence)]
        if len(self.message) + sum(map(len, texts)) > MAX_FAILURE_BYTES:
            raise ValueError("a failure is too long")


def raise_failure(answer: Frame, *, invalid: type[InvalidInput]) -> NoReturn:
    """Raise the failure that a child reports; ``invalid`` replaces `InvalidInput`.

    Raises
    ------
    FieldError
        If a child may not report such a failure.
    """
    error = error_of(convert(answer.fields, Failure))
    if type(error) is InvalidInput:
        raise invalid(error.message, error.violations)
    raise error


def error_of(failure: Failure) -> ServiceError:
    """Return the error that a child reports.

    Raises
    ------
    FieldError
        If a child may not report such a failure.
    """
    try:
        return FAILURES[failure.code](
            failure.message,
            [
                Violation(location, sentence, ModelRule(rule) if rule else None)
                for location, sentence, rule in failure.violations
            ],
        )
    except (KeyError, ValueError) as error:
        raise FieldError(f"a failure: {error}") from error
