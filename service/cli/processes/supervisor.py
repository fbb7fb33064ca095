"""Starts server processes, starts again those that die, and ends with all of them."""

import asyncio
import signal
import socket
from collections.abc import Callable
from contextlib import suppress

import structlog

from service.cli.failure import CommandFailed
from service.cli.processes.counts import Counts
from service.cli.processes.open_connections import OpenConnections
from service.cli.processes.server_process import ServerProcess
from service.runner.launch import describe_exit
from service.settings import Settings

BACKLOG = 2048
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0
# One that lived so long did not die of how it was started.
STEADY_SECONDS = 60.0
# Asked to end while it is still being started, a process ends by the signal itself.
AS_ASKED = (0, -signal.SIGTERM, -signal.SIGINT)

log = structlog.get_logger(__name__)


class Supervisor:
    """Keeps ``settings.processes`` server processes alive on one listening socket.

    Parameters
    ----------
    settings : Settings
    listener : socket
        Bound; taken over, and closed when the processes are asked to end.
    on_ready : callable
        Called once, when all processes answer.
    """

    def __init__(
        self, settings: Settings, listener: socket.socket, on_ready: Callable[[], None]
    ) -> None:
        self._settings = settings
        self._listener = listener
        self._on_ready = on_ready
        self._processes: dict[int, ServerProcess] = {}
        self._counts = Counts()
        self._connections = OpenConnections.of(settings.processes)
        self._stopping = asyncio.Event()
        self._has_started = False
        self._failure: str | None = None

    def run(self) -> None:
        """Run until SIGTERM or SIGINT, which is passed on to all processes, and they have ended.

        Raises
        ------
        CommandFailed
            If a process could not start the first time, or did not end as it should.
        """
        asyncio.run(self._run())
        if self._failure is not None:
            raise CommandFailed(self._failure)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop, number)
        asking = asyncio.create_task(self._counts.ask_now_and_then())
        await asyncio.gather(*(self._keep(place) for place in range(self._settings.processes)))
        asking.cancel()

    def _stop(self, number: signal.Signals) -> None:
        self._stopping.set()
        # While the processes drain, who comes now is refused at once.
        self._listener.close()
        for process in self._processes.values():
            process.signal(number)

    async def _keep(self, place: int) -> None:
        """Keep one process alive."""
        loop = asyncio.get_running_loop()
        pause = FIRST_PAUSE_SECONDS
        while not self._stopping.is_set():
            began = loop.time()
            how, as_asked = await self._one_life(place)
            if self._stopping.is_set():
                if not as_asked:
                    self._fail(place, f"did not end as it should ({how})")
                return
            if not self._has_started:
                self._fail(place, f"did not start ({how}); the lines above say why")
                self._stop(signal.SIGTERM)
                return
            if loop.time() - began > STEADY_SECONDS:
                pause = FIRST_PAUSE_SECONDS
            log.error("server_process_ended", process=place + 1, reason=how, next_start_in=pause)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    async def _one_life(self, place: int) -> tuple[str, bool]:
        """Start a process and follow it; return how it ended, and if that was as it was asked."""
        try:
            process = await ServerProcess.start(
                self._settings, place, self._listener, self._connections
            )
        except OSError as error:
            return f"it could not be launched: {error}", False
        self._processes[process.pid] = process
        if self._stopping.is_set():
            process.signal(signal.SIGTERM)
        async for message in process.heard():
            self._counts.hear(process, message)
            self._announce_once()
        code = await process.end()
        del self._processes[process.pid]
        self._counts.end(process)
        self._connections.leave(place)
        return describe_exit(code), code in AS_ASKED

    def _announce_once(self) -> None:
        ready = [process for process in self._processes.values() if process.is_ready]
        if self._has_started or self._stopping.is_set() or len(ready) < self._settings.processes:
            return
        self._has_started = True
        # Processes do so a moment after they are ready; who reads the line may come at once.
        self._listener.listen(BACKLOG)
        self._on_ready()

    def _fail(self, place: int, what: str) -> None:
        of = f"server process {place + 1} of {self._settings.processes}"
        self._failure = self._failure or f"{of} {what}"
