"""A console that cuts nothing short."""

from rich.console import Console

WIDTH = 200


def wide_console() -> Console:
    """Return a console on which a line too long for the window wraps there, and loses nothing."""
    return Console(width=WIDTH)
