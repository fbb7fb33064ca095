"""Findings on scores that the set supplies: reversed, or unrelated to whether answers are right."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from howsure.statistics.arrays import Hits, Uncertainty
from howsure.statistics.bins.design import SampleDesign
from howsure.statistics.findings.evidence import Finding, Level, RecordedSet, finding
from howsure.statistics.measures import SCORE, column
from howsure.statistics.ranking import rank_samples

REVERSED_Z = 3.7  # one-sided level of 0.01 %
ABOVE_CHANCE_Z = 2.3  # one-sided level of 1 %
POWER_Z = 3.1  # one-sided level of 0.1 %
USEFUL_AUROC = 0.6


@dataclass(frozen=True)
class _Ranking:
    """How well a measure ranks errors behind hits, with the standard error of its AUROC."""

    measure: str
    level: Level
    auroc: float
    error: float
    hits: int
    errors: int

    @property
    def words(self) -> str:
        """The score in a message, after which its AUROC follows."""
        return "The score" if self.measure == SCORE else f"The measure {self.measure}"

    @property
    def figures(self) -> dict[str, int | float]:
        """Figures of a finding."""
        return {"auroc": self.auroc, "right": self.hits, "wrong": self.errors}


def score_reversed(evidence: RecordedSet) -> Finding | None:
    """Find a supplied score that is clearly more certain about wrong answers than about right ones.

    The AUROC must be 3.7 standard errors below 0.5, a level of 0.01 %. A score that ranks no worse
    than chance is below that less often, for any number of samples: with few, the AUROC is bounded
    and its tails are lighter than those of the normal distribution.

    The score of pairs, and a measure that the configuration serves, give a warning; other measures
    give a notice, because answers do not depend on them.
    """
    worst = _worst(r for r in _rankings(evidence) if 0.5 - r.auroc > REVERSED_Z * r.error)
    if worst is None:
        return None
    rule = (
        "Larger scores must mean more certain, and `correct` must be 1 where the answer was right."
        if worst.measure == SCORE
        else "Larger values of a measure must mean less certain."
    )
    return finding(
        "score-reversed",
        worst.level,
        "{words} is more certain about wrong answers than about right ones: AUROC {auroc:.3f} on "
        f"{{right:,}} right and {{wrong:,}} wrong answers, clearly below 0.5. {rule}",
        words=worst.words,
        **worst.figures,
    )


def score_near_chance(evidence: RecordedSet) -> Finding | None:
    """Find a supplied score that is no better than chance, where samples suffice to tell.

    The AUROC is not above 0.5 at a level of 1 %, nor clearly below it. Samples suffice if a score
    with an AUROC of 0.6 would fail this test at most one time in 1,000, which bounds false alarms
    for all scores that are at least as good. This takes about 500 right and 500 wrong answers, or
    280 wrong ones among very many.
    """
    worst = _worst(
        r
        for r in _rankings(evidence)
        if -REVERSED_Z * r.error <= r.auroc - 0.5 <= ABOVE_CHANCE_Z * r.error
        and (ABOVE_CHANCE_Z + POWER_Z) * r.error <= USEFUL_AUROC - 0.5
    )
    if worst is None:
        return None
    return finding(
        "score-near-chance",
        worst.level,
        "{words} does not tell right from wrong answers: AUROC {auroc:.3f} on {right:,} right and "
        "{wrong:,} wrong answers, not clearly above the 0.5 of chance. Scores and answers may "
        "belong to other rows.",
        words=worst.words,
        **worst.figures,
    )


def _worst(rankings: Iterable[_Ranking]) -> _Ranking | None:
    """Return the ranking to report: warnings come before notices."""
    return min(rankings, key=lambda one: (one.level == "notice", one.auroc), default=None)


def _rankings(evidence: RecordedSet) -> list[_Ranking]:
    """Return the rankings of all supplied scores that have right and wrong answers."""
    records, hits = evidence.records, evidence.records.hits(1)
    measures = {SCORE: True} if evidence.source == "pairs" else dict(evidence.supplied)
    if hits.all() or not hits.any():
        return []
    return [
        _Ranking(
            name, "warning" if serves else "notice", *auroc_of(uncertainty, hits, records.design)
        )
        for name, serves in measures.items()
        if (uncertainty := records.uncertainty.get(column(name, 1))) is not None
    ]


def auroc_of(
    uncertainty: Uncertainty, hits: Hits, design: SampleDesign
) -> tuple[float, float, int, int]:
    """Return the AUROC of an uncertainty, a standard error that is not too small, hits and errors.

    The standard error is the larger one of two: that of a score without any relation to the hits
    (Mann & Whitney 1947), and that of DeLong et al. 1988, with samples of one group taken together
    (Obuchowski 1997). There must be hits and errors.
    """
    ranked = rank_samples(uncertainty, hits)
    n_hits, n_errors = len(hits) - ranked.n_errors, ranked.n_errors
    block = np.searchsorted(ranked.values[ranked.ends - 1], uncertainty)
    block_hits, block_errors = ranked.block_hits, ranked.block_errors
    # The share of hits that are more certain than an error, of errors less certain than a hit.
    above = (np.cumsum(block_hits) - block_hits / 2.0)[block] / n_hits
    below = (n_errors - np.cumsum(block_errors) + block_errors / 2.0)[block] / n_errors
    auroc = float(above[~hits].mean())
    influence = np.where(hits, (below - auroc) / n_hits, (above - auroc) / n_errors)
    influence = np.bincount(design.groups(hits.size), influence)
    unrelated = (n_hits + n_errors + 1) / (12.0 * n_hits * n_errors)
    error = float(np.sqrt(max(unrelated, np.square(influence).sum())))
    return auroc, error, n_hits, n_errors
