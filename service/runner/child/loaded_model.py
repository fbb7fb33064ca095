"""An ONNX model with its uncertainty head, ready to answer."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from service.core.arrays import Labels
from service.core.measures import PERTURBATIONS
from service.core.records import Records, concatenate
from service.core.tie_keys import tie_keys
from service.errors import InvalidInput
from service.graph.description import OnnxModelDescription
from service.graph.serving import SCORES
from service.model_rules import ModelRule
from service.runner.child.batches import batch_rows, run_batches
from service.runner.child.model_inputs import ModelInputs
from service.runner.child.overlapped import overlapped
from service.runner.child.single_model import LAST_LAYER_LOGS, SingleModel
from service.runner.description import LoadedOnnxModel
from service.runner.frames import Array

PASSES = frozenset((*PERTURBATIONS, LAST_LAYER_LOGS))


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

    def words(self, fitted: dict[str, Array], *, location: str, start: int) -> Array | None:
        """Return the same as one matrix, if the graph makes one and all rows go into one run."""
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
