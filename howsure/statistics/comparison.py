"""Differences between the scores of two methods on the same folds or samples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from scipy.special import stdtrit

from howsure.statistics.arrays import Floats, mean_over
from howsure.statistics.bins.design import ALIKE, SampleDesign
from howsure.statistics.bins.table import BinTable
from howsure.statistics.fit.cross_validation import FoldScore, predict_with_table
from howsure.statistics.records.records import Int32s, Records
from howsure.statistics.scores.proper import sample_losses

FoldValues: TypeAlias = Sequence[float | None]
LEVEL = 0.05  # of a clear difference, shared among all that are compared with the same method


@dataclass(frozen=True)
class PairedDifference:
    """The mean of paired differences, from which variation common to both cancels out.

    Attributes
    ----------
    mean : float
        Mean of the first minus the second.
    standard_error : float or None
        The standard error of the mean. A single pair has none.
    pairs : int
        Number of folds or samples with both values; of groups, if samples have them.
    rivals : int
        How many methods are compared with the same one, so that the best of them may lead by
        chance.
    """

    mean: float
    standard_error: float | None
    pairs: int
    rivals: int = 1

    @property
    def margin(self) -> float | None:
        """The least clear mean by Student's t: of one either way, or the lead of one of several."""
        if self.standard_error is None:
            return None
        tail = LEVEL / max(self.rivals, 2)
        return float(stdtrit(max(self.pairs - 1, 1), 1.0 - tail)) * self.standard_error

    def among(self, rivals: int) -> "PairedDifference":
        """Return the same, of one of so many methods."""
        return replace(self, rivals=rivals)

    @property
    def clear(self) -> bool:
        """Whether the mean is farther from 0 than the margin."""
        return self.margin is not None and abs(self.mean) > self.margin


def paired_differences(
    one: Mapping[str, Floats], other: Mapping[str, Floats], design: SampleDesign
) -> dict[str, PairedDifference]:
    """Return the differences ``one - other`` by name, leaving out those without a finite mean."""
    with np.errstate(invalid="ignore"):  # both infinite: undefined, and left out
        return finite({name: paired_difference(one[name], other[name], design) for name in one})


def finite(differences: Mapping[str, PairedDifference | None]) -> dict[str, PairedDifference]:
    """Return the differences with a finite mean."""
    return {
        name: difference
        for name, difference in differences.items()
        if difference is not None and np.isfinite(difference.mean)
    }


def fold_difference(one: FoldValues, other: FoldValues, rivals: int = 1) -> PairedDifference | None:
    """Return the mean of ``one - other`` over the folds that have both values, if any has.

    Folds share most of the samples that they are fitted to, so their differences vary less than
    those of independent sets. The standard error has the corrected variance of Nadeau & Bengio
    2003, section 3: ``(1 / J + n_test / n_train) s^2``, of J folds.

    Raises
    ------
    ValueError
        If the lengths differ.
    """
    both = [(a, b) for a, b in zip(one, other, strict=True) if a is not None and b is not None]
    difference = paired_difference(*np.array(both, dtype=np.float64).reshape(-1, 2).T)
    if difference is None or difference.standard_error is None:
        return difference
    error = difference.standard_error * shared_training(len(both))
    return replace(difference, standard_error=error, rivals=rivals)


def shared_training(folds: int) -> float:
    """Return how much larger a standard error over folds is than one over independent sets."""
    return float(np.sqrt(1.0 + folds / (folds - 1.0)))


def paired_difference(
    one: Floats, other: Floats, design: SampleDesign = ALIKE
) -> PairedDifference | None:
    """Return the mean of ``one - other`` with its standard error, or None for empty arrays.

    With a ``design`` the mean is weighted, and the standard error is that of a ratio of sums over
    groups (Cochran 1977, section 6.4; Kish 1965, section 6.3).
    """
    differences = one - other
    if differences.size == 0:
        return None
    weights, pairs = design.weights(differences.size), differences.size
    mean = mean_over(differences, weights)
    if design.is_plain:
        error = differences.std(ddof=1) / np.sqrt(pairs) if pairs > 1 else None
    else:
        influence = weights * (differences - mean) / weights.sum()
        of_groups = np.bincount(design.groups(differences.size), influence)
        pairs = of_groups.size
        error = np.sqrt(np.square(of_groups).sum() * pairs / (pairs - 1)) if pairs > 1 else None
    return PairedDifference(float(mean), None if error is None else float(error), pairs)


COMPARED = ("nll", "brier")


@dataclass(frozen=True)
class Comparison:
    """Scores of the second of two calibrations relative to the first, for one event.

    Attributes
    ----------
    k : int
    paired : bool
        Whether samples are paired. Otherwise means over folds are compared, whose standard errors
        are too large if the calibrations share samples.
    differences : dict of str to PairedDifference
        ``nll``, ``brier`` and ``accuracy`` of the second minus those of the first. Negative losses
        and a positive accuracy favour the second. Infinite differences are left out.
    n_right, n_wrong : int
        How often the event holds and fails, for the calibration for which it does so less often; 0
        where nothing is compared.
    """

    k: int
    paired: bool
    differences: dict[str, PairedDifference]
    n_right: int = 0
    n_wrong: int = 0

    @property
    def is_too_rare(self) -> bool:
        """Whether too few answers are right, or wrong, to compare losses.

        Without errors the calibration with larger probabilities has the smaller loss, and the
        standard error knows nothing of errors to come.
        """
        return min(self.n_right, self.n_wrong) < LEAST_ANSWERS

    @property
    def rates_the_same(self) -> bool:
        """Whether the losses may be compared: the accuracies do not differ clearly.

        A loss rates statements about whether a model's own answers are right. A model that is
        always wrong makes this easy to state, so its loss is small.
        """
        accuracy = self.differences.get("accuracy")
        return accuracy is None or not accuracy.clear


@dataclass(frozen=True, eq=False)
class Served:
    """The served table of one calibration, and its records of the samples to compare on."""

    table: BinTable
    column: str
    records: Records


LEAST_CHANGES = 20
LEAST_ANSWERS = 10  # right ones, and wrong ones, to compare losses


def are_same_samples(first: Int32s, second: Int32s) -> bool:
    """Tell whether labels of two sets are the same in the same order, which hardly is by chance.

    The sets may be another file of the same samples, or the outputs of another model. Labels that
    change fewer than 20 times from row to row, as in sorted sets, do not tell.
    """
    same = first.shape == second.shape and bool(np.array_equal(first, second))
    return same and int(np.count_nonzero(first[1:] != first[:-1])) >= LEAST_CHANGES


def compare_on_samples(k: int, first: Served, second: Served) -> Comparison:
    """Compare two served tables on the same samples, in the same order.

    Raises
    ------
    ValueError
        If the records are not of equally many samples, or their labels differ.
    """
    if not np.array_equal(first.records.label, second.records.label):
        raise ValueError("records must be of the same samples: their labels differ")
    differences = paired_differences(_losses(k, second), _losses(k, first), second.records.design)
    hits = [int(np.count_nonzero(one.records.hits(k))) for one in (first, second)]
    n_right, n_wrong = min(hits), second.records.n_samples - max(hits)
    return Comparison(k=k, paired=True, differences=differences, n_right=n_right, n_wrong=n_wrong)


def accuracy_difference(first: tuple[float, int], second: tuple[float, int]) -> PairedDifference:
    """Return the second accuracy minus the first, of sets that share no samples.

    Each is a share with its number of samples. One right and one wrong answer are added to each for
    the standard error, which would be 0 for an accuracy of 0 or 1.
    """
    variance = 0.0
    for accuracy, n_samples in (first, second):
        rate = (accuracy * n_samples + 1.0) / (n_samples + 2.0)
        variance += rate * (1.0 - rate) / (n_samples + 2.0)
    return PairedDifference(second[0] - first[0], variance**0.5, min(first[1], second[1]))


def compare_on_folds(
    k: int,
    first: dict[str, FoldScore],
    second: dict[str, FoldScore],
    *,
    accuracies: Sequence[tuple[float, int]],
) -> Comparison:
    """Compare cross-validated scores of two calibrations, by the means of their folds.

    The difference of ``accuracies``, each with its number of samples, is added if there is any
    other difference.
    """
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
    if differences:
        differences["accuracy"] = accuracy_difference(*accuracies)
    return Comparison(
        k=k,
        paired=False,
        differences=differences,
        n_right=min(round(accuracy * n) for accuracy, n in accuracies),
        n_wrong=min(round((1.0 - accuracy) * n) for accuracy, n in accuracies),
    )


def _joint_error(ours: FoldScore, theirs: FoldScore) -> float | None:
    if ours.std is None or theirs.std is None:
        return None
    pairs = ((ours.std, ours.folds), (theirs.std, theirs.folds))
    return float(np.hypot(*(std * shared_training(n) / np.sqrt(n) for std, n in pairs)))


def _losses(k: int, served: Served) -> dict[str, Floats]:
    """Return each sample's loss; ``accuracy`` is whether the event holds."""
    hits = served.records.hits(k)
    uncertainty = served.records.uncertainty[served.column]
    judged = predict_with_table(served.table, uncertainty, hits)
    return sample_losses(judged) | {"accuracy": hits.astype(np.float64)}
