"""What names mean, remembered for a moment: asking the database each time costs more than a run."""

import asyncio
import uuid
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeAlias

from sqlalchemy.exc import OperationalError

from service.errors import Conflict, NotFound, Overloaded
from service.predictions.load_calibration import load_served
from service.predictions.served_calibration import ServedCalibration
from service.workspace import Workspace

# A tenant, and what it calls a calibration.
_Asked: TypeAlias = tuple[uuid.UUID, str]

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


class NameCache:
    """References of tenants and the calibrations they mean; for one event loop."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._database = workspace.database
        self._loop = asyncio.get_running_loop()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="names")
        self._known: OrderedDict[_Asked, _Known] = OrderedDict()
        self._asking: dict[_Asked, _Asking] = {}

    def get(self, tenant_id: uuid.UUID, reference: str) -> ServedCalibration | None:
        """Return what a reference means if that is known well enough."""
        asked = (tenant_id, reference)
        known = self._known.get(asked)
        if known is None or known.generation != self._database.generation:
            return None
        age = self._loop.time() - known.tried
        if age >= FRESH_SECONDS:
            return None
        if age >= AGEING_SECONDS:
            self._ask(asked)
        return known.served

    async def find(self, tenant_id: uuid.UUID, reference: str) -> ServedCalibration:
        """Ask what a reference means; those who ask at the same time ask once.

        Raises
        ------
        NotFound, Conflict
            If there is no such calibration, or it has not succeeded.
        Overloaded
            If the database is away, and was not asked lately.
        """
        asked = (tenant_id, reference)
        asking = asyncio.shield(self._ask(asked))
        if self._still_known(asked) is None:
            return await asking
        try:
            return await asyncio.wait_for(asking, PATIENCE_SECONDS)
        except TimeoutError:
            # It may have become known otherwise meanwhile.
            return self._keep(asked) or await self._ask(asked)

    def close(self) -> None:
        """Ask nothing more; who hangs at the database is not waited for."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _ask(self, asked: _Asked) -> "asyncio.Task[ServedCalibration]":
        generation = self._database.generation
        asking = self._asking.get(asked)
        if asking is None or asking.generation != generation:
            task = self._loop.create_task(self._answer(asked, generation))
            asking = self._asking[asked] = _Asking(generation, task)
            task.add_done_callback(lambda _: self._asked(asked, asking))
        return asking.task

    def _asked(self, asked: _Asked, asking: _Asking) -> None:
        if self._asking.get(asked) is asking:
            del self._asking[asked]
        if not asking.task.cancelled():
            # Looked at here: nobody may wait for it. The next one who does asks again.
            asking.task.exception()

    async def _answer(self, asked: _Asked, generation: int) -> ServedCalibration:
        began = self._loop.time()
        try:
            served = await self._loop.run_in_executor(
                self._threads, load_served, self._workspace, *asked
            )
        except (NotFound, Conflict):
            self._known.pop(asked, None)
            raise
        except (Overloaded, OperationalError) as error:
            kept = self._keep(asked)
            if kept is not None:
                return kept
            if isinstance(error, Overloaded):
                raise
            raise Overloaded("The database does not answer; try again.") from error
        if generation == self._database.generation:
            self._known[asked] = _Known(served, generation, began, began)
            self._known.move_to_end(asked)
            while len(self._known) > MOST_NAMES:
                self._known.popitem(last=False)
        return served

    def _keep(self, asked: _Asked) -> ServedCalibration | None:
        """Go on for a moment with what was known before the database went away."""
        known = self._still_known(asked)
        if known is None:
            return None
        known.tried = self._loop.time()
        return known.served

    def _still_known(self, asked: _Asked) -> _Known | None:
        known = self._known.get(asked)
        if known is None or known.generation != self._database.generation:
            return None
        return known if self._loop.time() - known.asked <= STALE_SECONDS else None
