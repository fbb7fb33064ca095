"""Results of batches are checked before they are used.

That batches and results arrive as they were sent is shown by `test_batch_queue`.
"""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_child import loaded_model
from served_requests import frame_parts

from service.runner.messages.convert import FieldError
from service.runner.messages.frames import FrameError
from service.runner.messages.open_inference import RequestedOutputs
from service.runner.messages.predict_batches import (
    BatchResult,
    RequestError,
    ResponseHead,
    RowRange,
    SuppliedColumn,
    decode_result,
    encode_result,
)
from service.runner.model_output import output_spec
from service.runner.predict_requests import BatchRequest, BatchResponse, body_kind

SPEC = output_spec(loaded_model().resolved)
NUMBERS_SENT = (1, 2, 3)
MAX_ROWS = 1000


def unanswered(ranges, failures=(), waiting=0, n_rows=None):
    """Read a result as the parent does; return the requests that it does not answer."""
    n_rows = sum(part.rows * part.count for part in ranges) if n_rows is None else n_rows
    words = np.full((n_rows, SPEC.n_words), 0.25, "f4")
    words[:, : SPEC.n_top] = 1
    message = BatchResult(list(ranges), list(failures), waiting)
    kind = body_kind("oip", "demo", "0")
    result = decode_result(*frame_parts(encode_result(message, words, sequence=1)), SPEC.n_words)
    request = partial(BatchRequest, asker=None, kind=kind, body=b"", arrived=0.0)
    sent = {number: request(number=number) for number in NUMBERS_SENT}
    try:
        BatchResponse(*result).assign(sent, SPEC, max_rows=MAX_ROWS)
    except FieldError:
        assert sent.keys() == set(NUMBERS_SENT)  # they can still be failed
        raise
    return sent.keys()


def rows_of(number, rows=1, *, of=None, count=1, supplied=None):
    """Return the first rows of a request, which has ``of`` rows in all."""
    return RowRange(number, rows, ResponseHead(of or rows, None, supplied or {}), count)


def more_of(number, rows=1):
    """Return later rows of a request."""
    return RowRange(number, rows, None)


def failed(number, *, code="invalid-input", message="m"):
    return RequestError(number, code, message, [])


def column(dtype, shape, data=bytes(4)):
    return {"own": SuppliedColumn(dtype, shape, data)}


ALL = [rows_of(number) for number in NUMBERS_SENT]
REST = ALL[1:]
# The ranges of valid results, their other fields, and the requests that they leave unanswered.
VALID = [
    ([rows_of(1, count=3)], {}, set()),
    (REST, {"failures": [failed(1)]}, set()),
    ([*REST, rows_of(1, 2, of=5)], {"waiting": 3}, {1}),
    ([*REST, rows_of(1, 2, of=5), more_of(1, 3)], {}, set()),
    ([*REST, rows_of(1, supplied=column("float32", [1]))], {}, set()),
]


@pytest.mark.parametrize(("ranges", "fields", "left"), VALID)
def test_valid_results_are_taken(ranges, fields, left):
    assert unanswered(ranges, **fields) == left


WRONG_RANGES = [
    *(rows_of(1, 0), rows_of(1, count=0), rows_of(10**9), rows_of(-1), more_of(1)),
    rows_of(1, 2, of=1),
    rows_of(1, supplied=column("O", [1])),
    rows_of(1, supplied=column("float64", [1])),
    rows_of(1, supplied=column("float32", [2**64 - 1, 0], b"")),
]
INVALID = [
    (ALL, {"n_rows": 4}),
    (ALL, {"failures": [failed(1)]}),
    (ALL, {"waiting": 1}),
    ([*ALL, more_of(1, -1)], {"n_rows": 3}),
    ([*ALL, rows_of(1)], {}),
    ([], {"waiting": 1}),
    ([rows_of(1, count=4)], {}),
    (REST, {}),
    (REST, {"waiting": -1}),
    (REST, {"failures": [failed(1)] * 2}),
    (REST, {"failures": [failed(1, code="no-such-code")]}),
    ([*REST, rows_of(1, of=3), rows_of(1, of=3)], {"waiting": 1}),
    *(([*REST, part], {}) for part in WRONG_RANGES),
]


@pytest.mark.parametrize(("ranges", "fields"), INVALID)
def test_invalid_results_are_refused(ranges, fields):
    with pytest.raises((FieldError, FrameError)):
        unanswered(ranges, **fields)


@given(cut=st.integers(0, 10**6))
def test_a_result_that_ends_early_is_refused(cut):
    head = ResponseHead(2, RequestedOutputs("a", False, [("class", True)]), column("f4", [2]))
    result = BatchResult([RowRange(1, 2, head)], [failed(2)], 3)
    parts = encode_result(result, np.zeros((2, 4), np.float32), sequence=3)
    header, fields, payload = frame_parts(parts)
    with pytest.raises(FrameError):
        decode_result(header, fields[: cut % len(fields)], payload, 4)
