"""The query parameter that names the calibration where the body is arrays or pictures alone."""

from service.errors import InvalidInput

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
