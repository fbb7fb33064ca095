"""What a chart is: a spec made once, and the figures that reports make of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from service.web.charts.figure import Figure, Report


@dataclass(frozen=True)
class Chart:
    """A chart.

    Attributes
    ----------
    name : str
    spec : callable
        Makes the Vega-Lite spec with Altair; `make charts` keeps what it gives in ``specs``.
    figures : callable
        The figures that a report makes: none where it has not what is to be drawn.
    of_several : bool
        Whether it is of the report of several calibrations, not of one.
    """

    name: str
    spec: Callable[[], dict[str, Any]]
    figures: Callable[[Report], Sequence[Figure]]
    of_several: bool = False
