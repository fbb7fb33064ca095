"""The measure `learned` of recorded samples, by the model of the labels."""

from collections.abc import Mapping
from typing import Any, TypeAlias

from howsure.statistics.fit.event_samples import EventSamples
from howsure.statistics.label_model.class_scores import recorded_log_rest, recorded_scores
from howsure.statistics.label_model.model import LabelModel, LabelOdds
from howsure.statistics.learned.model import LearnedModel
from howsure.statistics.learned.recorded import learned_uncertainty
from howsure.statistics.measures import LEARNED, column
from howsure.statistics.records.records import Records

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


def with_learned(records: Records, formulas: Mapping[int, Formula]) -> Records:
    """Return the records with the column of each event's formula added."""
    columns = {}
    odds: dict[int, LabelOdds] = {}  # events mostly share one model
    for k, formula in formulas.items():
        if isinstance(formula, LearnedModel):
            values = learned_uncertainty(formula, EventSamples(records, k))
        else:
            if id(formula) not in odds:
                odds[id(formula)] = recorded_odds(formula, records)
            values = odds[id(formula)].uncertainty(k)
        columns[column(LEARNED, k)] = values
    return records.with_uncertainty(columns)
