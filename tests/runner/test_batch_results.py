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
    decode_result,
    encode_result,
)
from service.runner.model_output import output_spec
from service.runner.predict_requests import BatchRequest, body_kind, read_response

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
    response = read_response(*frame_parts(encode_result(message, words, sequence=1)), SPEC)
    request = partial(BatchRequest, asker=None, kind=kind, body=b"", arrived=0.0)
    sent = {number: request(number=number) for number in NUMBERS_SENT}
    try:
        response.assign(sent, max_rows=MAX_ROWS)
    except FieldError:
        assert sent.keys() == set(NUMBERS_SENT)  # they can still be failed
        raise
    return sent.keys()


def rows_of(number, rows=1, *, of=None, count=1, wanted=None):
    """Return the first rows of a request, which has ``of`` rows in all."""
    return RowRange(number, rows, ResponseHead(of or rows, wanted), count)


def more_of(number, rows=1):
    """Return later rows of a request."""
    return RowRange(number, rows, None)


def failed(number, *, code="invalid-input", message="m", violations=()):
    return RequestError(number, {"code": code, "message": message, "violations": violations})


ALL = [rows_of(number) for number in NUMBERS_SENT]
REST = ALL[1:]
# The ranges of valid results, their other fields, and the requests that they leave unanswered.
VALID = [([rows_of(1, count=3)], {}, set()), (REST, {"failures": [failed(1)]}, set())]
VALID += [([*REST, rows_of(1, 2, of=5)], {"waiting": 3}, {1})]
VALID += [([*REST, rows_of(1, 2, of=5), more_of(1, 3)], {}, set())]
VALID += [([*REST, rows_of(1, wanted=RequestedOutputs("a", True, [("class", True)]))], {}, set())]


@pytest.mark.parametrize(("ranges", "fields", "left"), VALID)
def test_valid_results_are_taken(ranges, fields, left):
    assert unanswered(ranges, **fields) == left


WRONG_RANGES = [rows_of(1, 0), rows_of(1, count=0), rows_of(10**9), rows_of(-1), more_of(1)]
WRONG_RANGES += [rows_of(1, 2, of=1), rows_of(1, wanted=RequestedOutputs("a" * 1001))]
for names in (range(201), [f"{n:0200}" for n in range(200)], ["class", "class"]):
    WRONG_RANGES.append(rows_of(1, wanted={"outputs": [(str(name), True) for name in names]}))
WRONG_FAILURES = [{"code": "no-such-code"}, {"violations": [("", "", "")] * 21}]
WRONG_FAILURES += [{"violations": [("a" * 500, "b" * 500, "")] * 20}, {"message": "m" * 2001}]
INVALID = [(ALL, {"n_rows": 4}), (ALL, {"failures": [failed(1)]}), (ALL, {"waiting": 1})]
INVALID += [([*ALL, more_of(1, -1)], {"n_rows": 3}), ([*ALL, rows_of(1)], {})]
INVALID += [([], {"waiting": 1}), ([rows_of(1, count=4)], {}), (REST, {}), (REST, {"waiting": -1})]
INVALID += [(REST, {"failures": [failed(1)] * 2})]
INVALID += [(REST, {"failures": [failed(1, **wrong)]}) for wrong in WRONG_FAILURES]
INVALID += [([*REST, rows_of(1, of=3), rows_of(1, of=3)], {"waiting": 1})]
INVALID += [([*REST, part], {}) for part in WRONG_RANGES]


@pytest.mark.parametrize(("ranges", "fields"), INVALID)
def test_invalid_results_are_refused(ranges, fields):
    with pytest.raises((FieldError, FrameError)):
        unanswered(ranges, **fields)


@given(cut=st.integers(0, 10**6))
def test_a_result_that_ends_early_is_refused(cut):
    head = ResponseHead(2, RequestedOutputs("a", False, [("class", True)]))
    result = BatchResult([RowRange(1, 2, head)], [failed(2)], 3)
    parts = encode_result(result, np.zeros((2, 4), np.float32), sequence=3)
    header, fields, payload = frame_parts(parts)
    with pytest.raises(FrameError):
        decode_result(header, fields[: cut % len(fields)], payload, 4)
