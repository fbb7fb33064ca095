"""A loaded ONNX model that answers rows and makes records of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from howsure.onnx_head.builder import PREFIX
from howsure.statistics.arrays import Labels
from howsure.statistics.input_ranges import RowExtents, row_extents
from howsure.statistics.measures import MULTI_PASS_MEASURES
from howsure.statistics.records.order import tie_keys
from howsure.statistics.records.records import Records, concatenate
from service.child.onnx.batches import (
    MAX_BATCH_INPUT_BYTES,
    MAX_CUDA_INPUT_BYTES,
    batch_rows,
    join_parts,
    map_ahead,
    run_batches,
)
from service.child.onnx.model_inputs import ModelInputs
from service.child.onnx.session import CUDA
from service.child.onnx.single_model import SingleModel
from service.child.requests.tensors import is_surely_finite
from service.errors import InvalidInput, ModelRule
from service.graph.description import OnnxModelDescription
from service.graph.serving import (
    LAST_LAYER_LOGS,
    PACKED_OUTPUT,
    SCORES,
    TOP_CLASSES,
    TOP_SCORES,
)
from service.runner.messages.frames import Array
from service.runner.messages.onnx_models import LoadedOnnxModel
from service.runner.model_output import OutputSpec, output_spec

_greatest = np.maximum.reduce
PASSES = frozenset((*MULTI_PASS_MEASURES, LAST_LAYER_LOGS))


class Answering(Protocol):
    """One model or several: answers a batch of rows."""

    def answer(self, rows: Mapping[str, Array], place: str) -> dict[str, Array]:
        """Return top classes, top scores and uncertainties, by name or as one matrix."""

    def observe(self, rows: Mapping[str, Array], place: str) -> dict[str, Array]:
        """Return outputs that `record` turns into records."""

    def record(
        self, seen: Mapping[str, Array], labels: Labels, *, keys: Array, top_k: Sequence[int]
    ) -> Records:
        """Make records of finite rows."""


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A model that answers, and its description.

    ``numbers`` is how many numbers a row takes at once before they are reduced.
    """

    answering: Answering
    found: LoadedOnnxModel
    numbers: int

    @property
    def description(self) -> OnnxModelDescription:
        """The description of the file."""
        return self.found.description

    def apart(self) -> "LoadedModel":
        """Return the same model, for one row at a time."""
        description = replace(self.description, fixed_batch=1)
        return replace(self, found=replace(self.found, description=description))

    @property
    def inputs(self) -> ModelInputs:
        """The model's inputs."""
        return ModelInputs(self.description.inputs, self.found.preprocessing)

    def predict(
        self, inputs: Mapping[str, Array], *, location: str, start: int, of_rows: int | None = None
    ) -> Array:
        """Return top classes, top scores and uncertainties of each row, side by side.

        Raises
        ------
        InvalidInput
            If the model does not take the inputs, or a row has no valid answer.
        """
        own = replace(self.inputs, of_rows=of_rows)
        fitted = own.fitted(inputs, location=location, start=start)
        words = self.matrix(fitted, location=location, start=start)
        refuse_unsound(words, self.spec, location, start)
        return words

    def answer(self, fitted: Mapping[str, Array], *, location: str, start: int) -> dict[str, Array]:
        """Return the head's outputs by name, for fitted inputs; a row may be not finite."""
        batches = self._batches(self.answering.answer, fitted, location, start, pad=False)
        return join_parts([part for _, part in batches])

    def matrix(
        self,
        rows: dict[str, Array],
        *,
        location: str,
        start: int,
        extents: Mapping[str, RowExtents] = MappingProxyType({}),
    ) -> Array:
        """Return the matrix of `OutputSpec` for fitted rows; a row may be not finite.

        Supplied columns are zeros, which the caller replaces. Missing ``extents`` of inputs are
        computed.
        """
        spec = self.spec
        ends = [extents.get(name) or row_extents(rows[name]) for name in spec.inputs]
        beside = [end for both in ends for end in both]
        for name in spec.marked:
            found = self.found.column_ranges[name].outside(rows[name])
            beside.append(np.asarray(found.any(axis=1), dtype=np.float32))
        beside += [np.zeros(len(next(iter(rows.values()))), np.float32) for _ in spec.supplied]
        words = self._words(rows, location, start)
        if words is None or words.shape[1:] != (spec.n_words - len(beside),):
            words = self._columns(self.answer(rows, location=location, start=start))
        return np.column_stack([words, *beside]) if beside else words

    def _columns(self, answer: Mapping[str, Array]) -> Array:
        """Return top classes, top scores and uncertainties, side by side."""
        if PACKED_OUTPUT in answer:
            return answer[PACKED_OUTPUT]
        spec = self.spec
        n_top, names = spec.n_top, spec.uncertainties
        words = np.empty((len(answer[TOP_CLASSES]), 2 * n_top + len(names)), np.float32)
        words[:, :n_top] = answer[TOP_CLASSES][:, :n_top]
        words[:, n_top : 2 * n_top] = answer[TOP_SCORES][:, :n_top]
        for place, name in enumerate(names, 2 * n_top):
            words[:, place] = answer[PREFIX + name]
        return words

    @cached_property
    def spec(self) -> OutputSpec:
        """The specification of its answers."""
        return output_spec(self.found.resolved)

    def _words(self, fitted: dict[str, Array], location: str, start: int) -> Array | None:
        """Return the matrix if the graph computes it and all rows go into one run."""
        answering, n_rows = self.answering, len(next(iter(fitted.values())))
        if not isinstance(answering, SingleModel) or self.found.description.fixed_batch is not None:
            return None
        is_on_gpu = self.found.provider == CUDA
        most_bytes = MAX_CUDA_INPUT_BYTES if is_on_gpu else MAX_BATCH_INPUT_BYTES
        if n_rows > 1 and n_rows > batch_rows(fitted, self.numbers, None, most_bytes=most_bytes):
            return None
        try:
            words = answering.words(fitted, f"{location}[{start}:{start + n_rows}]")
        except InvalidInput:
            return None  # smaller runs may have enough memory, or name the row that fails
        return words if words is not None and len(words) == n_rows else None

    def record(
        self,
        inputs: Mapping[str, Array],
        labels: NDArray[np.int64],
        *,
        seed: int,
        location: str,
        start: int,
    ) -> Records:
        """Return the records of all rows; a record does not depend on the other rows.

        Raises
        ------
        InvalidInput
            If the model does not take the inputs, or a row's output is not finite.
        """
        fitted = self.inputs.fitted(inputs, location=location, start=start)
        as_sent = self.inputs.as_sent(inputs)
        lacking = _lack_values(fitted)

        def records_of(batch: tuple[int, dict[str, Array]]) -> Records:
            first, seen = batch
            rows = slice(first, first + len(seen[SCORES]))
            refuse_non_finite(seen, location, start + first, lacking[rows])
            keys = tie_keys(as_sent[rows], seed)
            return self.answering.record(seen, labels[rows], keys=keys, top_k=self.found.top_k)

        batches = self._batches(self.answering.observe, fitted, location, start, pad=True)
        return concatenate(map_ahead(batches, records_of))

    def _batches(
        self,
        run: Callable[[Mapping[str, Array], str], dict[str, Array]],
        fitted: Mapping[str, Array],
        location: str,
        start: int,
        *,
        pad: bool,
    ) -> Iterator[tuple[int, dict[str, Array]]]:
        fixed = self.description.fixed_batch
        return run_batches(
            run,
            fitted,
            size=batch_rows(fitted, self.numbers, fixed),
            pad=pad or fixed is not None,
            location=location,
            start=start,
        )


def _lack_values(rows: Mapping[str, Array]) -> NDArray[np.bool_]:
    """Return which rows lack a value."""
    lines = [values.reshape(len(values), -1) for values in rows.values()]
    found: NDArray[np.bool_] = np.any([np.isnan(values).any(axis=1) for values in lines], axis=0)
    return found


def refuse_non_finite(
    answer: Mapping[str, Array],
    location: str,
    start: int,
    lacking: NDArray[np.bool_] | None = None,
) -> None:
    """Refuse rows whose output is not finite; ``start`` is the number of the first row.

    ``lacking`` tells which rows lack a value.

    Raises
    ------
    InvalidInput
        The violation names the row.
    """
    bad = np.zeros(len(next(iter(answer.values()))), dtype=np.bool_)
    for name, values in answer.items():
        lines = values.reshape(len(values), -1)
        if name == SCORES:
            # -inf rules a class out; a row needs one class that is not ruled out.
            bad |= np.isnan(lines).any(axis=1) | np.isposinf(lines).any(axis=1)
            bad |= np.isneginf(lines).all(axis=1)
        elif name in PASSES:
            bad |= np.isnan(lines).any(axis=1)
        elif values.dtype.kind == "f":
            bad |= ~np.isfinite(lines).all(axis=1)
    if bad.any():
        first = int(np.argmax(bad))
        row, fix = start + first, ""
        if lacking is not None and lacking[first]:
            fix = (
                ": the row lacks a value, and the model does not handle missing values; fill them "
                "in as for its training, or export it with the step that does"
            )
        raise InvalidInput.at(
            f"{location}[{row}]",
            f"the ONNX model's output for row {row} is not finite{fix}",
            rule=ModelRule.NOT_FINITE,
        )


def is_sound(words: Array, spec: OutputSpec) -> bool:
    """Return whether all rows of a matrix have known classes and finite numbers."""
    if _greatest(words[:, : spec.n_top], axis=None) >= spec.n_classes:
        return False
    return is_surely_finite(words) or bool(np.isfinite(words[:, spec.n_top :]).all())


def refuse_unsound(words: Array, spec: OutputSpec, location: str, start: int) -> None:
    """Refuse rows of a matrix without a valid answer; the parent would see a protocol error.

    Raises
    ------
    InvalidInput
        The violation names the row.
    """
    if is_sound(words, spec):
        return
    refuse_non_finite({"words": words[:, spec.n_top :]}, location, start)
    unknown = (words[:, : spec.n_top] >= spec.n_classes).any(axis=1)
    row = start + int(np.argmax(unknown))
    raise InvalidInput.at(
        f"{location}[{row}]",
        f"the ONNX model's output for row {row} has more than the {spec.n_classes} classes that "
        "it was calibrated with",
    )
