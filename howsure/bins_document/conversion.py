"""Tables of a bins document, from fitted ones and back, equal to the last bit."""

import math
from dataclasses import asdict
from typing import Any

import msgspec
import numpy as np

from howsure.bins_document.table import (
    Bin,
    CurveKnots,
    Interval,
    LabelFormula,
    LearnedFormula,
    Prior,
    Table,
)
from howsure.statistics.bins.curve import Curve
from howsure.statistics.bins.intervals import IntervalOptions
from howsure.statistics.bins.prior import BetaPrior
from howsure.statistics.bins.table import BinTable
from howsure.statistics.label_model.model import LabelModel
from howsure.statistics.label_model.recorded import Formula, formula_of
from howsure.statistics.plain import to_plain


def bins_of(table: BinTable) -> list[Bin]:
    """Return the bins of a table; an edge without limit is null."""
    edges, n_samples = table.edges, table.n_samples
    columns = (
        *(edges[:-1], edges[1:], table.counts, table.hits, table.probability),
        *(table.lower, table.upper, table.mean_uncertainty, table.odds_ratios),
    )
    return [
        Bin(
            lower=_finite(lower),
            upper=_finite(upper),
            count=count,
            hits=hits,
            weight=count / n_samples,
            probability=probability,
            interval=(least, most),
            mean_uncertainty=_finite(mean),
            odds_ratio=_finite(odds_ratio),
        )
        for lower, upper, count, hits, probability, least, most, mean, odds_ratio in zip(
            *(column.tolist() for column in columns), strict=True
        )
    ]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def written_table(
    table: BinTable,
    *,
    event: int,
    measure: str,
    served: bool,
    quantile_bins: int,
    formula: Formula | None = None,
    effective_counts: list[float] | None = None,
) -> Table:
    """Return a fitted table as part of a document, with the formula of a learned measure."""
    parts: dict[str, Any] = {}
    if table.curve is not None:
        parts["curve"] = msgspec.convert(to_plain(table.curve), CurveKnots)
    if formula is not None:
        is_label_model = isinstance(formula, LabelModel)
        name, kind = (
            ("label_model", LabelFormula) if is_label_model else ("learned", LearnedFormula)
        )
        parts[name] = msgspec.convert(to_plain(formula), kind)
    return Table(
        event=event,
        measure=measure,
        served=served,
        lookup=table.lookup,
        monotone=table.monotone,
        requested_bins=table.requested_bins,
        quantile_bins=quantile_bins,
        interval=Interval(**asdict(table.interval)),
        prior=Prior(**asdict(table.prior)),
        bins=bins_of(table),
        effective_counts=effective_counts,
        **parts,
    )


def fitted_table(table: Table) -> BinTable:
    """Return the table that a part of a document was made from.

    Raises
    ------
    ValueError
        If a value breaks a rule.
    """
    bins = table.bins
    return BinTable(
        edges=np.array([-math.inf, *(one.upper for one in bins[:-1]), math.inf], np.float32),
        counts=np.array([one.count for one in bins], np.int64),
        hits=np.array([one.hits for one in bins], np.int64),
        prior=fitted_prior(table),
        probability=np.array([one.probability for one in bins]),
        lower=np.array([one.interval[0] for one in bins]),
        upper=np.array([one.interval[1] for one in bins]),
        mean_uncertainty=np.array([one.mean_uncertainty for one in bins], np.float64),
        requested_bins=table.requested_bins,
        lookup=table.lookup,
        curve=fitted_curve(table),
        monotone=table.monotone,
        interval=fitted_interval(table),
    )


def fitted_interval(table: Table) -> IntervalOptions:
    """Return the options of a table's intervals."""
    return IntervalOptions(**msgspec.to_builtins(table.interval))


def fitted_prior(table: Table) -> BetaPrior:
    """Return the prior of a table's probabilities."""
    return BetaPrior(**msgspec.to_builtins(table.prior))


def fitted_curve(table: Table) -> Curve | None:
    """Return the curve of a smooth table.

    Raises
    ------
    ValueError
        If a value breaks a rule.
    """
    return None if table.curve is None else Curve(**msgspec.to_builtins(table.curve))


def fitted_formula(table: Table) -> Formula | None:
    """Return the formula of a table's learned measure.

    Raises
    ------
    ValueError
        If a value breaks a rule.
    """
    formula = table.label_model or table.learned
    return None if formula is None else formula_of(msgspec.to_builtins(formula))
