"""Options of a fit."""

from collections.abc import Collection, Container, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from howsure.statistics.bins.intervals import IntervalOptions
from howsure.statistics.bins.lookup import Lookup
from howsure.statistics.measures import DEFAULT_MEASURES, parse_measure
from howsure.statistics.selective import DEFAULT_TARGETS, SelectiveTarget

LEAST_FOLDS = 2


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """Options of a fit.

    Attributes
    ----------
    top_k : tuple of int
        Events: the label is among the ``k`` top classes.
    measures : tuple of str
        Names in `MEASURE_NAMES`, ``supplied:<name>`` or ``output:<name>``; each is fitted to each
        event.
    serve : mapping of int to str
        Measure to serve for event ``k``; by default the one of least cross-validated negative
        log-likelihood (`howsure.statistics.fit.calibration.best_measure`). A supplied measure is
        served only if named here.
    bins : int or "auto"
        ``auto`` chooses by cross-validation (`howsure.statistics.bins.fit`).
    lookup : {"smooth", "interpolated", "step"}
    prior_strength : float
        Weight of the prior in samples, above 0.
    interval : IntervalOptions
    monotone : bool
    folds : int
        Of cross-validation, at least 2.
    seed : int
        The seed of the records' tie keys; also used to draw labels for consistency bands.
    targets : tuple of float
        Target hit rates of the coarse table, descending.
    selective : tuple of SelectiveTarget
        Bounds on the risk of accepted samples, with one threshold each.
    ood_level : float
        Share of the calibration set that is not flagged as out-of-distribution.

    Raises
    ------
    ValueError
        If an option breaks its rule; the message names option, rule and value.
    """

    top_k: tuple[int, ...] = (1, 5)
    measures: tuple[str, ...] = DEFAULT_MEASURES
    serve: Mapping[int, str] = field(default_factory=dict)
    bins: int | Literal["auto"] = "auto"
    lookup: Lookup = "smooth"
    prior_strength: float = 1.0
    interval: IntervalOptions = field(default_factory=IntervalOptions)
    monotone: bool = False
    folds: int = 10
    seed: int = 0
    targets: tuple[float, ...] = (0.99, 0.95)
    selective: tuple[SelectiveTarget, ...] = DEFAULT_TARGETS
    ood_level: float = 0.99

    @property
    def of_table(self) -> dict[str, Any]:
        """The options of a bin table."""
        names = ("prior_strength", "interval", "lookup", "monotone")
        return {name: getattr(self, name) for name in names}

    def __post_init__(self) -> None:
        self._check_events()
        self._check_measures()
        if self.bins != "auto" and (not _is_integer(self.bins) or self.bins < 1):
            raise ValueError(f'bins must be "auto" or an integer from 1, not {self.bins!r}')
        if self.lookup not in get_args(Lookup):
            raise ValueError(
                f"lookup must be one of {', '.join(get_args(Lookup))}, not {self.lookup!r}"
            )
        if not 0.0 < self.prior_strength < np.inf:
            raise ValueError(
                f"prior_strength must be above 0 and finite, not {self.prior_strength}"
            )
        if not _is_integer(self.folds) or self.folds < LEAST_FOLDS:
            raise ValueError(f"folds must be an integer from {LEAST_FOLDS}, not {self.folds!r}")
        if not self.targets or not all(0.0 < target < 1.0 for target in self.targets):
            raise ValueError(f"targets must lie in (0, 1), at least one, not {self.targets}")
        if list(self.targets) != sorted(set(self.targets), reverse=True):
            raise ValueError(f"targets must fall, not {self.targets}")
        if not 0.0 < self.ood_level < 1.0:
            raise ValueError(f"ood_level must lie in (0, 1), not {self.ood_level}")

    def _check_events(self) -> None:
        if not self.top_k or len(set(self.top_k)) != len(self.top_k):
            raise ValueError(f"top_k must hold distinct events, at least one, not {self.top_k}")
        for k in self.top_k:
            if not _is_integer(k) or k < 1:
                raise ValueError(f"top_k must hold integers from 1, not {k!r}")

    def _check_measures(self) -> None:
        if not self.measures or len(set(self.measures)) != len(self.measures):
            raise ValueError(f"measures must be distinct, at least one, not {self.measures}")
        parsed = [parse_measure(name) for name in self.measures]
        for k, name in self.serve.items():
            if k not in self.top_k:
                raise ValueError(f"serve must name events of top_k {self.top_k}, not {k!r}")
            if name not in self.measures:
                raise ValueError(
                    f"serve must name one of the measures {', '.join(self.measures)}, not {name!r}"
                )
        if all(measure.kind == "supplied" for measure in parsed):
            for k in self.top_k:
                if k not in self.serve:
                    raise ValueError(
                        f"serve must name a measure for Top-{k}: a supplied measure is served only "
                        "if it is named"
                    )


def is_fixed_beforehand(k: Hashable, measures: Collection[str], serve: Container[Any]) -> bool:
    """Tell whether an event's measure was named, not chosen by the labels of the same samples."""
    return k in serve or len(measures) == 1


def _is_integer(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
