"""The masks that dropout before the last layer is made with."""

import numpy as np
from numpy.typing import NDArray

from service.core.passes.noise import keep_mask
from service.runner.pass_plan import PassPlan

USUAL_RATE = 0.1  # before a last layer that was trained without dropout


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
