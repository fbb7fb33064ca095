"""Names that were stored with any characters, as they are shown."""

import json

# Own sentences and tables hold them.
_OWN = "\n\t\u00a0\u202f"


def escaped(text: str) -> str:
    r"""Return text with unprintable characters as escapes such as ``\u001b``, but for line ends.

    JSON keeps its meaning.
    """
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or letter in _OWN else json.dumps(letter)[1:-1]
        for letter in text
    )
