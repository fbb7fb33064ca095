"""Answers of the uncertainty head as they come from a child: one matrix, a row a sample."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from howsure.statistics.measures.measure import output_column
from howsure.statistics.measures.passes import column_names
from howsure.statistics.records.records import TEMPERATURES, Records
from howsure.statistics.softmax import n_recorded_classes
from service import errors
from service.errors import InvalidInput, ModelRule, ServiceError, Violation
from service.runner.messages.frames import ALIGNMENT, Array, Frame
from service.runner.messages.onnx_models import (
    ENSEMBLE,
    GRADIENT,
    LAST_LAYER,
    PLAIN,
    FieldError,
    HeadOutputs,
    LoadedOnnxModel,
    PassPlan,
    integer,
    items,
    read_choice,
    read_columns,
    read_pass_plans,
    read_scalar_outputs,
    score_columns,
    text,
    write_resolved,
)
from service.runner.messages.preprocessing import Preprocessing

# So few rows are read as Python's numbers: to call numpy takes longer than they do.
FEW_ROWS = 24


class HeadMatrix:
    """Rows of a run: top classes, their scores, uncertainties.

    Parameters
    ----------
    words : ndarray of float32, shape (n_rows, n_words)
    n_top : int
        How many top classes each row has.
    places : mapping of str to int
        Where in a row each uncertainty stands, by column.

    Attributes
    ----------
    numbers : list of list of float, or None
        The same where there are `FEW_ROWS` or fewer.
    """

    __slots__ = ("_outputs", "n_rows", "n_top", "numbers", "places", "words")

    def __init__(self, words: NDArray[np.float32], n_top: int, places: Mapping[str, int]) -> None:
        self.words = words
        self.n_top = n_top
        self.places = places
        self.n_rows = len(words)
        self.numbers: list[list[float]] | None = words.tolist() if self.n_rows <= FEW_ROWS else None
        self._outputs: HeadOutputs | None = None

    @property
    def outputs(self) -> HeadOutputs:
        """All rows, taken apart."""
        if self._outputs is None:
            words, n_top = self.words, self.n_top
            self._outputs = HeadOutputs(
                words[:, :n_top].astype(np.int64),
                words[:, n_top : 2 * n_top],
                {name: words[:, place] for name, place in self.places.items()},
            )
        return self._outputs

    def rows(self, start: int, stop: int) -> "HeadMatrix":
        """Return some of the rows."""
        return HeadMatrix(self.words[start:stop], self.n_top, self.places)

    @classmethod
    def joined(cls, parts: Sequence["HeadMatrix"]) -> "HeadMatrix":
        """Join rows of one model in order."""
        words = np.concatenate([part.words for part in parts])
        return cls(words, parts[0].n_top, parts[0].places)


FAILURES: dict[str, type[ServiceError]] = {
    kind.code(): kind
    for kind in (
        errors.InvalidInput,
        errors.MalformedRequest,
        errors.UnsupportedFormat,
        errors.InvalidConfig,
        errors.InvalidDataset,
        errors.InvalidOnnxModel,
        errors.TooLarge,
        errors.InferenceFailed,
        errors.DeadlineExceeded,
        errors.SandboxUnavailable,
    )
}
MAX_VIOLATIONS = 20
RECORD_FIXED_BYTES = 64
ROUNDING = 1e-3
NO_CLASS = "a class that does not exist"
NO_PROBABILITY = "a probability outside [0, 1]"
NOT_FINITE = "an uncertainty that is not finite"


@dataclass(frozen=True)
class Expected:
    """What answers about a model look like."""

    n_classes: int
    gives_logits: bool
    top_k: tuple[int, ...]
    fixed_batch: int | None
    scalar_outputs: tuple[str, ...] = ()
    passes: tuple[PassPlan, ...] = ()
    only: frozenset[str] | None = None

    @classmethod
    def from_resolved(cls, resolved: Mapping[str, Any]) -> "Expected":
        """Read `LoadedOnnxModel.resolved`.

        Raises
        ------
        FieldError
            If it is not that.
        """
        try:
            top_k = tuple(integer(k, least=1) for k in items(resolved["top_k"]))
            batch = resolved["fixed_batch"]
            choice = read_choice(resolved["output"])
            return cls(
                n_classes=choice.n_classes,
                # Of the mean of probabilities there are no logits.
                gives_logits=choice.kind == "logits" and not resolved.get("averaged"),
                top_k=top_k,
                fixed_batch=None if batch is None else integer(batch, least=1),
                scalar_outputs=read_scalar_outputs(resolved),
                passes=read_pass_plans(resolved.get("passes", [])),
                only=read_columns(resolved),
            )
        except (KeyError, TypeError) as error:
            raise FieldError(f"a resolved ONNX model: {error}") from error

    @cached_property
    def n_top(self) -> int:
        """How many top classes each row has."""
        return n_recorded_classes(self.n_classes, self.top_k)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the uncertainties each row has."""
        of_scores = score_columns(self.top_k, logits=self.gives_logits, only=self.only)
        return (
            *of_scores,
            *(output_column(name) for name in self.scalar_outputs),
            *(plan.measure for plan in self.passes),
        )

    @cached_property
    def n_words(self) -> int:
        """How many words a row of a batch's matrix has: top classes, their scores, the columns."""
        return 2 * self.n_top + len(self.columns)

    @cached_property
    def _places(self) -> dict[str, int]:
        """Where in such a row each column stands."""
        return {name: place for place, name in enumerate(self.columns, 2 * self.n_top)}

    @cached_property
    def runs(self) -> int:
        """How often the model runs on each row; a head with a last layer of its own is one more."""
        return 1 + sum(max(plan.runs, 1) for plan in self.passes)

    @cached_property
    def largest_run(self) -> int:
        """Return how many runs of the model alone one run of the graph counts as."""
        return 2 if any(plan.runs == 0 for plan in self.passes) else 1

    @cached_property
    def _of_prefixes(self) -> tuple[frozenset[str], frozenset[str]]:
        """Names of what records keep of the first few passes: uncertainties, and means."""
        names = [column_names(p.measure, p.passes, exact=not p.divisible) for p in self.passes]
        return (
            frozenset(name for uncertainties, _ in names for name in uncertainties),
            frozenset(name for _, means in names for name in means),
        )

    def most_bytes(self, n_rows: int) -> int:
        """Return the size of the largest answer that can be right."""
        uncertainties, means = self._of_prefixes
        n_columns = len(self.columns) + len(uncertainties) + 3 * len(means)
        numbers = 3 * self.n_top + n_columns + len(TEMPERATURES)
        n_arrays = n_columns + 16
        return n_rows * (4 * numbers + RECORD_FIXED_BYTES) + n_arrays * ALIGNMENT

    def head_outputs(self, tensors: Mapping[str, Array], n_rows: int) -> HeadOutputs:
        """Read the answer to a prediction.

        Raises
        ------
        FieldError
            If an array is missing, of another type or shape, or holds what cannot be.
        """
        if tensors.keys() != {"top_classes", "top_scores", *self.columns}:
            raise FieldError("the names of the arrays")
        shape = (n_rows, self.n_top)
        top_classes = _array(tensors["top_classes"], np.int64, shape)
        top_scores = _array(tensors["top_scores"], np.float32, shape)
        if (top_classes < 0).any() or (top_classes >= self.n_classes).any():
            raise FieldError("a class that does not exist")
        if not ((top_scores >= 0) & (top_scores <= 1 + ROUNDING)).all():
            raise FieldError("a probability outside [0, 1]")
        uncertainty = {name: _array(tensors[name], np.float32, (n_rows,)) for name in self.columns}
        if not all(np.isfinite(values).all() for values in uncertainty.values()):
            raise FieldError("an uncertainty that is not finite")
        return HeadOutputs(top_classes, top_scores, uncertainty)

    def read_words(self, words: NDArray[np.float32]) -> HeadMatrix:
        """Read the matrix of a batch, shape (n_rows, n_words).

        Raises
        ------
        FieldError
            If it holds what cannot be.
        """
        matrix = HeadMatrix(words, self.n_top, self._places)
        if matrix.numbers is None:
            self._check_many(words)
        else:
            self._check_few(matrix.numbers)
        return matrix

    def _check_many(self, words: NDArray[np.float32]) -> None:
        # No comparison holds of NaN.
        top_classes = words[:, : self.n_top]
        if not (top_classes.min() >= 0 and top_classes.max() < self.n_classes):
            raise FieldError(NO_CLASS)
        if (top_classes != np.floor(top_classes)).any():
            raise FieldError(NO_CLASS)
        top_scores = words[:, self.n_top : 2 * self.n_top]
        if not (top_scores.min() >= 0 and top_scores.max() <= 1 + ROUNDING):
            raise FieldError(NO_PROBABILITY)
        if not np.isfinite(words[:, 2 * self.n_top :]).all():
            raise FieldError(NOT_FINITE)

    def _check_few(self, rows: list[list[float]]) -> None:
        """Check the same; to call numpy takes longer than so few comparisons."""
        n_top, n_classes = self.n_top, self.n_classes
        for row in rows:
            for index in row[:n_top]:
                if not (0 <= index < n_classes and index.is_integer()):
                    raise FieldError(NO_CLASS)
            for score in row[n_top : 2 * n_top]:
                if not 0 <= score <= 1 + ROUNDING:
                    raise FieldError(NO_PROBABILITY)
            # The numbers of a float32 do not add up to more than a float holds.
            if not math.isfinite(sum(row[2 * n_top :])):
                raise FieldError(NOT_FINITE)

    def records(self, tensors: Mapping[str, Array], labels: NDArray[np.int64]) -> Records:
        """Read the answer to a request for records.

        Raises
        ------
        FieldError
            If an array is missing, of another type or shape, or holds what cannot be.
        """
        try:
            records = Records.from_arrays(tensors)
        except ValueError as error:
            raise FieldError(f"records: {error}") from error
        uncertainties, means = self._of_prefixes
        if records.uncertainty.keys() != {*self.columns, *uncertainties}:
            raise FieldError("the uncertainties of records")
        if not (records.mean_log_probability.keys() == records.mean_label_rank.keys() == means):
            raise FieldError("the means of records")
        if records.top_classes.shape != (len(labels), self.n_top):
            raise FieldError("the shape of records")
        if not np.array_equal(records.label, labels):
            raise FieldError("the labels of records")
        ranks = (records.label_rank, *records.mean_label_rank.values())
        for classes in (records.top_classes, *ranks):
            if (classes < 0).any() or (classes >= self.n_classes).any():
                raise FieldError("a class that does not exist")
        return records


def expected_of(resolved: Mapping[str, Any]) -> Expected:
    """Return what answers about a model look like, by `LoadedOnnxModel.resolved`.

    Raises
    ------
    FieldError
        If it is not that.
    """
    return _expected(write_resolved(resolved))


@lru_cache(maxsize=256)
def _expected(written: str) -> Expected:
    return Expected.from_resolved(json.loads(written))


def raise_failure(answer: Frame, *, invalid: type[InvalidInput]) -> NoReturn:
    """Raise the failure that a child reports; ``invalid`` is what arrays are called here.

    Raises
    ------
    FieldError
        If it is no failure that a child may report.
    """
    try:
        fields = answer.fields
        found = failure_of(fields["code"], fields["message"], items(fields["violations"]))
    except KeyError as error:
        raise FieldError(f"a failure: {error}") from error
    if type(found) is InvalidInput:
        raise invalid(found.message, found.violations)
    raise found


def failure_of(code: object, message: object, violations: Sequence[Any]) -> ServiceError:
    """Return the failure that a child reports.

    Raises
    ------
    FieldError
        If it is no failure that a child may report.
    """
    try:
        kind = FAILURES[text(code)]
        reported = violations[:MAX_VIOLATIONS]
        places = [
            Violation(text(location), text(message), ModelRule(rule) if rule else None)
            for location, message, rule in reported
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise FieldError(f"a failure: {error}") from error
    return kind(text(message), places)


def _array(array: Array, dtype: type[np.generic], shape: tuple[int, ...]) -> NDArray[Any]:
    if array.dtype != dtype or array.shape != shape:
        raise FieldError(f"expected {np.dtype(dtype)} {shape}, got {array.dtype} {array.shape}")
    return array


def check_planned(
    found: LoadedOnnxModel,
    asked: Sequence[PassPlan],
    *,
    n_models: int,
    preprocessing: Preprocessing | None = None,
) -> None:
    """Refuse plans that cost more, or say something else, than what was asked for.

    Raises
    ------
    FieldError
        If no honest child can have made them.
    """
    if found.preprocessing != preprocessing:
        raise FieldError("other preprocessing than was asked for")
    measures = [plan.measure for plan in asked]
    if [plan.measure for plan in found.passes] != measures:
        raise FieldError("passes of other measures than were asked for")
    if found.averaged != (n_models > 1 or ENSEMBLE in measures):
        raise FieldError("whether the prediction is a mean")
    if len(found.members) != n_models - 1:
        raise FieldError("the members of an ensemble")
    if found.costs.keys() != {PLAIN, *measures}:
        raise FieldError("the costs of other measures than were asked for")
    inputs = [tensor.name for tensor in found.description.inputs]
    for plan, wanted in zip(found.passes, asked, strict=True):
        if not _is_of(plan, wanted, inputs, n_models):
            raise FieldError(f"the passes of {plan.measure}")


def _is_of(plan: PassPlan, wanted: PassPlan, inputs: Sequence[str], n_models: int) -> bool:
    if (plan.seed, plan.step) != (wanted.seed, wanted.step):
        return False
    if plan.measure == GRADIENT:
        return _are_directions(plan, wanted.passes, inputs)
    if plan.scales is not None or not plan.divisible:
        return False
    if plan.measure == LAST_LAYER:
        rate, shape = plan.rate or 0.0, plan.feature_shape
        is_rate = rate == wanted.rate if wanted.rate else 0.0 < rate < 1.0
        return plan.passes == wanted.passes and is_rate and shape is not None
    if plan.feature_shape is not None or plan.rate != wanted.rate:
        return False
    of_models = plan.measure == ENSEMBLE and n_models > 1
    return plan.passes == (n_models if of_models else wanted.passes)


def _are_directions(plan: PassPlan, most: int, inputs: Sequence[str]) -> bool:
    """Tell whether each input has its directions, at most so many, with a step along each."""
    scales = plan.scales or {}
    return (
        sorted(scales) == sorted(inputs)
        and all(1 <= len(scale) <= most and min(scale) > 0 for scale in scales.values())
        and plan.passes == sum(map(len, scales.values()))
        and plan.feature_shape is None
    )
