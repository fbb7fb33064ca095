"""The measure `learned` of recorded samples, by the model of the labels."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np

from howsure.statistics.arrays import Floats
from howsure.statistics.fit.event_samples import EventSamples
from howsure.statistics.label_model.class_scores import recorded_log_rest, recorded_scores
from howsure.statistics.label_model.model import LabelModel, LabelOdds, as_measure
from howsure.statistics.learned.model import LearnedModel
from howsure.statistics.learned.recorded import learned_uncertainty
from howsure.statistics.measures import LEARNED, column
from howsure.statistics.records.records import Records

BLOCK_ROWS = 2**16
# Tables of earlier versions have the formula of one event.
Formula: TypeAlias = LabelModel | LearnedModel


def formula_of(plain: Mapping[str, Any]) -> Formula:
    """Return the formula of a learned measure from plain data.

    Raises
    ------
    ValueError
        If a value breaks a rule.
    """
    return LabelModel(**plain) if "floor" in plain else LearnedModel(**plain)


def recorded_odds(model: LabelModel, records: Records) -> LabelOdds:
    """Return the log-probabilities of the classes of recorded samples."""
    m = model.n_recorded
    scores = recorded_scores(records, model.n_classes, m)
    return model.odds_of(scores, recorded_log_rest(records, model.temperature, model.n_classes, m))


def recorded_log_odds(
    model: LabelModel, records: Records, top_k: Iterable[int]
) -> dict[int, Floats]:
    """Return the log-odds of each event of recorded samples, a block of them at a time."""
    log_odds = {k: np.empty(records.n_samples) for k in top_k}
    for start in range(0, records.n_samples, BLOCK_ROWS):
        rows = np.arange(start, min(start + BLOCK_ROWS, records.n_samples))
        odds = recorded_odds(model, records.take(rows))
        for k, values in log_odds.items():
            values[rows] = odds.log_odds(k)
    return log_odds


def with_learned(records: Records, formulas: Mapping[int, Formula]) -> Records:
    """Return the records with the column of each event's formula added."""
    of_labels = {k: one for k, one in formulas.items() if isinstance(one, LabelModel)}
    columns = {
        column(LEARNED, k): learned_uncertainty(one, EventSamples(records, k))
        for k, one in formulas.items()
        if isinstance(one, LearnedModel)
    }
    for model in [*of_labels.values()][:1]:  # all events share it
        for k, log_odds in recorded_log_odds(model, records, of_labels).items():
            columns[column(LEARNED, k)] = as_measure(log_odds)
    return records.with_uncertainty(columns)
