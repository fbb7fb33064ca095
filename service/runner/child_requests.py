"""The requests of the pool to its children, with their time limits."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from howsure.bins_document.pass_plan import ENSEMBLE, LAST_LAYER, PLAIN, PassPlan
from howsure.onnx_head.spec import ExportSpec
from howsure.statistics.arrays import Labels
from howsure.statistics.measures.gradient import SLOPE_MEASURES
from howsure.statistics.records.records import Records
from service.errors import InvalidDataset, InvalidInput, TooLarge
from service.runner.messages.convert import FieldError, convert, to_fields
from service.runner.messages.failures import raise_failure
from service.runner.messages.frames import (
    LABELS,
    MAX_TENSOR_BYTES,
    Array,
    Frame,
    FrameError,
    Kind,
    Status,
)
from service.runner.messages.input_rows import CHUNK_ROWS
from service.runner.messages.onnx_models import (
    LoadedOnnxModel,
    OnnxModelFiles,
    read_resolved,
    read_table_columns,
    unpacked_model,
)
from service.runner.messages.packed import MAX_NAMES_BYTES, packed
from service.runner.messages.requests import (
    MAX_ADDED_BYTES,
    MAX_EXPORTED_ROW_BYTES,
    SPEC,
    ExportedOnnxModel,
    LoadRequest,
    LoadScoresRequest,
    RowsRequest,
    read_exported,
)
from service.runner.messages.sandbox_rules import DEFAULT_RULES, SandboxRules
from service.runner.messages.scores_model import ScoresModelSpec
from service.runner.model_output import OutputMatrix, OutputSpec
from service.runner.process import RunnerProcess

T = TypeVar("T")

# A slow disk, and the time ONNX Runtime needs to optimise what it has read.
LOADED_BYTES_PER_SECOND = 16 * 1024**2
# Fields of a request to load a model that the description of the model must repeat.
OPTIONS = ("scalar_outputs", "columns", "column_ranges", "preprocessing")


@dataclass(frozen=True, eq=False)
class ChildRequest(Generic[T]):
    """A message to a child, its arrays, and how its answer is read.

    Attributes
    ----------
    read
        Returns the result of an answer; raises `FieldError` to have the child killed.
    location, invalid
        The name of the arrays in errors, and the error that replaces `InvalidInput`.
    on_progress
        Called with each report of progress; `FieldError` has the child killed, too.
    """

    kind: Kind
    message: object
    read: Callable[[Frame], T]
    timeout: float
    tensors: Mapping[str, Array]
    location: str = "model"
    invalid: type[InvalidInput] = InvalidDataset
    max_answer_bytes: int = 0
    on_progress: Callable[[Mapping[str, Any]], None] | None = None

    @property
    def operation(self) -> str:
        """Name of the request, for metrics."""
        return self.kind.name.lower()

    @property
    def n_rows(self) -> int:
        """Number of rows that go with it."""
        return len(next(iter(self.tensors.values()), ()))


def ask(process: RunnerProcess, request: ChildRequest[T]) -> T:
    """Send a request to a child and return the result.

    Raises
    ------
    InvalidInput, InferenceFailed
        The failure that the child reports, or how the child failed.
    TooLarge
        If the arrays exceed one frame.
    """
    try:
        answer = process.call(
            request.kind,
            to_fields(request.message),
            request.tensors,
            timeout=request.timeout,
            max_tensor_bytes=min(request.max_answer_bytes, MAX_TENSOR_BYTES),
            on_progress=request.on_progress,
        )
        if answer.status is Status.FAILED:
            raise_failure(answer, invalid=request.invalid)
        return request.read(answer)
    except FrameError as error:
        message = f"expected fewer or smaller rows at once, and shorter names: {error}"
        raise TooLarge.at(request.location, message) from error
    except FieldError as error:
        raise process.kill_for_protocol_error(str(error)) from error


@dataclass(frozen=True)
class ChildRequests:
    """Makes the requests of one pool; times in seconds."""

    load_timeout: float
    run_timeout: float
    max_classes: int
    threads: int
    trial_timeout: float = 20.0
    max_nodes: int = 50_000
    sandbox: SandboxRules = DEFAULT_RULES

    def message(self, files: OnnxModelFiles, device: str) -> LoadRequest:
        """Return the part of a load request that does not depend on the caller's choices."""
        paths = [files.path, *(member.path for member in files.members)]
        return LoadRequest(
            paths=tuple(str(path.absolute()) for path in paths),
            companions={name: str(at.absolute()) for name, at in files.companions.items()},
            device=device,
            threads=self.threads,
            max_classes=self.max_classes,
            max_nodes=self.max_nodes,
            sandbox=self.sandbox,
        )

    def try_out(
        self, message: LoadRequest, trial: Mapping[str, Array]
    ) -> ChildRequest[LoadedOnnxModel]:
        """Load a model, and choose its output on the trial rows.

        A small model that does not answer is given up early, because its upload waits.
        """
        paths = map(Path, (*message.paths, *message.companions.values()))
        # The child reports those that are missing.
        n_bytes = sum(path.stat().st_size for path in paths if path.exists())
        each = min(self.trial_timeout + n_bytes / LOADED_BYTES_PER_SECOND, self.load_timeout)
        return replace(
            self._loading(message, timeout=each * len(message.paths)),
            read=lambda answer: checked_model(unpacked_model(answer.tensors), message),
            tensors=trial,
            location=message.location,
        )

    def load(
        self, files: OnnxModelFiles, resolved: Mapping[str, Any], *, device: str
    ) -> ChildRequest[LoadedOnnxModel]:
        """Load a model whose output was chosen before."""
        message = self._resolved_message(files, resolved, device)
        return self._loading(message, timeout=self.load_timeout * len(message.paths))

    def load_scores(self, resolved: Mapping[str, Any]) -> ChildRequest[LoadedOnnxModel]:
        """Prepare the answers for a calibration without a model."""
        spec = convert(resolved["scores"], ScoresModelSpec)
        message = LoadScoresRequest(spec, self.sandbox)
        return self._loading(message, Kind.LOAD_SCORES, timeout=self.load_timeout)

    def export(
        self,
        files: OnnxModelFiles,
        resolved: Mapping[str, Any],
        spec: ExportSpec,
        rows: Mapping[str, Array],
        *,
        device: str,
        location: str,
    ) -> ChildRequest[ExportedOnnxModel]:
        """Write a calibrated model as one file, and run it on these rows."""
        n_rows = len(next(iter(rows.values())))
        message = self._resolved_message(files, resolved, device)
        answers = n_rows * MAX_EXPORTED_ROW_BYTES
        return ChildRequest(
            Kind.EXPORT,
            replace(message, location=location),
            lambda answer: read_exported(answer.tensors, n_rows),
            timeout=self.load_timeout * len(message.paths)
            + self.run_timeout * -(-n_rows // CHUNK_ROWS),
            tensors={**rows, SPEC: packed(spec)},
            location=location,
            max_answer_bytes=files.path.stat().st_size + MAX_ADDED_BYTES + answers,
        )

    def predict(
        self,
        inputs: Mapping[str, Array],
        spec: OutputSpec,
        *,
        start: int,
        location: str,
        of_rows: int | None = None,
    ) -> ChildRequest[OutputMatrix]:
        """Answer rows; ``start`` is the number of the first, of a set of ``of_rows``."""
        n_rows = len(next(iter(inputs.values())))
        return ChildRequest(
            Kind.PREDICT,
            RowsRequest(location, start, self.run_timeout * spec.largest_run, of_rows=of_rows),
            lambda answer: spec.read_rows(answer.tensors, n_rows),
            timeout=self.run_timeout * spec.runs,
            tensors=inputs,
            location=location,
            invalid=InvalidInput,
            max_answer_bytes=spec.most_row_bytes(n_rows),
        )

    def record(
        self,
        inputs: Mapping[str, Array],
        labels: Labels,
        spec: OutputSpec,
        *,
        seed: int,
        start: int,
        location: str,
    ) -> ChildRequest[Records]:
        """Make the records of rows; ``start`` is the number of the first."""
        return ChildRequest(
            Kind.RECORD,
            RowsRequest(location, start, self.run_timeout * spec.largest_run, seed),
            lambda answer: spec.records(answer.tensors, labels),
            timeout=self.run_timeout * spec.runs * -(-len(labels) // CHUNK_ROWS),
            tensors={**inputs, LABELS: labels},
            location=location,
            max_answer_bytes=spec.most_record_bytes(len(labels)),
        )

    def _loading(
        self, message: object, kind: Kind = Kind.LOAD, *, timeout: float
    ) -> ChildRequest[LoadedOnnxModel]:
        return ChildRequest(
            kind,
            message,
            lambda answer: unpacked_model(answer.tensors),
            timeout,
            tensors={},
            max_answer_bytes=2 * MAX_NAMES_BYTES,
        )

    def _resolved_message(
        self, files: OnnxModelFiles, resolved: Mapping[str, Any], device: str
    ) -> LoadRequest:
        model = read_resolved(resolved)
        return replace(
            self.message(files, device),
            top_k=model.top_k,
            choices=(model.output, *model.members),
            scalar_outputs=model.scalar_outputs,
            passes=model.passes,
            columns=model.columns,
            preprocessing=model.preprocessing,
            column_ranges=model.column_ranges,
            table_columns=read_table_columns(resolved),
            fixed_batch=model.fixed_batch,
        )


def checked_model(loaded: LoadedOnnxModel, request: LoadRequest) -> LoadedOnnxModel:
    """Return a description; refuse one that differs from the request, and plans that cost more.

    Raises
    ------
    FieldError
        If an honest child cannot have made the description.
    """
    measures, n_models = [plan.measure for plan in request.passes], len(request.paths)
    choices = (loaded.output, *loaded.members)
    for what, is_so in {
        "the number of classes": all(one.n_classes <= request.max_classes for one in choices),
        "the events": loaded.top_k == request.events(loaded.n_classes),
        "an option": all(getattr(loaded, one) == getattr(request, one) for one in OPTIONS),
        "the measures of the passes": [plan.measure for plan in loaded.passes] == measures,
        "whether the prediction is a mean": loaded.averaged
        == (n_models > 1 or ENSEMBLE in measures),
        "the number of members": len(choices) == n_models,
        "the measures of the costs": loaded.costs.keys() == {PLAIN, *measures},
    }.items():
        if not is_so:
            raise FieldError(f"{what} differs from the request")
    inputs = [tensor.name for tensor in loaded.description.inputs]
    for plan, wanted in zip(loaded.passes, request.passes, strict=True):
        if not _is_planned(plan, wanted, inputs, n_models):
            raise FieldError(f"the passes of {plan.measure}")
    return loaded


def _is_planned(plan: PassPlan, wanted: PassPlan, inputs: Sequence[str], n_models: int) -> bool:
    """Return whether a plan is the requested one, with what only the model tells."""
    if plan.measure in SLOPE_MEASURES:
        scales = (plan.scales or {}).values()
        steps = replace(wanted, scales=plan.scales, divisible=plan.divisible)
        return (
            plan == replace(steps, passes=sum(map(len, scales)))
            and sorted(plan.scales or {}) == sorted(inputs)
            and all(1 <= len(scale) <= wanted.passes and min(scale) > 0 for scale in scales)
        )
    if plan.measure == LAST_LAYER:
        rate, shape = wanted.rate or plan.rate, plan.feature_shape
        is_known = shape is not None and 0.0 < (rate or 0.0) < 1.0
        return is_known and plan == replace(wanted, rate=rate, feature_shape=shape)
    of_models = plan.measure == ENSEMBLE and n_models > 1
    return plan == replace(wanted, passes=n_models if of_models else wanted.passes)
