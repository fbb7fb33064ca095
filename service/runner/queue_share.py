"""What one of several who share the room for predictions holds of it."""


class QueueShare:
    """Rows that wait, bytes of requests that are held, and bytes that are being received."""

    __slots__ = ("bytes", "receiving", "rows")

    def __init__(self) -> None:
        self.rows = 0
        self.bytes = 0
        self.receiving = 0
