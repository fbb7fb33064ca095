"""The learned measure of recorded samples."""

import numpy as np

from howsure.statistics.arrays import Floats, Uncertainty
from howsure.statistics.fit.event_samples import EventSamples
from howsure.statistics.learned.inputs import LEAST, least_rest
from howsure.statistics.learned.model import LearnedModel
from howsure.statistics.records.records import TEMPERATURES, Records

MOST_EXPONENT = 700.0  # exp of more overflows


def recorded_rest(records: Records, k: int, temperature: int) -> Floats:
    """Return the ratio of the rest to the top ``k`` classes, float64 of shape (n_samples,)."""
    # Another class may have the largest logit: at low temperatures by more than exp can tell.
    tail = np.expm1(
        np.minimum(records.log_sum_exp[:, temperature].astype(np.float64), MOST_EXPONENT)
    )
    top = records.top_logits[:, :k].astype(np.float64) / TEMPERATURES[temperature]
    head = np.exp(np.minimum(top, MOST_EXPONENT)).sum(axis=1)
    ratio = (tail + 1.0 - head if k > 1 else tail) / head
    return np.asarray(np.maximum(ratio, least_rest(k, temperature)))


def recorded_inputs(samples: EventSamples, temperature: int) -> Floats:
    """Return the inputs of recorded samples, float64 of shape (n_samples, 4)."""
    records = samples.records
    return np.column_stack(
        [
            np.log(recorded_rest(records, samples.k, temperature)),
            -samples.log_odds,
            np.log(np.maximum(records.uncertainty["entropy"].astype(np.float64), LEAST)),
            np.maximum(records.top_logits[:, 1].astype(np.float64), np.log(LEAST)),
        ]
    )


def learned_uncertainty(model: LearnedModel, samples: EventSamples) -> Uncertainty:
    """Return the measure of recorded samples, float32 of shape (n_samples,)."""
    top = samples.records.top_classes
    inputs = recorded_inputs(samples, model.temperature).astype(np.float32)
    return model.uncertainty(inputs, top[:, 0], top[:, 1]).astype(np.float32)
