"""Answers of passes, for tests."""

import numpy as np
from core_strategies import logit_blocks
from hypothesis import strategies as st
from scipy.special import log_softmax


def drawn_passes(n_samples, n_passes, n_classes, *, seed=0, scale=3.0):
    """Log-probabilities of passes that differ, and labels."""
    rng = np.random.default_rng(seed)
    base = rng.normal(scale=scale, size=(n_samples, 1, n_classes))
    noise = rng.normal(size=(n_samples, n_passes, n_classes))
    return log_softmax(base + noise, axis=2), rng.integers(0, n_classes, n_samples)


@st.composite
def pass_blocks(draw, *, max_passes=6):
    """Log-probabilities (n, M, K) with ties, equal passes and classes that are ruled out."""
    logits = draw(logit_blocks(max_samples=12))
    n_passes = draw(st.integers(2, max_passes))
    rows = draw(
        st.lists(
            st.lists(st.integers(0, len(logits) - 1), min_size=n_passes, max_size=n_passes),
            min_size=1,
            max_size=4,
        )
    )
    with np.errstate(invalid="ignore"):
        return log_softmax(logits, axis=1)[np.array(rows)]
