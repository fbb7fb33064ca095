"""What names mean, remembered for a moment: asking the database each time costs more than a run."""

import asyncio
import uuid
from collections import OrderedDict
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
# While the database is away, what was known before it went away serves for so long.
STALE_SECONDS = 300.0
MOST_NAMES = 1024


@dataclass(slots=True)
class _Known:
    served: ServedCalibration
    asked: float
    generation: int


class ServedNames:
    """References and the calibrations they mean; for one event loop."""

    def __init__(self, workspace: Workspace, tenant_id: uuid.UUID) -> None:
        self._workspace = workspace
        self._tenant_id = tenant_id
        self._loop = asyncio.get_running_loop()
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._asking: dict[str, asyncio.Task[ServedCalibration]] = {}

    def get(self, reference: str) -> ServedCalibration | None:
        """Return what a reference means if that is known well enough."""
        known = self._known.get(reference)
        if known is None or known.generation != self._workspace.database.generation:
            return None
        age = self._loop.time() - known.asked
        if age >= FRESH_SECONDS:
            return None
        if age >= AGEING_SECONDS:
            # Its failure, if it fails, shows to whoever asks when this one is no longer fresh.
            self._ask(reference).add_done_callback(lambda asking: asking.exception())
        return known.served

    async def find(self, reference: str) -> ServedCalibration:
        """Ask what a reference means; those who ask at the same time ask once.

        Raises
        ------
        NotFound, Conflict
            If there is no such calibration, or it has not succeeded.
        """
        return await asyncio.shield(self._ask(reference))

    def _ask(self, reference: str) -> "asyncio.Task[ServedCalibration]":
        asking = self._asking.get(reference)
        if asking is None:
            asking = self._loop.create_task(self._answer(reference))
            self._asking[reference] = asking
            asking.add_done_callback(lambda _: self._asking.pop(reference, None))
        return asking

    async def _answer(self, reference: str) -> ServedCalibration:
        # Before the question: what is written while it is under way makes its answer old.
        generation, asked = self._workspace.database.generation, self._loop.time()
        try:
            served = await asyncio.to_thread(
                load_served, self._workspace, self._tenant_id, reference
            )
        except (NotFound, Conflict):
            self._known.pop(reference, None)
            raise
        except (Overloaded, OperationalError):
            known = self._known.get(reference)
            if known is None or asked - known.asked > STALE_SECONDS:
                raise
            return known.served
        self._known[reference] = _Known(served, asked, generation)
        self._known.move_to_end(reference)
        while len(self._known) > MOST_NAMES:
            self._known.popitem(last=False)
        return served
