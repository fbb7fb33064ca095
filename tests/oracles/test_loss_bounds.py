"""The inequality between uncertainty and loss of Finlay & Oberman."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sample_strategies import logit_blocks

from howsure.statistics.records.build import build_records


@given(logit_blocks(max_classes=8), st.data())
def test_the_loss_is_at_least_the_uncertainty_and_equal_when_right(logits, data):
    """Remark 3.5: U_1 <= -log p_y, with equality where the prediction is right."""
    n, n_classes = logits.shape
    labels = np.array(data.draw(st.lists(st.integers(0, n_classes - 1), min_size=n, max_size=n)))
    keys = np.zeros(n, dtype=np.uint32)
    records = build_records(logits, labels, tie_keys=keys, top_k=[1])
    uncertainty, loss = records.uncertainty["neg_log_pmax"], -records.label_log_probability
    assert (uncertainty <= loss * (1 + 1e-6)).all()
    right = records.hits(1)
    np.testing.assert_allclose(uncertainty[right], loss[right], rtol=1e-7, atol=1e-44)
