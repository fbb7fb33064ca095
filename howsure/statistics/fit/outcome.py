"""The outcome that calibrators of one probability are fitted on."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from howsure.statistics.arrays import Floats, Hits

OutcomeName: TypeAlias = Literal["event", "class_1"]


@dataclass(frozen=True, eq=False)
class BinaryOutcome:
    """An outcome that holds or not for each sample, and the model's own probability ``p`` of it.

    Attributes
    ----------
    name : str
        ``event``; or ``class_1``: the label is class 1.
    holds : ndarray of bool, shape (n_samples,)
    log_probability, log_rest : ndarray of float64, shape (n_samples,)
        ``log p`` and ``log(1 - p)``, each precise next to 0.
    log_odds : ndarray of float64, shape (n_samples,)
        ``log(p / (1 - p))``.
    is_event : ndarray of bool, shape (n_samples,)
        Whether the outcome is the event. Where it is not, it is the opposite of the event: class 0
        is predicted.
    """

    name: OutcomeName
    holds: Hits
    log_probability: Floats
    log_rest: Floats
    log_odds: Floats
    is_event: NDArray[np.bool_]

    def as_class_1(self, predicted: NDArray[np.integer]) -> "BinaryOutcome":
        """Return the outcome "the label is class 1"; this one is the Top-1 event of two classes.

        Parameters
        ----------
        predicted : ndarray of int, shape (n_samples,)
            The predicted class, 0 or 1.
        """
        is_one = predicted == 1
        return BinaryOutcome(
            name="class_1",
            holds=self.holds == is_one,
            log_probability=np.where(is_one, self.log_probability, self.log_rest),
            log_rest=np.where(is_one, self.log_rest, self.log_probability),
            log_odds=np.where(is_one, self.log_odds, -self.log_odds),
            is_event=is_one,
        )
