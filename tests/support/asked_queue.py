"""The queue of a child in the process of a test, asked as a parent asks it."""

from dataclasses import replace
from itertools import count

from batch_requests import REFERENCE, infer_body

from service.child.onnx.loading import load, read_files
from service.child.onnx.predict_queue import BatchQueue
from service.child.onnx.watchdog import Watchdog
from service.child.requests.body_decoder import BodyDecoder
from service.child.requests.media_types import NPY
from service.runner.child_requests import ChildRequests
from service.runner.messages.frames import HEADER, parse_header
from service.runner.messages.onnx_models import serving
from service.runner.messages.predict_batches import (
    Batch,
    Sent,
    decode_batch,
    decode_result,
    encode_batch,
    encode_result,
)
from service.runner.model_output import output_spec
from service.runner.predict_requests import BatchRequest, BatchResponse, body_kind

WATCHDOG = Watchdog()


def load_here(files, trial, *, top_k=(1, 5), passes=(), columns=None):
    """Load a model as a child does; with ``columns`` a second time, for these alone."""
    requests = ChildRequests(load_timeout=1.0, run_timeout=1.0, max_classes=1000, threads=1)
    asked = {"top_k": tuple(top_k), "passes": tuple(passes), "location": "inputs"}
    found = _load(replace(requests.message(files, "cpu"), **asked), trial)
    if columns is None:
        return found
    measures = [plan.measure for plan in passes]
    narrowed = serving(found.found.resolved, measures, columns)
    return _load(requests.load(files, narrowed, device="cpu").message, {})


def _load(message, trial):
    return load(read_files(message.paths, {}), message, trial, WATCHDOG)


class AskedQueue:
    """Keeps what its parent would: requests, their answers and refusals, the rows of each run."""

    def __init__(self, model, *, run_rows=8, max_rows=1000, max_bytes=2**22):
        self.queue = BatchQueue(model, BodyDecoder(model.inputs))
        self.expected = output_spec(model.found.resolved)
        self.limits = {"max_rows": max_rows, "max_bytes": max_bytes, "run_rows": run_rows}
        self.sent, self.answers, self.refusals, self.runs = {}, {}, {}, []
        self._numbers = count(1)
        self._new = []

    def put(self, body, media_type=NPY, *, header_length=None, reference=REFERENCE):
        """Let a request go with the next exchange, and return its number."""
        request = BatchRequest(
            asker=None,
            kind=body_kind(media_type, reference, header_length),
            body=body,
            arrived=0.0,
            number=next(self._numbers),
        )
        self._new.append(request)
        return request.number

    def put_rows(self, **arrays):
        body, header_length = infer_body(arrays)
        return self.put(body, "oip", header_length=header_length)

    def exchange(self, dropped=()):
        """Ask once; return the numbers of those that were answered or refused."""
        new, self._new = self._new, []
        for number in dropped:
            del self.sent[number]
        self.sent |= {request.number: request for request in new}
        sent = [
            Sent(
                r.number,
                r.kind.media_type,
                len(r.body),
                r.kind.reference,
                header_length=r.kind.header_length,
            )
            for r in new
        ]
        batch = Batch(sent=sent, dropped=list(dropped), each_run=30.0, **self.limits)
        frame = b"".join(encode_batch(batch, [r.body for r in new], sequence=1, budget_ms=30_000))
        return self._take(*self.queue.exchange(*_read_batch(frame)))

    def all(self):
        """Ask until nothing is left, and return the answers."""
        self.exchange()
        while self.sent:
            self.exchange()
        return self.answers

    def _take(self, report, words):
        self.runs.append(len(words))
        frame = b"".join(encode_result(report, words, sequence=1))
        header = parse_header(frame[: HEADER.size])
        end = HEADER.size + header.fields_bytes
        found = decode_result(header, frame[HEADER.size : end], frame[end:], self.expected.n_words)
        answers, refused = BatchResponse(*found).assign(
            self.sent, self.expected, max_rows=self.limits["max_rows"]
        )
        done = {}
        for answer in answers:
            done[answer.request.number] = answer.matrix.rows(answer.start, answer.stop).outputs
        self.answers |= done
        self.refusals |= {request.number: error for request, error in refused}
        return {*done, *(request.number for request, _ in refused)}


def _read_batch(frame):
    end = HEADER.size + parse_header(frame[: HEADER.size]).fields_bytes
    return decode_batch(frame[HEADER.size : end]), frame[end:]
