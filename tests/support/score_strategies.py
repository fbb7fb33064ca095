"""Hypothesis strategies and builders for samples that scores judge."""

import numpy as np
from core_strategies import uncertainties
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from howsure.statistics.bins.fit import fit_bin_table
from howsure.statistics.fit.cross_validation import predict_with_table
from howsure.statistics.measures import columns
from howsure.statistics.records.build import build_records
from howsure.statistics.records.order import tie_keys
from howsure.statistics.scores import Predictions


@st.composite
def judged_by_table(draw, *, lookups=("step", "interpolated")):
    """Samples judged by a table fitted on others, some of its bins empty, many values tied."""
    fitted = draw(uncertainties(max_samples=40))
    table = fit_bin_table(
        fitted,
        draw(npst.arrays(np.bool_, fitted.shape)),
        n_bins=draw(st.integers(1, 12)),
        prior_strength=draw(st.sampled_from([0.1, 1.0, 5.0])),
        lookup=draw(st.sampled_from(lookups)),
        monotone=draw(st.booleans()),
    )
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
def binned_counts(draw, *, max_bins=6, max_count=40):
    """Counts of some bins, none empty, and their hits, neither none nor all of the samples."""
    counts = draw(st.lists(st.integers(2, max_count), min_size=1, max_size=max_bins))
    hits = [draw(st.integers(1, count - 1)) for count in counts]
    return np.array(counts), np.array(hits)


def simulated_records(n_samples, *, seed, sharpness=1.0, n_classes=10, spread=3.0, top_k=(1, 5)):
    """Records of a model whose softmax is the truth, told with its logits times ``sharpness``."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n_samples, n_classes)) * spread
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    cumulated = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)
    labels = (cumulated < rng.random((n_samples, 1))).sum(axis=1)
    logits *= sharpness
    return build_records(
        logits,
        np.minimum(labels, n_classes - 1),
        tie_keys=tie_keys(logits, seed=0),
        top_k=top_k,
    )


def records_with_ranks(label_ranks, *, seed=0, top_k=(1,)):
    """Records of random logits over six classes, whose labels have the ranks given."""
    ranks = np.asarray(label_ranks)
    logits = np.random.default_rng(seed).normal(size=(len(ranks), 6)) * 2.0
    order = np.argsort(-logits, axis=1, kind="stable")
    labels = order[np.arange(len(ranks)), ranks]
    return build_records(logits, labels, tie_keys=tie_keys(logits, seed=0), top_k=top_k)


def all_columns(top_k):
    """Names of the columns these events need."""
    return [name for name, _, _ in columns(top_k)]
