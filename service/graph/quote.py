"""Names from a stranger's file, made fit for a message."""

MAX_LENGTH = 80


def quote(name: str) -> str:
    """Return the name in quotes, escaped and of bounded length."""
    return repr(name if len(name) <= MAX_LENGTH else f"{name[:MAX_LENGTH]}…")


def quote_all(names: list[str], *, at_most: int = 10) -> str:
    """Return the names in quotes, separated by commas, the rest counted."""
    shown = ", ".join(quote(name) for name in names[:at_most])
    more = len(names) - at_most
    return f"{shown} and {more} more" if more > 0 else shown
