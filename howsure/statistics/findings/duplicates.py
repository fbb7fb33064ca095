"""Findings on copies: in a set, in both sets, and with different labels."""

import numpy as np

from howsure.statistics.arrays import Counts
from howsure.statistics.findings.evidence import Finding, RecordedSet, finding, groups_of_copies
from howsure.statistics.records.records import Records

COPIES_NOTICE, COPIES_WARNING = 0.005, 0.05
LEAST_COPIES = 2
# So many different samples do not all occur equally often, or equally often in two sets, by chance.
LEAST_DISTINCT = 30


def duplicate_samples(evidence: RecordedSet) -> Finding | None:
    """Find samples that are copies of others: a notice from 0.5 % of the set, a warning from 5 %.

    `howsure.statistics.findings.evidence` recognises copies, with less than one expected error even
    in the largest sets. All other matches are real repetitions. Where equal samples are no copies,
    only a set that is repeated as a whole is found.
    """
    if evidence.copies is None:
        return _repeated_set(evidence)
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


def _repeated_set(evidence: RecordedSet) -> Finding | None:
    """Find a set in which each sample occurs a multiple of two, or of three times and so on."""
    counts = _occurrences(evidence.records)
    n, times = evidence.records.n_samples, int(np.gcd.reduce(counts))
    if not evidence.is_whole or len(counts) < LEAST_DISTINCT or times < LEAST_COPIES:
        return None
    return finding(
        "duplicate-samples",
        "warning",
        "Each of the {samples:,} samples occurs {times} times, or a multiple of that, so the set "
        "was probably repeated. Copies count several times, so intervals are too narrow and "
        "cross-validated scores too good.",
        times=times,
        copies=n - n // times,
        samples=n,
        share=1.0 - 1.0 / times,
    )


def samples_in_both_sets(evidence: RecordedSet) -> Finding | None:
    """Find samples for evaluation that the calibration was fitted to, at the same shares as copies.

    Where equal samples are no copies, only two equal sets are found, or one file sent twice.
    """
    ours, theirs = evidence.records, evidence.evaluation
    if theirs is None or not evidence.is_whole:
        return None
    n = theirs.n_samples
    if evidence.is_same_file:
        again = n
    elif evidence.copies is None:
        same = ours.n_samples == n and len(_occurrences(ours)) >= LEAST_DISTINCT
        again = n if same and np.array_equal(_identities(ours), _identities(theirs)) else 0
    else:
        group = groups_of_copies(ours, theirs)
        again = int(np.count_nonzero(np.isin(group[-n:], group[:-n])))
    if again < LEAST_COPIES or again / n < COPIES_NOTICE:
        return None
    return finding(
        "samples-in-both-sets",
        "warning" if again / n >= COPIES_WARNING else "notice",
        "{copies:,} of {samples:,} samples for evaluation ({share:percent}) are in the calibration "
        "set too. The tables were fitted to them, so scores on them are too good.",
        copies=again,
        samples=n,
        share=again / n,
    )


def _identities(records: Records) -> Counts:
    """Return key and label of each sample, sorted."""
    found = np.column_stack([records.tie_key, records.label]).astype(np.int64)
    return found[np.lexsort(found.T)]


def _occurrences(records: Records) -> Counts:
    """Return how often each different sample occurs."""
    # `np.unique` of rows would stop all other threads for a second per million samples.
    changes = np.diff(_identities(records), axis=0).any(axis=1)
    return np.diff(np.flatnonzero(np.concatenate([[True], changes, [True]])))


CONFLICTS_NOTICE, CONFLICTS_WARNING = 0.001, 0.01


def conflicting_labels(evidence: RecordedSet) -> Finding | None:
    """Find copies with different labels: a notice from 0.1 % of the set, a warning from 1 %.

    No model can be right about all of them. `howsure.statistics.findings.evidence` describes how
    copies are recognised and how rarely this errs.
    """
    if evidence.copies is None:
        return None
    group, n = evidence.copies, evidence.records.n_samples
    n_classes = int(evidence.labels.max(initial=0)) + 1
    kinds = np.unique(group.astype(np.int64) * n_classes + evidence.labels) // n_classes
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
