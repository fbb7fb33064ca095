"""A process that holds connections, so that it does not slow the measuring process."""

import multiprocessing
import random
import resource
import selectors
import socket
import time
from collections import Counter
from contextlib import suppress
from typing import Self

SPAWN = multiprocessing.get_context("spawn")
# Sent on a connection: nothing, the beginning of a request, or one whole request.
WORDS = {
    "silent": b"",
    "half a head": b"POST /predict HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
    "asked once": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
}
TURN_SECONDS = 0.05
# Number of ports of one loopback address.
PER_ADDRESS = 5000
# Time to open them on a busy machine.
START_SECONDS = 600.0


class Holder:
    """Holds ``times`` connections while the block runs, and reopens closed ones."""

    def __init__(self, address: tuple[str, int], *, times: int, seed: int, per_second: int) -> None:
        self._times = times
        self._ending = SPAWN.Event()
        self._count = SPAWN.Value("i", 0)
        self._told: multiprocessing.SimpleQueue[Counter[str]] = SPAWN.SimpleQueue()
        at_once = max(1, int(per_second * TURN_SECONDS))
        arguments = (address, times, at_once, seed, self._ending, self._count, self._told)
        self._process = SPAWN.Process(target=_hold, args=arguments)
        self.opened = 0
        self.ended: Counter[str] = Counter()

    def __enter__(self) -> Self:
        self._process.start()
        return self

    def wait_until_all_were_opened(self) -> None:
        until = time.monotonic() + START_SECONDS
        while self._count.value < self._times:
            assert self._process.is_alive(), "the process that holds connections ended"
            assert time.monotonic() < until, f"{self._count.value} connections were opened"
            time.sleep(0.02)

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        if self._process.is_alive():
            self.ended = self._told.get()
        self._process.join()
        self.opened = self._count.value


def _hold(address, times, at_once, seed, ending, count, told) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(times + 256, hard), hard))
    generator, ended = random.Random(seed), Counter()
    with selectors.DefaultSelector() as held:
        while not ending.is_set():
            missing = times - len(held.get_map())
            for _ in range(min(missing, at_once)):
                with suppress(OSError):
                    _open(address, held, generator, count.value)
                    count.value += 1
            turn_ends = time.monotonic() + TURN_SECONDS
            for key, _ in held.select(TURN_SECONDS):
                _read(key, held, ended)
            time.sleep(max(0.0, turn_ends - time.monotonic()))
        told.put(ended)
        for key in list(held.get_map().values()):
            key.fileobj.close()


def _open(address, held, generator, number) -> None:
    kind = generator.choice(list(WORDS))
    source = (f"127.0.0.{2 + number // PER_ADDRESS % 200}", 0)
    opened = socket.create_connection(address, timeout=5, source_address=source)
    opened.sendall(WORDS[kind])
    opened.setblocking(False)
    held.register(opened, selectors.EVENT_READ, kind)


def _read(key, held, ended) -> None:
    try:
        said = key.fileobj.recv(4096)
    except BlockingIOError:
        return
    except OSError:
        said = b""
    if said.startswith(b"HTTP/1.1 503"):
        ended["turned away"] += 1
    elif said:
        return
    else:
        ended[f"ended, {key.data}"] += 1
    held.unregister(key.fileobj)
    key.fileobj.close()
