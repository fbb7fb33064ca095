"""What findings are judged by: records of samples, and what is known of the whole set."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from scipy.special import expit

from service.core.arrays import Counts, Floats, Labels
from service.core.findings.same_samples import SameSamples, same_samples
from service.core.records import Records

Source: TypeAlias = Literal["inputs", "logits", "probabilities"]


LEAST_OUTPUT_CLASSES = 3


@dataclass(frozen=True, eq=False)
class Rescaled:
    """The same samples, recorded as they were sent and with every input times ``factor``."""

    factor: float
    as_sent: Records
    rescaled: Records


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelledSet:
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
class Evidence(LabelledSet):
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
    rescaled : Rescaled, optional
        Some samples once more with other inputs.
    """

    records: Records
    source: Source
    probabilities: bool
    evaluation: Records | None = None
    rescaled: Rescaled | None = None

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
