"""The body that answers one request, out of the rows of a run."""

from service.bodies.oip.wanted import Wanted
from service.operations.answered_rows import AnsweredRows
from service.operations.asked_prediction import AnswerForm, PredictionAnswer
from service.operations.few_rows import FewRows

ALL = Wanted()


def answer_body(
    rows: AnsweredRows | FewRows, form: AnswerForm, start: int, stop: int, wanted: Wanted | None
) -> PredictionAnswer:
    """Return the answer for the rows from ``start`` to before ``stop``.

    Raises
    ------
    InvalidInput
        If an output is asked for that there is not.
    """
    if form == "json":
        return PredictionAnswer(rows.ref, rows.json(start, stop))
    if form == "npz":
        return PredictionAnswer(rows.ref, rows.npz(start, stop))
    found = rows.oip(start, stop, wanted or ALL)
    return PredictionAnswer(rows.ref, found.body, found.header_length)
