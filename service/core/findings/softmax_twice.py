"""Whether a softmax was applied to what were probabilities already."""

import numpy as np
from scipy.special import betaincinv

from service.core.findings.evidence import Evidence
from service.core.findings.finding import Finding

CODE = "softmax-twice"
LEVEL = 1e-4
LEAST_GAP = 0.1
SLACK = 1e-3  # of log-odds: float16 probabilities
LEAST_SAMPLES = 20


def softmax_twice(evidence: Evidence) -> Finding | None:
    """Find confidences that a softmax of probabilities cannot exceed, on samples that are easier.

    Probabilities lie between 0 and 1, so that no class of their softmax has more than
    ``e / (e + n_classes - 1)``. If none has, the accuracy is 10 points above the mean confidence,
    and the lower end of its exact interval (Clopper & Pearson 1934, at 0.01 %) is above it, too,
    then the scores are no logits. On samples of a calibrated model the last condition fails all but
    one time in 10,000. A binary model that applies its sigmoid twice names one class only and is
    not found here.
    """
    n, hits = evidence.records.n_samples, evidence.n_hits
    log_odds = evidence.records.top_log_odds[:, 0].astype(np.float64)
    bound = 1.0 - np.log(evidence.n_classes - 1)  # log-odds of e / (e + n_classes - 1)
    if n < LEAST_SAMPLES or log_odds.max() > bound + SLACK:
        return None
    mean = float(evidence.confidence.mean())
    lower = float(betaincinv(max(hits, 1), n - hits + 1, LEVEL)) if hits else 0.0
    if evidence.accuracy - mean < LEAST_GAP or lower <= mean:
        return None
    most, largest = 1.0 / (1.0 + np.exp(-bound)), float(evidence.confidence.max())
    return Finding(
        CODE,
        "warning",
        f"No sample has a confidence above {largest:.3f}, where a softmax of probabilities of "
        f"{evidence.n_classes:,} classes ends at {most:.3f}, yet Top-1 accuracy is "
        f"{evidence.accuracy:.1%} (mean confidence {mean:.1%}, {n:,} samples). The scores were "
        "probabilities already: say so, or leave out the second softmax.",
        {
            "largest_confidence": largest,
            "bound": float(most),
            "mean_confidence": mean,
            "accuracy": evidence.accuracy,
            "samples": n,
        },
    )


def said_to_be_logits(n_samples: int) -> Finding:
    """Return the finding for an output that is said to hold logits and shows probabilities."""
    return Finding(
        CODE,
        "warning",
        f"output.kind says logits, but on {n_samples} samples no value is negative and every row "
        "sums to 1, as probabilities do: a softmax of probabilities is no classifier's. Leave the "
        "kind out, or say probabilities.",
        {"samples": n_samples},
    )
