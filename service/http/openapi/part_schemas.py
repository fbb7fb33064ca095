"""Schemas of the classes that reports are made of, described by their docstrings."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import is_dataclass
from inspect import cleandoc
from typing import Any, get_args, get_type_hints

import msgspec

REFERENCES = "#/components/schemas/"
_HEADING = re.compile(r"^(\w[\w ]*)\n-+$", re.MULTILINE)
_ATTRIBUTE = re.compile(r"^(\w[\w, ]*) : .*\n((?:    .*\n?|\n)*)", re.MULTILINE)


def part_schemas(parts: Sequence[type]) -> dict[str, Any]:
    """Return the schemas of some classes, and of all that they refer to, by name."""
    _, schemas = msgspec.json.schema_components(parts, ref_template=f"{REFERENCES}{{name}}")
    classes: set[type] = set()
    for part in parts:
        classes.update(_classes_of(part, classes))
    for kind in classes:
        schema = schemas[kind.__name__]
        schema["description"] = _sections(kind)[0]
        texts: dict[str, str] = {}
        for base in reversed(kind.__mro__):
            texts |= _sections(base)[1]
        for name, field in schema["properties"].items():
            if name in texts and "$ref" not in field:  # beside which some readers take no text
                field["description"] = texts[name]
    for schema in schemas.values():
        for field in schema.get("properties", {}).values():
            _describe_by_reference(field, schemas)
    return schemas


def _classes_of(hint: object, classes: set[type]) -> Iterator[type]:
    """Yield the classes with fields that a type refers to."""
    for inner in get_args(hint):
        yield from _classes_of(inner, classes)
    if not isinstance(hint, type) or hint in classes:
        return
    if is_dataclass(hint) or issubclass(hint, msgspec.Struct):
        classes.add(hint)
        yield hint
        for inner in get_type_hints(hint).values():
            yield from _classes_of(inner, classes)


def _sections(kind: type) -> tuple[str, dict[str, str]]:
    """Return what a class is, in one line, and its attributes."""
    about, *sections = _HEADING.split(cleandoc(kind.__doc__ or ""))
    described = dict(zip(sections[::2], sections[1::2], strict=True)).get("Attributes", "")
    texts = {
        name: " ".join(text.split())
        for names, text in _ATTRIBUTE.findall(f"{described}\n")
        for name in names.split(", ")
        if text.strip()
    }
    return " ".join(about.split()), texts


def _describe_by_reference(field: dict[str, Any], schemas: dict[str, Any]) -> None:
    """Describe a property, if it has no text of its own, by the class that it holds."""
    text = re.search(rf"{REFERENCES}(\w+)", str(field))
    if text is not None and "$ref" not in field and "description" not in field:
        field["description"] = schemas[text[1]]["description"]
