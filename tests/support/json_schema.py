"""As much of JSON Schema as the OpenAPI document uses."""

import re
from typing import Any

TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
    "integer": int,
    "number": (int, float),
}


def faults(value: Any, schema: dict[str, Any], document: dict[str, Any], at: str = "$") -> list:
    """Return where a value breaks a schema; nothing if it keeps to it."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/components/schemas/")
        return faults(value, document["components"]["schemas"][name], document, at)
    if "anyOf" in schema:
        found = [faults(value, option, document, at) for option in schema["anyOf"]]
        return [] if [] in found else min(found, key=len)
    kind = schema.get("type")
    is_flag = isinstance(value, bool) and kind in ("integer", "number")
    if kind is not None and (is_flag or not isinstance(value, TYPES[kind])):
        return [f"{at}: {value!r} is no {kind}"]
    if value not in schema.get("enum", [value]):
        return [f"{at}: {value!r} is not among {schema['enum']}"]
    if isinstance(value, dict):
        return _object_faults(value, schema, document, at)
    return _list_faults(value, schema, document, at) if isinstance(value, list) else []


def _list_faults(
    value: list[Any], schema: dict[str, Any], document: dict[str, Any], at: str
) -> list:
    first = schema.get("prefixItems", [])
    if first and len(value) != len(first):
        return [f"{at}: {len(value)} items"]
    options = [*first, *[schema.get("items", {})] * (len(value) - len(first))]
    pairs = zip(value, options, strict=True)
    return [f for i, (v, s) in enumerate(pairs) for f in faults(v, s, document, f"{at}[{i}]")]


def _object_faults(
    value: dict[str, Any], schema: dict[str, Any], document: dict[str, Any], at: str
) -> list:
    found = [f"{at}: lacks {key}" for key in schema.get("required", []) if key not in value]
    properties = schema.get("properties", {})
    for key, part in value.items():
        patterns = [s for p, s in schema.get("patternProperties", {}).items() if re.search(p, key)]
        known = [properties[key]] if key in properties else patterns
        other = schema.get("additionalProperties", not properties)
        if not known and other is False:
            found.append(f"{at}: {key} is not documented")
        if not known and isinstance(other, dict):
            known = [other]
        for option in known:
            found += faults(part, option, document, f"{at}.{key}")
    return found
