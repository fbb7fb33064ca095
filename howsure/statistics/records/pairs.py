"""Records of pairs: a score of any origin, and whether the answer that it rates was correct.

A pair is recorded as the two-class outcome *correct* or *wrong*, with *correct* always predicted
and the score as its log-odds. Tables, baselines, scores, evaluations and storage then need no case
of their own: the one event, Top-1, is that the answer was correct. The measure `score` is the score
itself with its sign changed, so bins keep the caller's scale.
"""

import numpy as np

from howsure.statistics.arrays import Floats, Hits, Uncertainty
from howsure.statistics.measures import SCORE, column
from howsure.statistics.records.order import tie_keys
from howsure.statistics.records.records import TEMPERATURES, Records

CORRECT, WRONG = 0, 1
CLASS_NAMES = ("correct", "wrong")
# Beyond these the log-odds approach their limits: log1p(exp(-80)) is a normal number in float32.
LINEAR, LIMIT = 40.0, 80.0


def are_probabilities(scores: Floats) -> bool:
    """Tell whether all scores lie in [0, 1], so that baselines read them as probabilities."""
    return bool(scores.size and scores.min() >= 0.0 and scores.max() <= 1.0)


def score_log_odds(scores: Floats, *, probabilities: bool) -> Floats:
    """Return the log-odds that baselines read from scores, shape (n_samples,), in [-80, 80].

    Those of a probability, which rounding may have moved beyond 0 or 1, or else the score itself.
    Values beyond 40 are drawn in strictly, so their order stays.
    """
    x = scores.astype(np.float64)
    if probabilities:
        p = np.clip(x, 0.0, 1.0)
        with np.errstate(divide="ignore"):
            x = np.log(p) - np.log1p(-p)
    far = np.abs(x) > LINEAR
    drawn = np.sign(x) * (LIMIT - LINEAR**2 / np.maximum(np.abs(x), LINEAR))
    return np.asarray(np.where(far, drawn, x))


def pair_rows(scores: Floats, *, probabilities: bool) -> Floats:
    """Return the logits of *correct* and *wrong*, shape (n_samples, 2)."""
    log_odds = score_log_odds(scores, probabilities=probabilities)
    return np.stack([log_odds, np.zeros_like(log_odds)], axis=1)


def build_pair_records(
    rows: Floats, correct: Hits, uncertainty: Uncertainty, *, seed: int
) -> Records:
    """Make one record per pair.

    Parameters
    ----------
    rows : ndarray of float64, shape (n_samples, 2)
        As `pair_rows` returns them.
    correct : ndarray of bool, shape (n_samples,)
    uncertainty : ndarray of float32, shape (n_samples,)
        The negative scores.
    seed : int
        Of the tie keys.

    Raises
    ------
    ValueError
        If a shape differs or a value is not finite.
    """
    log_odds = rows[:, 0]
    n_samples = len(log_odds)
    p = 1.0 / (1.0 + np.exp(-log_odds))
    wrong = np.where(correct, CORRECT, WRONG).astype(np.int32)
    neg_log_mass = np.logaddexp(0.0, -log_odds)
    grid = np.logaddexp(0.0, -log_odds[:, np.newaxis] / TEMPERATURES)
    return Records(
        tie_key=tie_keys(rows, seed),
        label=wrong,
        top_classes=np.full((n_samples, 1), CORRECT, np.int32),
        top_log_odds=log_odds.astype(np.float32)[:, np.newaxis],
        label_rank=wrong.copy(),  # records may be moved in place
        label_log_probability=-np.logaddexp(0.0, np.where(correct, -log_odds, log_odds)),
        sum_squares=np.square(p) + np.square(1.0 - p),
        log_sum_exp=grid.astype(np.float32),
        label_logit=np.where(correct, 0.0, -log_odds).astype(np.float32),
        top_logits=np.zeros((n_samples, 1), np.float32),
        uncertainty={
            column(SCORE, 1): uncertainty,
            column("neg_log_topk_mass", 1): neg_log_mass.astype(np.float32),
        },
    )
