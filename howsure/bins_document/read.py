"""Reading of a bins document: each rule of it is checked."""

import re
from typing import TypeVar, get_args

import msgspec

from howsure.bins_document.document import BinsDocument, SchemaName
from howsure.bins_document.rules import broken_rules

SCHEMAS = get_args(SchemaName)
# More than a document of 8 MiB has, whose numbers have digits; each takes memory.
MAX_ITEMS = 2**20
Kind = TypeVar("Kind")
# `$.data.texts[...][1]` is in the value of some key, and "`key` in `$.data.texts`" is a key itself.
_PLACE = re.compile(r"(.*) - at `(key` in `)?\$(.*)`", re.DOTALL)
_KEY = re.compile(r"Object (contains unknown|missing required) field `(.*)`", re.DOTALL)


class DocumentError(ValueError):
    """A text is no bins document, or breaks a rule of it.

    Attributes
    ----------
    place : str
        The part, such as ``tables[0].event``; empty for the whole document.
    rule : str
        The broken rule.
    is_json : bool
        Whether the text is JSON.
    """

    def __init__(self, place: str, rule: str, *, is_json: bool = True) -> None:
        super().__init__(f"{place}: {rule}" if place else rule)
        self.place = place
        self.rule = rule
        self.is_json = is_json


class _Versioned(msgspec.Struct):
    schema: object = None


def read_document(text: bytes) -> BinsDocument:
    """Return a document from its JSON.

    Raises
    ------
    DocumentError
        If it is no JSON, or breaks a rule.
    """
    if text.count(b",") > MAX_ITEMS:
        raise DocumentError("", f"expected at most {MAX_ITEMS} numbers and texts")
    schema = _decoded(text, _Versioned).schema
    if schema not in SCHEMAS:  # before the rules of these are applied
        known = " or ".join(map(repr, SCHEMAS))
        name = "none" if schema is None else ascii(schema)[:100]
        raise DocumentError("schema", f"expected {known}, the schemas known here, not {name}")
    document = _decoded(text, BinsDocument)
    for place, rule in broken_rules(document):
        raise DocumentError(place, rule)
    return document


def _decoded(text: bytes, kind: type[Kind]) -> Kind:
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.ValidationError as error:
        message, place = str(error), ""
        match = _PLACE.fullmatch(message)
        if match is not None:
            message, place = match[1], match[3].strip(".")
            if match[2]:
                message = f"invalid key: {message[:1].lower()}{message[1:]}"
        key = _KEY.fullmatch(message)
        if key is not None:
            place = f"{place}.{ascii(key[2])[1:-1][:100]}".strip(".")
            message = "there is no such key" if "unknown" in key[1] else "this key is missing"
        raise DocumentError(place, message[:1].lower() + message[1:]) from error
    except RecursionError as error:
        raise DocumentError("", "the lists are nested too deeply", is_json=False) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DocumentError("", f"this is no valid JSON: {error}", is_json=False) from error
