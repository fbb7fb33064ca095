"""What a perfectly calibrated table would score on this much data."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class ConsistencyBand:
    """A calibration error beside those of a world in which the probabilities served are true.

    Attributes
    ----------
    score : str
        Name of the score.
    observed : float
        Its value on the data.
    median, upper : float
        Median and 99 % point over resampled labels. A value above ``upper`` is more than chance
        makes of a calibrated table.
    resamples : int
        How often labels were drawn.
    refitted : bool
        Whether the table was made again from drawn labels, too. Where it was not, the band leaves
        out the noise of the fit, and is somewhat too low.
    """

    score: str
    observed: float
    median: float
    upper: float
    resamples: int
    refitted: bool = True

    @property
    def consistent(self) -> bool:
        """Whether the value could come of a calibrated table."""
        return self.observed <= self.upper

    def as_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {**asdict(self), "consistent": self.consistent}
