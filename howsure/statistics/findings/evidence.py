"""What findings are made from: labels and records of a set."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from howsure.statistics.arrays import Counts, Floats, Labels
from howsure.statistics.records.records import Records

Level: TypeAlias = Literal["warning", "notice"]


@dataclass(frozen=True)
class Finding:
    """One thing that looks wrong.

    Attributes
    ----------
    code : str
        Stable, for programs, and the heading of its section in ``docs/findings.md``.
    level : {"warning", "notice"}
        A warning: the calibration is likely to be of no use. A notice: worth a look.
    message : str
        One or two sentences: what was seen, with its figures, and what to do.
    figures : mapping of str to int or float
        The numbers of the message, by name.
    """

    code: str
    level: Level
    message: str
    figures: Mapping[str, int | float] = field(default_factory=dict)


def finding(
    code: str, level: Level, template: str, /, words: str = "", **figures: float
) -> Finding:
    """Return a finding whose message is the template, filled with its figures.

    ``words`` fills ``{words}``, and is no figure.
    """
    return Finding(code, level, template.format(words=words, **figures), figures)


TOLERANCE = 1e-3


@dataclass(frozen=True, eq=False)
class SameSamples:
    """Groups of like samples: the group of each, by number, shape (n_samples,)."""

    group: NDArray[np.int64]

    @property
    def n_copies(self) -> int:
        """How many samples are there beyond the first of each group."""
        return len(self.group) - len(np.unique(self.group))


def same_samples(records: Records) -> SameSamples:
    """Group samples that have one tie key and one answer.

    The key is a hash of 32 bits of what was sent: of 100,000 samples about one pair shares a key by
    chance, of a million 116 pairs. Like samples have the same answer as well, to the last digits,
    which may differ with the place in a batch: the same class, and log-odds, squares and
    log-partition within 0.1 %. Pairs that agree by chance in all of it are less than one in a
    thousand of those, so that no threshold here can see them. A model that draws at random answers
    copies differently, and hides them.
    """
    first = records.top_classes[:, 0]
    odds = records.top_log_odds[:, 0].astype(np.float64)
    order = np.lexsort((odds, first, records.tie_key))
    same = np.ones(max(len(order) - 1, 0), dtype=np.bool_)
    for exact in (records.tie_key.astype(np.int64), first.astype(np.int64)):
        same &= exact[order][1:] == exact[order][:-1]
    middle = records.log_sum_exp[:, records.log_sum_exp.shape[1] // 2].astype(np.float64)
    for values in (odds, records.sum_squares, middle):
        same &= _close(values[order][1:], values[order][:-1])
    group = np.empty(len(order), dtype=np.int64)
    group[order] = np.concatenate([[0], np.cumsum(~same)])[: len(order)]
    return SameSamples(group)


def _close(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.bool_]:
    with np.errstate(invalid="ignore"):  # infinite log-odds: equal ones are the same
        near = np.abs(one - other) <= TOLERANCE * (1.0 + np.abs(one))
    return np.asarray((one == other) | (near & np.isfinite(one) & np.isfinite(other)))


Source: TypeAlias = Literal["inputs", "logits", "probabilities"]


LEAST_OUTPUT_CLASSES = 3


@dataclass(frozen=True, eq=False)
class RescaledTrial:
    """The same samples, recorded as they were sent and with every input times ``factor``."""

    factor: float
    as_sent: Records
    rescaled: Records


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelCounts:
    """A calibration set as far as its labels tell.

    Attributes
    ----------
    class_counts : ndarray of int64, shape (n_classes,)
        Labels of each class in the whole set.
    bins : int or "auto"
        Bins asked for.
    """

    class_counts: Counts
    bins: int | Literal["auto"] = "auto"

    @property
    def n_samples(self) -> int:
        """How many samples the whole set has."""
        return int(self.class_counts.sum())

    @property
    def n_classes(self) -> int:
        """How many classes the model tells apart."""
        return len(self.class_counts)


@dataclass(frozen=True, eq=False, kw_only=True)
class RecordedSet(LabelCounts):
    """A calibration set as far as it was recorded.

    Attributes
    ----------
    records : Records
        Of the whole set, or of some of its samples; at least one.
    source : {"inputs", "logits", "probabilities"}
        What the set holds: inputs of a model, or its outputs.
    probabilities : bool
        Whether the scores were given as probabilities, by a model or by the set.
    evaluation : Records, optional
        Of the whole evaluation set.
    rescaled : RescaledTrial, optional
        Some samples once more with other inputs.
    """

    records: Records
    source: Source
    probabilities: bool
    evaluation: Records | None = None
    rescaled: RescaledTrial | None = None

    @property
    def is_whole(self) -> bool:
        """Whether every sample was recorded."""
        return self.records.n_samples == self.n_samples

    @cached_property
    def labels(self) -> Labels:
        """The labels of the recorded samples."""
        return self.records.label.astype(np.int64)

    @cached_property
    def predicted(self) -> Labels:
        """The model's classes of the recorded samples."""
        return self.records.top_classes[:, 0].astype(np.int64)

    @cached_property
    def n_hits(self) -> int:
        """For how many of the recorded samples the model's class is the label."""
        return int(np.count_nonzero(self.labels == self.predicted))

    @property
    def accuracy(self) -> float:
        """The share of them."""
        return self.n_hits / self.records.n_samples

    @cached_property
    def confidence(self) -> Floats:
        """The largest probability of each recorded sample, as the model gives it."""
        return np.asarray(expit(self.records.top_log_odds[:, 0].astype(np.float64)))

    @cached_property
    def copies(self) -> SameSamples | None:
        """Samples that are copies of others; None where like records do not mean like samples.

        Of outputs they do if these are finely graded: probabilities are often rounded, or shares of
        votes, and a binary model has few logits.
        """
        finely = self.source == "logits" and self.n_classes >= LEAST_OUTPUT_CLASSES
        return same_samples(self.records) if self.source == "inputs" or finely else None
