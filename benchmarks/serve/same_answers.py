"""The same rows alone and in batches."""

from dataclasses import dataclass, field

import numpy as np

from serve.checked import Tally, alone, ask_all, questions
from serve.networks import Network

MOST_ROWS = 4


@dataclass
class SameAnswers:
    """The responses for rows that were first sent alone, and the number of their bins."""

    rows: int
    bins: int
    tally: Tally = field(default_factory=Tally)

    @property
    def holds(self) -> bool:
        """Whether every response had status 200 and equals that of each row alone."""
        return self.tally.right > 0 and self.tally.others(200) == self.tally.wrong == 0


async def same_answers(
    address: str, network: Network, *, rows: int, clients: int = 64, seed: int = 0
) -> SameAnswers:
    """Send each row alone, then all in requests of one to four rows, in all formats."""
    generator = np.random.default_rng(seed)
    drawn = network.rows(rows, seed=int(generator.integers(1 << 31)))
    answers = await alone(address, network, drawn)
    bins = {event.bin for answer in answers for _, event in answer.events[:1]}
    found = SameAnswers(rows, len(bins))
    order = generator.permutation(rows)
    for most_rows in (1, MOST_ROWS):
        asked = questions(
            address,
            network,
            drawn[order],
            [answers[i] for i in order],
            generator,
            most_rows=most_rows,
        )
        await ask_all(address, asked, found.tally, clients=clients)
    return found
