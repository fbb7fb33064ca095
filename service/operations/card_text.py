"""Strangers' text in a model card, where it is neither YAML nor Markdown but text."""

import unicodedata

from service.operations.markdown_table import plain

# They turn round what follows them, or cannot be seen at all.
_TURNS = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})
_UNSHOWN = frozenset({"Cc", "Cs", "Cn", "Co"})
_UNKNOWN = "\ufffd"
_SHORT = 0xFFFF


def yaml_text(text: str) -> str:
    """Return a double-quoted scalar of YAML: what cannot be seen is escaped."""
    return f'"{"".join(map(_escaped, text))}"'


def one_line(text: str) -> str:
    """Return text on one line, in which Markdown reads neither markup nor entities."""
    shown = "".join(
        _UNKNOWN if _is_unshown(letter) else letter for letter in " ".join(text.split())
    )
    return plain(shown).replace("&", r"\&")


def _is_unshown(letter: str) -> bool:
    return unicodedata.bidirectional(letter) in _TURNS or unicodedata.category(letter) in _UNSHOWN


def _escaped(letter: str) -> str:
    if letter in '"\\':
        return f"\\{letter}"
    if letter.isprintable():
        return letter
    code = ord(letter)
    return f"\\u{code:04x}" if code <= _SHORT else f"\\U{code:08x}"
