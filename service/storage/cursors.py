"""Cursors: where the next page of a list begins, opaque to the caller."""

import base64
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from service.errors import InvalidInput


@dataclass(frozen=True)
class Cursor:
    """The last row of a page; the next page holds older ones."""

    created_at: datetime
    id: UUID

    def encode(self) -> str:
        """Return the cursor as text that needs no escaping in a URL."""
        text = f"{self.created_at.astimezone(UTC).isoformat()} {self.id}"
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_cursor(text: str) -> Cursor:
    """Return the cursor that the text stands for.

    Raises
    ------
    InvalidInput
        If the text is no cursor.
    """
    try:
        padded = text + "=" * (-len(text) % 4)
        decoded = base64.b64decode(padded, altchars=b"-_", validate=True).decode()
        created_at, calibration_id = decoded.split(" ")
        cursor = Cursor(datetime.fromisoformat(created_at), UUID(calibration_id))
    except ValueError as error:
        raise InvalidInput.at("cursor", "expected the next_cursor of a page") from error
    if cursor.created_at.utcoffset() != timedelta(0):
        raise InvalidInput.at("cursor", "expected the next_cursor of a page")
    return cursor
