"""The methods that every report compares with the bin tables, by name."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.special import expit

from howsure.statistics.arrays import Floats, Rates, Uncertainty
from howsure.statistics.calibrators.isotonic import fit_isotonic
from howsure.statistics.calibrators.logistic import (
    LogisticFit,
    beta_features,
    fit_beta_calibration,
    fit_quadratic_logistic,
    quadratic_features,
)
from howsure.statistics.calibrators.temperature import fit_temperature, scaled_neg_log_mass
from howsure.statistics.fit.event_samples import ALL, EventSamples, Rows
from howsure.statistics.fit.outcome import BinaryOutcome
from howsure.statistics.ranking import merge_underflow


@dataclass(frozen=True, eq=False)
class CalibratedPrediction:
    """The probability of each sample, and a value that ranks the samples.

    Attributes
    ----------
    probability : ndarray of float64, shape (n_samples,)
        Of the event, in [0, 1].
    uncertainty : ndarray of float32 or float64, shape (n_samples,)
        Ranks samples whose probabilities all round to 1.
    """

    probability: Rates
    uncertainty: Uncertainty | Floats


@dataclass(frozen=True, eq=False)
class FittedBaseline:
    """A fitted baseline.

    Attributes
    ----------
    predict : callable
        From samples, and positions among them, to a `CalibratedPrediction`; calling the object
        does the same.
    parameters : dict of str to float
        Fitted parameters, if there are only a few.
    """

    predict: Callable[[EventSamples, Rows], CalibratedPrediction]
    parameters: dict[str, float] = field(default_factory=dict)

    def __call__(self, samples: EventSamples, rows: Rows = ALL) -> CalibratedPrediction:
        """Return the predictions for the samples at ``rows``."""
        return self.predict(samples, rows)


@dataclass(frozen=True)
class BaselineMethod:
    """A baseline of every report.

    Attributes
    ----------
    name : str
        Its name everywhere: reports, tables, JSON.
    fit : callable
        ``fit(samples, rows)`` uses only the samples at positions ``rows``.
    learns : bool
        Whether it uses labels.
    is_binary : bool
        Whether it is fitted on the probability of one outcome: `EventSamples.outcome`.
    """

    name: str
    fit: Callable[[EventSamples, Rows], FittedBaseline]
    learns: bool = True
    is_binary: bool = False


def _raw_softmax(_samples: EventSamples, _rows: Rows) -> FittedBaseline:
    """Use the mass of the ``k`` top classes, which needs no fit: Guo et al. 2017, section 2."""

    def predict(samples: EventSamples, rows: Rows) -> CalibratedPrediction:
        mass = samples.mass_uncertainty[rows]
        return CalibratedPrediction(np.exp(-mass.astype(np.float64)), merge_underflow(mass))

    return FittedBaseline(predict)


def _temperature(samples: EventSamples, rows: Rows) -> FittedBaseline:
    """Scale the logits by one temperature, the same for every event."""
    records = samples.records
    temperature = fit_temperature(
        records.log_sum_exp[rows], records.label_logit[rows], samples.weights[rows]
    )

    def predict(samples: EventSamples, rows: Rows) -> CalibratedPrediction:
        top = samples.records.top_logits[rows, : samples.k]
        scaled = scaled_neg_log_mass(samples.records.log_sum_exp[rows], top, temperature)
        return CalibratedPrediction(np.exp(-scaled), scaled)

    return FittedBaseline(predict, {"temperature": temperature})


def _logistic(
    features: Callable[[BinaryOutcome, Rows], tuple[Floats, ...]],
    design: Callable[..., Floats],
    fit: Callable[..., LogisticFit],
) -> Callable[[EventSamples, Rows], FittedBaseline]:
    """Return the fit of log-odds that are linear in a design of the features."""

    def learn(samples: EventSamples, rows: Rows) -> FittedBaseline:
        outcome = samples.outcome
        fitted = fit(*features(outcome, rows), outcome.holds[rows], samples.weights[rows])

        def predict(samples: EventSamples, rows: Rows) -> CalibratedPrediction:
            outcome = samples.outcome
            log_odds = fitted.log_odds(design(*features(outcome, rows)))
            of_event = np.where(outcome.is_event[rows], log_odds, -log_odds)
            return CalibratedPrediction(expit(of_event), -of_event)

        a, b = fitted.slopes.tolist()
        return FittedBaseline(predict, {"a": a, "b": b, "c": fitted.intercept})

    return learn


def _isotonic(samples: EventSamples, rows: Rows) -> FittedBaseline:
    outcome = samples.outcome
    fitted = fit_isotonic(outcome.log_odds[rows], outcome.holds[rows], samples.weights[rows])

    def predict(samples: EventSamples, rows: Rows) -> CalibratedPrediction:
        outcome = samples.outcome
        found = fitted.probability(outcome.log_odds[rows])
        probability = np.where(outcome.is_event[rows], found, 1.0 - found)
        return CalibratedPrediction(probability, -probability)

    return FittedBaseline(predict)


def _constant(samples: EventSamples, rows: Rows) -> FittedBaseline:
    """Use the share of hits for every sample: the score to be beaten."""
    accuracy = samples.share_of_hits(rows)

    def predict(samples: EventSamples, rows: Rows) -> CalibratedPrediction:
        n_samples = len(samples.hits[rows])
        return CalibratedPrediction(np.full(n_samples, accuracy), np.zeros(n_samples))

    return FittedBaseline(predict, {"accuracy": accuracy})


BASELINES: dict[str, BaselineMethod] = {
    method.name: method
    for method in (
        BaselineMethod("raw_softmax", _raw_softmax, learns=False),
        BaselineMethod("temperature", _temperature),
        BaselineMethod(
            "beta_calibration",
            _logistic(
                lambda outcome, rows: (outcome.log_probability[rows], outcome.log_rest[rows]),
                beta_features,
                fit_beta_calibration,
            ),
            is_binary=True,
        ),
        BaselineMethod(
            "quadratic_logistic",
            _logistic(
                lambda outcome, rows: (outcome.log_odds[rows],),
                quadratic_features,
                fit_quadratic_logistic,
            ),
            is_binary=True,
        ),
        BaselineMethod("isotonic", _isotonic, is_binary=True),
        BaselineMethod("constant", _constant),
    )
}
