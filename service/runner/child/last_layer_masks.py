"""The masks that dropout before the last layer is made with."""

from math import prod

import numpy as np
from numpy.typing import NDArray

from service.core.passes.noise import keep_mask
from service.errors import TooLarge
from service.runner.pass_plan import LAST_LAYER, PassPlan

USUAL_RATE = 0.1  # before a last layer that was trained without dropout
LEAST_PASSES = 2
MOST_NUMBERS = 2**25  # they lie in the graph, which is one file with its weights


def check_masks(plan: PassPlan) -> None:
    """Refuse more masks than a graph can hold.

    Raises
    ------
    TooLarge
        It says how many passes would fit.
    """
    shape = plan.feature_shape or ()
    most = MOST_NUMBERS // max(prod(shape), 1)
    if plan.passes <= most:
        return
    sizes = "x".join(map(str, shape))
    fits = f"at most {most} passes" if most >= LEAST_PASSES else f"{LAST_LAYER} to be left out"
    raise TooLarge.at(
        "config.dropout.passes",
        f"{LAST_LAYER}: the last layer takes {sizes} values of a sample, which {plan.passes:,} "
        f"masks of that size make too many for one graph; expected {fits}",
    )


def last_layer_masks(plan: PassPlan) -> NDArray[np.float32]:
    """Return what keeps and scales the features in each pass, shape (passes, *feature_shape).

    They are those of the first site of full dropout, so that both are the same where a model has
    no other Dropout.
    """
    shape = plan.feature_shape or ()
    rate = plan.rate or USUAL_RATE
    masks = [
        keep_mask(shape, rate=rate, seed=plan.seed, number=number, site=0)
        for number in range(plan.passes)
    ]
    return np.stack(masks)
