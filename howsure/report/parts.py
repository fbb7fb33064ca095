"""What parts of reports are made of: shares of samples, and names."""

from typing import Literal, TypeAlias

from msgspec import Struct

from howsure.statistics.effective import EffectiveShare

Numbers: TypeAlias = list[float | None]  # of a number that is not finite, null
Interval: TypeAlias = tuple[float, float]
Phase: TypeAlias = Literal["cross_validation", "evaluation"]
FIRST = "1"  # the event that summaries and operating points are of, where there is one


class Part(Struct, frozen=True, kw_only=True):
    """A part of a report."""


class Share(Part, frozen=True, kw_only=True):
    """A share of samples.

    Attributes
    ----------
    value : float
        The share, weighted if samples have weights.
    weighted : bool
        Whether they have.
    interval : tuple of float
        Exact.
    n_samples : int
        What it is a share of.
    """

    value: float
    weighted: bool
    interval: Interval
    n_samples: int


class ErrorRate(Share, frozen=True, kw_only=True):
    """The share of errors among the accepted answers of a set.

    Attributes
    ----------
    n_samples, n_accepted, n_errors : int
        Samples of the set, accepted ones, and errors among these.
    coverage : float
        Share of accepted samples.
    effective : EffectiveShare, optional
        Of the errors, with weights or groups.
    """

    n_accepted: int
    n_errors: int
    coverage: float
    effective: EffectiveShare | None = None
