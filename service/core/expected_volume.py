"""What a threshold means for so many answers as somebody has a day."""

from dataclasses import dataclass

from service.core.intervals.proportion import proportion_interval
from service.core.operating_point import Consequences
from service.core.plain_data import PlainData

Amounts = tuple[float, float]


@dataclass(frozen=True)
class ExpectedVolume(PlainData):
    """What is to be expected of so many answers on data like the calibration set.

    Attributes
    ----------
    volume : int
    accepted, errors, reviewed : float
        How many are accepted, how many of those are wrong, and how many are left to others; on
        average, so that they may be parts of one.
    accepted_interval, errors_interval : tuple of float
        ``volume`` times the exact interval of the share. Errors are held against all samples, so
        that theirs allows for the coverage being uncertain as well.
    """

    volume: int
    accepted: float
    accepted_interval: Amounts
    errors: float
    errors_interval: Amounts
    reviewed: float


def expected_volume(seen: Consequences, volume: int, *, level: float) -> ExpectedVolume:
    """Return what follows for ``volume`` answers; ``level`` is of the intervals.

    Raises
    ------
    ValueError
        If ``volume`` is negative.
    """
    if volume < 0:
        raise ValueError(f"volume must not be negative, not {volume}")

    def amounts(shares: tuple[float, float]) -> Amounts:
        return volume * shares[0], volume * shares[1]

    accepted = volume * seen.n_accepted / seen.n_samples
    return ExpectedVolume(
        volume=volume,
        accepted=accepted,
        accepted_interval=amounts(seen.coverage_interval),
        errors=volume * seen.n_errors / seen.n_samples,
        errors_interval=amounts(proportion_interval(seen.n_errors, seen.n_samples, level)),
        reviewed=volume - accepted,
    )
