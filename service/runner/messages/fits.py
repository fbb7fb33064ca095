"""The request of a fit and its answer, as arrays."""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from howsure.statistics.arrays import as_uncertainty
from howsure.statistics.fit.options import FitOptions
from howsure.statistics.fit.result import EventFit, Fit
from howsure.statistics.measures import LEARNED, column
from howsure.statistics.records.records import Records
from service.runner.messages.convert import FieldError
from service.runner.messages.dataset import with_prefix
from service.runner.messages.frames import Array
from service.runner.messages.packed import packed, unpacked
from service.runner.messages.sandbox_rules import SandboxRules

REQUEST = "request"
RESULT = "result"
# The most that a measure of an event takes, each of its bins, and each class of an event.
MEASURE_BYTES, BIN_BYTES, CLASS_BYTES = 2**18, 2**10, 2**8


@dataclass(frozen=True)
class FitRequest:
    """FIT: sandbox the process, then fit the records that go with it."""

    options: FitOptions
    n_classes: int
    sandbox: SandboxRules

    def most_bytes(self, n_samples: int) -> int:
        """Return a bound on the size of the fit of so many samples."""
        n_events, n_measures = len(self.options.top_k), len(self.options.measures)
        n_bins = 0 if self.options.bins == "auto" else min(self.options.bins, n_samples)
        measures = n_events * (1 + n_measures) * (MEASURE_BYTES + BIN_BYTES * n_bins)
        return measures + n_events * (CLASS_BYTES * self.n_classes + 8 * n_samples)


def fit_arrays(request: FitRequest, sets: Mapping[str, Records | None]) -> dict[str, Array]:
    """Return a request as arrays; ``sets`` are its records by set."""
    arrays = {REQUEST: packed(request)}
    for name, records in sets.items():
        if records is not None:
            arrays |= {f"{name}:{array}": held for array, held in records.to_arrays().items()}
    return arrays


def records_of(arrays: Mapping[str, Array], name: str) -> Records | None:
    """Return the records of a set as writable arrays, or None if the set was not sent."""
    own = with_prefix(f"{name}:", arrays)
    if not own:
        return None
    return Records.from_arrays(
        {array: held if held.flags.writeable else held.copy() for array, held in own.items()}
    )


def fit_of(arrays: Mapping[str, Array], request: FitRequest, n_samples: int) -> Fit:
    """Return the fit of an answer.

    Raises
    ------
    FieldError
        If it is not a fit of these options and so many samples.
    """
    try:
        fit, options = unpacked(arrays[RESULT], Fit), request.options
        are_own = [_is_event(event, k, options, n_samples) for k, event in fit.events.items()]
    except (KeyError, ValueError, TypeError, msgspec.DecodeError, RecursionError) as error:
        raise FieldError(f"a fit: {error}") from error
    if tuple(fit.events) != options.top_k or not all(are_own):
        raise FieldError("a fit of other events or measures")
    return fit


def _is_event(event: EventFit, k: int, options: FitOptions, n_samples: int) -> bool:
    measures, learned = event.measures, event.learned
    return (
        (event.k, event.n_samples) == (k, n_samples)
        and tuple(measures) == options.measures
        and event.served in measures
        and all(one.column == column(name, k) for name, one in measures.items())
        and (learned is not None) == (LEARNED in measures)
        and (learned is None or learned.uncertainty is as_uncertainty(learned.uncertainty))
        and (learned is None or len(learned.uncertainty) == n_samples)
    )
