"""Findings: what looks wrong with an upload, each in a file, judged by what was recorded."""

from collections.abc import Mapping
from typing import Protocol

from service.core.findings.accuracy_differs import accuracy_differs
from service.core.findings.accuracy_near_chance import accuracy_near_chance
from service.core.findings.classes_not_predicted import classes_not_predicted
from service.core.findings.classes_not_seen import classes_not_seen
from service.core.findings.conflicting_labels import conflicting_labels
from service.core.findings.duplicate_samples import duplicate_samples
from service.core.findings.evidence import Evidence, LabelledSet, Rescaled
from service.core.findings.few_samples_for_bins import few_samples_for_bins
from service.core.findings.finding import Finding, Level
from service.core.findings.inputs_scale import (
    inputs_not_scaled,
    inputs_scaled_twice,
    rescaling_factor,
)
from service.core.findings.labels_permuted import labels_permuted
from service.core.findings.labels_shifted import labels_shifted
from service.core.findings.not_probabilities import not_probabilities
from service.core.findings.softmax_twice import said_to_be_logits, softmax_twice

__all__ = [
    "FINDINGS",
    "RESCALED_FINDINGS",
    "UPLOAD_FINDINGS",
    "Evidence",
    "Finding",
    "LabelledSet",
    "Level",
    "Look",
    "Rescaled",
    "count_labels",
    "look_for_findings",
    "rescaling_factor",
    "said_to_be_logits",
]


class Look(Protocol):
    """Look for one thing that may be wrong."""

    def __call__(self, evidence: Evidence, /) -> Finding | None:
        """Return what was found, or None."""


# By code, the likeliest cause of all others first: in this order they are told.
FINDINGS: Mapping[str, Look] = {
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


def count_labels(labelled: LabelledSet) -> list[Finding]:
    """Return what the labels alone tell, before any model has run."""
    found = (classes_not_seen(labelled), few_samples_for_bins(labelled))
    return [finding for finding in found if finding is not None]


def look_for_findings(evidence: Evidence) -> list[Finding]:
    """Return all that looks wrong with a set, in the order of `FINDINGS`."""
    found = (look(evidence) for look in FINDINGS.values())
    return [finding for finding in found if finding is not None]
