"""A server process as its supervisor sees it."""

import asyncio
import itertools
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Self

import service
from service.cli.processes.messages import (
    SIZE,
    FromProcess,
    Ready,
    Tell,
    Told,
    ToProcess,
    framed,
    from_process,
)
from service.cli.processes.open_connections import OpenConnections
from service.settings import Settings


class ServerProcess:
    """Started, and ended when its end of the channel is closed."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer
        self._numbers = itertools.count(1)
        self._asked: dict[int, asyncio.Event] = {}
        self.is_ready = False

    @classmethod
    async def start(
        cls, settings: Settings, place: int, listener: socket.socket, table: OpenConnections
    ) -> Self:
        """Start a process that takes connections from ``listener``, and its place in the table.

        Called on the thread that lives longest: the kernel ends the process with the thread that
        started it.
        """
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                descriptors = (listener.fileno(), theirs.fileno(), table.descriptor)
                process = _launch(settings, place, descriptors)
            return cls(process, *await asyncio.open_connection(sock=ours))
        except BaseException:
            ours.close()
            raise

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, if the process is still there."""
        self._process.send_signal(number)

    def send(self, message: ToProcess) -> None:
        """Send a message; one that has just ended does not hear it."""
        self._writer.write(framed(message))

    async def heard(self) -> AsyncIterator[FromProcess]:
        """Yield what the process says, until it ends."""
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                (size,) = SIZE.unpack(await self._reader.readexactly(SIZE.size))
                message = from_process.decode(await self._reader.readexactly(size))
                self.is_ready = self.is_ready or isinstance(message, Ready)
                yield message
                if isinstance(message, Told) and message.number in self._asked:
                    self._asked[message.number].set()

    async def ask(self, seconds: float) -> None:
        """Have the process tell what it counted, and wait for that, but no longer than this."""
        number = next(self._numbers)
        told = self._asked[number] = asyncio.Event()
        self.send(Tell(number))
        with suppress(TimeoutError):
            await asyncio.wait_for(told.wait(), seconds)
        del self._asked[number]

    async def end(self) -> int:
        """Wait for the end of the process and return its exit status, negative for a signal."""
        self._writer.close()
        return await asyncio.to_thread(self._process.wait)


def _launch(
    settings: Settings, place: int, descriptors: tuple[int, int, int]
) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-m", "service.cli.processes"]
    return subprocess.Popen(  # noqa: S603 - our own interpreter and module
        [*command, *map(str, (os.getpid(), place, *descriptors))],
        stdin=subprocess.DEVNULL,
        env=_environment(settings),
        pass_fds=descriptors,
        # An interrupt from the terminal reaches the supervisor alone, which passes it on.
        start_new_session=True,
    )


def _environment(settings: Settings) -> dict[str, str]:
    """Return the environment with all settings, however they were given."""
    given = {f"HOWSURE_{name.upper()}": str(value) for name, value in settings}
    own = str(Path(service.__file__ or "").resolve().parent.parent)
    found = [path for path in sys.path if path and path != own]
    return os.environ | given | {"PYTHONPATH": os.pathsep.join([own, *found])}
