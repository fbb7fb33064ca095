"""References: the ways a caller may point at a calibration."""

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias
from uuid import UUID

from service.errors import NotFound, shown

_ID = re.compile(r"[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}")
_NAME = re.compile(r"(?P<name>[^@]{1,100})(?:@(?P<version>[1-9][0-9]{0,8}))?")


ReferenceKind: TypeAlias = Literal["id", "version", "name"]


@dataclass(frozen=True)
class CalibrationRef:
    """Which calibration answers: what a caller is told of it."""

    id: UUID
    name: str
    version: int


@dataclass(frozen=True)
class Reference:
    """An id, or a name with a version, or a name alone."""

    text: str
    id: UUID | None = None
    name: str | None = None
    version: int | None = None

    @property
    def kind(self) -> ReferenceKind:
        """Which of the three it is."""
        if self.id is not None:
            return "id"
        return "name" if self.version is None else "version"

    def not_found(self) -> NotFound:
        """Return the error that there is no such calibration."""
        return NotFound.at("calibration", f"there is no calibration {shown(self.text)}")


def parse_reference(text: str) -> Reference:
    """Tell which kind of reference a text is.

    Raises
    ------
    NotFound
        If it is none; no database is asked, for not every text can be sent to one.
    """
    if _ID.fullmatch(text):
        return Reference(text, id=UUID(text))
    found = _NAME.fullmatch(text)
    if found is None or not text.isprintable():
        raise Reference(text).not_found()
    version = found["version"]
    return Reference(text, name=found["name"], version=None if version is None else int(version))
