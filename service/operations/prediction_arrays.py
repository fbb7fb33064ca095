"""Predictions as arrays, under the names that the calibrated file gives its outputs."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from service.operations.predict import EventAnswer, Flags, PredictionBatch

Arrays = dict[str, NDArray[np.generic]]


def prediction_arrays(batch: PredictionBatch) -> Arrays:
    """Return the answer as arrays with a row a sample, N in all, in a fixed order.

    ``class`` int64 (N,), ``topk_class`` int64 and ``topk_score`` float32 (N, m); for each event k
    ``top{k}_probability``, ``top{k}_lower``, ``top{k}_upper``, ``top{k}_uncertainty`` float32 (N,)
    and ``top{k}_bin`` int64 (N,). Where Top-1 is among them: ``out_of_distribution`` bool (N,), if
    it has a threshold, and for each risk ``abstain_{risk}`` bool (N,), the first also as
    ``abstain``. A risk that no threshold keeps to, for which the JSON says null, lets no row
    through.
    """
    arrays: Arrays = {
        "class": batch.classes[:, 0],
        "topk_class": batch.classes,
        "topk_score": batch.scores,
    }
    for answer in batch.events:
        arrays.update(_event_arrays(answer))
    if any(answer.event.k == 1 for answer in batch.events):
        arrays.update(_flags(batch))
    return arrays


def _event_arrays(answer: EventAnswer) -> Iterator[tuple[str, NDArray[np.generic]]]:
    name, found = f"top{answer.event.k}", answer.found
    yield f"{name}_probability", found.probability.astype(np.float32)
    yield f"{name}_lower", found.lower.astype(np.float32)
    yield f"{name}_upper", found.upper.astype(np.float32)
    yield f"{name}_uncertainty", answer.uncertainty
    yield f"{name}_bin", found.bin


def _flags(batch: PredictionBatch) -> dict[str, Flags]:
    nobody = np.ones(len(batch.classes), np.bool_)
    flags = {}
    if batch.out_of_distribution is not None:
        flags["out_of_distribution"] = batch.out_of_distribution
    risks = {
        f"abstain_{risk}": nobody if found is None else found
        for risk, found in batch.abstain.items()
    }
    if risks:
        flags["abstain"] = next(iter(risks.values()))
    return flags | risks
