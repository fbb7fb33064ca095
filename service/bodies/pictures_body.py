"""``image/jpeg``, ``image/png``, ``image/webp``: one picture, as its file is."""

from service.bodies.limits import BodyLimits
from service.bodies.parameter import required
from service.bodies.request import PredictRequest, SentPicture

PLACE = "body"


def read_picture_body(
    body: bytes,
    *,
    calibration: str | None,
    limits: BodyLimits,  # noqa: ARG001 - one row, and no longer than it came
) -> PredictRequest:
    """Return the picture, which nobody has looked at yet: its own bytes tell its format.

    Raises
    ------
    InvalidInput
        If no calibration is named.
    """
    return PredictRequest(required(calibration), {}, pictures=(SentPicture(PLACE, body),))
