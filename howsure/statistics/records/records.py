"""Records: everything stored of a model's output, a few hundred bytes per sample."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from howsure.statistics.arrays import Floats, Hits, TieKeys, Uncertainty, as_uncertainty
from howsure.statistics.bins.design import SampleDesign
from howsure.statistics.measures import SUPPLIED, column
from howsure.statistics.measures.passes import PassColumns
from howsure.statistics.softmax import RankedScores

# Those after the first 24 are for logits on another scale, as cosines are, or sums over ten models;
# they lie farther apart, because few sets need them.
USUAL = 24
TEMPERATURES: Floats = np.concatenate(
    [
        np.geomspace(0.25, 8.0, USUAL),
        8.0 * np.sqrt(2.0) ** np.arange(1, 9),
        0.25 * np.sqrt(0.5) ** np.arange(1, 9),
    ]
)


def log_sum_exp_grid(ranked: RankedScores) -> NDArray[np.float32]:
    """Return ``log sum_i exp((z_i - z_(1)) / T)`` for each ``T`` in `TEMPERATURES`.

    It is relative to the logit of the predicted class, so it is invariant to a constant added to a
    row, and never negative. That class is left out of the sum and added by ``log1p``, so small
    values are precise. Another class may have the largest logit, where the model decides by a
    threshold. Computed in float32, one temperature at a time in one buffer.

    Returns
    -------
    ndarray of float32, shape (n_samples, 40)
    """
    with np.errstate(over="ignore"):  # beyond float32's range: -inf, with weight 0
        relative = ranked.relative.astype(np.float32)
    np.put_along_axis(relative, ranked.top_classes[:, :1], -np.inf, axis=1)
    most = np.maximum(relative.max(axis=1), 0.0)
    relative -= most[:, np.newaxis]
    buffer = np.empty_like(relative)
    grid = np.empty((len(relative), len(TEMPERATURES)), dtype=np.float32)
    for index, temperature in enumerate(TEMPERATURES.astype(np.float32)):
        with np.errstate(over="ignore"):
            np.divide(relative, temperature, out=buffer)
        np.exp(buffer, out=buffer)
        above = most / temperature
        grid[:, index] = above + np.log1p(buffer.sum(axis=1) + np.expm1(-above))
    return grid


# Fields that hold arrays by name; each array is stored separately, as "uncertainty_entropy".
FAMILIES: dict[str, type[np.generic]] = {
    "uncertainty": np.float32,
    "mean_log_probability": np.float64,
    "mean_label_rank": np.int32,
    "mean_log_odds": np.float32,
}

# Optional fields.
DESIGN: dict[str, type[np.generic]] = {"weight": np.float64, "group": np.int64}

Float32s: TypeAlias = NDArray[np.float32]
Int32s: TypeAlias = NDArray[np.int32]
Arrays: TypeAlias = dict[str, NDArray[np.generic]]


@dataclass(frozen=True, eq=False, kw_only=True)
class Records:
    """One record per sample; tables, scores and reports need no other data of the model.

    With ``z`` the logits, ``p`` their softmax and ``z_(1)`` the logit of the predicted class, which
    is the largest one without a decision threshold:

    Attributes
    ----------
    tie_key : ndarray of uint32, shape (n_samples,)
    label : ndarray of int32, shape (n_samples,)
        `NONE_OF_THESE` of a sample whose class is none of the model's.
    top_classes : ndarray of int32, shape (n_samples, m)
        Best first, ties to the lower index.
    top_log_odds : ndarray of float32, shape (n_samples, 1)
        ``log(p_(1) / (1 - p_(1)))``, from the tail; infinite only if the others underflow float64.
        Old records have those of m classes.
    label_rank : ndarray of int32, shape (n_samples,)
        Number of classes ranked above the label; all of them where it is none of them.
    label_log_probability : ndarray of float64, shape (n_samples,)
        ``log p_y``; may be ``-inf``.
    sum_squares : ndarray of float64, shape (n_samples,)
        ``sum p^2``.
    log_sum_exp : ndarray of float32, shape (n_samples, 40)
        ``log sum exp((z - z_(1)) / T)`` for each ``T`` in `TEMPERATURES`: never negative.
    label_logit : ndarray of float32, shape (n_samples,)
        ``z_y - z_(1)``.
    top_logits : ndarray of float32, shape (n_samples, m)
        ``z_(i) - z_(1)``.
    uncertainty : dict of str to ndarray of float32, shape (n_samples,)
        By column (`howsure.statistics.measures.column`, and ``name@n`` for the first ``n`` passes
        of a multi-pass measure); finite.
    mean_log_probability : dict of str to ndarray of float64, shape (n_samples,)
        ``log p_y`` of the mean probability of the first ``n`` passes, as ``name@n``; may be
        ``-inf``.
    mean_label_rank : dict of str to ndarray of int32, shape (n_samples,)
        Number of classes that the same mean ranks above the label.
    mean_log_odds : dict of str to ndarray of float32, shape (n_samples,)
        Log-odds of the class that the same mean predicts; old records have none.
    weight : ndarray of float64, shape (n_samples,), optional
        Sampling weights, positive and finite; old records have none.
    group : ndarray of int64, shape (n_samples,), optional
        Codes of the groups that samples belong to, such as patients or documents.

    Raises
    ------
    ValueError
        If a dtype or shape differs, a value is NaN, an uncertainty is not finite, or a mean lacks
        one of its two columns.
    """

    tie_key: TieKeys
    label: Int32s
    top_classes: Int32s
    top_log_odds: Float32s
    label_rank: Int32s
    label_log_probability: Floats
    sum_squares: Floats
    log_sum_exp: Float32s
    label_logit: Float32s
    top_logits: Float32s
    uncertainty: dict[str, Uncertainty]
    mean_log_probability: dict[str, Floats] = field(default_factory=dict)
    mean_label_rank: dict[str, Int32s] = field(default_factory=dict)
    mean_log_odds: dict[str, Float32s] = field(default_factory=dict)
    weight: Floats | None = None
    group: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        for name, (dtype, columns) in self._layout().items():
            _check(name, getattr(self, name), np.dtype(dtype), (self.n_samples, *columns))
        for family, kind in FAMILIES.items():
            for name, values in getattr(self, family).items():
                _check(f"{family}_{name}", values, np.dtype(kind), (self.n_samples,))
        for name, kind in DESIGN.items():
            if (values := getattr(self, name)) is not None:
                _check(name, values, np.dtype(kind), (self.n_samples,))
        if self.weight is not None and not ((self.weight > 0) & np.isfinite(self.weight)).all():
            raise ValueError("weight must hold positive finite numbers")
        for values in self.uncertainty.values():
            as_uncertainty(values)
        if odd := self.mean_log_probability.keys() ^ self.mean_label_rank.keys():
            raise ValueError(
                f"means must have a log-probability and a rank: {sorted(odd)} lack one"
            )

    def _layout(self) -> dict[str, tuple[type[np.generic], tuple[int, ...]]]:
        """Return dtype and columns of each array, in the order of the fields."""
        top = self.top_classes.shape[1:]
        return {
            "tie_key": (np.uint32, ()),
            "label": (np.int32, ()),
            "top_classes": (np.int32, top),
            "top_log_odds": (np.float32, self.top_log_odds.shape[1:]),
            "label_rank": (np.int32, ()),
            "label_log_probability": (np.float64, ()),
            "sum_squares": (np.float64, ()),
            "log_sum_exp": (np.float32, TEMPERATURES.shape),
            "label_logit": (np.float32, ()),
            "top_logits": (np.float32, top),
        }

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.tie_key)

    @property
    def has_classes(self) -> bool:
        """Whether classes were ranked; pairs record that the one answer was correct."""
        return bool(self.top_classes.shape[1] > 1)

    @cached_property
    def design(self) -> SampleDesign:
        """Weights and groups of the samples."""
        return SampleDesign(self.weight, self.group)

    @property
    def weights(self) -> Floats:
        """Sampling weights, shape (n_samples,)."""
        return self.design.weights(self.n_samples)

    def hits(self, k: int) -> Hits:
        """Return whether the label is among the ``k`` top classes, shape (n_samples,)."""
        return self.label_rank < k

    def raw_probability(self, k: int) -> Floats:
        """Return the model's own mass of the ``k`` top classes, shape (n_samples,).

        The event must have been recorded.
        """
        mass = self.uncertainty[column("neg_log_topk_mass", k)]
        return np.exp(-mass.astype(np.float64))

    def with_supplied(self, supplied: Mapping[str, NDArray[np.floating]]) -> "Records":
        """Return the records with supplied columns added, by name.

        Raises
        ------
        ValueError
            If one has another length, or a value that is not finite in float32.
        """
        added = {
            column(f"{SUPPLIED}{name}", 1): as_uncertainty(values)
            for name, values in supplied.items()
        }
        return self.with_uncertainty(added)

    def with_uncertainty(self, columns: Mapping[str, Uncertainty]) -> "Records":
        """Return the records with these columns added."""
        return replace(self, uncertainty={**self.uncertainty, **columns})

    def with_design(self, design: Mapping[str, NDArray[np.generic]]) -> "Records":
        """Return the records with weights and groups of the samples, if there are any.

        Raises
        ------
        ValueError
            If one has another length or type, or a weight is not positive and finite.
        """
        columns: dict[str, Any] = {name: design[name] for name in DESIGN if name in design}
        return replace(self, **columns) if columns else self

    def with_passes(self, columns: PassColumns) -> "Records":
        """Return the records with the columns of several passes added.

        Raises
        ------
        ValueError
            If a column is invalid.
        """
        return replace(
            self,
            uncertainty={**self.uncertainty, **columns.uncertainty},
            mean_log_probability={**self.mean_log_probability, **columns.mean_log_probability},
            mean_label_rank={**self.mean_label_rank, **columns.mean_label_rank},
            mean_log_odds={**self.mean_log_odds, **columns.mean_log_odds},
        )

    def take(self, index: NDArray[np.int64] | NDArray[np.bool_]) -> "Records":
        """Return the records at ``index``, positions or a mask."""
        return self.from_arrays({name: array[index] for name, array in self.to_arrays().items()})

    def to_arrays(self) -> Arrays:
        """Return plain arrays by name, for storage and for the wire."""
        arrays: Arrays = {name: getattr(self, name) for name in self._layout()}
        for family in FAMILIES:
            for name, values in getattr(self, family).items():
                arrays[f"{family}_{name}"] = values
        present = {name: getattr(self, name) for name in DESIGN}
        return arrays | {name: values for name, values in present.items() if values is not None}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> "Records":
        """Rebuild records from `to_arrays`; old records have no means, weights or groups.

        Raises
        ------
        ValueError
            If an array is missing, unknown, or invalid.
        """
        plain = {field.name for field in fields(cls)} - FAMILIES.keys() - DESIGN.keys()
        families: dict[str, dict[str, Any]] = {
            family: _family(arrays, f"{family}_") for family in FAMILIES
        }
        named = {f"{family}_{name}" for family, held in families.items() for name in held}
        missing, unknown = plain - arrays.keys(), arrays.keys() - plain - named - DESIGN.keys()
        if missing or unknown:
            raise ValueError(
                f"records lack the arrays {sorted(missing)} and hold unknown {sorted(unknown)}"
            )
        plain |= DESIGN.keys() & arrays.keys()
        values: dict[str, Any] = {name: arrays[name] for name in plain} | families
        return cls(**values)


def _family(arrays: Mapping[str, NDArray[np.generic]], prefix: str) -> dict[str, Any]:
    """Return the arrays whose names start with a prefix, by name without the prefix."""
    return {
        name.removeprefix(prefix): np.asarray(arrays[name])
        for name in sorted(arrays)
        if name.startswith(prefix)
    }


def _check(
    name: str, array: NDArray[np.generic], dtype: np.dtype[np.generic], shape: tuple[int, ...]
) -> None:
    if array.dtype != dtype or array.shape != shape:
        raise ValueError(
            f"{name} must be {dtype} of shape {shape}, not {array.dtype} of shape {array.shape}"
        )
    # The minimum is NaN if any number is, and needs no array beside the records.
    if np.issubdtype(dtype, np.floating) and np.isnan(array.min(initial=0)):
        raise ValueError(f"{name} must not hold NaN")


def concatenate(parts: Iterable[Records], *, n_samples: int | None = None) -> Records:
    """Join records in order.

    Parameters
    ----------
    parts : iterable of Records
    n_samples : int, optional
        Total number of samples. If given, parts are consumed one at a time, so that only one is in
        memory beside the result.

    Raises
    ------
    ValueError
        If there is no part, their samples do not add up to ``n_samples``, or they have different
        measures or numbers of top classes.
    """
    if n_samples is None:
        parts = list(parts)
        n_samples = sum(part.n_samples for part in parts)
    whole: Arrays = {}
    filled = 0
    for part in parts:
        arrays = part.to_arrays()
        if not whole:
            whole = {
                name: np.empty((n_samples, *a.shape[1:]), a.dtype) for name, a in arrays.items()
            }
        end = filled + part.n_samples
        if arrays.keys() != whole.keys() or end > n_samples:
            raise ValueError(f"parts must keep the same measures of {n_samples} samples")
        for name, array in arrays.items():
            whole[name][filled:end] = array
        filled = end
    if not whole:
        raise ValueError("parts must hold at least one set of records")
    if filled != n_samples:
        raise ValueError(f"parts must hold {n_samples} samples together, not {filled}")
    return Records.from_arrays(whole)
