"""Names that people read: what is accepted as one, and how stored ones are shown."""

from collections.abc import Iterable

from howsure.printable import escaped
from service.errors import InvalidInput, ModelRule, shown


def check_printable(
    names: Iterable[str],
    place: str,
    error: type[InvalidInput] = InvalidInput,
    rule: ModelRule | None = None,
) -> None:
    """Refuse names with characters that a terminal obeys or nobody sees.

    Raises
    ------
    InvalidInput
        The ``error``, at the part ``place``.
    """
    for name in names:
        if not name.isprintable():
            message = f"expected names of printable characters, got {shown(name)}; rename it"
            raise error.at(place, message, rule=rule)


def escaped_text(value: object) -> object:
    """Return a value of a template; text that no filter marked as safe is `escaped`."""
    return escaped(value) if type(value) is str else value
