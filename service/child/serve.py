"""The child's loop: a request, an answer, a request."""

import gc
import socket
import traceback
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnxruntime as ort

from service.child.failure import describe
from service.child.lockdown.lock_down import lock_down
from service.child.onnx.export import export_file
from service.child.onnx.loaded_model import LoadedModel
from service.child.onnx.loading import Bytes, load, read_files
from service.child.onnx.predict_queue import BatchQueue
from service.child.onnx.scores_model import ScoresDecoder, ScoresModel
from service.child.onnx.session import MORE_MEMORY, NOT_LOADED, probe_cuda
from service.child.onnx.watchdog import Watchdog
from service.child.requests.body_decoder import BodyDecoder
from service.errors import InferenceFailed, InvalidOnnxModel, ModelRule, ServiceError
from service.graph.proto import PREFIX
from service.runner.messages.channel import Channel, ChannelClosed, to_keep
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
from service.runner.messages.onnx_models import FieldError, LoadedOnnxModel, LoadOptions
from service.runner.messages.predict_batches import decode_batch, encode_report
from service.runner.messages.sandbox_rules import SandboxRules
from service.runner.messages.scores_model import ScoresModelSpec

if TYPE_CHECKING:
    from service.child.reading.read_sets import SetReading

NAMES_TOO_LONG = (
    "the names of its inputs, outputs or classes are too long, or no valid text; shorten them"
)

Answer = tuple[Mapping[str, Any], Mapping[str, Array]]


class Requests:
    """One child's life: one model is loaded, then it is asked."""

    def __init__(self, versions: Mapping[str, str]) -> None:
        self._versions = versions
        self._watchdog = Watchdog()
        self._model: LoadedModel | None = None
        self._scores: ScoresModel | None = None
        self._queue: BatchQueue | None = None
        self._sets: SetReading | None = None
        self._has_read = False

    def answer(self, request: Frame) -> Answer:
        """Do what a request asks, within its time.

        Raises
        ------
        ServiceError
            What the caller is to be told.
        """
        with self._watchdog.request(request.budget_ms / 1000, request.fields.get("each_run")):
            match request.kind:
                case Kind.PROBE:
                    return {"reason": probe_cuda(str(request.fields["device"]))}, {}
                case Kind.LOAD:
                    return self._load(request.fields, request.tensors)
                case Kind.EXPORT:
                    return self._export(request.fields, request.tensors)
                case Kind.READ | Kind.ROWS:
                    return self._read_sets(request)
                case Kind.RECORD:
                    return self._record(request.fields, dict(request.tensors))
                case Kind.PREDICT:
                    return self._predict(request.fields, request.tensors)
        raise InferenceFailed("The service asked its child process an unknown question.")

    def work_ahead(self) -> None:
        """Do what will be asked for next, if that is known."""
        if self._sets is not None:
            self._sets.work_ahead()

    def _read_sets(self, request: Frame) -> Answer:
        if request.kind is Kind.ROWS and self._sets is not None:
            return self._sets.rows(request.fields["set"], request.fields["start"])
        if self._has_read:
            raise InferenceFailed("A child process reads one upload in its life.")
        self._has_read = True
        # Few processes read sets, and none that runs a model is to wait for what does.
        from service.child.reading.read_sets import SetReading  # noqa: PLC0415

        self._sets = SetReading(request.fields)
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
            # What is there by now stays: it need not be looked through for garbage again.
            gc.freeze()
        batch = decode_batch(fields)
        self._watchdog.allow(header.budget_ms / 1000, batch.each_run)
        try:
            report, words = self._queue.exchange(batch, bodies)
        finally:
            self._watchdog.rest()
        return encode_report(report, words, sequence=header.sequence)

    def _new_queue(self) -> BatchQueue:
        if self._scores is not None:
            return BatchQueue(self._scores, ScoresDecoder(self._scores.spec))
        model = self._loaded()
        return BatchQueue(model, BodyDecoder(model.inputs))

    def _read(self, fields: Mapping[str, Any], options: LoadOptions) -> Bytes:
        if self._has_read:
            raise InferenceFailed("A child process loads one ONNX model in its life.")
        if options.preprocessing is not None:
            import_module("service.child.requests.picture_rows")
        # The order matters. Files are opened first, and CUDA's driver, which opens much; then this
        # process gives up its rights; only then does anything look at a stranger's bytes.
        files = read_files([fields["path"], *fields["members"]], fields["companions"])
        self._has_read = True
        uses_cuda = options.device != "cpu"
        if uses_cuda:
            probe_cuda(options.device)
        lock_down(SandboxRules.from_dict(fields["sandbox"]), uses_cuda=uses_cuda)
        return files

    def _export(self, fields: Mapping[str, Any], rows: Mapping[str, Array]) -> Answer:
        options = LoadOptions.from_fields(fields, self._versions)
        files = self._read(fields, options)
        return {}, export_file(files, options, fields["spec"], rows, self._watchdog)

    def _load(self, fields: Mapping[str, Any], trial: Mapping[str, Array]) -> Answer:
        if "scores" in fields:
            return self._load_scores(fields)
        options = LoadOptions.from_fields(fields, self._versions)
        files = self._read(fields, options)
        self._model = load(files, options, trial, self._watchdog)
        loaded = self._model.found
        fields = loaded.as_fields()
        try:
            LoadedOnnxModel.from_fields(fields)
        except FieldError as error:
            # The parent would take it for a child gone mad.
            raise InvalidOnnxModel.because(ModelRule.NAMES_TOO_LONG, NAMES_TOO_LONG) from error
        return fields, {}

    def _load_scores(self, fields: Mapping[str, Any]) -> Answer:
        """Lock this process in; it has no file to open."""
        if self._has_read:
            raise InferenceFailed("A child process loads one ONNX model in its life.")
        self._has_read = True
        lock_down(SandboxRules.from_dict(fields["sandbox"]), uses_cuda=False)
        self._scores = ScoresModel(ScoresModelSpec.of(fields["scores"]), self._versions)
        return self._scores.found.as_fields(), {}

    def _predict(self, fields: Mapping[str, Any], inputs: Mapping[str, Array]) -> Answer:
        answer = self._loaded().answer(inputs, location=fields["location"], start=fields["start"])
        return {}, {name.removeprefix(PREFIX): values for name, values in answer.items()}

    def _record(self, fields: Mapping[str, Any], tensors: dict[str, Array]) -> Answer:
        labels = tensors.pop(LABELS).astype(np.int64, copy=False)
        records = self._loaded().record(
            tensors,
            labels,
            seed=fields["seed"],
            location=fields["location"],
            start=fields["start"],
        )
        return {}, records.to_arrays()

    def _loaded(self) -> LoadedModel:
        if self._model is None:
            raise InferenceFailed("The child process has no ONNX model.")
        return self._model


VERSIONS = {
    "numpy": np.__version__,
    "onnx": onnx.__version__,
    "onnxruntime": ort.__version__,
}


def serve(fd: int) -> None:
    """Answer requests on the socket until the other side closes it."""
    channel = Channel(socket.socket(fileno=fd))
    requests = Requests(VERSIONS)
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
    except Exception as error:  # noqa: BLE001 - a stranger's model; the parent is told what it is
        return _failure(header, _told(error, header.kind))


def _told(error: Exception, kind: Kind) -> ServiceError:
    """Return what the parent is told of it, which never is a library's own text."""
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
