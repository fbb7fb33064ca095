"""Results of batches are checked before they are used.

That batches and results arrive as they were sent is shown by `test_batch_queue`.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_child import loaded_model

from service.runner.messages.convert import FieldError
from service.runner.messages.frames import HEADER, FrameError, parse_header
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


def parts_of(buffers):
    data = b"".join(buffers)
    header = parse_header(data[: HEADER.size])
    end = HEADER.size + header.fields_bytes
    assert len(data) == end + header.tensor_bytes
    return header, data[HEADER.size : end], data[end:]


SPEC = output_spec(loaded_model().resolved)
NUMBERS_SENT = (1, 2, 3)
MAX_ROWS = 1000


@dataclass(frozen=True)
class Result:
    """A result that an honest child might return, one row for each of three requests."""

    ranges: list
    failures: list = ()
    waiting: int = 0
    n_rows: int | None = None

    def read(self):
        """Read the result as the parent does; return the requests it has not answered."""
        n_rows = sum(part.rows * part.count for part in self.ranges)
        words = np.full((n_rows if self.n_rows is None else self.n_rows, SPEC.n_words), 0.25, "f4")
        words[:, : SPEC.n_top] = 1
        message = BatchResult(list(self.ranges), list(self.failures), self.waiting)
        read = decode_result(*parts_of(encode_result(message, words, sequence=1)), SPEC.n_words)
        sent = {number: request(number) for number in NUMBERS_SENT}
        try:
            BatchResponse(*read).assign(sent, SPEC, max_rows=MAX_ROWS)
        except FieldError:
            assert sent.keys() == set(NUMBERS_SENT)  # they can still be failed
            raise
        return sent


def request(number):
    kind = body_kind("oip", "demo", "0")
    return BatchRequest(asker=None, kind=kind, body=b"", arrived=0.0, number=number)


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
    (ALL, {}, set()),
    ([rows_of(1, count=3)], {}, set()),
    (REST, {"failures": [failed(1)]}, set()),
    ([*REST, rows_of(1, 2, of=5)], {"waiting": 3}, {1}),
    ([*REST, rows_of(1, 2, of=5), more_of(1, 3)], {}, set()),
    ([*REST, rows_of(1, supplied=column("float32", [1]))], {}, set()),
]


@pytest.mark.parametrize(("ranges", "fields", "left"), VALID)
def test_valid_results_are_taken(ranges, fields, left):
    assert Result(ranges, **fields).read().keys() == left


INVALID = [
    (ALL, {"n_rows": 2}),
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
    (REST, {"failures": [failed(1, message="m" * 9000)]}),
    ([*REST, rows_of(1, of=3), rows_of(1, of=3)], {"waiting": 1}),
    ([*REST, rows_of(1, of=10**6)], {"waiting": 1}),
    *(
        ([*REST, part], {})
        for part in (
            *(rows_of(1, 0), rows_of(1, count=0), rows_of(10**9), rows_of(-1), more_of(1)),
            rows_of(1, 2, of=1),
            rows_of(1, supplied=column("O", [1])),
            rows_of(1, supplied=column("float64", [1])),
            rows_of(1, supplied=column("float32", [2**64 - 1, 0], b"")),
        )
    ),
]


@pytest.mark.parametrize(("ranges", "fields"), INVALID)
def test_invalid_results_are_refused(ranges, fields):
    with pytest.raises((FieldError, FrameError)):
        Result(ranges, **fields).read()


@given(cut=st.integers(0, 10**6))
def test_a_result_that_ends_early_is_refused(cut):
    head = ResponseHead(2, RequestedOutputs("a", False, [("class", True)]), column("f4", [2]))
    result = BatchResult([RowRange(1, 2, head)], [failed(2)], 3)
    words = np.zeros((2, 4), np.float32)
    header, fields, payload = parts_of(encode_result(result, words, sequence=3))
    with pytest.raises(FrameError):
        decode_result(header, fields[: cut % len(fields)], payload, 4)


@given(data=st.binary(max_size=60))
def test_random_bytes_are_an_empty_result_or_refused(data):
    empty = encode_result(BatchResult([], [], 0), np.zeros((0, 3), np.float32), sequence=1)
    try:
        result, words = decode_result(parts_of(empty)[0], data, b"", 3)
    except FrameError:
        return
    assert words.shape == (0, 3)
    assert not result.ranges
