"""Findings: likely problems of an upload."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from howsure.statistics.findings.accuracy import accuracy_differs, accuracy_near_chance, no_errors
from howsure.statistics.findings.classes import (
    classes_not_predicted,
    classes_not_seen,
    few_samples_for_bins,
)
from howsure.statistics.findings.denied import surest_answers_denied
from howsure.statistics.findings.duplicates import (
    conflicting_labels,
    duplicate_samples,
    samples_in_both_sets,
)
from howsure.statistics.findings.evidence import Finding, LabelCounts, RecordedSet
from howsure.statistics.findings.labels import labels_permuted, labels_shifted
from howsure.statistics.findings.outputs import not_probabilities, softmax_twice
from howsure.statistics.findings.preparations import NOT_SCALED, SCALED_TWICE, WRONG_PREPROCESSING
from howsure.statistics.findings.preprocessing import inputs_out_of_range, wrong_preparation
from howsure.statistics.findings.scores import score_near_chance, score_reversed

IN_BOTH_SETS = "samples-in-both-sets"
OUT_OF_RANGE = "inputs-out-of-range"
SOFTMAX_TWICE = "softmax-twice"
REVERSED = "score-reversed"
LABEL_OUTPUT = "label-output-differs"
NEAR_CHANCE = "accuracy-near-chance"
# Findings that run the model again on inputs prepared in other ways.
PREPARATION_FINDINGS = (NOT_SCALED, SCALED_TWICE, WRONG_PREPROCESSING)
# The check for each code, in the order of report: a finding comes before those it may cause.
FINDINGS: Mapping[str, Callable[[RecordedSet], Finding | None]] = {
    **{code: partial(wrong_preparation, code=code) for code in PREPARATION_FINDINGS},
    "labels-shifted": labels_shifted,
    "labels-permuted": labels_permuted,
    SOFTMAX_TWICE: softmax_twice,
    "not-probabilities": not_probabilities,
    LABEL_OUTPUT: lambda _evidence: None,  # found while the model is tried
    NEAR_CHANCE: accuracy_near_chance,
    REVERSED: score_reversed,
    "score-near-chance": score_near_chance,
    OUT_OF_RANGE: inputs_out_of_range,
    "accuracy-differs": accuracy_differs,
    "no-errors": no_errors,
    IN_BOTH_SETS: samples_in_both_sets,
    "duplicate-samples": duplicate_samples,
    "conflicting-labels": conflicting_labels,
    "surest-answers-denied": surest_answers_denied,
    "classes-not-seen": classes_not_seen,
    "classes-not-predicted": classes_not_predicted,
    "few-samples-for-bins": few_samples_for_bins,
}
# Findings that need the model and the inputs of the upload: records alone cannot repeat them.
UPLOAD_FINDINGS = frozenset({*PREPARATION_FINDINGS, SOFTMAX_TWICE, LABEL_OUTPUT, OUT_OF_RANGE})
# Findings about the labels, with the figure of the accuracy with other labels, and about the
# scores, of any labelled set.
LABEL_FINDINGS = {"labels-shifted": "shifted_accuracy", "labels-permuted": "matched_accuracy"}
SCORE_FINDINGS = (REVERSED, "score-near-chance")
# Findings about a set of pairs, which has no classes.
PAIR_FINDINGS = (
    *SCORE_FINDINGS,
    "accuracy-differs",
    "no-errors",
    IN_BOTH_SETS,
    "duplicate-samples",
    "few-samples-for-bins",
)


def count_labels(labelled: LabelCounts, *, pairs: bool) -> list[Finding]:
    """Return the findings about labels alone, before any model has run."""
    found = (None if pairs else classes_not_seen(labelled), few_samples_for_bins(labelled))
    return [finding for finding in found if finding is not None]


def run_checks(evidence: RecordedSet, codes: Sequence[str] | None = None) -> list[Finding]:
    """Return the findings about a set, of these codes or of all that suit it, in their order."""
    if codes is None:
        codes = PAIR_FINDINGS if evidence.source == "pairs" else tuple(FINDINGS)
    found = (FINDINGS[code](evidence) for code in codes)
    return [finding for finding in found if finding is not None]
