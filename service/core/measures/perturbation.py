"""Measures that run a model more than once, and the names of what fewer of its runs give."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Perturbation:
    """A measure of how far a model's answers to the same sample differ from run to run.

    Its values are made where the model runs, not from its scores, and larger is less certain.

    Attributes
    ----------
    name : str
        Its name everywhere, and that of its column: no event changes it.
    averages : bool
        Whether its passes have a mean probability: each is an answer to the sample itself.
    """

    name: str
    averages: bool


def prefix_column(column: str, n: int) -> str:
    """Return the name under which what the first ``n`` passes alone give is kept."""
    return f"{column}@{n}"
