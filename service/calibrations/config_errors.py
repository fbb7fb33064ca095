"""The JSON schema of a configuration in words: what its violations say."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from howsure.limits import NAME_PATTERN
from service.errors import InvalidInput, Violation, did_you_mean, shown

Schema = Mapping[str, Any]
Checked = TypeVar("Checked", bound=BaseModel)

PATTERNS = {
    r"^(auto|cpu|cuda|cuda:(0|[1-9][0-9]{0,3})(,cuda:(0|[1-9][0-9]{0,3}))*)$": (
        "auto, cpu, cuda, cuda:N or a list as cuda:0,cuda:1"
    ),
    NAME_PATTERN: (
        "1 to 100 of the characters A-Z, a-z, 0-9, '.', '_' and '-', the first a letter or a digit"
    ),
    r"^[0-9a-f]{64}$": "64 hexadecimal digits in lower case",
}
# A hostile document may break a rule in a million places.
MAX_VIOLATIONS = 20
_BOUNDS = (
    ("minimum", "from {}"),
    ("exclusiveMinimum", "above {}"),
    ("maximum", "to {}"),
    ("exclusiveMaximum", "below {}"),
)


def parsed_json(
    text: str | bytes, kind: type[Checked], *, failure: type[InvalidInput], place: str = "config"
) -> Checked:
    """Return the model that a JSON text describes.

    Raises
    ------
    InvalidInput
        As ``failure``, if the text is not JSON or breaks a rule; each violation names its key,
        below ``place``.
    """
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        violations = violations_of(error, kind, place=place)
        summary = "; ".join(f"{v.location}: {v.message}" for v in violations[:3])
        raise failure(summary, violations) from error


def violations_of(
    error: ValidationError, kind: type[BaseModel], *, place: str = "config"
) -> list[Violation]:
    """Return the first violations, each once: its location below ``place`` and what is expected."""
    root = kind.model_json_schema()
    found: dict[Violation, None] = {}
    for fault in error.errors(include_url=False, include_context=False):
        if len(found) == MAX_VIOLATIONS:
            break
        location, schema = _place(root, fault["loc"], place)
        message = _message(fault["type"], fault["msg"], schema, root)
        if fault["type"] == "extra_forbidden":
            *above, key = fault["loc"]
            message += did_you_mean(str(key), _keys(root, above))
        elif fault["type"] == "literal_error" and isinstance(fault["input"], str):
            message += did_you_mean(fault["input"], _words(schema, root))
        violation = Violation(location, message)
        found[violation] = None
    return list(found)


def _place(root: Schema, path: tuple[int | str, ...], location: str) -> tuple[str, Schema]:
    """Follow a path as far as the schema goes; pydantic's own names may follow."""
    schema = root
    for part in path:
        below = _below(schema, part, root)
        if below is None:
            break
        location += f"[{part}]" if isinstance(part, int) else f".{shown(part)[1:-1]}"
        schema = below
    return location, resolved(schema, root)


def _below(schema: Schema, part: int | str, root: Schema) -> Schema | None:
    schema = resolved(schema, root)
    for option in schema.get("anyOf", ()):
        found = _below(option, part, root)
        if found is not None:
            return found
    if isinstance(part, int):
        first: list[Schema] = schema.get("prefixItems", [])
        items: Schema | None = first[part] if part < len(first) else schema.get("items")
        return items
    if part in schema.get("properties", {}):
        known: Schema = schema["properties"][part]
        return known
    if "properties" in schema:
        # The key is unknown: its location is right, and it has no schema.
        return {}
    other = schema.get("additionalProperties")
    return other if isinstance(other, Mapping) else None


def _keys(root: Schema, path: Sequence[int | str]) -> list[str]:
    """Return the keys of the object at a path."""
    schema: Schema | None = root
    for part in path:
        schema = schema and _below(schema, part, root)
    options = (schema or {}).get("anyOf", [schema or {}])
    return [key for option in options for key in resolved(option, root).get("properties", {})]


def _words(schema: Schema, root: Schema) -> list[str]:
    """Return the words that a schema allows."""
    schema = resolved(schema, root)
    options = [word for option in schema.get("anyOf", ()) for word in _words(option, root)]
    own = schema.get("enum", [schema["const"]] if "const" in schema else [])
    return options + [word for word in own if isinstance(word, str)]


def resolved(schema: Schema, root: Schema) -> Schema:
    """Return the schema itself, or the one that it refers to."""
    if "$ref" not in schema:
        return schema
    found: Schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
    return found


def _message(kind: str, message: str, schema: Schema, root: Schema) -> str:
    if kind == "value_error":
        return message.removeprefix("Value error, ")
    if kind == "missing":
        return f"this key is required: expected {expected(schema, root)}"
    if kind == "extra_forbidden":
        return "there is no such key"
    if kind == "json_invalid":
        reason = message.removeprefix("Invalid JSON: ")
        deep = "recursion limit" in reason
        return "the lists are nested too deeply" if deep else f"this is no valid JSON: {reason}"
    return f"expected {expected(schema, root)}"


def expected(schema: Schema, root: Schema) -> str:
    """Describe what a schema allows."""
    schema = resolved(schema, root)
    if "anyOf" in schema:
        options = [option for option in schema["anyOf"] if option.get("type") != "null"]
        return " or ".join(expected(option, root) for option in options)
    if "const" in schema or "enum" in schema:
        return " or ".join(json.dumps(v) for v in schema.get("enum", [schema.get("const")]))
    kind = schema.get("type")
    if kind in ("integer", "number"):
        return ("an integer" if kind == "integer" else "a number") + _range(schema)
    if kind == "array":
        return f"a list{_count(schema, 'Items', 'item')}"
    if kind == "string":
        some = f"a string{_count(schema, 'Length', 'character')}"
        return PATTERNS.get(schema.get("pattern", ""), some)
    return {"boolean": "true or false", "object": "an object"}.get(str(kind), "another value")


def _range(schema: Schema) -> str:
    said = [words.format(_number(schema[key])) for key, words in _BOUNDS if key in schema]
    text = " and ".join(said).replace(" and to ", " to ")
    for alone, better in (("from ", "of at least "), ("to ", "of at most ")):
        if len(said) == 1 and text.startswith(alone):
            text = better + text.removeprefix(alone)
    return f" {text.replace('above 0 to', 'above 0 and up to')}" if text else ""


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.12g}"


def _count(schema: Schema, of: str, thing: str) -> str:
    least, most = schema.get(f"min{of}"), schema.get(f"max{of}")
    if least is None and most is None:
        return ""
    if most is None:
        return f" of at least {least} {thing}{'s' * (least != 1)}"
    if least == most:
        return f" of {least} {thing}{'s' * (least != 1)}"
    return f" of {least or 0} to {most} {thing}s"
