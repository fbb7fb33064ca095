"""What a score is."""

from collections.abc import Callable
from dataclasses import dataclass

from service.core.scores.judged import Judged


@dataclass(frozen=True)
class Score:
    """A number that judges probabilities against hits.

    Attributes
    ----------
    name : str
        Its name everywhere: reports, tables, JSON.
    meaning : str
        What is computed, and by which convention, for a reader of the report.
    compute : callable
        From `Judged` with at least one sample; None where these samples cannot define it. Never
        NaN or infinite.
    larger_is_better : bool or None
        None for a property of the data that no probability can change.
    groups_samples : bool
        Whether it compares means over groups of samples. Such a score cannot judge pooled
        out-of-fold probabilities: over all folds, those of a bin average to the bin's own hit
        rate, and calibration looks perfect.
    needs_bins : bool
        Whether it is a number about bins, so that baselines, which have none, go without it.
    """

    name: str
    meaning: str
    compute: Callable[[Judged], float | None]
    larger_is_better: bool | None = False
    groups_samples: bool = False
    needs_bins: bool = False
