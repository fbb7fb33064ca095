"""A finding: what looks wrong with a set or its model, in words, with the figures behind it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from service.core.plain_data import PlainData

Level: TypeAlias = Literal["warning", "notice"]


@dataclass(frozen=True)
class Finding(PlainData):
    """One thing that looks wrong.

    Attributes
    ----------
    code : str
        Stable, for programs, and the heading of its section in ``docs/findings.md``.
    level : {"warning", "notice"}
        A warning: the calibration is likely to be of no use. A notice: worth a look.
    message : str
        One or two sentences: what was seen, with its figures, and what to do.
    figures : mapping of str to int or float
        The numbers of the message, by name.
    """

    code: str
    level: Level
    message: str
    figures: Mapping[str, int | float] = field(default_factory=dict)
