"""Whether the model is right hardly more often than a guess."""

from service.core.findings.evidence import Evidence
from service.core.findings.finding import Finding

CODE = "accuracy-near-chance"
LEVEL = 0.01  # of the test that the accuracy is above chance
POWER_LEVEL = 1e-3  # of the claim that it would have been seen to be
ENOUGH_SAMPLES = 500


def accuracy_near_chance(evidence: Evidence) -> Finding | None:
    """Find an accuracy that the exact binomial test does not tell from a guess, at 1 %.

    There are two guesses: any class at random, right one time in ``n_classes``, which is worth a
    warning; and always the most frequent label, which is worth a notice, as a model of rare events
    may do no better and still be useful.

    Few samples prove little, so the finding needs more: either 500 of them, or so many that a model
    as good as it says (its mean confidence) would have passed the test all but one time in 1,000.
    On samples of a calibrated model, whatever their number below 500, the false alarms are
    therefore at most 0.1 %: a sum of unlike Bernoulli trials has lighter tails than the binomial of
    their mean (Hoeffding 1956). Of 500 samples of 10 classes, a model that is right 17 % of the
    time is told from chance in 99 of 100 cases; of 1,000, one that is 15 % of the time.
    """
    most_frequent = float(evidence.class_counts.max() / evidence.n_samples)
    n, found = evidence.records.n_samples, f"Top-1 accuracy is {evidence.accuracy:.1%}"
    figures = {"accuracy": evidence.accuracy, "samples": n}
    at_random = 1.0 / evidence.n_classes
    if _is_near(evidence, at_random):
        return Finding(
            CODE,
            "warning",
            f"{found} on {n:,} samples, not clearly above the {at_random:.1%} of a random guess. "
            "Labels and inputs may belong to other rows, or the inputs are not what the model saw.",
            figures | {"chance": at_random},
        )
    if _is_near(evidence, most_frequent):
        return Finding(
            CODE,
            "notice",
            f"{found} on {n:,} samples, not clearly above the {most_frequent:.1%} of always naming "
            "the most frequent class.",
            figures | {"chance": most_frequent},
        )
    return None


def _is_near(evidence: Evidence, chance: float) -> bool:
    from scipy.stats import binom  # noqa: PLC0415 - half a second, and seldom asked

    n = evidence.records.n_samples
    # The fewest hits that a guess exceeds or equals at most one time in 100.
    needed = int(binom.isf(LEVEL, n, chance)) + 1
    if evidence.n_hits >= needed:
        return False
    missed = binom.cdf(needed - 1, n, float(evidence.confidence.mean()))
    return n >= ENOUGH_SAMPLES or bool(missed <= POWER_LEVEL)
