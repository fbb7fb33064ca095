"""The messages of a run that answers many requests.

A batch carries request bodies as their callers sent them. Its result is one matrix with a row for
each row of the run, and assigns ranges of these rows to requests.
"""

from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from service.runner.messages.failures import Failure
from service.runner.messages.frames import HEADER, MAGIC, Buffer, FrameError, Header, Kind, Status
from service.runner.messages.open_inference import RequestedOutputs

# Rows of top classes, their scores and uncertainties; see `service.runner.model_output`.
Words: TypeAlias = NDArray[np.float32]

# Of a result, which is read in one piece; a run has rows of half as many requests.
MOST_PARTS = 2**12


class SentBodies(msgspec.Struct, array_like=True, frozen=True):
    """``count`` new requests, numbered from ``number``, with bodies of one format and length.

    ``reference`` is the calibration's.
    """

    number: int
    media_type: str
    length: int
    reference: str
    header_length: str | None = None
    count: int = 1


class Batch(msgspec.Struct, array_like=True, frozen=True):
    """New requests, and the numbers of earlier requests that were dropped.

    ``max_rows`` and ``max_bytes`` limit one body, ``run_rows`` one run, which may take
    ``each_run`` seconds.
    """

    sent: list[SentBodies]
    dropped: list[int]
    max_rows: int
    max_bytes: int
    run_rows: int
    each_run: float


class ResponseHead(msgspec.Struct, array_like=True, frozen=True):
    """The number of rows of a request, and what else the answer needs of it.

    ``by_position`` tells that rows came without the column names that the calibration has.
    """

    rows: int
    wanted: RequestedOutputs | None
    by_position: bool = False


class RowRange(msgspec.Struct, array_like=True, frozen=True):
    """The next ``rows`` rows of the matrix answer this request; its first range has the head.

    With ``count`` above 1, as many requests, numbered from this one, have ``rows`` rows each.
    """

    number: int
    rows: int
    head: ResponseHead | None
    count: int = 1


class RequestError(msgspec.Struct, array_like=True, frozen=True):
    """The failure of a request."""

    number: int
    failure: Failure


class BatchResult(msgspec.Struct, array_like=True, frozen=True):
    """The result of a run. ``waiting`` is the number of rows that the child still has."""

    ranges: Annotated[list[RowRange], Meta(max_length=MOST_PARTS)]
    failures: Annotated[list[RequestError], Meta(max_length=MOST_PARTS)]
    waiting: int


_encoder = msgspec.msgpack.Encoder()
_batches = msgspec.msgpack.Decoder(Batch)
_results = msgspec.msgpack.Decoder(BatchResult)


def encode_batch(
    batch: Batch, bodies: Sequence[Buffer], *, sequence: int, budget_ms: int
) -> list[Buffer]:
    """Return the frame of a batch, without copying the bodies."""
    fields = _encoder.encode(batch)
    size = sum(sent.length * sent.count for sent in batch.sent)
    header = HEADER.pack(MAGIC, Kind.BATCH, Status.OK, sequence, budget_ms, len(fields), size)
    return [header + fields, *bodies]


def decode_batch(fields: Buffer) -> Batch:
    """Return the batch of a frame."""
    return _batches.decode(fields)


def encode_result(result: BatchResult, words: Words, *, sequence: int) -> list[Buffer]:
    """Return the frame of a result."""
    fields = _encoder.encode(result)
    header = HEADER.pack(MAGIC, Kind.BATCH, Status.OK, sequence, 0, len(fields), words.nbytes)
    if not words.nbytes:
        return [header + fields]
    return [header + fields, words.data.cast("B")]


def decode_result(
    header: Header, fields: Buffer, payload: Buffer, n_words: int
) -> tuple[BatchResult, Any]:
    """Return a result and its matrix, which has ``n_words`` columns.

    Raises
    ------
    FrameError
        If the bytes are not a result, or the matrix has not as many rows as the ranges.
    """
    try:
        result = _results.decode(fields)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FrameError("the fields are not the result of a batch") from error
    rows = 0
    for part in result.ranges:
        if part.rows < 1 or part.count < 1:
            raise FrameError("a range of rows is empty")
        rows += part.rows * part.count
    if header.tensor_bytes != rows * n_words * 4:
        raise FrameError("the matrix has not as many rows as the ranges")
    words = np.frombuffer(payload, "<f4").reshape(rows, n_words)
    return result, words
