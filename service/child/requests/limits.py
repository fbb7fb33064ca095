"""What a request for predictions may ask of this machine."""

from dataclasses import dataclass, replace
from typing import Self

from service.errors import InvalidInput, TooLarge

# Supplied uncertainties, and all that is no number of a row.
_BESIDE_A_ROW = 16
_BESIDE = 4096


@dataclass(frozen=True)
class BodyLimits:
    """Bytes of a body, also once it is inflated, and rows in it.

    ``max_numbers`` are those in JSON, where it is known how many a row has: to make objects of
    millions takes seconds and a gigabyte, to count them no time.
    """

    max_bytes: int
    max_rows: int
    max_numbers: int | None = None

    def of_rows_of(self, n_numbers: int | None) -> Self:
        """Return the limits for rows of so many numbers; None is any number."""
        if n_numbers is None:
            return self
        return replace(self, max_numbers=self.max_rows * (n_numbers + _BESIDE_A_ROW) + _BESIDE)

    def check_json(self, body: bytes) -> None:
        """Refuse JSON of more numbers than that.

        Raises
        ------
        TooLarge
        """
        if self.max_numbers is not None and body.count(b",") > self.max_numbers:
            raise TooLarge.at(
                "body", f"expected at most {self.max_rows} rows, in all {self.max_numbers} numbers"
            )


PLACE = "query.calibration"


def required(calibration: str | None) -> str:
    """Return the parameter.

    Raises
    ------
    InvalidInput
        If it is missing.
    """
    if not calibration:
        raise InvalidInput.at(
            PLACE,
            "such a body names no calibration; send ?calibration=, an id, name or name@version",
        )
    return calibration


def refuse(calibration: str | None) -> None:
    """Refuse the parameter beside a body that names the calibration itself.

    Raises
    ------
    InvalidInput
        If it is there.
    """
    if calibration is not None:
        raise InvalidInput.at(
            PLACE, "a JSON body names the calibration itself; leave the parameter out"
        )
