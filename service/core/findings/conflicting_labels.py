"""Whether one and the same sample has several labels."""

import numpy as np

from service.core.findings.evidence import Evidence
from service.core.findings.finding import Finding

CODE = "conflicting-labels"
NOTICE_SHARE, WARNING_SHARE = 0.001, 0.01


def conflicting_labels(evidence: Evidence) -> Finding | None:
    """Find copies of a sample with other labels: a notice from 0.1 % of the set, 1 % a warning.

    No model can be right about all of them. How copies are told, and how seldom in error, stands in
    `service.core.findings.same_samples`.
    """
    if evidence.copies is None:
        return None
    group, n = evidence.copies.group, evidence.records.n_samples
    kinds = np.unique(np.column_stack([group, evidence.labels]), axis=0)[:, 0]
    conflicting = np.bincount(kinds, minlength=n) > 1
    samples = int(np.count_nonzero(conflicting[group]))
    share = samples / n
    if samples == 0 or share < NOTICE_SHARE:
        return None
    groups = int(np.count_nonzero(conflicting))
    return Finding(
        CODE,
        "warning" if share >= WARNING_SHARE else "notice",
        f"{samples:,} of {n:,} samples ({share:.1%}) are {groups:,} samples that were sent several "
        "times with different labels: no model can be right about all of them. Look at how these "
        "were labelled.",
        {"conflicting": samples, "groups": groups, "samples": n, "share": share},
    )
