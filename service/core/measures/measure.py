"""What an uncertainty measure is."""

from collections.abc import Callable
from dataclasses import dataclass

from service.core.arrays import Floats
from service.core.ranked import RankedScores


@dataclass(frozen=True)
class Measure:
    """One scalar per sample from the classifier's output; larger = less certain.

    Attributes
    ----------
    name : str
        Its name everywhere: configuration, tables, JSON, graph outputs.
    compute : callable
        ``compute(ranked, k)`` returns float64 of shape (n_samples,), finite and never ``-0.0``;
        ``k`` is the Top-k event asked about, ``1 <= k <= m``.
    per_event : bool
        Whether ``k`` matters.
    needs_logits : bool
        Whether adding a constant to the logits shows, so that probabilities do not have it.
    """

    name: str
    compute: Callable[[RankedScores, int], Floats]
    per_event: bool = False
    needs_logits: bool = False
