"""Names that people read: what is accepted as one, and how stored ones are shown."""

import json
from collections.abc import Iterable

from service.errors import InvalidInput, ModelRule, shown

# Own sentences and tables hold them.
_OWN = "\n\t\u00a0\u202f"


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


def escaped(text: str) -> str:
    r"""Return text with unprintable characters as escapes such as ``\u001b``, but for line ends.

    JSON keeps its meaning. Earlier releases stored names with any characters.
    """
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or letter in _OWN else json.dumps(letter)[1:-1]
        for letter in text
    )


def escaped_text(value: object) -> object:
    """Return a value of a template; text that no filter marked as safe is `escaped`."""
    return escaped(value) if type(value) is str else value
