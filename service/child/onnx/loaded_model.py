"""An ONNX model with its uncertainty head, ready to answer."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from howsure.statistics.arrays import Labels
from howsure.statistics.measures import MULTI_PASS_MEASURES
from howsure.statistics.records.order import tie_keys
from howsure.statistics.records.records import Records, concatenate
from service.child.onnx.batches import batch_rows, overlapped, run_batches
from service.child.onnx.model_inputs import ModelInputs
from service.child.onnx.single_model import LAST_LAYER_LOGS, SingleModel
from service.errors import InvalidInput, ModelRule
from service.graph.description import OnnxModelDescription
from service.graph.proto import PREFIX
from service.graph.serving import SCORES, TOP_CLASSES, TOP_SCORES
from service.runner.messages.frames import Array
from service.runner.messages.onnx_models import LoadedOnnxModel
from service.runner.model_output import Expected, expected_of

PASSES = frozenset((*MULTI_PASS_MEASURES, LAST_LAYER_LOGS))


class Answering(Protocol):
    """One model or several, asked about a batch of rows."""

    def answer(self, rows: Mapping[str, Array], place: str) -> dict[str, Array]:
        """Return what `finish` makes an answer of."""

    def finish(self, part: dict[str, Array]) -> dict[str, Array]:
        """Return top classes, top scores and uncertainties of finite rows."""

    def observe(self, rows: Mapping[str, Array], place: str) -> dict[str, Array]:
        """Return what `record` makes records of."""

    def record(
        self, seen: Mapping[str, Array], labels: Labels, *, keys: Array, top_k: Sequence[int]
    ) -> Records:
        """Make records of finite rows."""


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A model that answers, and what is known of it.

    ``numbers`` is how many numbers it makes of a row before they are summed up.
    """

    answering: Answering
    found: LoadedOnnxModel
    numbers: int

    @property
    def description(self) -> OnnxModelDescription:
        """What the file says."""
        return self.found.description

    @property
    def inputs(self) -> ModelInputs:
        """What it takes."""
        return ModelInputs(self.description.inputs, self.found.preprocessing)

    def answer(
        self, inputs: Mapping[str, Array], *, location: str, start: int, refuse: bool = True
    ) -> dict[str, Array]:
        """Return the head's outputs for all rows: top classes, top scores, uncertainties.

        Raises
        ------
        InvalidInput
            If the inputs do not suit or, with ``refuse``, a row's output is not finite.
        """
        fitted = self.inputs.fitted(inputs, location=location, start=start)
        return self.answer_fitted(fitted, location=location, start=start, refuse=refuse)

    def answer_fitted(
        self, fitted: Mapping[str, Array], *, location: str, start: int, refuse: bool = True
    ) -> dict[str, Array]:
        """Return the same for inputs that suit the model already."""
        parts = []
        for first, part in self._batches(self.answering.answer, fitted, location, start, pad=False):
            if refuse:
                refuse_non_finite(part, location, start + first)
            parts.append(self.answering.finish(part))
        if len(parts) == 1:
            return parts[0]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def matrix(self, rows: dict[str, Array], *, location: str, start: int) -> Array:
        """Return top classes, top scores and uncertainties of each row, side by side.

        The inputs suit the model already; a row's output may be not finite.
        """
        expected = self._expected
        made = self._words(rows, location, start)
        if made is not None and made.shape[1:] == (expected.n_words,):
            return made
        answer = self.answer_fitted(rows, location=location, start=start, refuse=False)
        words = np.empty((len(answer[TOP_CLASSES]), expected.n_words), np.float32)
        words[:, : expected.n_top] = answer[TOP_CLASSES]
        words[:, expected.n_top : 2 * expected.n_top] = answer[TOP_SCORES]
        for place, name in enumerate(expected.columns, 2 * expected.n_top):
            words[:, place] = answer[PREFIX + name]
        return words

    @cached_property
    def _expected(self) -> Expected:
        return expected_of(self.found.resolved)

    def _words(self, fitted: dict[str, Array], location: str, start: int) -> Array | None:
        """Return the matrix if the graph makes one and all rows go into one run."""
        answering, n_rows = self.answering, len(next(iter(fitted.values())))
        if not isinstance(answering, SingleModel) or self.found.description.fixed_batch is not None:
            return None
        if n_rows > 1 and n_rows > batch_rows(fitted, self.numbers, None):
            return None
        words = answering.words(fitted, f"{location}[{start}:{start + n_rows}]")
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
        """Return the records of all rows, the same whatever rows come with them in a request.

        Raises
        ------
        InvalidInput
            If the inputs do not suit, or a row's output is not finite.
        """
        fitted = self.inputs.fitted(inputs, location=location, start=start)
        as_sent = self.inputs.as_sent(inputs)

        def records_of(batch: tuple[int, dict[str, Array]]) -> Records:
            first, seen = batch
            refuse_non_finite(seen, location, start + first)
            rows = slice(first, first + len(seen[SCORES]))
            keys = tie_keys(as_sent[rows], seed)
            return self.answering.record(seen, labels[rows], keys=keys, top_k=self.found.top_k)

        batches = self._batches(self.answering.observe, fitted, location, start, pad=True)
        return concatenate(overlapped(batches, records_of))

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


def refuse_non_finite(answer: Mapping[str, Array], location: str, start: int) -> None:
    """Refuse answers that hold what is no answer; ``start`` is the number of the first row.

    Raises
    ------
    InvalidInput
        The violation names the row.
    """
    bad = np.zeros(len(next(iter(answer.values()))), dtype=np.bool_)
    for name, values in answer.items():
        lines = values.reshape(len(values), -1)
        if name == SCORES:
            # -inf rules a class out; a row needs one that is not.
            bad |= np.isnan(lines).any(axis=1) | np.isposinf(lines).any(axis=1)
            bad |= np.isneginf(lines).all(axis=1)
        elif name in PASSES:
            bad |= np.isnan(lines).any(axis=1)
        elif values.dtype.kind == "f":
            bad |= ~np.isfinite(lines).all(axis=1)
    if bad.any():
        row = start + int(np.argmax(bad))
        raise InvalidInput.at(
            f"{location}[{row}]",
            f"the ONNX model's output for row {row} is not finite",
            rule=ModelRule.NOT_FINITE,
        )
