"""Whether samples are there more than once."""

from service.core.findings.evidence import Evidence
from service.core.findings.finding import Finding

CODE = "duplicate-samples"
NOTICE_SHARE, WARNING_SHARE = 0.005, 0.05
LEAST_COPIES = 2


def duplicate_samples(evidence: Evidence) -> Finding | None:
    """Find samples that are copies of others: a notice from 0.5 % of the set, a warning from 5 %.

    Copies are told by `service.core.findings.same_samples`, which errs in less than one sample of
    the largest sets; what is left is data that repeats itself, and then the finding is true.
    """
    if evidence.copies is None:
        return None
    n, copies = evidence.records.n_samples, evidence.copies.n_copies
    share = copies / n
    if copies < LEAST_COPIES or share < NOTICE_SHARE:
        return None
    what = "samples" if evidence.source == "inputs" else "rows of logits"
    return Finding(
        CODE,
        "warning" if share >= WARNING_SHARE else "notice",
        f"{copies:,} of {n:,} {what} ({share:.1%}) are copies of another. Copies count several "
        "times: intervals are narrower, and cross-validation is kinder, than they should be.",
        {"copies": copies, "samples": n, "share": share},
    )
