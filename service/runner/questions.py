"""What the pool asks its children, and in which time they are to answer."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from howsure.statistics.arrays import Labels
from service.errors import InvalidDataset, InvalidInput, TooLarge
from service.runner.messages.frames import (
    LABELS,
    MAX_RANK,
    MAX_TENSOR_BYTES,
    Array,
    Frame,
    FrameError,
    Kind,
    Status,
    code_of,
)
from service.runner.messages.onnx_models import (
    MAX_ADDED_BYTES,
    MAX_EXPORTED_ROW_BYTES,
    FieldError,
    OnnxModelFiles,
    PassPlan,
)
from service.runner.messages.preprocessing import Preprocessing
from service.runner.messages.sandbox_rules import DEFAULT_RULES, SandboxRules
from service.runner.model_output import Expected, raise_failure
from service.runner.process import RunnerProcess

CHUNK_ROWS = 256
# Of rows to be recorded: some runs of the model, each made records of during the next.
RECORDED_ROWS = 2048


def check_inputs(inputs: Mapping[str, Array], location: str, invalid: type[InvalidInput]) -> None:
    """Refuse arrays that cannot be cut into rows of numbers; the rest is for the child to say.

    Raises
    ------
    InvalidInput
        If there is no array or no row, an array holds something else than numbers, or the numbers
        of rows differ.
    """
    if not inputs:
        raise invalid.at(location, "expected at least one array")
    for name, array in inputs.items():
        place = f"{location}.{name}"
        if code_of(array.dtype) is None:
            raise invalid.at(place, f"expected numbers, got {array.dtype}")
        if not 1 <= array.ndim <= MAX_RANK or not len(array):
            raise invalid.at(place, f"expected at least one row, got shape {list(array.shape)}")
    lengths = {name: len(array) for name, array in inputs.items()}
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{name!r} {rows}" for name, rows in lengths.items())
        raise invalid.at(location, f"every input needs the same number of rows: {counts}")


def check_labels(
    labels: Array, *, n_rows: int, n_classes: int, location: str, start: int
) -> NDArray[np.int64]:
    """Return the labels as int64; ``start`` is the number of the first row.

    Raises
    ------
    InvalidDataset
        If they are not one class index per row.
    """
    place = f"{location}.labels"
    if labels.shape != (n_rows,) or labels.dtype.kind not in "iu":
        raise InvalidDataset.at(
            place,
            f"expected {n_rows} integers, one per row, got {labels.dtype} of shape "
            f"{list(labels.shape)}",
        )
    bad = (labels < 0) | (labels >= n_classes)
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidDataset.at(
            f"{place}[{start + row}]",
            f"expected an integer from 0 to {n_classes - 1}, got {int(labels[row])}",
        )
    return labels.astype(np.int64, copy=False)


def chunks(
    inputs: Mapping[str, Array],
    *,
    fixed_batch: int | None,
    start: int,
    at_a_time: int = CHUNK_ROWS,
) -> Iterator[tuple[slice, dict[str, Array]]]:
    """Yield rows and their part of the arrays: a few at a time, so that others get their turn.

    The cuts fall on the same rows of a set however it is divided between calls, ``start`` being
    the number of the first row here: there the child's batches end as well.
    """
    n_rows = len(next(iter(inputs.values())))
    batch = fixed_batch or 1
    size = batch * -(-at_a_time // batch)
    first = 0
    while first < n_rows:
        rows = slice(first, min(first + size - (start + first) % size, n_rows))
        yield rows, {name: array[rows] for name, array in inputs.items()}
        first = rows.stop


T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Question:
    """What is asked. ``location`` and ``invalid`` are what the arrays are called in errors."""

    kind: Kind
    fields: Mapping[str, Any]
    tensors: Mapping[str, Array]
    location: str
    invalid: type[InvalidInput]
    timeout: float
    max_answer_bytes: int

    @property
    def operation(self) -> str:
        """What is asked for, in a word."""
        return self.kind.name.lower()

    @property
    def n_rows(self) -> int:
        """How many rows go with it."""
        return len(next(iter(self.tensors.values()), ()))


def ask(process: RunnerProcess, question: Question, read: Callable[[Frame], T]) -> T:
    """Ask, and return what ``read`` makes of the answer.

    A child whose answer ``read`` refuses (by `FieldError`) is killed.

    Raises
    ------
    InvalidInput, InferenceFailed
        What the child reports, or what became of it.
    TooLarge
        If the arrays do not fit one request.
    """
    fields = {**question.fields, "location": question.location}
    try:
        answer = process.call(
            question.kind,
            fields,
            question.tensors,
            timeout=question.timeout,
            max_tensor_bytes=question.max_answer_bytes,
        )
    except FrameError as error:
        raise TooLarge.at(
            question.location,
            f"expected at most {MAX_TENSOR_BYTES} bytes in a batch of rows",
        ) from error
    try:
        if answer.status is Status.FAILED:
            raise_failure(answer, invalid=question.invalid)
        return read(answer)
    except FieldError as error:
        raise process.condemn(str(error)) from error


@dataclass(frozen=True)
class Questions:
    """The questions of one pool; times in seconds."""

    load_timeout: float
    run_timeout: float
    max_classes: int
    threads: int
    max_nodes: int = 50_000
    sandbox: SandboxRules = DEFAULT_RULES

    def try_out(  # noqa: PLR0913 - what a model is asked to be
        self,
        files: OnnxModelFiles,
        trial: Mapping[str, Array],
        *,
        output: Mapping[str, str | None],
        top_k: Sequence[int],
        scalar_outputs: Sequence[str],
        passes: Sequence[PassPlan],
        preprocessing: Preprocessing | None,
        device: str,
        location: str,
    ) -> Question:
        """Load a model, and choose its output on these rows."""
        fields = self._load_fields(files, top_k, device)
        fields |= {
            "output": dict(output),
            "scalar_outputs": list(scalar_outputs),
            "passes": [plan.as_dict() for plan in passes],
            "preprocessing": None if preprocessing is None else preprocessing.as_dict(),
            "resolved": None,
        }
        return self._loading(fields, trial, location)

    def load(self, files: OnnxModelFiles, resolved: Mapping[str, Any], *, device: str) -> Question:
        """Load a model whose output was chosen before."""
        fields = self._load_fields(files, resolved["top_k"], device)
        fields |= {"output": {}, "scalar_outputs": [], "passes": [], "resolved": dict(resolved)}
        return self._loading(fields, {}, "model")

    def load_scores(self, resolved: Mapping[str, Any]) -> Question:
        """Get ready to answer for a calibration without a model."""
        fields = {"scores": resolved["scores"], "sandbox": self.sandbox.as_dict(), "members": []}
        return self._loading(fields, {}, "model")

    def export(
        self,
        files: OnnxModelFiles,
        resolved: Mapping[str, Any],
        spec: Mapping[str, Any],
        rows: Mapping[str, Array],
        *,
        device: str,
        location: str,
    ) -> Question:
        """Write a calibrated model as one file, and run it on these rows."""
        asked = self.load(files, resolved, device=device)
        n_rows = len(next(iter(rows.values())))
        answers = n_rows * MAX_EXPORTED_ROW_BYTES
        return replace(
            asked,
            kind=Kind.EXPORT,
            fields={**asked.fields, "spec": dict(spec)},
            tensors=rows,
            location=location,
            timeout=asked.timeout + self.run_timeout * -(-n_rows // CHUNK_ROWS),
            max_answer_bytes=files.path.stat().st_size + MAX_ADDED_BYTES + answers,
        )

    def predict(
        self, inputs: Mapping[str, Array], expected: Expected, *, start: int, location: str
    ) -> Question:
        """Answer rows; ``start`` is the number of the first."""
        n_rows = len(next(iter(inputs.values())))
        return Question(
            kind=Kind.PREDICT,
            fields={"start": start, "each_run": self.run_timeout * expected.largest_run},
            tensors=inputs,
            location=location,
            invalid=InvalidInput,
            timeout=self.run_timeout * expected.runs,
            max_answer_bytes=expected.most_bytes(n_rows),
        )

    def record(
        self,
        inputs: Mapping[str, Array],
        labels: Labels,
        expected: Expected,
        *,
        seed: int,
        start: int,
        location: str,
    ) -> Question:
        """Make the records of rows; ``start`` is the number of the first."""
        return Question(
            kind=Kind.RECORD,
            fields={
                "start": start,
                "seed": seed,
                "each_run": self.run_timeout * expected.largest_run,
            },
            tensors={**inputs, LABELS: labels},
            location=location,
            invalid=InvalidDataset,
            timeout=self.run_timeout * expected.runs * -(-len(labels) // CHUNK_ROWS),
            max_answer_bytes=expected.most_bytes(len(labels)),
        )

    def _loading(
        self, fields: Mapping[str, Any], trial: Mapping[str, Array], location: str
    ) -> Question:
        return Question(
            kind=Kind.LOAD,
            fields=fields,
            tensors=trial,
            location=location,
            invalid=InvalidDataset,
            timeout=self.load_timeout * (1 + len(fields["members"])),
            max_answer_bytes=0,
        )

    def _load_fields(
        self, files: OnnxModelFiles, top_k: Sequence[int], device: str
    ) -> dict[str, Any]:
        return {
            "path": str(files.path.absolute()),
            "companions": {name: str(at.absolute()) for name, at in files.companions.items()},
            "members": [str(member.path.absolute()) for member in files.members],
            "top_k": list(top_k),
            "max_classes": self.max_classes,
            "max_nodes": self.max_nodes,
            "device": device,
            "threads": self.threads,
            "sandbox": self.sandbox.as_dict(),
        }
