"""Whether what was declared to be probabilities are votes."""

import numpy as np

from service.core.findings.evidence import Evidence
from service.core.findings.finding import Finding

CODE = "not-probabilities"
LEAST_SHARE = 0.99
LEAST_SAMPLES = 20


def not_probabilities(evidence: Evidence) -> Finding | None:
    """Find probabilities of exactly 1 and 0 in nearly every sample: these are predictions.

    A softmax in float32 that is as sure as can be still leaves the other classes some 1e-10, and
    one class in 100 samples may round to 1; 99 of 100 with not a trace of another class do not.
    Votes that are always right are let pass: there is nothing to calibrate, and nothing wrong.
    """
    n = evidence.records.n_samples
    certain = int(np.count_nonzero(np.isposinf(evidence.records.top_log_odds[:, 0])))
    if not evidence.probabilities or n < LEAST_SAMPLES or certain < LEAST_SHARE * n:
        return None
    if evidence.n_hits == n:
        return None
    return Finding(
        CODE,
        "warning",
        f"{certain:,} of {n:,} samples have a probability of exactly 1 for one class and 0 for all "
        f"others, and {evidence.accuracy:.1%} of all are right: these are predictions, not "
        "probabilities. Send what the model gives before its argmax.",
        {"certain": certain, "samples": n, "accuracy": evidence.accuracy},
    )
