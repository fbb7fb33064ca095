"""The child's side of the protocol: it answers one request after the other."""

import gc
import socket
import traceback
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

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
from service.runner.messages.convert import FieldError, convert, to_fields
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
from service.runner.messages.onnx_models import LoadedOnnxModel
from service.runner.messages.predict_batches import decode_batch, encode_result
from service.runner.messages.requests import (
    ExportRequest,
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
FIRST_KINDS = (Kind.LOAD, Kind.LOAD_SCORES, Kind.EXPORT, Kind.READ)
USED = "A child process loads one ONNX model, or reads one upload, in its life."

Answer = tuple[Mapping[str, Any], Mapping[str, Array]]


class Requests:
    """Answers the requests of one child's life. It loads one model, or reads one upload."""

    def __init__(self) -> None:
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
        fields = request.fields
        if request.kind in FIRST_KINDS:
            self._begin()
        with self._watchdog.request(request.budget_ms / 1000, fields.get("each_run")):
            match request.kind:
                case Kind.LOAD:
                    found = self._load(convert(fields, LoadRequest), request.tensors)
                case Kind.LOAD_SCORES:
                    found = self._load_scores(convert(fields, LoadScoresRequest))
                case Kind.EXPORT:
                    found = self._export(msgspec.convert(fields, ExportRequest), request.tensors)
                case Kind.READ:
                    found = self._read_sets(fields)
                case Kind.ROWS if self._sets is not None:
                    found = self._sets.rows(fields["set"], fields["start"])
                case Kind.RECORD:
                    found = self._record(convert(fields, RowsRequest), dict(request.tensors))
                case Kind.PREDICT:
                    found = self._predict(convert(fields, RowsRequest), request.tensors)
                case Kind.PROBE:
                    found = {"reason": probe_cuda(str(fields["device"]))}, {}
                case _:
                    raise InferenceFailed("The service sent its child process an unknown request.")
        return found

    def _begin(self) -> None:
        if self._is_used:
            raise InferenceFailed(USED)
        self._is_used = True

    def work_ahead(self) -> None:
        """Prepare the answer to the next request, if it is known."""
        if self._sets is not None:
            self._sets.work_ahead()

    def _read_sets(self, fields: Mapping[str, Any]) -> Answer:
        # Imported here: it would delay the start of children that run models.
        from service.child.reading.read_sets import SetReading  # noqa: PLC0415 - see above

        self._sets = SetReading(fields)
        return self._sets.read()

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
        return BatchQueue(model, BodyDecoder(inputs, may_lack))

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

    def _export(self, request: ExportRequest, rows: Mapping[str, Array]) -> Answer:
        files = self._read(request.load)
        return {}, export_file(files, request.load, request.spec, rows, self._watchdog)

    def _load(self, request: LoadRequest, trial: Mapping[str, Array]) -> Answer:
        files = self._read(request)
        self._model = load(files, request, trial, self._watchdog)
        self._table_columns = request.table_columns
        fields = to_fields(self._model.found)
        try:
            convert(fields, LoadedOnnxModel)
        except FieldError as error:
            # The parent would treat it as a protocol error and kill this process.
            raise InvalidOnnxModel.because(ModelRule.NAMES_TOO_LONG, NAMES_TOO_LONG) from error
        return fields, {}

    def _load_scores(self, request: LoadScoresRequest) -> Answer:
        """Sandbox this process; it has no file to open."""
        lock_down(request.sandbox, uses_cuda=False)
        self._scores = ScoresModel(request.spec)
        return to_fields(self._scores.found), {}

    def _predict(self, request: RowsRequest, inputs: Mapping[str, Array]) -> Answer:
        model = self._loaded()
        return {}, {
            OUTPUT_ROWS: model.predict(
                inputs,
                location=request.location,
                start=request.start,
                of_rows=request.of_rows,
            )
        }

    def _record(self, request: RowsRequest, tensors: dict[str, Array]) -> Answer:
        labels = tensors.pop(LABELS).astype(np.int64, copy=False)
        records = self._loaded().record(
            tensors, labels, seed=request.seed, location=request.location, start=request.start
        )
        return {}, records.to_arrays()

    def _loaded(self) -> LoadedModel:
        if self._model is None:
            raise InferenceFailed("The child process has no ONNX model.")
        return self._model


def serve(fd: int) -> None:
    """Answer requests on the socket until the other side closes it."""
    channel = Channel(socket.socket(fileno=fd))
    requests = Requests()
    try:
        channel.send(encode(Frame(Kind.READY, 0, {"versions": VERSIONS})))
        while True:
            header, fields, payload = channel.receive_unread()
            channel.send(_answer(requests, header, fields, payload))
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
    except Exception as error:  # noqa: BLE001 - an uploaded model; the parent gets the error
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
    code, message, violations = describe(error)
    fields = {"code": code, "message": message, "violations": violations}
    return encode(Frame(header.kind, header.sequence, fields, status=Status.FAILED))
