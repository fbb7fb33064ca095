"""What is kept of the passes of a measure: a few numbers a sample."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from service.core.arrays import Floats, Labels, Uncertainty, as_uncertainty
from service.core.measures import PERTURBATIONS, prefix_column
from service.core.passes.covariance_norm import LEAST_PASSES, covariance_norm
from service.core.passes.gradient import gradient_norm
from service.core.passes.log_probabilities import as_log_probabilities
from service.core.passes.mean_probability import mean_log_probability
from service.core.passes.prefixes import prefixes
from service.core.topk import label_ranks

GRADIENT = "gradient_norm"

Column = TypeVar("Column", bound=NDArray[np.generic])


@dataclass(frozen=True, eq=False)
class PassColumns:
    """Columns made of passes, by name: of all of them, or of the first ``n`` as ``name@n``.

    Attributes
    ----------
    uncertainty : dict of str to ndarray of float32, shape (n_samples,)
    mean_log_probability : dict of str to ndarray of float64, shape (n_samples,)
        ``log p_y`` of the mean probability of so many passes; may be ``-inf``.
    mean_label_rank : dict of str to ndarray of int32, shape (n_samples,)
        Classes that the same mean ranks above the label.
    """

    uncertainty: dict[str, Uncertainty] = field(default_factory=dict)
    mean_log_probability: dict[str, Floats] = field(default_factory=dict)
    mean_label_rank: dict[str, NDArray[np.int32]] = field(default_factory=dict)

    @classmethod
    def merged(cls, parts: Sequence["PassColumns"]) -> "PassColumns":
        """Return the columns of several measures of the same samples.

        Raises
        ------
        ValueError
            If two hold the same column.
        """
        return cls(
            uncertainty=_union([part.uncertainty for part in parts]),
            mean_log_probability=_union([part.mean_log_probability for part in parts]),
            mean_label_rank=_union([part.mean_label_rank for part in parts]),
        )


def averaged_columns(measure: str, log_probabilities: ArrayLike, labels: Labels) -> PassColumns:
    """Return what is kept of passes that are answers to the samples themselves.

    Parameters
    ----------
    measure : str
    log_probabilities : array_like of float, shape (n_samples, n_passes, n_classes)
        At least two passes; prefixes are taken in their order.
    labels : ndarray of int64, shape (n_samples,)

    Raises
    ------
    ValueError
        If shapes or values break their rules.
    """
    answers = as_log_probabilities(log_probabilities)
    passes = answers.shape[1]
    found = PassColumns(uncertainty={measure: as_uncertainty(covariance_norm(answers))})
    for n in prefixes(passes):
        name, first = prefix_column(measure, n), answers[:, :n]
        if LEAST_PASSES <= n < passes:
            found.uncertainty[name] = as_uncertainty(covariance_norm(first))
        mean = mean_log_probability(first)
        of_label = np.take_along_axis(mean, labels[:, np.newaxis], axis=1)[:, 0]
        found.mean_log_probability[name] = of_label
        found.mean_label_rank[name] = label_ranks(mean, labels).astype(np.int32)
    return found


def gradient_columns(slopes: Floats, *, exact: bool) -> PassColumns:
    """Return what is kept of the slopes along directions, shape (n_samples, m).

    With Gaussian directions also of the first ``n`` of them and of all ``m``, whose name says how
    many there are; of coordinates a subset means nothing.
    """
    found = {GRADIENT: as_uncertainty(gradient_norm(slopes, exact=exact))}
    names, _ = column_names(GRADIENT, slopes.shape[1], exact=exact)
    for name, n in zip(names, prefixes(slopes.shape[1]), strict=False):
        found[name] = as_uncertainty(gradient_norm(slopes[:, :n], exact=False))
    return PassColumns(uncertainty=found)


def column_names(
    measure: str, passes: int, *, exact: bool = False
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the uncertainties but for the full one, and those of the means."""
    every = {n: prefix_column(measure, n) for n in prefixes(passes)}
    if not PERTURBATIONS[measure].averages:
        return (() if exact else tuple(every.values())), ()
    fewer = tuple(name for n, name in every.items() if LEAST_PASSES <= n < passes)
    return fewer, tuple(every.values())


def _union(parts: Sequence[Mapping[str, Column]]) -> dict[str, Column]:
    union: dict[str, Column] = {}
    for part in parts:
        if repeated := union.keys() & part.keys():
            raise ValueError(f"parts must not repeat the columns {sorted(repeated)}")
        union.update(part)
    return union
