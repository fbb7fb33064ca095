"""A place in a graph that takes the noise it is fed."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

NoiseKind: TypeAlias = Literal["keep", "normal", "uniform"]


@dataclass(frozen=True)
class NoiseSite:
    """A graph input that stands in the place of what would be drawn at random.

    Attributes
    ----------
    name : str
        The input, float32 of no declared shape: fed in a shape that broadcasts to the site's.
    kind : {"keep", "normal", "uniform"}
        What belongs there: 0 or ``1 / (1 - rate)``, which activations are multiplied by; standard
        normal numbers; numbers of [0, 1).
    rate : float
        Chance of a 0, for "keep".
    shape_output : str
        A graph output, int64 (rank,): the site's shape for the rows that are fed, whatever the
        shape of the noise.
    of_rows : bool
        The shape comes from the rows that are fed; otherwise it is that of a weight, say, and the
        same for all batches.
    """

    name: str
    kind: NoiseKind
    rate: float
    shape_output: str
    of_rows: bool = True

    @property
    def quiet(self) -> float:
        """Return what, fed in shape (1,), leaves the model without noise."""
        return {"keep": 1.0, "normal": 0.0, "uniform": 0.5}[self.kind]
