"""What names mean, remembered for a moment: asking the database each time costs more than a run."""

import asyncio
import uuid
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from sqlalchemy.exc import OperationalError

from service.errors import Conflict, NotFound, Overloaded
from service.operations.load_served import load_served
from service.operations.served import ServedCalibration
from service.operations.workspace import Workspace

# For so long what was written by another process may go unseen. What this process writes is seen
# at once.
FRESH_SECONDS = 1.0
# From this age on it is asked again while the answer in hand still serves.
AGEING_SECONDS = 0.5
# A database that does not answer for so long is away, as is one that says so.
PATIENCE_SECONDS = 0.5
# While the database is away, what was known before it went away serves for so long.
STALE_SECONDS = 300.0
MOST_NAMES = 1024
# Some may hang at a database that is away, some may read the files of large models.
THREADS = 8


@dataclass(slots=True)
class _Known:
    """An answer of the database.

    ``asked`` is when it was asked for, ``tried`` when it was last tried to get a newer one.
    """

    served: ServedCalibration
    generation: int
    asked: float
    tried: float


@dataclass(frozen=True, slots=True)
class _Asking:
    """A question under way; what was written since, if anything was, it may not have seen."""

    generation: int
    task: "asyncio.Task[ServedCalibration]"


class ServedNames:
    """References and the calibrations they mean; for one event loop."""

    def __init__(self, workspace: Workspace, tenant_id: uuid.UUID) -> None:
        self._workspace = workspace
        self._tenant_id = tenant_id
        self._database = workspace.database
        self._loop = asyncio.get_running_loop()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="names")
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._asking: dict[str, _Asking] = {}

    def get(self, reference: str) -> ServedCalibration | None:
        """Return what a reference means if that is known well enough."""
        known = self._known.get(reference)
        if known is None or known.generation != self._database.generation:
            return None
        age = self._loop.time() - known.tried
        if age >= FRESH_SECONDS:
            return None
        if age >= AGEING_SECONDS:
            self._ask(reference)
        return known.served

    async def find(self, reference: str) -> ServedCalibration:
        """Ask what a reference means; those who ask at the same time ask once.

        Raises
        ------
        NotFound, Conflict
            If there is no such calibration, or it has not succeeded.
        Overloaded
            If the database is away, and was not asked lately.
        """
        asking = asyncio.shield(self._ask(reference))
        if self._still_known(reference) is None:
            return await asking
        try:
            return await asyncio.wait_for(asking, PATIENCE_SECONDS)
        except TimeoutError:
            # It may have become known otherwise meanwhile.
            return self._keep(reference) or await self._ask(reference)

    def close(self) -> None:
        """Ask nothing more; who hangs at the database is not waited for."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _ask(self, reference: str) -> "asyncio.Task[ServedCalibration]":
        generation = self._database.generation
        asking = self._asking.get(reference)
        if asking is None or asking.generation != generation:
            task = self._loop.create_task(self._answer(reference, generation))
            asking = self._asking[reference] = _Asking(generation, task)
            task.add_done_callback(lambda _: self._asked(reference, asking))
        return asking.task

    def _asked(self, reference: str, asking: _Asking) -> None:
        if self._asking.get(reference) is asking:
            del self._asking[reference]
        if not asking.task.cancelled():
            # Looked at here: nobody may wait for it. The next one who does asks again.
            asking.task.exception()

    async def _answer(self, reference: str, generation: int) -> ServedCalibration:
        asked = self._loop.time()
        try:
            served = await self._loop.run_in_executor(
                self._threads, load_served, self._workspace, self._tenant_id, reference
            )
        except (NotFound, Conflict):
            self._known.pop(reference, None)
            raise
        except (Overloaded, OperationalError) as error:
            kept = self._keep(reference)
            if kept is not None:
                return kept
            if isinstance(error, Overloaded):
                raise
            raise Overloaded("The database does not answer; try again.") from error
        if generation == self._database.generation:
            self._known[reference] = _Known(served, generation, asked, asked)
            self._known.move_to_end(reference)
            while len(self._known) > MOST_NAMES:
                self._known.popitem(last=False)
        return served

    def _keep(self, reference: str) -> ServedCalibration | None:
        """Go on for a moment with what was known before the database went away."""
        known = self._still_known(reference)
        if known is None:
            return None
        known.tried = self._loop.time()
        return known.served

    def _still_known(self, reference: str) -> _Known | None:
        known = self._known.get(reference)
        if known is None or known.generation != self._database.generation:
            return None
        return known if self._loop.time() - known.asked <= STALE_SECONDS else None
