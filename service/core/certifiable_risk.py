"""Which error rate could be certified for a share of the samples."""

from service.core.arrays import Hits, Uncertainty
from service.core.cut_points import cut_points
from service.core.selective import SelectiveTarget, largest_pass

# Rates are looked for in hundredths of a percent: finer ones are of no use to who asks for one.
STEPS = 10_000


def certifiable_risk(
    uncertainty: Uncertainty, hits: Hits, n_accepted: int, *, delta: float
) -> float | None:
    """Return a least ``max_risk``, to a hundredth of a percent, that accepts so many samples.

    What `fit_selective` accepts for it is as much or more, and for a hundredth of a percent less
    is not. Where samples are few a larger rate may accept less, as other ranks are tested: then
    there are several such rates, and this is one of them.

    Parameters
    ----------
    uncertainty : ndarray of float32, shape (n_samples,)
        Finite, at least one.
    hits : ndarray of bool, shape (n_samples,)
    n_accepted : int
        How many of them are to be accepted.
    delta : float
        Probability that the bound fails, in (0, 1).

    Returns
    -------
    float or None
        None where no rate below 1 accepts as many.

    Raises
    ------
    ValueError
        If ``delta`` is out of range, or as for `cut_points`.
    """
    points = cut_points(uncertainty, hits)

    def is_enough(step: int) -> bool:
        found = largest_pass(points, SelectiveTarget(step / STEPS, delta))
        return found is not None and int(points.accepted[found]) >= n_accepted

    below, enough = 0, STEPS - 1
    if not is_enough(enough):
        return None
    while enough - below > 1:
        middle = (below + enough) // 2
        if is_enough(middle):
            enough = middle
        else:
            below = middle
    return enough / STEPS
