"""Limits of a prediction request, and its `calibration` parameter."""

import math
import time
from dataclasses import dataclass, replace
from typing import Self

from service.errors import InvalidInput, TooLarge

# Numbers besides those of a row, such as supplied uncertainties.
_BESIDE_A_ROW = 16
_BESIDE = 4096


@dataclass(frozen=True)
class BodyLimits:
    """The maximum bytes of a body, also when decompressed, and the maximum rows.

    ``max_numbers`` is the most numbers in JSON, if the length of a row is known: parsing millions
    takes seconds and a gigabyte, counting them takes no time. ``until`` is the end of the time for
    reading the body, of `time.monotonic`.
    """

    max_bytes: int
    max_rows: int
    max_numbers: int | None = None
    until: float = math.inf

    def of_rows_of(self, n_numbers: int | None) -> Self:
        """Return the limits for rows of ``n_numbers`` numbers; None means any number."""
        if n_numbers is None:
            return self
        return replace(self, max_numbers=self.max_rows * (n_numbers + _BESIDE_A_ROW) + _BESIDE)

    def check_time(self, place: str) -> None:
        """Refuse a body that is not read in time, before the part at this place.

        Raises
        ------
        TooLarge
        """
        if time.monotonic() > self.until:
            raise TooLarge.at(
                place, "it takes too long to read up to here; send fewer rows at once"
            )

    def check_json(self, body: bytes) -> None:
        """Refuse JSON with more numbers.

        Raises
        ------
        TooLarge
        """
        if self.max_numbers is not None and body.count(b",") > self.max_numbers:
            raise TooLarge.at(
                "body", f"expected at most {self.max_rows} rows, in all {self.max_numbers} numbers"
            )


PLACE = "query.calibration"


def require_calibration(calibration: str | None) -> str:
    """Return the parameter.

    Raises
    ------
    InvalidInput
        If it is missing.
    """
    if not calibration:
        raise InvalidInput.at(
            PLACE,
            "this media type needs ?calibration=, which is an id, a name or name@version",
        )
    return calibration


def reject_calibration(calibration: str | None) -> None:
    """Refuse the parameter if the body names the calibration itself.

    Raises
    ------
    InvalidInput
        If it is there.
    """
    if calibration is not None:
        raise InvalidInput.at(
            PLACE, "a JSON body names the calibration itself; leave the parameter out"
        )
