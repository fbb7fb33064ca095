"""Findings on copies: duplicate samples, and copies with different labels."""

import numpy as np

from howsure.statistics.findings.evidence import Finding, RecordedSet, finding

COPIES_NOTICE, COPIES_WARNING = 0.005, 0.05
LEAST_COPIES = 2


def duplicate_samples(evidence: RecordedSet) -> Finding | None:
    """Find samples that are copies of others: a notice from 0.5 % of the set, a warning from 5 %.

    `howsure.statistics.findings.evidence` recognises copies, with less than one expected error even
    in the largest sets. All other matches are real repetitions.
    """
    if evidence.copies is None:
        return None
    n = evidence.records.n_samples
    copies = n - len(np.unique(evidence.copies))
    share = copies / n
    if copies < LEAST_COPIES or share < COPIES_NOTICE:
        return None
    return finding(
        "duplicate-samples",
        "warning" if share >= COPIES_WARNING else "notice",
        "{copies:,} of {samples:,} {words} ({share:percent}) are copies of another. Copies count "
        "several times, so intervals are too narrow and cross-validated scores too good.",
        words="samples" if evidence.source == "inputs" else "rows of logits",
        copies=copies,
        samples=n,
        share=share,
    )


CONFLICTS_NOTICE, CONFLICTS_WARNING = 0.001, 0.01


def conflicting_labels(evidence: RecordedSet) -> Finding | None:
    """Find copies with different labels: a notice from 0.1 % of the set, a warning from 1 %.

    No model can be right about all of them. `howsure.statistics.findings.evidence` describes how
    copies are recognised and how rarely this errs.
    """
    if evidence.copies is None:
        return None
    group, n = evidence.copies, evidence.records.n_samples
    kinds = np.unique(np.column_stack([group, evidence.labels]), axis=0)[:, 0]
    conflicting = np.bincount(kinds, minlength=n) > 1
    samples = int(np.count_nonzero(conflicting[group]))
    share = samples / n
    if samples == 0 or share < CONFLICTS_NOTICE:
        return None
    return finding(
        "conflicting-labels",
        "warning" if share >= CONFLICTS_WARNING else "notice",
        "{conflicting:,} of {samples:,} samples ({share:percent}) have a copy with another label. "
        "No model can be right about all of them. Check how they were labelled.",
        conflicting=samples,
        groups=int(np.count_nonzero(conflicting)),
        samples=n,
        share=share,
    )
