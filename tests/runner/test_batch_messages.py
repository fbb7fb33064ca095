"""What goes between parent and child arrives as it was said, or is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.runner.messages.frames import HEADER, FrameError, Kind, parse_header
from service.runner.messages.open_inference import Wanted
from service.runner.messages.predict_batches import (
    Batch,
    BatchResult,
    RequestError,
    ResponseHead,
    RowRange,
    Sent,
    SuppliedColumn,
    decode_batch,
    decode_result,
    encode_batch,
    encode_result,
)

TEXTS = st.text(max_size=20)
NUMBERS = st.integers(0, 2**63)
SENT = st.builds(
    Sent, NUMBERS, TEXTS, st.integers(0, 50), TEXTS, TEXTS, st.none() | TEXTS, st.integers(1, 3)
)
BATCHES = st.builds(
    Batch,
    sent=st.lists(SENT, max_size=4),
    dropped=st.lists(NUMBERS, max_size=4),
    max_rows=NUMBERS,
    max_bytes=NUMBERS,
    run_rows=NUMBERS,
    each_run=st.floats(0, 1e6),
)
WANTED = st.builds(
    Wanted,
    id=st.none() | TEXTS,
    all_binary=st.booleans(),
    outputs=st.none() | st.lists(st.tuples(TEXTS, st.booleans()), max_size=3),
)
SUPPLIED = st.builds(
    SuppliedColumn, TEXTS, st.lists(st.integers(0, 2**40), max_size=3), st.binary(max_size=40)
)
BEGINNINGS = st.builds(
    ResponseHead,
    st.integers(1, 9),
    st.none() | WANTED,
    st.dictionaries(TEXTS, SUPPLIED, max_size=2),
)
PARTS = st.builds(RowRange, NUMBERS, st.integers(1, 5), st.none() | BEGINNINGS, st.integers(1, 3))
REFUSED = st.builds(
    RequestError, NUMBERS, TEXTS, TEXTS, st.lists(st.tuples(TEXTS, TEXTS, TEXTS), max_size=3)
)
REPORTS = st.builds(
    BatchResult, st.lists(PARTS, max_size=5), st.lists(REFUSED, max_size=3), st.integers(0, 10**6)
)


def parts_of(buffers):
    data = b"".join(buffers)
    header = parse_header(data[: HEADER.size])
    end = HEADER.size + header.fields_bytes
    assert len(data) == end + header.tensor_bytes
    return header, data[HEADER.size : end], data[end:]


@given(batch=BATCHES)
def test_batches_arrive_as_they_were_sent(batch):
    bodies = [bytes([n]) * sent.length * sent.count for n, sent in enumerate(batch.sent)]
    header, fields, payload = parts_of(encode_batch(batch, bodies, sequence=7, budget_ms=9))
    assert (header.kind, header.sequence, header.budget_ms) == (Kind.BATCH, 7, 9)
    assert decode_batch(fields) == batch
    assert payload == b"".join(bodies)


@given(report=REPORTS, n_words=st.integers(1, 4), seed=st.integers(0, 9))
def test_reports_arrive_as_they_were_sent(report, n_words, seed):
    n_rows = sum(part.rows * part.count for part in report.ranges)
    words = np.random.default_rng(seed).normal(size=(n_rows, n_words)).astype(np.float32)
    header, fields, payload = parts_of(encode_result(report, words, sequence=3))
    found, read = decode_result(header, fields, payload, n_words)
    assert found == report
    np.testing.assert_array_equal(read, words)


@given(report=REPORTS, cut=st.integers(1, 10**6), n_words=st.integers(1, 4))
def test_half_a_report_is_none(report, cut, n_words):
    n_rows = sum(part.rows * part.count for part in report.ranges)
    words = np.zeros((n_rows, n_words), np.float32)
    header, fields, payload = parts_of(encode_result(report, words, sequence=3))
    with pytest.raises(FrameError):
        decode_result(header, fields[: cut % len(fields)], payload, n_words)


@given(data=st.binary(max_size=60))
def test_any_other_bytes_are_a_report_or_none(data):
    header = parts_of(
        encode_result(BatchResult([], [], 0), np.zeros((0, 3), np.float32), sequence=1)
    )[0]
    try:
        report, words = decode_result(header, data, b"", 3)
    except FrameError:
        return
    assert words.shape == (0, 3)
    assert not report.ranges
