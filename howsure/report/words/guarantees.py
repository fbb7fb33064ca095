"""The guarantee for all bins in words."""

from howsure.report.measure import GuaranteeWords
from howsure.statistics.bins.guarantee import Guarantee, Obstacle


def guarantee_in_words(guarantee: Guarantee) -> GuaranteeWords:
    """Return a guarantee with its sentence."""
    reasons = [_reason(obstacle, guarantee.per_bin) for obstacle in guarantee.reasons]
    sentence = f"No guarantee for all bins at once: {'; '.join(reasons)}."
    if guarantee.width is not None:
        sentence = (
            f"Step table: with probability {1.0 - guarantee.alpha:g} over calibration sets, and "
            "for data drawn like it, the true hit rate of every bin lies within "
            f"±{guarantee.width:.4g} of the observed one ({guarantee.n_compared} bins compared)."
        )
    return GuaranteeWords(
        width=guarantee.width,
        alpha=guarantee.alpha,
        n_compared=guarantee.n_compared,
        reasons=reasons,
        sentence=sentence,
    )


def _reason(obstacle: Obstacle, per_bin: int) -> str:
    return {
        "learned": "the measure was learned from the labels of the same samples",
        "design": "samples have weights or groups",
        "ties": "an edge between bins falls among samples of equal uncertainty",
        "pooled": "bins were pooled after seeing their hits",
        "fewer_bins": "fewer bins were created than requested",
        "small_bins": f"bins hold {per_bin} sample{'s' * (per_bin != 1)}: two are needed",
        "vacuous": f"{per_bin} samples to a bin promise nothing",
    }[obstacle]
