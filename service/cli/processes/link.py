"""A server process's end of the channel to its supervisor."""

import itertools
import os
import queue
import signal
import socket
import threading
from typing import BinaryIO

from service.cli.processes.messages import SIZE, All, Ready, Scraped, Tell, Told, framed, to_process
from service.errors import Overloaded
from service.metrics import Metrics

GATHER_SECONDS = 5.0
NOT_GATHERED = (
    "What the other server processes counted was not to be had in time; scrape again, or see the "
    "service's log."
)


class SupervisorLink:
    """Tells the supervisor what this process counts, and asks it what all have counted."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._metrics = Metrics()
        # What is sent later was also counted later, or the supervisor would take it for a restart.
        self._sending = threading.Lock()
        self._numbers = itertools.count(1)
        self._waiting: dict[int, queue.SimpleQueue[bytes]] = {}

    def share(self, metrics: Metrics) -> None:
        """Answer the supervisor from these metrics, and have them tell of all processes."""
        self._metrics = metrics
        metrics.share(self.gather)
        threading.Thread(target=self._answer, name="supervisor-link", daemon=True).start()

    def ready(self) -> None:
        """Tell the supervisor that this process answers requests."""
        with self._sending:
            self._channel.sendall(framed(Ready()))

    def tell(self, number: int = 0) -> None:
        """Tell the supervisor what this process has counted."""
        with self._sending:
            self._channel.sendall(framed(Told(number, self._metrics.families())))

    def gather(self) -> bytes:
        """Return what all processes have counted.

        Raises
        ------
        Overloaded
            If the supervisor does not say so in time.
        """
        answers: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        number = next(self._numbers)
        self._waiting[number] = answers
        try:
            with self._sending:
                self._channel.sendall(framed(Scraped(number, self._metrics.families())))
            return answers.get(timeout=GATHER_SECONDS)
        except (queue.Empty, OSError) as error:
            raise Overloaded(NOT_GATHERED) from error
        finally:
            del self._waiting[number]

    def _answer(self) -> None:
        with self._channel.makefile("rb") as frames:
            while body := _read(frames):
                match to_process.decode(body):
                    case Tell(number):
                        self.tell(number)
                    case All(number, text):
                        waiting = self._waiting.get(number)
                        if waiting is not None:
                            waiting.put(text)
        # The supervisor is gone. Linux has killed this process by now, elsewhere it ends itself.
        os.kill(os.getpid(), signal.SIGTERM)


def _read(frames: BinaryIO) -> bytes:
    """Return the next frame, nothing at the end."""
    size = frames.read(SIZE.size)
    return frames.read(SIZE.unpack(size)[0]) if len(size) == SIZE.size else b""
