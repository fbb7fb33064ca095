"""Clients that know the right answer to all they ask."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field

import numpy as np

from serve.answers import RowAnswer, rows_of
from serve.connection import Answer, Connection
from serve.load import NO_ANSWER, OK, PATIENCE_SECONDS
from serve.networks import Network
from serve.payloads import SERVICE_FORMATS, Payload, Write

UNAVAILABLE = 503
SHOWN_BYTES = 300
# A client that is told to come back later leaves the processor to whoever makes it possible.
RETRY_SECONDS = 0.01


@dataclass(frozen=True)
class Question:
    """A request, as bytes, and what its rows were answered when each was sent alone."""

    payload: Payload
    wire: bytes
    expected: list[RowAnswer]


@dataclass
class Tally:
    """How requests were answered."""

    right: int = 0
    wrong: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    without_retry_after: int = 0
    most_refusals: int = 0
    examples: dict[str, str] = field(default_factory=dict)

    def judge(self, question: Question, answer: Answer | None) -> bool:
        """Note one answer, None being none at all; say whether it is right."""
        status = NO_ANSWER if answer is None else answer.status
        self.statuses[status] += 1
        if answer is None:
            self.show("no answer", question.payload.format)
            return False
        if status != OK:
            self.without_retry_after += answer.header("Retry-After") is None
            self.show(str(status), repr(answer.body[:SHOWN_BYTES]))
            return False
        try:
            found: object = rows_of(question.payload.format, answer)
        except (ValueError, LookupError, TypeError):  # an answer to somebody else's format, say
            found = answer.body[:SHOWN_BYTES]
        if found == question.expected:
            self.right += 1
            return True
        self.wrong += 1
        text = f"{question.payload.format}: expected {question.expected}, got {found!r}"
        self.show("wrong answer", text)
        return False

    def show(self, kind: str, text: str) -> None:
        """Keep the first answer of each kind that is not right, to be looked at."""
        self.examples.setdefault(kind, text)

    def others(self, *statuses: int) -> int:
        """Return how many answers had none of these statuses."""
        return sum(self.statuses.values()) - sum(self.statuses[status] for status in statuses)


async def alone(
    address: str, network: Network, rows: np.ndarray, *, write: Write = SERVICE_FORMATS["npy"]
) -> list[RowAnswer]:
    """Send row by row over one connection, without other load."""
    answers: list[RowAnswer] = []
    with closing(await Connection.open(address)) as connection:
        for i in range(len(rows)):
            payload = write(network.name, rows[i : i + 1])
            answer = await asyncio.wait_for(connection.ask(payload.wire(address)), PATIENCE_SECONDS)
            if answer.status != OK:
                raise SystemExit(f"a row that was sent alone: {answer.status} {answer.body!r}")
            answers += rows_of(payload.format, answer)
    return answers


def questions(
    address: str,
    network: Network,
    rows: np.ndarray,
    answers: Sequence[RowAnswer],
    generator: np.random.Generator,
    *,
    most_rows: int = 1,
    writes: Sequence[Write] = tuple(SERVICE_FORMATS.values()),
) -> list[Question]:
    """Divide rows into requests of one to ``most_rows``, of all formats in turn."""
    made: list[Question] = []
    at = 0
    while at < len(rows):
        end = at + int(generator.integers(1, most_rows, endpoint=True))
        payload = writes[len(made) % len(writes)](network.name, rows[at:end])
        made.append(Question(payload, payload.wire(address), list(answers[at:end])))
        at = end
    return made


async def known_questions(
    address: str, network: Network, n: int, generator: np.random.Generator
) -> list[Question]:
    """Ask some rows alone; return a question of each."""
    rows = network.rows(n, seed=int(generator.integers(1 << 31)))
    return questions(address, network, rows, await alone(address, network, rows), generator)


@dataclass
class Client:
    """Asks one question after the other, and again what was refused with a 503."""

    address: str
    tally: Tally
    answered: Callable[[float, bool], None] = lambda _, __: None  # told when it asked, if right
    connection: Connection | None = None

    async def ask(self, question: Question) -> None:
        """Ask until the answer is no 503."""
        refusals = 0
        while True:
            asked_at = asyncio.get_running_loop().time()
            answer = await self._once(question)
            self.answered(asked_at, self.tally.judge(question, answer))
            if answer is None or answer.status != UNAVAILABLE:
                return
            refusals += 1
            self.tally.most_refusals = max(self.tally.most_refusals, refusals)
            await asyncio.sleep(RETRY_SECONDS)

    async def ask_until(self, stop: asyncio.Event, asked: Sequence[Question], start: int) -> None:
        """Send these in a loop; close the connection even when cancelled."""
        with closing(self):
            while not stop.is_set():
                await self.ask(asked[start % len(asked)])
                start += 1

    def close(self) -> None:
        """Close the connection in order."""
        if self.connection is not None:
            self.connection.close()

    async def _once(self, question: Question) -> Answer | None:
        try:
            if self.connection is None or not self.connection.is_open:
                self.connection = await Connection.open(self.address)
            return await asyncio.wait_for(self.connection.ask(question.wire), PATIENCE_SECONDS)
        except (OSError, TimeoutError):
            self.close()
            return None


async def ask_all(address: str, asked: Sequence[Question], tally: Tally, *, clients: int) -> None:
    """Ask all of these once, divided among so many clients at a time."""
    waiting = iter(asked)

    async def work() -> None:
        with closing(Client(address, tally)) as client:
            for question in waiting:
                await client.ask(question)

    async with asyncio.TaskGroup() as group:
        for _ in range(clients):
            group.create_task(work())
