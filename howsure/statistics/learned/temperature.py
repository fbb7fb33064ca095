"""Temperatures from which the learned measure may start."""

import numpy as np

from howsure.statistics.arrays import mean_over
from howsure.statistics.fit.event_samples import EventSamples
from howsure.statistics.learned.recorded import recorded_rest
from howsure.statistics.records.records import TEMPERATURES, Records


def candidate_temperatures(samples: EventSamples) -> list[int]:
    """Return indices in `TEMPERATURES`: that of all classes, then that of the event if it differs.

    The negative log-likelihood of all classes uses most of the data, but a few labels of a
    probability next to 0 can dominate it, as those of nearest neighbours and trees do.
    """
    return list(dict.fromkeys([_of_classes(samples.records), _of_event(samples)]))


def _of_classes(records: Records) -> int:
    """Return the temperature of least multiclass negative log-likelihood."""
    possible = np.isfinite(records.label_logit)
    if not possible.any():
        return int(np.abs(TEMPERATURES - 1.0).argmin())
    weights = records.weights[possible]
    normaliser = mean_over(records.log_sum_exp[possible], weights)
    logit = float(mean_over(records.label_logit[possible], weights))
    return int(np.argmin(normaliser - logit / TEMPERATURES))


def _of_event(samples: EventSamples) -> int:
    """Return the temperature of least negative log-likelihood of the event.

    Log-odds are clipped to about those of ``1 / (2 n)``.
    """
    bound = np.log(2.0 * samples.n_samples)
    sign = np.where(samples.hits, 1.0, -1.0)

    def loss(temperature: int) -> float:
        log_rest = np.log(recorded_rest(samples, temperature))
        losses = np.logaddexp(0.0, sign * np.clip(log_rest, -bound, bound))
        return float(mean_over(losses, samples.weights))

    return int(np.argmin([loss(temperature) for temperature in range(len(TEMPERATURES))]))
