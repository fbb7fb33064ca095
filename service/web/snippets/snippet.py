"""What a snippet is, and what it is made of."""

import shlex
from dataclasses import dataclass
from typing import Any

import numpy as np

from service.operations.integration import Integration, RowInput

# More numbers than these are made by the snippet, and not written out in it.
MOST_INLINE = 100
KEY = "HOWSURE_API_KEY"
ZEROS = "The rows are zeros: put yours in their place"


@dataclass(frozen=True)
class Asking:
    """A calibration that is asked here: ``origin`` is where, as a browser reached it.

    ``keyed`` tells whether an API key is to be sent; it is read of the environment.
    """

    calibration: Integration
    origin: str
    keyed: bool

    @property
    def is_short(self) -> bool:
        """Whether a row can be written out."""
        return sum(found.count for found in self.calibration.inputs) <= MOST_INLINE


@dataclass(frozen=True)
class Snippet:
    """A program as text.

    Attributes
    ----------
    name : str
        By which a page links to it.
    title : str
    language : str
        ``sh``, ``python`` or ``javascript``.
    text : str
    note : str
        What to put into it.
    setup : str
        Commands of a shell that it needs to have been run once.
    """

    name: str
    title: str
    language: str
    text: str
    note: str
    setup: str = ""


def is_score(found: RowInput) -> bool:
    """Tell whether the first number of a row is to be one: probabilities have to add up to it."""
    return found.name in ("logits", "probabilities") and len(found.sizes) == 1


def example(found: RowInput) -> list[int]:
    """Return the numbers of a row: zeros, and what else they have to be."""
    return [int(is_score(found)), *[0] * (found.count - 1)]


def nested(found: RowInput) -> Any:  # noqa: ANN401 - lists in as many lists as there are sizes
    """Return one row as JSON has it."""
    return np.reshape(np.array(example(found), dtype=np.int64), (1, *found.sizes)).tolist()


def command(*words: str) -> str:
    """Return a command of a shell, each option on a line of its own."""
    lines = [" ".join(words[:2])]
    lines += [" ".join(pair) for pair in _pairs(words[2:])]
    return " \\\n  ".join(lines)


def bearer(asking: Asking) -> list[str]:
    """Return the option of curl that sends the key, quoted."""
    return ["-H", f'"Authorization: Bearer ${KEY}"'] if asking.keyed else []


def python_text(text: str) -> str:
    """Return a literal of Python, in the quotes that most of it has; what is unseen is escaped."""
    shown = repr(text)
    is_plain = shown.startswith("'") and '"' not in shown
    return f'"{shown[1:-1]}"' if is_plain else shown


def quoted(text: str) -> str:
    """Return text as one word of a shell."""
    return shlex.quote(text)


def _pairs(words: tuple[str, ...]) -> list[list[str]]:
    return [list(words[at : at + 2]) for at in range(0, len(words), 2)]
