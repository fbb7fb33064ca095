"""The evidence for findings: labels and records of a set."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from string import Formatter
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from howsure.shares import percent
from howsure.statistics.arrays import Counts, Floats, Labels
from howsure.statistics.compared_inputs import UnlikeRows
from howsure.statistics.records.records import USUAL, Records
from howsure.statistics.softmax import BINARY

Level: TypeAlias = Literal["warning", "notice"]
Figure: TypeAlias = int | float | Sequence[int | float]


@dataclass(frozen=True)
class Finding:
    """One likely problem.

    Attributes
    ----------
    code : str
        Stable, for programs, and the heading of its section in ``docs/findings.md``.
    level : {"warning", "notice"}
        A warning: the calibration is probably useless. A notice: worth checking.
    message : str
        One or two sentences: the observation with its figures, and the remedy.
    figures : mapping of str to int, float or list
        The numbers of the message and of its remedy, by name.
    """

    code: str
    level: Level
    message: str
    figures: Mapping[str, Figure] = field(default_factory=dict)


def finding(
    code: str, level: Level, template: str, /, words: str = "", **figures: Figure
) -> Finding:
    """Return a finding whose message is the template, filled in with its figures.

    ``words`` fills ``{words}`` and is not a figure; ``{accuracy:percent}`` is a share in percent.
    """
    return Finding(code, level, _TEMPLATES.format(template, words=words, **figures), figures)


class _Templates(Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:  # noqa: ANN401 - as its base
        """Return a value by its format."""
        return percent(value) if format_spec == "percent" else format(value, format_spec)


_TEMPLATES = _Templates()


TOLERANCE = 1e-3


def groups_of_copies(*sets: Records) -> NDArray[np.int64]:
    """Return the index of each sample's group: samples of the sets with the same key and output.

    The key is a 32-bit hash of the sample: in 100,000 samples about one pair shares a key by
    chance, in a million 116 pairs. Equal samples also have the same output, up to rounding that
    depends on the batch: the same class, and log-odds, squares and log-partition within 0.1 %. Less
    than one in a thousand of the chance pairs agree in all of these, too few to matter for any
    threshold here. A model that draws at random gives copies different outputs, so they are not
    recognised.
    """

    def joined(column: Callable[[Records], NDArray[Any]]) -> Floats:
        return np.concatenate([column(one).astype(np.float64) for one in sets])

    key, first = joined(lambda one: one.tie_key), joined(lambda one: one.top_classes[:, 0])
    odds = joined(lambda one: one.top_log_odds[:, 0])
    order = np.lexsort((odds, first, key))
    same = np.ones(max(len(order) - 1, 0), dtype=np.bool_)
    for exact in (key, first):
        same &= exact[order][1:] == exact[order][:-1]
    middle = joined(lambda one: one.log_sum_exp[:, USUAL // 2])
    for values in (odds, joined(lambda one: one.sum_squares), middle):
        same &= _close(values[order][1:], values[order][:-1])
    group = np.empty(len(order), dtype=np.int64)
    group[order] = np.concatenate([[0], np.cumsum(~same)])[: len(order)]
    return group


def _close(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.bool_]:
    with np.errstate(invalid="ignore"):  # infinite log-odds are equal if both are
        near = np.abs(one - other) <= TOLERANCE * (1.0 + np.abs(one))
    return np.asarray((one == other) | (near & np.isfinite(one) & np.isfinite(other)))


Source: TypeAlias = Literal["inputs", "logits", "probabilities", "pairs"]


@dataclass(frozen=True)
class Preparation:
    """Another preparation of inputs than that of the samples as sent.

    Attributes
    ----------
    code : str
        The finding that reports it.
    words, advice : str
        The beginning and the end of its message.
    figures : mapping of str to int, float or list
        What the remedy needs.
    apply : callable
        Returns the prepared inputs of some samples.
    needs_hits : bool
        Whether it does more than multiply the inputs by a factor, so that the model must also be
        right more often.
    changes : int
        Number of mistakes that it mends: 2 for values and the order of channels.
    """

    code: str
    words: str
    advice: str
    figures: Mapping[str, Figure]
    apply: Callable[[NDArray[Any]], NDArray[Any]]
    needs_hits: bool = True
    changes: int = 1


@dataclass(frozen=True, eq=False)
class PreparationTrials:
    """The same samples, recorded as sent and prepared in each other way that was tried.

    ``n_tried`` counts all ways, also those that a first look at fewer samples has ruled out.
    """

    as_sent: Records
    tried: Sequence[tuple[Preparation, Records]]
    n_tried: int = 0


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelCounts:
    """The labels of a calibration set.

    Attributes
    ----------
    class_counts : ndarray of int64, shape (n_classes,)
        Number of labels of each class in the whole set.
    bins : int or "auto"
        Number of bins requested.
    """

    class_counts: Counts
    bins: int | Literal["auto"] = "auto"

    @property
    def n_samples(self) -> int:
        """Number of samples in the whole set."""
        return int(self.class_counts.sum())

    @property
    def n_classes(self) -> int:
        """Number of classes of the model."""
        return len(self.class_counts)


@dataclass(frozen=True, eq=False, kw_only=True)
class RecordedSet(LabelCounts):
    """The recorded samples of a calibration set.

    Attributes
    ----------
    records : Records
        Of the whole set, or of some of its samples; at least one.
    source : {"inputs", "logits", "probabilities", "pairs"}
        Content of the set: inputs of a model, or its outputs.
    probabilities : bool
        Whether the scores are probabilities, from a model or in the set.
    evaluation : Records, optional
        Of the whole evaluation set.
    trials : PreparationTrials, optional
        Some samples, as sent and prepared in other ways.
    unlike : UnlikeRows, optional
        Samples of the evaluation set on another scale.
    class_names : sequence of str
        By index; empty if the classes have none.
    supplied : mapping of str to bool
        Measures that are columns of the set or outputs of the graph, and whether the configuration
        serves each. The score of pairs is not among them.
    names_of_labels : bool
        Whether the set names its labels, so that the classes of the model may be called otherwise.
    names_of_model : bool
        Whether the labels are names that the model itself gives its classes.
    is_same_file : bool
        Whether the evaluation set is the file of the calibration set.
    known_accuracy : float, optional
        Of the calibration set, if this is another set of the same model.
    """

    records: Records
    source: Source
    probabilities: bool
    evaluation: Records | None = None
    trials: PreparationTrials | None = None
    unlike: UnlikeRows | None = None
    class_names: Sequence[str] = ()
    supplied: Mapping[str, bool] = field(default_factory=dict)
    names_of_labels: bool = False
    names_of_model: bool = False
    is_same_file: bool = False
    known_accuracy: float | None = None

    @property
    def is_whole(self) -> bool:
        """Whether every sample was recorded."""
        return self.records.n_samples == self.n_samples

    @cached_property
    def labels(self) -> Labels:
        """The labels of the recorded samples."""
        return self.records.label.astype(np.int64)

    @cached_property
    def log_odds(self) -> Floats:
        """The log-odds of the predicted classes; of two, negative only by a decision threshold."""
        return self.records.top_log_odds[:, 0].astype(np.float64)

    @cached_property
    def predicted(self) -> Labels:
        """The most probable classes of the recorded samples, whatever the decision threshold is."""
        first = self.records.top_classes[:, 0].astype(np.int64)
        return np.where(self.is_binary & (self.log_odds < 0.0), 1 - first, first)

    @property
    def is_binary(self) -> bool:
        """Whether the model has two classes."""
        return self.n_classes == BINARY and self.records.has_classes

    @cached_property
    def n_hits(self) -> int:
        """Number of recorded samples whose most probable class is the label."""
        return int(np.count_nonzero(self.labels == self.predicted))

    @property
    def accuracy(self) -> float:
        """Share of recorded samples whose most probable class is the label."""
        return self.n_hits / self.records.n_samples

    @cached_property
    def confidence(self) -> Floats:
        """The model's largest probability for each recorded sample."""
        return np.asarray(expit(np.abs(self.log_odds) if self.is_binary else self.log_odds))

    @cached_property
    def copies(self) -> NDArray[np.int64] | None:
        """The group of copies that each sample is in.

        None if equal records may come from different samples.

        For outputs they do so only if outputs are fine-grained: probabilities are often rounded or
        shares of votes, and the logits of a binary model are often equal. So are scores of pairs.
        """
        finely = self.source == "logits" and self.n_classes > BINARY
        return groups_of_copies(self.records) if self.source == "inputs" or finely else None
