"""Clients that disconnect during a request, beside others that stay."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from serve.checked import Client, Question, Tally, ask_all, known_questions
from serve.leavers import WAYS, leave
from serve.networks import Network

KNOWN = 60
TRIES = 20  # for each leaver: an answer may be faster
LONGEST_WAIT = 1.5  # of a leaver, in answers' usual time
MEMORY = 0.95  # of what that is


@dataclass
class Cancellations:
    """Number of disconnected clients, and responses to the others during and afterwards."""

    left: Counter[str] = field(default_factory=Counter)
    tries: int = 0
    beside: Tally = field(default_factory=Tally)
    after: Tally = field(default_factory=Tally)

    @property
    def holds(self) -> bool:
        """Whether every answer to the others had status 200 and was right."""
        tallies = (self.beside, self.after)
        return all(tally.right and tally.others(200) == tally.wrong == 0 for tally in tallies)


async def cancellations(
    address: str,
    network: Network,
    *,
    leavers: int,
    steady: int = 8,
    together: int = 8,
    after: int = 240,
    seed: int = 0,
) -> Cancellations:
    """Disconnect this many clients in flight, ``together`` at a time, beside ``steady`` others.

    Then send ``after`` requests from as many clients as before, to show that no resource is lost.
    """
    generator = np.random.default_rng(seed)
    asked = await known_questions(address, network, KNOWN, generator)
    found, stop, pace = Cancellations(), asyncio.Event(), Pace()
    async with asyncio.TaskGroup() as group:
        for i in range(steady):
            client = Client(address, found.beside, pace.answered)
            group.create_task(client.ask_until(stop, asked, i * KNOWN // steady))
        try:
            leaver = _Leaver(address, asked, found, generator, pace, leavers)
            await asyncio.gather(*(leaver.leave_again() for _ in range(together)))
        finally:
            stop.set()
    many = (asked * (1 + after // KNOWN))[:after]
    await ask_all(address, many, found.after, clients=steady + together)
    return found


class Pace:
    """One client may disconnect for each answer to the others, at about the time of an answer."""

    def __init__(self) -> None:
        self.turns = asyncio.Semaphore(0)
        self.usual = 0.0

    def answered(self, asked_at: float, _: bool) -> None:  # noqa: FBT001 - a callback
        """Count an answer."""
        took = asyncio.get_running_loop().time() - asked_at
        self.usual = MEMORY * self.usual + (1 - MEMORY) * took if self.usual else took
        self.turns.release()


@dataclass
class _Leaver:
    address: str
    asked: list[Question]
    found: Cancellations
    generator: np.random.Generator
    pace: Pace
    leavers: int

    async def leave_again(self) -> None:
        """Disconnect until enough have."""
        found = self.found
        while found.left.total() < self.leavers and found.tries < self.leavers * TRIES:
            number, found.tries = found.tries, found.tries + 1
            await self.pace.turns.acquire()
            seconds = float(self.generator.uniform(0, LONGEST_WAIT * self.pace.usual))
            question, way = self.asked[number % KNOWN], WAYS[number % len(WAYS)]
            await leave(self.address, question, way, seconds, found.left)
