"""What parent and child say to each other when one run answers many requests.

A request to the child brings bodies as their callers sent them. Its answer is one matrix with a
row for each row that was run, and for each request which of them are its own.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from service.runner.messages.frames import HEADER, MAGIC, Buffer, FrameError, Header, Kind, Status
from service.runner.messages.open_inference import Wanted

# Top classes, their scores, uncertainties: float32 holds every class up to 2**24 exactly.
Words: TypeAlias = NDArray[np.float32]


class Sent(msgspec.Struct, array_like=True, frozen=True):
    """New requests that differ in nothing but their bodies, which are of one length.

    They are ``count``, numbered from ``number``; ``reference`` is the calibration's.
    """

    number: int
    media_type: str
    length: int
    reference: str
    encoding: str = "identity"
    header_length: str | None = None
    count: int = 1


class Batch(msgspec.Struct, array_like=True, frozen=True):
    """New requests, and the numbers of earlier ones that nobody waits for any more.

    ``max_rows`` and ``max_bytes`` are of one body, ``run_rows`` of one run, which may take
    ``each_run`` seconds.
    """

    sent: list[Sent]
    dropped: list[int]
    max_rows: int
    max_bytes: int
    run_rows: int
    each_run: float


class SuppliedColumn(msgspec.Struct, array_like=True, frozen=True):
    """One uncertainty that came with a request."""

    dtype: str
    shape: list[int]
    data: bytes


class Beginning(msgspec.Struct, array_like=True, frozen=True):
    """What is told of a request once: its rows in all, and what came beside them."""

    rows: int
    wanted: Wanted | None
    supplied: dict[str, SuppliedColumn]


class Part(msgspec.Struct, array_like=True, frozen=True):
    """The next ``rows`` rows of the matrix belong to this request; the first part begins it.

    Of ``count`` requests, numbered from this one, each has as many, which are all of it.
    """

    number: int
    rows: int
    beginning: Beginning | None
    count: int = 1


class Refused(msgspec.Struct, array_like=True, frozen=True):
    """A request that failed, as other failures are reported."""

    number: int
    code: str
    message: str
    violations: list[tuple[str, str, str]]


class Report(msgspec.Struct, array_like=True, frozen=True):
    """What a run answered. ``waiting`` is how many rows the child still has."""

    parts: list[Part]
    refused: list[Refused]
    waiting: int


_encoder = msgspec.msgpack.Encoder()
_batches = msgspec.msgpack.Decoder(Batch)
_reports = msgspec.msgpack.Decoder(Report)


def encode_batch(
    batch: Batch, bodies: Sequence[Buffer], *, sequence: int, budget_ms: int
) -> list[Buffer]:
    """Return the frame of a batch; its bodies are not copied."""
    fields = _encoder.encode(batch)
    size = sum(sent.length * sent.count for sent in batch.sent)
    header = HEADER.pack(MAGIC, Kind.BATCH, Status.OK, sequence, budget_ms, len(fields), size)
    return [header + fields, *bodies]


def decode_batch(fields: Buffer) -> Batch:
    """Read the batch of a frame."""
    return _batches.decode(fields)


def encode_report(report: Report, words: Words, *, sequence: int) -> list[Buffer]:
    """Return the frame of an answer."""
    fields = _encoder.encode(report)
    header = HEADER.pack(MAGIC, Kind.BATCH, Status.OK, sequence, 0, len(fields), words.nbytes)
    if not words.nbytes:
        return [header + fields]
    return [header + fields, words.data.cast("B")]


def decode_report(
    header: Header, fields: Buffer, payload: Buffer, n_words: int
) -> tuple[Report, Any]:
    """Read an answer and its matrix, whose rows have ``n_words`` words.

    Raises
    ------
    FrameError
        If it is none, or the matrix has another size than the parts say.
    """
    try:
        report = _reports.decode(fields)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FrameError("the report of a batch is none") from error
    rows = 0
    for part in report.parts:
        if part.rows < 1 or part.count < 1:
            raise FrameError("a part of a batch has an impossible size")
        rows += part.rows * part.count
    if header.tensor_bytes != rows * n_words * 4:
        raise FrameError("the matrix of a batch has another size than its parts")
    words = np.frombuffer(payload, "<f4").reshape(rows, n_words)
    return report, words
