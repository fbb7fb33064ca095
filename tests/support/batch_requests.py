"""Requests to models that are served, whose answers are futures, and their bodies."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from service.child.requests.media_types import NPY
from service.runner.messages.predict_batches import SuppliedColumn
from service.runner.model_output import HeadOutputs
from service.runner.predict_requests import BatchLimits, BatchRequest, body_kind

PATIENT_SECONDS = 600.0
LIMITS = BatchLimits(max_rows=1000, max_bytes=2**22, run_rows=8, run_seconds=PATIENT_SECONDS)
REFERENCE = "demo"
DATATYPES = {"f4": "FP32", "f8": "FP64", "i8": "INT64", "u1": "UINT8"}


@dataclass
class ChangedLimits:
    """As `BatchLimits`; what a run may take can be changed between two requests."""

    run_seconds: float = PATIENT_SECONDS
    max_rows: int = LIMITS.max_rows
    max_bytes: int = LIMITS.max_bytes
    run_rows: int = LIMITS.run_rows

    @contextmanager
    def impatient(self, seconds: float) -> Iterator[None]:
        """Give what is sent in the block so little time."""
        self.run_seconds = seconds
        try:
            yield
        finally:
            self.run_seconds = PATIENT_SECONDS


@dataclass(frozen=True)
class Answered:
    outputs: HeadOutputs
    supplied: dict[str, SuppliedColumn]
    wanted: object
    order: int


class FutureRequest(BatchRequest, eq=False, kw_only=True):
    answered: asyncio.Future


class Futures:
    """Takes answers as futures; to be told twice of one request is an error, and shows."""

    def __init__(self):
        self.told = 0

    def answered(self, answers):
        for answer in answers:
            self.told += 1
            rows = answer.matrix.rows(answer.start, answer.stop).outputs
            answer.request.answered.set_result(
                Answered(rows, dict(answer.supplied), answer.wanted, self.told)
            )

    def failed(self, request, error):
        self.told += 1
        request.answered.set_exception(error)

    def request(self, body, media_type=NPY, *, reference=REFERENCE, header_length=None, n_rows=1):
        loop = asyncio.get_running_loop()
        return FutureRequest(
            asker=self,
            answered=loop.create_future(),
            kind=body_kind(media_type, reference, header_length),
            body=body,
            arrived=loop.time(),
            n_rows=n_rows,
        )

    def of_rows(self, array, name="x", **options):
        """Return a request for rows as raw tensors behind their JSON."""
        body, header_length = infer_body({name: array}, **options)
        return self.request(body, "oip", header_length=header_length, n_rows=len(array))


def infer_body(arrays, *, id="one"):  # noqa: A002 - the protocol's word
    inputs = [
        {
            "name": name,
            "shape": list(array.shape),
            "datatype": DATATYPES[array.dtype.str[1:]],
            "parameters": {"binary_data_size": array.nbytes},
        }
        for name, array in arrays.items()
    ]
    head = json.dumps({"id": id, "inputs": inputs}).encode()
    return head + b"".join(array.tobytes() for array in arrays.values()), str(len(head))


def json_body(array, *, calibration=REFERENCE, **more):
    return json.dumps({"calibration": calibration, "inputs": array.tolist(), **more}).encode()


async def outcome(request, *, seconds=60):
    """Wait for an answer or the error that stands in its place, and return it."""
    async with asyncio.timeout(seconds):
        await asyncio.wait([request.answered])
    return request.answered.exception() or request.answered.result()


async def outcomes(requests, *, seconds=60):
    return [await outcome(request, seconds=seconds) for request in requests]


async def until(condition, *, seconds=60):
    """Let the loop turn until a condition comes true."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - what is waited for tells nobody
            await asyncio.sleep(0.002)
