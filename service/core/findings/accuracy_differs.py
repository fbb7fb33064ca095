"""Whether the model does much better on one of the two sets."""

from service.core.findings.evidence import Evidence
from service.core.findings.finding import Finding

CODE = "accuracy-differs"
LEVEL = 1e-3
LEAST_DIFFERENCE = 0.05


def accuracy_differs(evidence: Evidence) -> Finding | None:
    """Find that calibration and evaluation set differ by 5 points of accuracy or more.

    By Fisher's exact test at 0.1 %, two-sided: two sets of one population raise an alarm at most so
    often. With 1,000 samples each, 82 % and 90 % are told apart in 97 of 100 cases.
    """
    if evidence.evaluation is None or not evidence.is_whole:
        return None
    ours, n = evidence.n_hits, evidence.records.n_samples
    theirs, m = int(evidence.evaluation.hits(1).sum()), evidence.evaluation.n_samples
    accuracy, other = ours / n, theirs / m
    if abs(accuracy - other) < LEAST_DIFFERENCE:
        return None
    from scipy.stats import fisher_exact  # noqa: PLC0415 - half a second, and seldom asked

    _, p_value = fisher_exact([[ours, n - ours], [theirs, m - theirs]])
    if p_value > LEVEL:
        return None
    return Finding(
        CODE,
        "warning",
        f"Top-1 accuracy is {accuracy:.1%} on {n:,} calibration samples and {other:.1%} on {m:,} "
        "evaluation samples, further apart than chance allows. One of the two sets may have been "
        "trained on, mislabelled or collected elsewhere.",
        {
            "accuracy": accuracy,
            "evaluation_accuracy": other,
            "samples": n,
            "evaluation_samples": m,
        },
    )
