"""Hypothesis strategies for the arrays of the statistics."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst


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
    crowded = [
        0.0,
        float(np.float32(1e-40)),
        float(np.float32(2e-37)),
        float(np.float32(-2e-37)),
        float(np.float32(-9e-38)),
        float(base),
        float(np.nextafter(base, np.float32(1))),
        float(np.nextafter(np.nextafter(base, np.float32(1)), np.float32(1))),
        1.0,
        7.5,
    ]
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
