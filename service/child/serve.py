"""The child's side of the protocol: it answers one request after the other."""

import gc
import socket
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from howsure.onnx_head.spec import ExportSpec
from service.child.failure import describe
from service.child.lockdown.lock_down import lock_down
from service.child.onnx.export import export_file
from service.child.onnx.loaded_model import LoadedModel
from service.child.onnx.loading import Bytes, load, read_files
from service.child.onnx.predict_queue import BatchQueue
from service.child.onnx.scores_model import ScoresDecoder, ScoresModel
from service.child.onnx.session import MORE_MEMORY, NOT_LOADED, VERSIONS, probe_cuda
from service.child.onnx.watchdog import Watchdog
from service.child.requests.body_decoder import BodyDecoder
from service.errors import InferenceFailed, InvalidOnnxModel, ModelRule, ServiceError
from service.runner.messages.channel import Channel, ChannelClosed, to_keep
from service.runner.messages.convert import FieldError, convert
from service.runner.messages.frames import (
    LABELS,
    Array,
    Buffer,
    Frame,
    FrameError,
    Header,
    Kind,
    Status,
    encode,
    parse_body,
)
from service.runner.messages.onnx_models import packed_model, unpacked_model
from service.runner.messages.packed import unpacked
from service.runner.messages.predict_batches import decode_batch, encode_result
from service.runner.messages.requests import (
    SPEC,
    LoadRequest,
    LoadScoresRequest,
    RowsRequest,
)
from service.runner.model_output import OUTPUT_ROWS

if TYPE_CHECKING:
    from service.child.reading.read_sets import SetReading

NAMES_TOO_LONG = (
    "the names of its inputs, outputs or classes are too long, or not valid text; shorten them"
)

# A child works for one upload: it never holds the data of two tenants.
FIRST_KINDS = (Kind.LOAD, Kind.LOAD_SCORES, Kind.EXPORT, Kind.READ, Kind.FIT)
USED = "A child process loads one ONNX model, reads one upload, or fits once, in its life."

Answer = tuple[Mapping[str, Any], Mapping[str, Array]]


class Requests:
    """Answers the requests of one child's life: it loads one model, reads one upload, or fits.

    ``send`` sends a frame before the answer.
    """

    def __init__(self, send: Callable[[Frame], None]) -> None:
        self._send = send
        self._watchdog = Watchdog()
        self._model: LoadedModel | None = None
        self._scores: ScoresModel | None = None
        self._table_columns: Mapping[str, tuple[str, ...]] | None = None
        self._queue: BatchQueue | None = None
        self._sets: SetReading | None = None
        self._is_used = False

    def answer(self, request: Frame) -> Answer:
        """Answer a request within its time.

        Raises
        ------
        ServiceError
            The error for the caller.
        """
        answer = ANSWERS.get(request.kind)
        if answer is None:
            raise InferenceFailed("The service sent its child process an unknown request.")
        if request.kind in FIRST_KINDS:
            self._begin()
        with self._watchdog.request(request.budget_ms / 1000, request.fields.get("each_run")):
            return answer(self, request)

    def _begin(self) -> None:
        if self._is_used:
            raise InferenceFailed(USED)
        self._is_used = True

    def work_ahead(self) -> None:
        """Prepare the answer to the next request, if it is known."""
        if self._sets is not None:
            self._sets.work_ahead()

    def read_sets(self, request: Frame) -> Answer:
        """Open the sets of an upload."""
        # Imported here: it would delay the start of children that run models.
        from service.child.reading.read_sets import SetReading  # noqa: PLC0415 - see above

        self._sets = SetReading(request.fields)
        return self._sets.read()

    def rows(self, request: Frame) -> Answer:
        """Read the next rows of a set."""
        if self._sets is None:
            raise InferenceFailed("The child process has no set.")
        return self._sets.rows(request.fields["set"], request.fields["start"])

    def fit(self, request: Frame) -> Answer:
        """Fit a calibration."""
        from service.child.fitting import answer_fit  # noqa: PLC0415 - scipy takes long

        def tell(done: int, total: int) -> None:
            fields = {"done": done, "total": total}
            self._send(Frame(Kind.FIT, request.sequence, fields, status=Status.PROGRESS))

        return {}, answer_fit(request.tensors, tell)

    def batch(self, header: Header, fields: Buffer, bodies: Buffer) -> list[Buffer]:
        """Answer a batch of requests, as many rows of them as go into one run.

        Raises
        ------
        ServiceError
            If none of them can be answered.
        """
        if self._queue is None:
            self._queue = self._new_queue()
            # Objects that exist now live on: garbage collection need not look at them.
            gc.freeze()
        batch = decode_batch(fields)
        self._watchdog.allow(header.budget_ms / 1000, batch.each_run)
        try:
            result, words = self._queue.exchange(batch, bodies)
        finally:
            self._watchdog.rest()
        return encode_result(result, words, sequence=header.sequence)

    def _new_queue(self) -> BatchQueue:
        if self._scores is not None:
            return BatchQueue(self._scores, ScoresDecoder(self._scores.spec))
        model = self._loaded()
        inputs = replace(model.inputs, table_columns=self._table_columns)
        may_lack = {name for name, own in model.found.column_ranges.items() if own.missing}
        spec = model.spec
        return BatchQueue(model, BodyDecoder(inputs, may_lack, spec.supplied, spec.inputs))

    def _read(self, request: LoadRequest) -> Bytes:
        if request.preprocessing is not None:
            import_module("service.child.requests.picture_rows")
        # The order matters. Files are opened first, and CUDA's driver, which opens many more; then
        # this process gives up its rights; only then does it look at uploaded bytes.
        files = read_files(request.paths, request.companions)
        uses_cuda = request.device != "cpu"
        if uses_cuda:
            probe_cuda(request.device)
        lock_down(request.sandbox, uses_cuda=uses_cuda)
        return files

    def export(self, request: Frame) -> Answer:
        """Write a calibrated model as one file."""
        message, rows = convert(request.fields, LoadRequest), dict(request.tensors)
        spec = unpacked(rows.pop(SPEC), ExportSpec)
        return {}, export_file(self._read(message), message, spec, rows, self._watchdog)

    def load(self, request: Frame) -> Answer:
        """Load a model."""
        message = convert(request.fields, LoadRequest)
        files = self._read(message)
        self._model = load(files, message, request.tensors, self._watchdog)
        self._table_columns = message.table_columns
        loaded = packed_model(self._model.found)
        try:
            unpacked_model(loaded)
        except FieldError as error:
            # The parent would treat it as a protocol error and kill this process.
            raise InvalidOnnxModel.because(ModelRule.NAMES_TOO_LONG, NAMES_TOO_LONG) from error
        return {}, loaded

    def load_scores(self, request: Frame) -> Answer:
        """Sandbox this process; it has no file to open."""
        message = convert(request.fields, LoadScoresRequest)
        lock_down(message.sandbox, uses_cuda=False)
        self._scores = ScoresModel(message.spec)
        return {}, packed_model(self._scores.found)

    def predict(self, request: Frame) -> Answer:
        """Run the model on rows."""
        rows = convert(request.fields, RowsRequest)
        output = self._loaded().predict(
            request.tensors, location=rows.location, start=rows.start, of_rows=rows.of_rows
        )
        return {}, {OUTPUT_ROWS: output}

    def record(self, request: Frame) -> Answer:
        """Make the records of rows."""
        rows, tensors = convert(request.fields, RowsRequest), dict(request.tensors)
        labels = tensors.pop(LABELS).astype(np.int64, copy=False)
        records = self._loaded().record(
            tensors, labels, seed=rows.seed, location=rows.location, start=rows.start
        )
        return {}, records.to_arrays()

    def _loaded(self) -> LoadedModel:
        if self._model is None:
            raise InferenceFailed("The child process has no ONNX model.")
        return self._model


ANSWERS: Mapping[Kind, Callable[[Requests, Frame], Answer]] = {
    Kind.LOAD: Requests.load,
    Kind.LOAD_SCORES: Requests.load_scores,
    Kind.EXPORT: Requests.export,
    Kind.READ: Requests.read_sets,
    Kind.ROWS: Requests.rows,
    Kind.RECORD: Requests.record,
    Kind.PREDICT: Requests.predict,
    Kind.FIT: Requests.fit,
    Kind.PROBE: lambda _, request: ({"reason": probe_cuda(str(request.fields["device"]))}, {}),
}


def serve(fd: int) -> None:
    """Answer requests on the socket until the other side closes it."""
    channel = Channel(socket.socket(fileno=fd))
    requests = Requests(lambda frame: channel.send(encode(frame)))
    try:
        channel.send(encode(Frame(Kind.READY, 0, {"versions": VERSIONS})))
        while True:
            header, fields, payload = channel.receive_unread(max_tensor_bytes=sys.maxsize)
            channel.send(_answer(requests, header, fields, payload))
            del fields, payload  # the next frame may take their memory
            requests.work_ahead()
    except ChannelClosed:
        return


def _answer(requests: Requests, header: Header, fields: Buffer, payload: Buffer) -> list[Buffer]:
    try:
        if header.kind is Kind.BATCH:
            return requests.batch(header, fields, payload)
        request = parse_body(header, fields, to_keep(payload))
        found, tensors = requests.answer(request)
        return encode(Frame(request.kind, request.sequence, found, tensors))
    except Exception as error:  # an uploaded model; the parent gets the error
        if header.kind is Kind.FIT and not isinstance(error, ServiceError):
            raise  # nobody's file: a fault of this program
        return _failure(header, _told(error, header.kind))


def _told(error: Exception, kind: Kind) -> ServiceError:
    """Return the error for the parent, which never has a library's own text."""
    if isinstance(error, ServiceError):
        return error
    if isinstance(error, MemoryError):
        return InvalidOnnxModel.because(ModelRule.TOO_MUCH_MEMORY, MORE_MEMORY)
    if isinstance(error, FrameError):
        return InvalidOnnxModel.because(ModelRule.NAMES_TOO_LONG, NAMES_TOO_LONG)
    traceback.print_exception(error)
    if kind is Kind.LOAD:
        return InvalidOnnxModel.because(ModelRule.NOT_LOADED, NOT_LOADED)
    return InferenceFailed("The ONNX model could not be run.")


def _failure(header: Header, error: ServiceError) -> list[Buffer]:
    fields = msgspec.structs.asdict(describe(error))
    return encode(Frame(header.kind, header.sequence, fields, status=Status.FAILED))
