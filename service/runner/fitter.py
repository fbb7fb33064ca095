"""The parent's side of the process that fits a calibration."""

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from howsure.statistics.fit.options import FitOptions
from howsure.statistics.fit.result import Fit
from howsure.statistics.records.records import Records
from service.errors import DeadlineExceeded, InferenceFailed, OnnxModelCrashed, TooLarge
from service.runner.child_requests import ChildRequest, ask
from service.runner.messages.convert import FieldError
from service.runner.messages.fits import FitRequest, fit_arrays, fit_of
from service.runner.messages.frames import Kind
from service.runner.messages.limits import GIBIBYTE
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
        request = FitRequest(options, n_classes, rules)
        total = len(options.top_k) * len(options.measures)
        steps = iter([{"done": done, "total": total} for done in range(1, total + 1)])

        def tell(fields: Mapping[str, Any]) -> None:
            if fields != next(steps, None):
                raise FieldError("the progress of a fit")
            on_progress(fields["done"], total)

        fitting = ChildRequest(
            Kind.FIT,
            {},
            lambda answer: fit_of(answer.tensors, request, records.n_samples),
            self.timeout,
            tensors=fit_arrays(request, sets),
            max_answer_bytes=request.most_bytes(records.n_samples),
            on_progress=tell,
        )
        with closing(self.spawner.take()) as process:
            try:
                return ask(process, fitting)
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
