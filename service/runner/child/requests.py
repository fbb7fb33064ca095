"""What the child does with each request."""

import gc
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from service.errors import InferenceFailed, InvalidOnnxModel
from service.graph.names import PREFIX
from service.model_rules import ModelRule
from service.runner.batch_messages import decode_batch, encode_report
from service.runner.child.batch_queue import BatchQueue
from service.runner.child.export_file import export_file
from service.runner.child.load_options import LoadOptions
from service.runner.child.loaded_model import LoadedModel
from service.runner.child.loading import Bytes, load, read_files
from service.runner.child.lockdown.lock_down import lock_down
from service.runner.child.probe_cuda import probe_cuda
from service.runner.child.watchdog import Watchdog
from service.runner.description import LoadedOnnxModel
from service.runner.fields import FieldError
from service.runner.frames import LABELS, Array, Buffer, Frame, Header, Kind
from service.runner.sandbox import SandboxRules

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
        self._columns: Mapping[str, tuple[str, ...]] | None = None
        self._queue: BatchQueue | None = None
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
                case Kind.RECORD:
                    return self._record(request.fields, dict(request.tensors))
                case Kind.PREDICT:
                    return self._predict(request.fields, request.tensors)
        raise InferenceFailed("The service asked its child process an unknown question.")

    def batch(self, header: Header, fields: Buffer, bodies: Buffer) -> list[Buffer]:
        """Answer a batch of requests, as many rows of them as go into one run.

        Raises
        ------
        ServiceError
            If none of them can be answered.
        """
        if self._queue is None:
            self._queue = BatchQueue(self._loaded(), self._columns)
            # What is there by now stays: it need not be looked through for garbage again.
            gc.freeze()
        batch = decode_batch(fields)
        self._watchdog.allow(header.budget_ms / 1000, batch.each_run)
        try:
            report, words = self._queue.exchange(batch, bodies)
        finally:
            self._watchdog.rest()
        return encode_report(report, words, sequence=header.sequence)

    def _read(self, fields: Mapping[str, Any], options: LoadOptions) -> Bytes:
        if self._has_read:
            raise InferenceFailed("A child process loads one ONNX model in its life.")
        if options.preprocessing is not None:
            import_module("service.runner.child.picture_rows")
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
        options = LoadOptions.from_fields(fields, self._versions)
        files = self._read(fields, options)
        self._model = load(files, options, trial, self._watchdog)
        self._columns = options.table_columns
        loaded = self._model.found
        fields = loaded.as_fields()
        try:
            LoadedOnnxModel.from_fields(fields)
        except FieldError as error:
            # The parent would take it for a child gone mad.
            raise InvalidOnnxModel.because(ModelRule.NAMES_TOO_LONG, NAMES_TOO_LONG) from error
        return fields, {}

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
