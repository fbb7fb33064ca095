"""Fits a calibration in a process of its own, which cannot take the service's memory with it."""

import os
from collections.abc import Callable, Mapping

from howsure.statistics.effective import TooFewEffectiveSamples
from howsure.statistics.fit.calibration import MissingColumn, fit_calibration
from howsure.statistics.records.order import moved_to_canonical_order
from service.child.lockdown.lock_down import lock_down
from service.errors import InvalidConfig, InvalidDataset, TooLarge
from service.runner.messages.fits import REQUEST, RESULT, FitRequest, records_of
from service.runner.messages.frames import Array
from service.runner.messages.packed import packed, unpacked

# Predictions go first.
NICE = 10
MORE_MEMORY = (
    "The fit needs more memory than it may use: use fewer samples, measures, events or bins."
)


def answer_fit(
    arrays: Mapping[str, Array], on_progress: Callable[[int, int], None]
) -> dict[str, Array]:
    """Fit the records of a request; learned columns are in the order of the records.

    Raises
    ------
    InvalidDataset, InvalidConfig
        If weights or groups leave too few samples, or the records lack a measure.
    TooLarge
        If there is not enough memory.
    """
    request = unpacked(arrays[REQUEST], FitRequest)
    os.nice(NICE)
    lock_down(request.sandbox, uses_cuda=False)
    records, evaluation = (records_of(arrays, name) for name in ("calibration", "evaluation"))
    if records is None:
        raise ValueError("there are no records to fit")
    try:
        with moved_to_canonical_order(records):
            fit = fit_calibration(
                records,
                options=request.options,
                evaluation=evaluation,
                n_classes=request.n_classes,
                on_progress=on_progress,
            )
            # Moved back with the other columns, in the fit as well.
            records.uncertainty.update(fit.learned_columns)
    except TooFewEffectiveSamples as error:
        raise InvalidDataset.at("calibration", str(error)) from error
    except MissingColumn as error:
        raise InvalidConfig.at("config.measures", f"{error}; calibrate anew") from error
    except MemoryError as error:
        raise TooLarge.at("config", MORE_MEMORY) from error
    return {RESULT: packed(fit)}
