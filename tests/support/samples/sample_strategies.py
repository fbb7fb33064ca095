"""Hypothesis strategies and simulated sets for the statistics."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from scipy.special import log_softmax

from howsure.statistics.bins.fit import fit_bin_table
from howsure.statistics.findings import run_checks
from howsure.statistics.findings.evidence import RecordedSet
from howsure.statistics.fit.calibration import fit_calibration
from howsure.statistics.fit.cross_validation import predict_with_table
from howsure.statistics.fit.options import FitOptions
from howsure.statistics.records.build import build_records
from howsure.statistics.records.order import tie_keys
from howsure.statistics.scores import Predictions


@st.composite
def logit_blocks(draw, *, max_samples=6, max_classes=12, ruled_out=True):
    """Blocks of logits with ties (few distinct values) and, if asked, ``-inf`` classes."""
    shape = (draw(st.integers(1, max_samples)), draw(st.integers(2, max_classes)))
    values = st.one_of(
        st.sampled_from([-3.0, -1.0, 0.0, -0.0, 2.0]),
        st.floats(-50.0, 50.0),
        *([st.just(-np.inf)] if ruled_out else []),
    )
    logits = draw(npst.arrays(np.float64, shape, elements=values))
    dead = np.isneginf(logits).all(axis=1)
    logits[dead, 0] = 0.0
    return logits


@st.composite
def uncertainties(draw, *, max_samples=60):
    """Float32 uncertainties with heavy ties, neighbours in float32, zeros and denormals."""
    base = np.float32(0.25)
    above = np.nextafter(base, np.float32(1))
    neighbours = [base, above, np.nextafter(above, np.float32(1))]
    near_zero = [0.0, 1e-40, 2e-37, -2e-37, -9e-38]
    crowded = np.array([*near_zero, *neighbours, 1.0, 7.5], dtype=np.float32).tolist()
    values = st.one_of(st.sampled_from(crowded), st.floats(-8.0, 8.0, width=32))
    return draw(npst.arrays(np.float32, st.integers(1, max_samples), elements=values))


@st.composite
def judged_uncertainties(draw, *, max_samples=60):
    """An array of uncertainties and the hits that go with it."""
    uncertainty = draw(uncertainties(max_samples=max_samples))
    return uncertainty, draw(npst.arrays(np.bool_, uncertainty.shape))


@st.composite
def binomial_counts(draw, *, max_bins=8, max_count=3000):
    """Hits and counts of some bins, none of them empty."""
    counts = draw(st.lists(st.integers(1, max_count), min_size=1, max_size=max_bins))
    hits = [draw(st.integers(0, count)) for count in counts]
    return np.array(hits, dtype=np.int64), np.array(counts, dtype=np.int64)


@st.composite
def judged_by_table(draw, *, lookups=("step", "interpolated")):
    """Samples judged by a table fitted on others, some of its bins empty, many values tied."""
    fitted = draw(uncertainties(max_samples=40))
    hits = draw(npst.arrays(np.bool_, fitted.shape))
    options = {"n_bins": draw(st.integers(1, 12)), "lookup": draw(st.sampled_from(lookups))}
    options["prior_strength"] = draw(st.sampled_from([0.1, 1.0, 5.0]))
    table = fit_bin_table(fitted, hits, monotone=draw(st.booleans()), **options)
    judged = draw(uncertainties(max_samples=40))
    return predict_with_table(table, judged, draw(npst.arrays(np.bool_, judged.shape)))


@st.composite
def judged_without_bins(draw):
    """Samples with any probabilities on [0, 1], many of them on the edges of equal ranges."""
    uncertainty = draw(uncertainties(max_samples=40))
    values = st.one_of(st.sampled_from([0.0, 0.2, 1.0 / 3.0, 0.5, 1.0]), st.floats(0.0, 1.0))
    return Predictions(
        uncertainty=uncertainty,
        hits=draw(npst.arrays(np.bool_, uncertainty.shape)),
        probability=draw(npst.arrays(np.float64, uncertainty.shape, elements=values)),
        log_floor=0.5 / len(uncertainty),
    )


@st.composite
def pass_blocks(draw, *, max_passes=6):
    """Log-probabilities (n, M, K) with ties, equal passes and classes that are ruled out."""
    logits = draw(logit_blocks(max_samples=12))
    shape = draw(st.tuples(st.integers(1, 4), st.integers(2, max_passes)))
    rows = draw(npst.arrays(np.int64, shape, elements=st.integers(0, len(logits) - 1)))
    with np.errstate(invalid="ignore"):
        return log_softmax(logits, axis=1)[rows]


def calibrated(n_samples, *, n_classes=10, seed=0, spread=3.0):
    """Return logits, and labels drawn from their softmax: the model is calibrated."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n_samples, n_classes)) * spread
    cumulated = np.cumsum(np.exp(log_softmax(logits, axis=1)), axis=1)
    labels = (cumulated < rng.random((n_samples, 1))).sum(axis=1)
    return logits, np.minimum(labels, n_classes - 1)


def records_of(scores, labels, *, inputs=None, top_k=(1,), **options):
    """Return records as a job makes them; the tie keys are of the inputs, if any are given."""
    keys = tie_keys(np.asarray(scores if inputs is None else inputs), seed=0)
    return build_records(scores, labels, tie_keys=keys, top_k=top_k, **options)


def simulated_records(n_samples, *, seed, sharpness=1.0, top_k=(1, 5), **options):
    """Return records of a calibrated model whose logits are multiplied by ``sharpness``."""
    logits, labels = calibrated(n_samples, seed=seed, **options)
    return records_of(logits * sharpness, labels, top_k=top_k)


def records_with_ranks(label_ranks, *, seed=0, top_k=(1,)):
    """Return records of random logits over six classes, whose labels have the ranks given."""
    ranks = np.asarray(label_ranks)
    logits = np.random.default_rng(seed).normal(size=(len(ranks), 6)) * 2.0
    order = np.argsort(-logits, axis=1, kind="stable")
    return records_of(logits, order[np.arange(len(ranks)), ranks], top_k=top_k)


def fit_of(records, *, evaluation=None, n_classes=None, **options):
    """Return a fit in two folds, of the entropy and Top-1 if no others are named."""
    options = {"top_k": (1,), "measures": ("entropy",), "folds": 2} | options
    parts = {"evaluation": evaluation, "n_classes": n_classes}
    return fit_calibration(records, options=FitOptions(**options), **parts)


def drawn_passes(n_samples, n_passes, n_classes, *, seed=0, scale=3.0):
    """Return log-probabilities of passes that differ, and labels."""
    rng = np.random.default_rng(seed)
    base = rng.normal(scale=scale, size=(n_samples, 1, n_classes))
    noise = rng.normal(size=(n_samples, n_passes, n_classes))
    return log_softmax(base + noise, axis=2), rng.integers(0, n_classes, n_samples)


def evidence_of(
    scores, labels, *, inputs=None, n_first=None, probabilities=False, design=None, **others
):
    """Return a recorded set of logits or probabilities, or only of its first samples."""
    values = np.asarray(scores, dtype=np.float64)
    if probabilities:
        with np.errstate(divide="ignore"):
            values = np.log(values)
    first = slice(n_first)
    options = {"inputs": None if inputs is None else inputs[first], "logits": not probabilities}
    records = records_of(values[first], np.asarray(labels)[first], **options)
    records = replace(records, **(design or {}))
    counts = np.bincount(labels, minlength=values.shape[1])
    given = {"source": "inputs", "probabilities": probabilities, **others}
    return RecordedSet(records=records, class_counts=counts, **given)


def found_in(scores, labels, **others):
    """Return the findings by code."""
    found = run_checks(evidence_of(scores, labels, **others))
    assert len({finding.code for finding in found}) == len(found)
    return {finding.code: finding for finding in found}


def weights_of(rng: np.random.Generator, labels: np.ndarray) -> np.ndarray:
    """Return weights: equal, few values, of the classes, of any size, or one above all."""
    n = labels.size
    return [
        np.full(n, rng.choice([1e-9, 0.3, 1.0, 1e9])),
        rng.choice([1.0, 2.0, 20.0], n),
        rng.uniform(0.01, 5.0, labels.max() + 1)[labels],
        10.0 ** rng.uniform(-9, 9, n),
        np.where(np.arange(n) == rng.integers(n), 1e6, 1.0),
    ][rng.integers(5)]


def groups_of(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return groups: of one, all in one, pairs, a few, or one large one."""
    return [
        np.arange(n) - 7,
        np.full(n, -1),
        np.arange(n) // 2,
        rng.integers(0, 9, n) * 2**40,
        np.maximum(np.arange(n) - n // 2, 0),
    ][rng.integers(5)]


def drawn_set(
    rng: np.random.Generator, n_classes: int, sizes: Sequence[int] = (1, 9, 60, 150, 300)
) -> dict[str, np.ndarray]:
    """Return outputs with labels that may be all right, all wrong or tied, and a design."""
    n = int(rng.choice(sizes))
    logits = np.round(rng.normal(size=(n, n_classes)) * rng.choice([0.0, 1.0, 4.0, 60.0]), 2)
    answers = logits.argmax(axis=1)
    wrong = rng.random(n) < rng.choice([0.0, 0.02, 0.3, 1.0])
    arrays = {"logits": logits, "labels": np.where(wrong, (answers + 1) % n_classes, answers)}
    kind = rng.integers(1, 4)
    if kind & 1:
        arrays["weight"] = weights_of(rng, arrays["labels"])
    if kind & 2:
        arrays["group"] = groups_of(rng, n)
    return arrays
