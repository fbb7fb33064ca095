"""The request of a fit and its answer, as arrays."""

from collections.abc import Mapping
from dataclasses import dataclass

from howsure.statistics.fit.options import FitOptions
from howsure.statistics.records.records import Records
from service.runner.messages.dataset import with_prefix
from service.runner.messages.frames import Array
from service.runner.messages.packed import packed
from service.runner.messages.sandbox_rules import SandboxRules

REQUEST = "request"
RESULT = "result"


@dataclass(frozen=True)
class FitRequest:
    """FIT: sandbox the process, then fit the records that go with it."""

    options: FitOptions
    n_classes: int
    sandbox: SandboxRules


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
