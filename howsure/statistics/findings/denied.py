"""The finding that the surest answers disagree with their labels."""

import numpy as np
import scipy  # whose parts are imported when first used
from scipy.special import bdtrc, expit

from howsure.statistics.arrays import Floats, Hits
from howsure.statistics.findings.evidence import Finding, RecordedSet, finding

SUREST, MOST_SAMPLES, MOST_ROWS = 10, 50_000, 5  # a tenth is the surest
LEAST_GAIN = 10.8  # twice the log-likelihood of one more parameter: a level of 0.05 %
LEVEL = 1e-3
MOST_WRONG, LIMIT = 0.5, 25.0  # above it something else is wrong; of log-odds


def surest_answers_denied(evidence: RecordedSet) -> Finding | None:
    """Find errors among the surest answers that the trend of all answers does not explain.

    Labels that are wrong at random are denied by sure answers as often as by others, so that the
    error rate stops falling. The hits follow ``(1 - e) / (1 + exp(-a - b x))``, with x the
    log-odds of the model's own probability. Two tests must fail: that e is 0, by the likelihood
    ratio at 0.05 %, and that the surest tenth has no more errors than the curve for e = 0 of the
    other answers would have, by the exact binomial test at 0.1 %. In simulations none of 1,280
    clean sets of calibrated, overconfident, noisy and bad models failed both; with 3 % false labels
    and a model that is right in 86 %, half of the sets of 600 samples do, and all of 2,000.
    """
    records = evidence.records
    if evidence.source == "pairs" or not records.design.is_plain:
        return None
    rows = np.arange(0, records.n_samples, 1 + records.n_samples // MOST_SAMPLES)
    odds = np.clip(records.top_log_odds[rows, 0].astype(np.float64), -LIMIT, LIMIT)
    hits = records.hits(1)[rows]
    surest = np.argsort(-odds, kind="stable")[: len(rows) // SUREST]
    denied = surest[~hits[surest]]
    if not 1 < len(denied) < MOST_WRONG * len(surest):
        return None
    plain, _ = _fit(odds, hits, floor=False)
    mixed, (intercept, slope, share) = _fit(odds, hits, floor=True)
    expected = float(expit(-intercept - slope * odds[surest]).sum())
    p_value = bdtrc(len(denied) - 1, len(surest), min(expected / len(surest), 1.0))
    if 2.0 * (plain - mixed) <= LEAST_GAIN or p_value > LEVEL:
        return None
    return finding(
        "surest-answers-denied",
        "notice",
        "Of the {surest:,} surest answers, {wrong:,} disagree with their labels; by the trend of "
        "the other answers it would be about {expected:.1f}. About {share:percent} of all labels "
        "may be wrong. The first rows, counted from 0: {words}.",
        words=", ".join(str(row) for row in rows[denied[:MOST_ROWS]]),
        surest=len(surest),
        wrong=len(denied),
        expected=expected,
        share=share,
        rows=[int(row) for row in rows[denied[:MOST_ROWS]]],
    )


def _fit(odds: Floats, hits: Hits, *, floor: bool) -> tuple[float, tuple[float, float, float]]:
    """Return the least negative log-likelihood, with intercept, slope and share of wrong labels."""

    def read(values: Floats) -> tuple[float, float, float]:
        share = 0.5 * float(expit(values[2])) if floor else 0.0
        return float(values[0]), float(np.exp(values[1])), share

    def loss(values: Floats) -> float:
        intercept, slope, share = read(values)
        right = (1.0 - share) * expit(intercept + slope * odds)
        right = np.clip(right, 1e-12, 1.0 - 1e-12)
        return float(-np.log(np.where(hits, right, 1.0 - right)).sum())

    starts = ([0.0, np.log(slope), *([-3.5] * floor)] for slope in (1.0, 0.3))
    best = min(
        (scipy.optimize.minimize(loss, start, method="BFGS") for start in starts),
        key=lambda one: one.fun,
    )
    return float(best.fun), read(best.x)
