"""One question to a child, and the check of its answer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from service.errors import InvalidInput, TooLarge
from service.runner.answers import raise_failure
from service.runner.fields import FieldError
from service.runner.frames import MAX_TENSOR_BYTES, Array, Frame, FrameError, Kind, Status
from service.runner.process import RunnerProcess

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Question:
    """What is asked. ``location`` and ``invalid`` are what the arrays are called in errors."""

    kind: Kind
    fields: Mapping[str, Any]
    tensors: Mapping[str, Array]
    location: str
    invalid: type[InvalidInput]
    timeout: float
    max_answer_bytes: int

    @property
    def operation(self) -> str:
        """What is asked for, in a word."""
        return self.kind.name.lower()

    @property
    def n_rows(self) -> int:
        """How many rows go with it."""
        return len(next(iter(self.tensors.values()), ()))


def ask(process: RunnerProcess, question: Question, read: Callable[[Frame], T]) -> T:
    """Ask, and return what ``read`` makes of the answer.

    A child whose answer ``read`` refuses (by `FieldError`) is killed.

    Raises
    ------
    InvalidInput, InferenceFailed
        What the child reports, or what became of it.
    TooLarge
        If the arrays do not fit one request.
    """
    fields = {**question.fields, "location": question.location}
    try:
        answer = process.call(
            question.kind,
            fields,
            question.tensors,
            timeout=question.timeout,
            max_tensor_bytes=question.max_answer_bytes,
        )
    except FrameError as error:
        raise TooLarge.at(
            question.location,
            f"expected at most {MAX_TENSOR_BYTES} bytes in a batch of rows",
        ) from error
    try:
        if answer.status is Status.FAILED:
            raise_failure(answer, invalid=question.invalid)
        return read(answer)
    except FieldError as error:
        raise process.condemn(str(error)) from error
