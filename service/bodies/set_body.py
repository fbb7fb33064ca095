"""Tables and archives of pictures: a set in a request, as one is uploaded to be calibrated on."""

from service.bodies.limits import BodyLimits
from service.bodies.parameter import required
from service.bodies.request import PredictRequest


def read_set_body(
    body: bytes,
    *,
    calibration: str | None,
    limits: BodyLimits,  # noqa: ARG001 - they are held to as it is read
) -> PredictRequest:
    """Return the set, which nobody has looked at yet: its own bytes tell its format.

    Raises
    ------
    InvalidInput
        If no calibration is named.
    """
    return PredictRequest(required(calibration), {}, content=body)
