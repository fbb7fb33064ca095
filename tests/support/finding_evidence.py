"""Recorded sets for findings: samples of simulated models, clean and with a fault made to order."""

import numpy as np
from scipy.special import log_softmax

from howsure.statistics.findings import run_checks
from howsure.statistics.findings.evidence import RecordedSet
from howsure.statistics.records.build import build_records
from howsure.statistics.records.order import tie_keys


def calibrated(n_samples, *, n_classes=10, seed=0, spread=3.0):
    """Logits, and labels drawn from their softmax: what they say of themselves is true."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n_samples, n_classes)) * spread
    cumulated = np.cumsum(np.exp(log_softmax(logits, axis=1)), axis=1)
    labels = (cumulated < rng.random((n_samples, 1))).sum(axis=1)
    return logits, np.minimum(labels, n_classes - 1)


def records_of(scores, labels, *, inputs=None, top_k=(1,), logits=True):
    """Records as a job makes them; the tie keys are of the inputs, if any are given."""
    keys = tie_keys(np.asarray(scores if inputs is None else inputs), seed=0)
    return build_records(scores, labels, tie_keys=keys, top_k=top_k, logits=logits)


def evidence_of(scores, labels, *, inputs=None, n_first=None, probabilities=False, **others):
    """Recorded set of logits or, if so said, probabilities; of the first samples alone if asked."""
    values = np.asarray(scores, dtype=np.float64)
    if probabilities:
        with np.errstate(divide="ignore"):
            values = np.log(values)
    counts = np.bincount(labels, minlength=values.shape[1])
    first = slice(n_first)
    records = records_of(
        values[first],
        np.asarray(labels)[first],
        inputs=None if inputs is None else inputs[first],
        logits=not probabilities,
    )
    return RecordedSet(
        records=records,
        class_counts=counts,
        probabilities=probabilities,
        **{"source": "inputs", **others},
    )


def found_in(scores, labels, **others):
    """What is found, by code."""
    found = run_checks(evidence_of(scores, labels, **others))
    assert len({finding.code for finding in found}) == len(found)
    return {finding.code: finding for finding in found}
