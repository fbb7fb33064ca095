"""What all server processes have counted: asked for when one is scraped, and now and then."""

import asyncio
from collections.abc import Iterable

from service.cli.processes.messages import All, FromProcess, Scraped, Told
from service.cli.processes.server_process import ServerProcess
from service.metrics import Tally

# What a process counted since it told last is lost if it is killed.
TELL_SECONDS = 5.0
# One that does not answer in time counts as it told last.
ANSWER_SECONDS = 0.5


class Counts:
    """Keeps what the processes tell, and answers the one that is scraped."""

    def __init__(self) -> None:
        self._tally = Tally()
        self._processes: dict[int, ServerProcess] = {}
        self._answering: set[asyncio.Task[None]] = set()

    def hear(self, process: ServerProcess, message: FromProcess) -> None:
        """Take what a process says of its counts."""
        if process.is_ready:
            self._processes[process.pid] = process
        if isinstance(message, Told | Scraped):
            self._tally.tell(process.pid, message.families)
        if isinstance(message, Scraped):
            answering = asyncio.create_task(self._answer(process, message.number))
            self._answering.add(answering)
            answering.add_done_callback(self._answering.discard)

    def end(self, process: ServerProcess) -> None:
        """Keep what a process had counted, for it is gone."""
        self._processes.pop(process.pid, None)
        self._tally.end(process.pid)

    async def ask_now_and_then(self) -> None:
        """Ask all processes, for as long as this runs."""
        while True:
            await asyncio.sleep(TELL_SECONDS)
            await _ask(self._processes.values())

    async def _answer(self, scraped: ServerProcess, number: int) -> None:
        await _ask(found for found in self._processes.values() if found is not scraped)
        if scraped.pid in self._processes:
            scraped.send(All(number, self._tally.text(scraped.pid)))


async def _ask(processes: Iterable[ServerProcess]) -> None:
    await asyncio.gather(*(process.ask(ANSWER_SECONDS) for process in list(processes)))
