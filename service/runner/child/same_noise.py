"""Whether the rows of a batch take the same noise."""

from collections.abc import Callable, Mapping

import numpy as np

from service.core.arrays import Floats
from service.errors import InvalidOnnxModel
from service.model_rules import ModelRule
from service.runner.child.batches import padded
from service.runner.frames import Array

LEAST_LOG = -50.0  # of less nobody can tell
MOST_ROUNDED = 2e-3  # of a logarithm, by half precision
SHARE_OF_SPREAD = 0.1


def check_same_noise(
    passes: Callable[[Mapping[str, Array]], Floats],
    rows: Mapping[str, Array],
    fixed_batch: int | None,
) -> None:
    """Refuse a graph in which copies of the first row, side by side, take different noise.

    Parameters
    ----------
    passes
        Gives the log-probabilities of a few passes, shape (n_rows, passes, n_classes).

    Raises
    ------
    InvalidOnnxModel
        If an answer would depend on the place of a row in its batch.
    """
    n_copies = fixed_batch or 2
    if n_copies == 1:
        return
    copies = {name: padded(array[:1], 0, n_copies) for name, array in rows.items()}
    logs = np.maximum(passes(copies), LEAST_LOG)
    if np.isnan(logs).any():
        return  # a row without an answer is refused by its number
    apart = np.abs(logs - logs[:1]).max()
    spread = np.abs(logs[0] - logs[0, :1]).max()
    rounded = MOST_ROUNDED * (1.0 + np.abs(logs).max())
    if apart > rounded + SHARE_OF_SPREAD * spread:
        raise InvalidOnnxModel.because(
            ModelRule.NOISE,
            "noise is drawn for one row and used for all, but where a Dropout or random node of "
            "this model stands, the rows of a batch do not follow one another along one axis, or "
            "its noise has a fixed shape for all of them; export it with a dynamic batch axis, the "
            "first, or with a batch of 1",
        )
