"""Findings: what looks wrong with an upload."""

from collections.abc import Mapping
from typing import Protocol

from howsure.statistics.findings.accuracy import accuracy_differs, accuracy_near_chance
from howsure.statistics.findings.classes import (
    classes_not_predicted,
    classes_not_seen,
    few_samples_for_bins,
)
from howsure.statistics.findings.duplicates import conflicting_labels, duplicate_samples
from howsure.statistics.findings.evidence import (
    Finding,
    LabelCounts,
    Level,
    RecordedSet,
    RescaledTrial,
)
from howsure.statistics.findings.inputs_scale import (
    inputs_not_scaled,
    inputs_scaled_twice,
    rescaling_factor,
)
from howsure.statistics.findings.labels import labels_permuted, labels_shifted
from howsure.statistics.findings.outputs import not_probabilities, said_to_be_logits, softmax_twice

__all__ = [
    "FINDINGS",
    "RESCALED_FINDINGS",
    "UPLOAD_FINDINGS",
    "Check",
    "Finding",
    "LabelCounts",
    "Level",
    "RecordedSet",
    "RescaledTrial",
    "count_labels",
    "rescaling_factor",
    "run_checks",
    "said_to_be_logits",
]


class Check(Protocol):
    """Check for one thing that may be wrong."""

    def __call__(self, evidence: RecordedSet, /) -> Finding | None:
        """Return what was found, or None."""


# By code, the likeliest cause of all others first: in this order they are told.
FINDINGS: Mapping[str, Check] = {
    "inputs-not-scaled": inputs_not_scaled,
    "inputs-scaled-twice": inputs_scaled_twice,
    "labels-shifted": labels_shifted,
    "labels-permuted": labels_permuted,
    "softmax-twice": softmax_twice,
    "not-probabilities": not_probabilities,
    "accuracy-near-chance": accuracy_near_chance,
    "accuracy-differs": accuracy_differs,
    "duplicate-samples": duplicate_samples,
    "conflicting-labels": conflicting_labels,
    "classes-not-seen": classes_not_seen,
    "classes-not-predicted": classes_not_predicted,
    "few-samples-for-bins": few_samples_for_bins,
}


RESCALED_FINDINGS = ("inputs-not-scaled", "inputs-scaled-twice")
# What an upload may show, its model and inputs at hand, that no record tells again.
UPLOAD_FINDINGS = frozenset({*RESCALED_FINDINGS, "softmax-twice"})


def count_labels(labelled: LabelCounts) -> list[Finding]:
    """Return what the labels alone tell, before any model has run."""
    found = (classes_not_seen(labelled), few_samples_for_bins(labelled))
    return [finding for finding in found if finding is not None]


def run_checks(evidence: RecordedSet) -> list[Finding]:
    """Return all that looks wrong with a set, in the order of `FINDINGS`."""
    found = (look(evidence) for look in FINDINGS.values())
    return [finding for finding in found if finding is not None]
