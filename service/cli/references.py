"""Calibrations as the caller names them, in addresses of the service."""

from urllib.parse import quote
from uuid import UUID

from service.cli.failure import CommandFailed


def address_of(calibration: str, *more: str) -> str:
    """Return the path of a calibration, or of what lies below it.

    What the caller names is one segment of the path whatever it holds: a ``#``, a ``?`` or a
    ``/`` of a name would otherwise end or split it, and the path be that of something else.

    Raises
    ------
    CommandFailed
        If a name is one that no path can hold.
    """
    for part in (calibration, *more):
        if part in ("", ".", ".."):
            raise CommandFailed(f"{part!r} names nothing; see `howsure list`")
    return "/".join(["/calibrations", *(quote(part, safe="@") for part in (calibration, *more))])


def require_version(calibration: str) -> None:
    """Refuse a bare name, which means another version tomorrow.

    Raises
    ------
    CommandFailed
        If it is neither an id nor ``name@version``.
    """
    if "@" in calibration:
        return
    try:
        UUID(calibration)
    except ValueError:
        raise CommandFailed(
            f"{calibration!r} may mean any of its versions: say which, as in "
            f"{calibration}@1, or give the id (see `howsure list`)"
        ) from None
