"""Ends requests and connections that take too long."""

import math
from collections.abc import Iterable

from service.errors import RequestTimeout, TooManyRequests
from service.http.connection import Connection
from service.http.connection_limits import IS_SMALL_BODY

# A refused client may continue sending for this time before it reads the response.
LINGER_SECONDS = 5.0
# After a longer pause of the event loop, bytes may have arrived in time but are not read yet.
LONGEST_PAUSE_SECONDS = 1.0


class Deadlines:
    """Ends requests and connections that take too long."""

    def __init__(self) -> None:
        self._looked = 0.0

    def enforce(self, connections: Iterable[object], now: float) -> None:
        """Check all connections of a server."""
        pause, self._looked = now - self._looked, now
        if pause > LONGEST_PAUSE_SECONDS:
            return
        for connection in tuple(connections):
            if isinstance(connection, Connection):
                _look(connection, now)


def _look(connection: Connection, now: float) -> None:
    if _is_stuck(connection, now):
        connection.transport.abort()
    elif connection.refused_at is not None:
        if now - connection.refused_at > LINGER_SECONDS:
            connection.transport.abort()
    elif connection.flow.read_paused:
        # Reading is paused, so the time starts when it resumes.
        connection.reader.arrived = connection.since = now
        connection.reader.seen_body = connection.reader.n_body
    elif connection.reader.is_in_head:
        seconds = connection.context.limits.header_seconds
        if now - connection.reader.arrived > seconds:
            connection.refuse(RequestTimeout.at("headers", f"expected within {seconds:g} seconds"))
    elif connection.reader.is_receiving():
        _look_at_body(connection, now)
    elif connection.current is None and not connection.queue:
        _look_at_idle(connection, now)


def _is_stuck(connection: Connection, now: float) -> bool:
    """Tell whether the client reads too slowly, or leaves too much unread."""
    unread, limits = connection.transport.get_write_buffer_size(), connection.context.limits
    seconds, read = now - connection.unread_since, connection.unread - unread
    is_due = seconds > limits.stall_seconds
    if not unread or read < 0 or is_due:
        connection.unread, connection.unread_since = unread, now
    if unread or connection.unread_hold.amount:
        try:
            connection.unread_hold.change_to(unread)
        except TooManyRequests:
            return True
    return is_due and unread > 0 and read < limits.min_bytes_per_second * seconds


def _look_at_idle(connection: Connection, now: float) -> None:
    """Close an idle connection.

    Before the first request, and after blank lines, the time limit is that of a head.
    """
    limits = connection.context.limits
    is_new = not connection.n_answered or connection.reader.n_received
    most = limits.header_seconds if is_new else limits.keep_alive_seconds
    if now - connection.since > most:
        connection.transport.close()


def _look_at_body(connection: Connection, now: float) -> None:
    """Refuse a body that arrives too slowly or too late."""
    limits, reader = connection.context.limits, connection.reader
    cycle = reader.cycle
    if cycle is not None and cycle.response_complete:
        # The response did not need the body; the client may finish sending it.
        if now - connection.since > limits.header_seconds:
            connection.transport.abort()
        return
    if cycle is None:
        rate, most = limits.min_bytes_per_second, limits.hot_body_seconds
    else:
        rate = limits.upload_bytes_per_second
        most = limits.header_seconds if IS_SMALL_BODY in cycle.scope["state"] else math.inf
    is_late = now - reader.arrived > most
    if now - connection.since >= limits.window_seconds:
        is_late |= reader.n_body - reader.seen_body < rate * limits.window_seconds
        connection.since, reader.seen_body = now, reader.n_body
    if is_late:
        message = "it arrives too slowly; send it again, without a pause"
        connection.refuse(RequestTimeout.at("body", message))
