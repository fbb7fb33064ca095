"""The queue of a child in the process of a test, asked as a parent asks it."""

from itertools import count

from batch_requests import REFERENCE, infer_body

from service.child.onnx.loading import load, read_files
from service.child.onnx.predict_queue import BatchQueue
from service.child.onnx.watchdog import Watchdog
from service.child.requests.body_decoder import BodyDecoder
from service.child.requests.media_types import NPY
from service.runner.messages.frames import HEADER, parse_header
from service.runner.messages.onnx_models import LoadOptions, serving
from service.runner.messages.predict_batches import (
    Batch,
    Sent,
    decode_batch,
    decode_report,
    encode_batch,
    encode_report,
)
from service.runner.model_output import expected_of
from service.runner.predict_requests import BatchRequest, ReportedBatch, body_kind

WATCHDOG = Watchdog()


def load_here(files, trial, *, top_k=(1, 5), passes=(), columns=None):
    """Load a model as a child does; with ``columns`` a second time, for these alone."""
    found = _load(files, trial, top_k, passes, None)
    if columns is None:
        return found
    measures = [plan.measure for plan in passes]
    return _load(files, {}, top_k, (), serving(found.found.resolved, measures, columns))


def _load(files, trial, top_k, passes, resolved):
    fields = {
        "resolved": resolved,
        "top_k": list(top_k),
        "max_classes": 1000,
        "max_nodes": 1000,
        "device": "cpu",
        "threads": 1,
        "location": "inputs",
        "output": {},
        "scalar_outputs": [],
        "passes": [plan.as_dict() for plan in passes],
    }
    paths = [str(files.path), *(str(member.path) for member in files.members)]
    return load(read_files(paths, {}), LoadOptions.from_fields(fields, {}), trial, WATCHDOG)


class AskedQueue:
    """Keeps what its parent would: requests, their answers and refusals, the rows of each run."""

    def __init__(self, model, *, run_rows=8, max_rows=1000, max_bytes=2**22):
        self.queue = BatchQueue(model, BodyDecoder(model.inputs))
        self.expected = expected_of(model.found.resolved)
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
        frame = b"".join(encode_report(report, words, sequence=1))
        header = parse_header(frame[: HEADER.size])
        end = HEADER.size + header.fields_bytes
        found = decode_report(header, frame[HEADER.size : end], frame[end:], self.expected.n_words)
        answers, refused = ReportedBatch(*found).match(
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
