"""What a child answered to a batch, held against what it was asked."""

from collections.abc import Mapping
from dataclasses import dataclass

from service.errors import ServiceError
from service.runner.answers import Expected, failure_of
from service.runner.batch_messages import Part, Report, Words
from service.runner.batch_request import Answer, BatchRequest
from service.runner.description import HeadOutputs
from service.runner.fields import FieldError


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
            holds what cannot be.
        """
        answers: list[Answer] = []
        start = 0
        if self.report.parts:
            outputs = expected.read_words(self.words)
            for part in self.report.parts:
                for number in range(part.number, part.number + part.count):
                    answer = _take(_of(sent, number), part, outputs, start, max_rows)
                    if answer is not None:
                        del sent[number]
                        answers.append(answer)
                    start += part.rows
        refused = []
        for failed in self.report.refused:
            error = failure_of(failed.code, failed.message, failed.violations)
            refused.append((_of(sent, failed.number), error))
            del sent[failed.number]
        if sent and not self.rows_left:
            raise FieldError("a request that was forgotten")
        return answers, refused


def _of(sent: Mapping[int, BatchRequest], number: int) -> BatchRequest:
    if number not in sent:
        raise FieldError("an answer that nobody asked for")
    return sent[number]


def _take(
    request: BatchRequest, part: Part, outputs: HeadOutputs, start: int, max_rows: int
) -> Answer | None:
    """Add rows to what a request has; return its answer if these were the last."""
    stop = start + part.rows
    if (part.beginning is None) == (request.beginning is None):
        raise FieldError("a part out of turn")
    begun = request.beginning = part.beginning or request.beginning
    if begun is None or begun.rows > max_rows or request.rows_had + part.rows > begun.rows:
        raise FieldError("more rows than there are")
    request.rows_had += part.rows
    is_whole = request.rows_had == begun.rows
    if is_whole and not request.parts:
        return Answer(request, outputs, start, stop, begun.wanted, begun.supplied)
    request.parts.append(outputs.rows(start, stop))
    if not is_whole:
        return None
    joined = HeadOutputs.concatenate(request.parts)
    return Answer(request, joined, 0, begun.rows, begun.wanted, begun.supplied)
