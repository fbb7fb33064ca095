"""The answers of an uncertainty head: one matrix, a row a sample, and checks of its values."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from howsure.events import HeadOutputs
from howsure.statistics.arrays import NONE_OF_THESE
from howsure.statistics.learned.inputs import n_read_classes
from howsure.statistics.measures.measure import SUPPLIED_COLUMN, output_column
from howsure.statistics.measures.passes import column_names
from howsure.statistics.records.records import TEMPERATURES, Records
from howsure.statistics.softmax import n_recorded_classes
from service.runner.messages.convert import FieldError
from service.runner.messages.frames import ALIGNMENT, Array
from service.runner.messages.onnx_models import (
    ResolvedModel,
    inputs_with_extents,
    least_and_most,
    names_after,
    outside,
    read_resolved,
    score_columns,
    write_resolved,
)

# Up to this many rows and numbers are read as Python numbers: calling numpy takes longer.
FEW_ROWS, FEW_NUMBERS = 24, 2000
# The most probable classes that are answered for each row.
SERVED_CLASSES = 5
# The name of the matrix in the answer to PREDICT.
OUTPUT_ROWS = "rows"

RECORD_FIXED_BYTES = 64
ROUNDING = 1e-3
TOPK_MASS = "neg_log_topk_mass"
# Of sums and ratios of probabilities. Decision thresholds give more than the number of classes.
MOST_LOG = 600.0
NO_CLASS = "a class that does not exist"
NO_PROBABILITY = "a probability outside [0, 1]"
NOT_FINITE = "an uncertainty that is not finite"


class OutputMatrix:
    """Rows of a run: top classes, their scores, uncertainties.

    float32 holds every class exactly, up to 2**24.

    Parameters
    ----------
    words : ndarray of float32, shape (n_rows, n_words)
    n_top : int
        Number of top classes of each row.
    places : mapping of str to int
        Index in a row of each uncertainty, by column.

    Attributes
    ----------
    numbers : list of list of float, or None
        The same as Python numbers, for at most `FEW_ROWS` rows and `FEW_NUMBERS` numbers.
    """

    __slots__ = ("_outputs", "n_rows", "n_top", "numbers", "places", "words")

    def __init__(self, words: NDArray[np.float32], n_top: int, places: Mapping[str, int]) -> None:
        self.words = words
        self.n_top = n_top
        self.places = places
        self.n_rows = len(words)
        is_small = self.n_rows <= FEW_ROWS and words.size <= FEW_NUMBERS
        self.numbers: list[list[float]] | None = words.tolist() if is_small else None
        self._outputs: HeadOutputs | None = None

    @property
    def outputs(self) -> HeadOutputs:
        """The rows, as one array a field."""
        if self._outputs is None:
            words, n_top = self.words, self.n_top
            self._outputs = HeadOutputs(
                words[:, :n_top].astype(np.int64),
                words[:, n_top : 2 * n_top],
                {name: words[:, place] for name, place in self.places.items()},
            )
        return self._outputs

    def rows(self, start: int, stop: int) -> "OutputMatrix":
        """Return a range of rows."""
        return OutputMatrix(self.words[start:stop], self.n_top, self.places)

    @classmethod
    def joined(cls, parts: Sequence["OutputMatrix"]) -> "OutputMatrix":
        """Join rows of one model, in order."""
        if len(parts) == 1:
            return parts[0]
        words = np.concatenate([part.words for part in parts])
        return cls(words, parts[0].n_top, parts[0].places)


@dataclass(frozen=True)
class OutputSpec:
    """The shape and the bounds of a model's answers."""

    model: ResolvedModel

    @cached_property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.model.output.n_classes

    @cached_property
    def n_top(self) -> int:
        """Number of top classes of each row that is served."""
        return n_read_classes(self.n_classes, self.model.columns or ())

    @cached_property
    def n_recorded(self) -> int:
        """Number of top classes of each record."""
        return n_recorded_classes(self.n_classes, self.model.top_k)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the uncertainties of each row, of extents of inputs, of marks, supplied ones."""
        ends = (least_and_most(name) for name in self.inputs)
        marks = (outside(name) for name in self.marked)
        supplied = (f"{SUPPLIED_COLUMN}{name}" for name in self.supplied)
        return (*self.uncertainties, *chain.from_iterable(ends), *marks, *supplied)

    @cached_property
    def supplied(self) -> tuple[str, ...]:
        """Names of the uncertainties that each request brings."""
        return names_after(SUPPLIED_COLUMN, self.model.columns or ())

    @cached_property
    def marked(self) -> tuple[str, ...]:
        """The inputs whose rows are marked where a column is out of its range."""
        return tuple(sorted(self.model.column_ranges))

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """The inputs whose extent in each row is answered."""
        return inputs_with_extents(self.model.columns or ())

    @cached_property
    def uncertainties(self) -> tuple[str, ...]:
        """Names of the uncertainties of each row."""
        model = self.model
        # A mean of probabilities has no logits.
        logits = model.output.kind == "logits" and not model.averaged
        return (
            *score_columns(model.top_k, logits=logits, only=model.columns),
            *(output_column(name) for name in model.scalar_outputs),
            *(plan.measure for plan in model.passes),
        )

    @cached_property
    def n_words(self) -> int:
        """Number of columns of the matrix: top classes, their scores, and ``columns``."""
        return 2 * self.n_top + len(self.columns)

    @cached_property
    def _places(self) -> dict[str, int]:
        """The index of each of ``columns`` in a row of the matrix."""
        return {name: place for place, name in enumerate(self.columns, 2 * self.n_top)}

    @cached_property
    def runs(self) -> int:
        """Runs of the model for each row; last-layer dropout counts as one more."""
        return 1 + sum(max(plan.runs, 1) for plan in self.model.passes)

    @cached_property
    def largest_run(self) -> int:
        """How many runs of the model one run of the graph counts as."""
        return 2 if any(plan.runs == 0 for plan in self.model.passes) else 1

    @cached_property
    def _of_prefixes(self) -> tuple[frozenset[str], frozenset[str]]:
        """Names that records keep of the first few passes: uncertainties, and means."""
        names = [
            column_names(plan.measure, plan.passes, exact=not plan.divisible)
            for plan in self.model.passes
        ]
        return (
            frozenset(name for uncertainties, _ in names for name in uncertainties),
            frozenset(name for _, means in names for name in means),
        )

    def most_row_bytes(self, n_rows: int) -> int:
        """Return the size of the answer to a prediction."""
        return 4 * n_rows * self.n_words + ALIGNMENT

    def most_record_bytes(self, n_rows: int) -> int:
        """Return the largest size of valid records."""
        uncertainties, means = self._of_prefixes
        n_columns = len(self.columns) + len(uncertainties) + 4 * len(means)
        numbers = 2 * self.n_recorded + 1 + n_columns + len(TEMPERATURES)
        n_arrays = n_columns + 16
        return n_rows * (4 * numbers + RECORD_FIXED_BYTES) + n_arrays * ALIGNMENT

    def read_rows(self, tensors: Mapping[str, Array], n_rows: int) -> OutputMatrix:
        """Return the answer to a prediction.

        Raises
        ------
        FieldError
            If it is not one matrix of the right shape, or a value breaks a rule.
        """
        words = tensors.get(OUTPUT_ROWS)
        if words is None or words.dtype != np.float32 or words.shape != (n_rows, self.n_words):
            raise FieldError("the matrix of a prediction")
        return self.read_words(words)

    def read_words(self, words: NDArray[np.float32]) -> OutputMatrix:
        """Check a matrix of shape (n_rows, n_words), and return it.

        Raises
        ------
        FieldError
            If a value breaks a rule.
        """
        matrix = OutputMatrix(words, self.n_top, self._places)
        if matrix.numbers is None:
            self._check_many(words)
        else:
            self._check_few(matrix.numbers)
        return matrix

    def _check_many(self, words: NDArray[np.float32]) -> None:
        # Every comparison with NaN is false.
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
        """Check the same without numpy, which takes longer for few rows."""
        n_top, n_classes = self.n_top, self.n_classes
        for row in rows:
            for index in row[:n_top]:
                if not (0 <= index < n_classes and index.is_integer()):
                    raise FieldError(NO_CLASS)
            for score in row[n_top : 2 * n_top]:
                if not 0 <= score <= 1 + ROUNDING:
                    raise FieldError(NO_PROBABILITY)
            # A sum of float32 numbers does not overflow a Python float.
            if not math.isfinite(sum(row[2 * n_top :])):
                raise FieldError(NOT_FINITE)

    def records(self, tensors: Mapping[str, Array], labels: NDArray[np.int64]) -> Records:
        """Return the answer to a request for records.

        Raises
        ------
        FieldError
            If an array is missing or has the wrong type or shape, or a value breaks a rule.
        """
        try:
            records = Records.from_arrays(tensors)
        except (ValueError, TypeError) as error:
            raise FieldError(f"records: {error}") from error
        uncertainties, means = self._of_prefixes
        if records.uncertainty.keys() != {*self.columns, *uncertainties}:
            raise FieldError("the uncertainties of records")
        families = (records.mean_log_probability, records.mean_label_rank, records.mean_log_odds)
        if any(family.keys() != means for family in families):
            raise FieldError("the means of records")
        shapes = records.top_classes.shape, records.top_log_odds.shape
        if shapes != ((len(labels), self.n_recorded), (len(labels), 1)):
            raise FieldError("the shape of records")
        if records.weight is not None or records.group is not None:
            raise FieldError("a sampling design, which the set has")
        if not np.array_equal(records.label, labels):
            raise FieldError("the labels of records")
        ends = self.n_classes + (labels == NONE_OF_THESE)  # of ranks: behind all classes, too
        ranks = [(rank, ends) for rank in (records.label_rank, *records.mean_label_rank.values())]
        for classes, end in ((records.top_classes, self.n_classes), *ranks):
            if (classes < 0).any() or (classes >= end).any():
                raise FieldError(NO_CLASS)
        is_first = records.top_classes == records.label[:, np.newaxis]
        ranked = records.label_rank[:, np.newaxis] == np.arange(self.n_top)
        if not np.array_equal(is_first, ranked):
            raise FieldError("the rank of a label")
        self._check_logs(records)
        return records

    def _check_logs(self, records: Records) -> None:
        """Refuse logarithms that no scores have: a fit would fail on them as if by our fault."""
        logs = (records.label_log_probability, *records.mean_log_probability.values())
        masses = (v for name, v in records.uncertainty.items() if name.startswith(TOPK_MASS))
        for least, most, arrays in (
            (-math.inf, ROUNDING, logs),
            (-math.inf, MOST_LOG, (records.top_logits, records.label_logit)),
            (-ROUNDING, MOST_LOG, masses),
            (-ROUNDING, MOST_LOG / TEMPERATURES.min(), (records.log_sum_exp,)),
            (0.0, 0.0, (records.top_logits[:, 0],)),
            (0.0, 1.0 + ROUNDING, (records.sum_squares,)),
        ):
            if not all(((array >= least) & (array <= most)).all() for array in arrays):
                raise FieldError("a logarithm or a sum that no scores have")


def output_spec(resolved: Mapping[str, Any]) -> OutputSpec:
    """Return the specification of a model's answers, by `LoadedOnnxModel.resolved`.

    Raises
    ------
    FieldError
        If a field is missing, or breaks a rule.
    """
    return _output_spec(write_resolved(resolved))


@lru_cache(maxsize=256)
def _output_spec(written: str) -> OutputSpec:
    return OutputSpec(read_resolved(json.loads(written)))
