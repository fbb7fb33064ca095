"""The parent's side of the process that fits a calibration."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace

from howsure.statistics.fit.options import FitOptions
from howsure.statistics.fit.result import Fit
from howsure.statistics.records.records import Records
from service.errors import (
    DeadlineExceeded,
    InferenceFailed,
    InvalidDataset,
    OnnxModelCrashed,
    TooLarge,
)
from service.runner.messages.failures import raise_failure
from service.runner.messages.fits import RESULT, FitRequest, fit_arrays
from service.runner.messages.frames import Kind, Status
from service.runner.messages.limits import GIBIBYTE
from service.runner.messages.packed import unpacked
from service.runner.messages.sandbox_rules import SandboxRules
from service.runner.spawner import Spawner

# A fit of many samples takes five times the memory of their records; one of few, a tenth of this.
LEAST_MEMORY_BYTES = GIBIBYTE
MEMORY_OF_RECORDS = 16
KILLED = (
    "The process that fitted the calibration was killed, perhaps because the machine ran out of "
    "memory: use fewer samples, measures or events, or a larger machine."
)


@dataclass(frozen=True)
class Fitter:
    """Starts a process for each fit; ``timeout`` is in seconds."""

    spawner: Spawner
    sandbox: SandboxRules
    timeout: float

    def fit(
        self,
        records: Records,
        options: FitOptions,
        *,
        evaluation: Records | None,
        n_classes: int,
        on_progress: Callable[[int, int], None],
    ) -> Fit:
        """Return the fit; its learned columns are in the order of the records.

        ``on_progress`` is called after each measure of each event, and may raise.

        Raises
        ------
        InvalidDataset, InvalidConfig
            If the records do not suffice for the options.
        TooLarge
            If it takes too long, or too much memory.
        InferenceFailed
            If its process was killed.
        Overloaded
            If no process can be started now.
        """
        sets = {"calibration": records, "evaluation": evaluation}
        held = [one for one in sets.values() if one is not None]
        n_bytes = sum(array.nbytes for one in held for array in one.to_arrays().values())
        memory = LEAST_MEMORY_BYTES + MEMORY_OF_RECORDS * n_bytes
        rules = replace(self.sandbox, memory_bytes=memory, file_bytes=0)
        with closing(self.spawner.take()) as process:
            try:
                answer = process.call(
                    Kind.FIT,
                    {},
                    fit_arrays(FitRequest(options, n_classes, rules), sets),
                    timeout=self.timeout,
                    on_progress=lambda fields: on_progress(fields["done"], fields["total"]),
                )
            except DeadlineExceeded as error:
                raise TooLarge.at(
                    "config",
                    f"The fit took longer than {self.timeout:g} s: use fewer samples, measures, "
                    "events or bins, or raise HOWSURE_FIT_TIMEOUT_SECONDS.",
                ) from error
            except OnnxModelCrashed as error:
                if error.is_from_outside:
                    raise InferenceFailed(KILLED) from error
                raise RuntimeError(error.message) from error
        if answer.status is Status.FAILED:
            raise_failure(answer, invalid=InvalidDataset)
        return unpacked(answer.tensors[RESULT], Fit)
