"""Parts of a report as plain data, for databases, and back."""

from typing import Any, TypeVar

import msgspec

from howsure.statistics.plain import to_plain

Kind = TypeVar("Kind")


def plain_part(part: object) -> Any:  # noqa: ANN401 - any JSON
    """Return dicts, lists, strings and numbers; null where a number is not finite."""
    return to_plain(msgspec.to_builtins(part, str_keys=True))


def typed_part(plain: object, kind: type[Kind]) -> Kind:
    """Return plain data as the part that it was made from.

    Raises
    ------
    ValueError
        If it is none of that kind.
    """
    return msgspec.convert(plain, kind, str_keys=True)


def typed_or_none(plain: object, kind: type[Kind]) -> Kind | None:
    """Return the same, or None for None."""
    return None if plain is None else typed_part(plain, kind)
