"""Two calibrations side by side, on the samples that both have judged."""

from dataclasses import dataclass

import numpy as np

from service.core.arrays import Floats
from service.core.bins.table import BinTable
from service.core.crossval import FoldScore
from service.core.paired import PairedDifference, paired_difference
from service.core.plain_data import PlainData
from service.core.records import Records

COMPARED = ("nll", "brier")


@dataclass(frozen=True)
class Comparison(PlainData):
    """How the second of two calibrations does against the first, for one event.

    Attributes
    ----------
    k : int
    paired : bool
        Whether the differences are sample by sample on the same samples; else they are between
        means over folds, and what both share makes their standard errors too large.
    differences : dict of str to PairedDifference
        ``nll`` and ``brier`` of the second minus those of the first, and ``accuracy`` where
        paired. Negative losses and a positive accuracy speak for the second. What is infinite is
        left out.
    """

    k: int
    paired: bool
    differences: dict[str, PairedDifference]


@dataclass(frozen=True, eq=False)
class Served:
    """What one calibration serves for an event, and its records of the samples to compare on."""

    table: BinTable
    column: str
    records: Records


def compare_on_samples(k: int, first: Served, second: Served) -> Comparison:
    """Compare two served tables on the same samples, in the same order.

    Raises
    ------
    ValueError
        If the records are not of equally many samples, or their labels differ.
    """
    if not np.array_equal(first.records.label, second.records.label):
        raise ValueError("records must be of the same samples: their labels differ")
    ours, theirs = _losses(k, first), _losses(k, second)
    with np.errstate(invalid="ignore"):  # both infinite: no number, and left out below
        differences = {name: paired_difference(theirs[name], ours[name]) for name in ours}
    return Comparison(
        k=k,
        paired=True,
        differences={
            name: found
            for name, found in differences.items()
            if found is not None and np.isfinite(found.mean)
        },
    )


def compare_on_folds(
    k: int, first: dict[str, FoldScore], second: dict[str, FoldScore]
) -> Comparison:
    """Compare cross-validated scores of two calibrations that share no samples."""
    differences = {}
    for name in COMPARED:
        ours, theirs = first.get(name), second.get(name)
        if ours is None or theirs is None or ours.mean is None or theirs.mean is None:
            continue
        differences[name] = PairedDifference(
            mean=theirs.mean - ours.mean,
            standard_error=_joint_error(ours, theirs),
            pairs=min(ours.folds, theirs.folds),
        )
    return Comparison(k=k, paired=False, differences=differences)


def _joint_error(ours: FoldScore, theirs: FoldScore) -> float | None:
    if ours.std is None or theirs.std is None:
        return None
    return float(np.sqrt(ours.std**2 / ours.folds + theirs.std**2 / theirs.folds))


def _losses(k: int, served: Served) -> dict[str, Floats]:
    """Return each sample's loss; ``accuracy`` is whether the event holds."""
    hits = served.records.hits(k)
    probability = served.table.look_up(served.records.uncertainty[served.column]).probability
    right = np.where(hits, probability, 1.0 - probability)
    with np.errstate(divide="ignore"):  # the truth was given no chance: infinite
        nll = -np.log(right)
    return {
        "nll": nll,
        "brier": (1.0 - right) ** 2,
        "accuracy": hits.astype(np.float64),
    }
