"""An ONNX model with its uncertainty head, ready to answer."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from service.core.measures import columns
from service.core.records import Records, build_records, concatenate
from service.core.tie_keys import tie_keys
from service.errors import InvalidInput, InvalidOnnxModel
from service.graph.description import OnnxModelDescription
from service.graph.names import PREFIX
from service.graph.output import OutputChoice
from service.graph.serving import SCORES, TOP_CLASSES, TOP_SCORES
from service.runner.child.input_arrays import by_input, fit_inputs
from service.runner.child.onnx_session import OnnxSession
from service.runner.frames import Array

MAX_BATCH_ROWS = 256
MAX_BATCH_INPUT_BYTES = 2**25
MAX_BATCH_SCORES = 2**21


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A session of the serving graph, and what is known of it.

    ``scalars`` are the outputs of the model that are passed through, by column.
    """

    session: OnnxSession
    description: OnnxModelDescription
    choice: OutputChoice
    top_k: tuple[int, ...]
    scalars: Mapping[str, str]

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the uncertainties."""
        logits = self.choice.kind == "logits"
        return (*(name for name, _, _ in columns(self.top_k, logits=logits)), *self.scalars)

    def answer(
        self, inputs: Mapping[str, Array], *, location: str, start: int, refuse: bool = True
    ) -> dict[str, Array]:
        """Return the head's outputs for all rows: top classes, top scores, uncertainties.

        Raises
        ------
        InvalidInput
            If the inputs do not suit or, with ``refuse``, a row's output is not finite.
        """
        specs = self.description.inputs
        inputs = by_input(inputs, specs)
        fitted = fit_inputs(inputs, specs, location=location, start=start)
        wanted = [TOP_CLASSES, TOP_SCORES, *(PREFIX + name for name in self.columns)]
        parts = []
        for first, part in self._batches(fitted, wanted, location, start, pad=False):
            if refuse:
                _refuse_non_finite(part, location, start + first)
            parts.append(part)
        if len(parts) == 1:
            return parts[0]
        return {name: np.concatenate([part[name] for part in parts]) for name in wanted}

    def record(
        self,
        inputs: Mapping[str, Array],
        labels: NDArray[np.int64],
        *,
        seed: int,
        location: str,
        start: int,
    ) -> Records:
        """Return the records of all rows, the same whatever rows come with them in a request.

        Raises
        ------
        InvalidInput
            If the inputs do not suit, or a row's output is not finite.
        """
        specs = self.description.inputs
        inputs = by_input(inputs, specs)
        fitted = fit_inputs(inputs, specs, location=location, start=start)
        keys = tie_keys(_as_sent(inputs, list(fitted)), seed)
        wanted = [SCORES, *(PREFIX + name for name in self.columns)]
        records: list[Records] = []
        for first, part in self._batches(fitted, wanted, location, start, pad=True):
            _refuse_non_finite(part, location, start + first)
            rows = slice(first, first + len(part[SCORES]))
            uncertainty = {name: part[PREFIX + name] for name in self.columns}
            records.append(
                build_records(
                    self._logits(part[SCORES]),
                    labels[rows],
                    tie_keys=keys[rows],
                    uncertainty=uncertainty,
                    top_k=self.top_k,
                )
            )
        return concatenate(records)

    def _logits(self, scores: Array) -> NDArray[np.float64]:
        wide = scores.astype(np.float64)
        if self.choice.kind == "logits":
            return wide
        with np.errstate(divide="ignore"):  # log 0 is -inf: a class that is ruled out
            return np.log(np.maximum(wide, 0.0))  # rounding may leave a -1e-9

    def _batches(
        self,
        fitted: Mapping[str, Array],
        wanted: Sequence[str],
        location: str,
        start: int,
        *,
        pad: bool,
    ) -> Iterator[tuple[int, dict[str, Array]]]:
        fixed = self.description.fixed_batch
        return run_batches(
            self.session,
            wanted,
            fitted,
            size=batch_rows(fitted, self.choice.n_classes, fixed),
            pad=pad or fixed is not None,
            location=location,
            start=start,
        )


def batch_rows(inputs: Mapping[str, Array], n_classes: int, fixed_batch: int | None) -> int:
    """Return how many rows go through a model at a time: a power of two, by their size alone."""
    if fixed_batch is not None:
        return fixed_batch
    row_bytes = sum(int(array[0].nbytes) for array in inputs.values())
    most = min(MAX_BATCH_INPUT_BYTES // max(row_bytes, 1), MAX_BATCH_SCORES // n_classes)
    return 1 << (min(max(most, 1), MAX_BATCH_ROWS).bit_length() - 1)


def run_batches(
    session: OnnxSession,
    wanted: Sequence[str],
    inputs: Mapping[str, Array],
    *,
    size: int,
    pad: bool,
    location: str,
    start: int,
) -> Iterator[tuple[int, dict[str, Array]]]:
    """Run all rows, ``size`` at a time, and yield each first row's position with the answer.

    With ``pad`` all batches are full: each row stands at its own place, the number of the row
    modulo ``size``, and copies of its neighbours stand where there is none. The runtime's kernels
    round by the place of a row in the batch, but not by what stands in the other places; so an
    answer does not depend on how a set was divided. ``start`` is the number of the first row.

    Raises
    ------
    InvalidOnnxModel
        If the model does not answer one row for each it was given.
    """
    n_rows = len(next(iter(inputs.values())))
    first = 0
    while first < n_rows:
        before = (start + first) % size if pad else 0
        n_real = min(size - before, n_rows - first)
        n_fed = size if pad else n_real
        feeds = {
            name: _padded(array[first : first + n_real], before, n_fed)
            for name, array in inputs.items()
        }
        place = f"{location}[{start + first}:{start + first + n_real}]"
        answer = session.run(wanted, feeds, place=place)
        for output in answer.values():
            if output.ndim == 0 or len(output) != n_fed:
                raise InvalidOnnxModel.at(
                    "model",
                    f"the output has the shape {output.shape} for {n_fed} samples; expected one "
                    "row per sample",
                )
        yield first, {name: output[before : before + n_real] for name, output in answer.items()}
        first += n_real


def _padded(rows: Array, before: int, length: int) -> Array:
    """Return ``length`` rows: copies of the first, the rows, copies of the last."""
    if len(rows) == length:
        return rows
    places = np.clip(np.arange(length) - before, 0, len(rows) - 1)
    return np.asarray(rows[places])


def _refuse_non_finite(answer: Mapping[str, Array], location: str, start: int) -> None:
    bad = np.zeros(len(next(iter(answer.values()))), dtype=np.bool_)
    for name, values in answer.items():
        if name == SCORES:
            # -inf rules a class out; a row needs one that is not.
            bad |= np.isnan(values).any(axis=1) | np.isposinf(values).any(axis=1)
            bad |= np.isneginf(values).all(axis=1)
        elif values.dtype.kind == "f":
            bad |= ~np.isfinite(values).reshape(len(values), -1).all(axis=1)
    if bad.any():
        row = start + int(np.argmax(bad))
        raise InvalidInput.at(
            f"{location}[{row}]", f"the ONNX model's output for row {row} is not finite"
        )


def _as_sent(inputs: Mapping[str, Array], names: Sequence[str]) -> Array:
    """Return the bytes of each sample, all its inputs one after the other."""
    if len(names) == 1:
        return inputs[names[0]]
    lines = [np.ascontiguousarray(inputs[name]) for name in names]
    return np.concatenate([line.reshape(len(line), -1).view(np.uint8) for line in lines], axis=1)
