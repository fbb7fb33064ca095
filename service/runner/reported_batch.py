"""What a child answered to a batch, held against what it was asked."""

from collections.abc import Mapping
from dataclasses import dataclass

from service.errors import ServiceError
from service.runner.answers import Expected, failure_of
from service.runner.batch_messages import Beginning, Part, Report, Words
from service.runner.batch_request import Answer, BatchRequest
from service.runner.fields import FieldError
from service.runner.frames import DTYPES
from service.runner.head_matrix import HeadMatrix


@dataclass(frozen=True, eq=False)
class ReportedBatch:
    """A report and its matrix, of which nothing but the sizes has been checked."""

    report: Report
    words: Words

    @property
    def n_rows(self) -> int:
        """How many rows were run."""
        return len(self.words)

    @property
    def rows_left(self) -> int:
        """How many rows the child still has."""
        return self.report.waiting

    def match(
        self, sent: dict[int, BatchRequest], expected: Expected, *, max_rows: int
    ) -> tuple[list[Answer], list[tuple[BatchRequest, ServiceError]]]:
        """Return the answers that are whole, and the refusals; both are taken out of ``sent``.

        Raises
        ------
        FieldError
            If a number is not that of a request, rows are too many or too few, or the matrix
            holds what cannot be. All requests are still in ``sent`` then.
        """
        answers: list[Answer] = []
        refused: list[tuple[BatchRequest, ServiceError]] = []
        try:
            self._match_parts(sent, expected, max_rows, answers)
            for failed in self.report.refused:
                error = failure_of(failed.code, failed.message, failed.violations)
                refused.append((_of(sent, failed.number), error))
                del sent[failed.number]
            self._check_rest(sent)
        except FieldError:
            sent.update((answer.request.number, answer.request) for answer in answers)
            sent.update((request.number, request) for request, _ in refused)
            raise
        return answers, refused

    def _match_parts(
        self,
        sent: dict[int, BatchRequest],
        expected: Expected,
        max_rows: int,
        answers: list[Answer],
    ) -> None:
        if not self.report.parts:
            return
        matrix = expected.read_words(self.words)
        start = 0
        for part in self.report.parts:
            begun, rows = part.beginning, part.rows
            if begun is not None and begun.supplied:
                _check_supplied(begun)
            is_whole = begun is not None and begun.rows == rows <= max_rows
            for number in range(part.number, part.number + part.count):
                request = _of(sent, number)
                answer: Answer | None
                if begun is not None and is_whole and request.beginning is None:
                    stop = start + rows
                    answer = Answer(request, matrix, start, stop, begun.wanted, begun.supplied)
                else:
                    answer = _take(request, part, matrix, start, max_rows)
                if answer is not None:
                    del sent[number]
                    answers.append(answer)
                start += rows

    def _check_rest(self, sent: Mapping[int, BatchRequest]) -> None:
        """Refuse a child that forgets requests, or that would be asked about them for ever."""
        if self.rows_left < 0 or bool(sent) != bool(self.rows_left):
            raise FieldError("a request that was forgotten")
        if sent and not self.report.parts and not self.report.refused:
            raise FieldError("no progress with what it has")


def _of(sent: Mapping[int, BatchRequest], number: int) -> BatchRequest:
    if number not in sent:
        raise FieldError("an answer that nobody asked for")
    return sent[number]


def _take(
    request: BatchRequest, part: Part, matrix: HeadMatrix, start: int, max_rows: int
) -> Answer | None:
    """Add rows to what a request has; return its answer if these were the last."""
    if (part.beginning is None) == (request.beginning is None):
        raise FieldError("a part out of turn")
    begun = request.beginning = part.beginning or request.beginning
    if begun is None or begun.rows > max_rows or request.rows_had + part.rows > begun.rows:
        raise FieldError("more rows than there are")
    request.rows_had += part.rows
    if request.parts is None:
        request.parts = []
    request.parts.append(matrix.rows(start, start + part.rows))
    if request.rows_had != begun.rows:
        return None
    joined = HeadMatrix.joined(request.parts)
    return Answer(request, joined, 0, begun.rows, begun.wanted, begun.supplied)


def _check_supplied(begun: Beginning) -> None:
    for column in begun.supplied.values():
        dtype = DTYPES.get(column.dtype)
        if dtype is None or column.shape != [begun.rows]:
            raise FieldError("a supplied uncertainty of another kind")
        if len(column.data) != begun.rows * dtype.itemsize:
            raise FieldError("a supplied uncertainty of another size")
