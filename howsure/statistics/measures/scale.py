"""How people are told values of a measure: as uncertainties, or those of pairs as scores."""

from typing import NamedTuple

from howsure.statistics.measures import SCORE


class Scale(NamedTuple):
    """The scale on which people read a measure, with its words.

    Attributes
    ----------
    name : str
        What its values are.
    most : str
        Which of its accepted values is the threshold.
    within, beyond : str
        What a threshold accepts, and what it does not: words before the threshold.
    above, up_to : str
        Words before the ends of a bin, the more certain one first.
    sign : int
        By which values of the measure are multiplied.
    """

    name: str
    most: str
    within: str
    beyond: str
    above: str
    up_to: str
    sign: int = 1

    def of(self, value: float | None) -> float | None:
        """Convert a value of the measure to this scale, or back; None stays None."""
        return None if value is None else self.sign * value + 0.0  # 0 is never shown as -0


UNCERTAINTY = Scale(
    name="uncertainty",
    most="largest",
    within="uncertainty of Top-1 at most",
    beyond="uncertainty of Top-1 is above",
    above="above",
    up_to="up to",
)
SCORES = Scale(
    name=SCORE,
    most="smallest",
    within="score at least",
    beyond="score is below",
    above="below",
    up_to="down to",
    sign=-1,
)


def scale_of(measure: str) -> Scale:
    """Return the scale of a measure."""
    return SCORES if measure == SCORE else UNCERTAINTY
