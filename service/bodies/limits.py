"""What a request for predictions may ask of this machine."""

from dataclasses import dataclass


@dataclass(frozen=True)
class BodyLimits:
    """Bytes of a body, also once it is inflated, and rows in it."""

    max_bytes: int
    max_rows: int
