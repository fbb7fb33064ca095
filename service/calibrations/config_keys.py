"""The keys of a configuration as a table in Markdown, for the OpenAPI document."""

import json
from collections.abc import Iterator

from pydantic import BaseModel

from service.calibrations.config_errors import Schema, expected, resolved

HEAD = "| key | value | default | meaning |\n|---|---|---|---|\n"


def keys_table(kind: type[BaseModel]) -> str:
    """Return a line per key, also of objects within the configuration."""
    root = kind.model_json_schema()
    return HEAD + "\n".join(_lines(root, root, ""))


def _lines(schema: Schema, root: Schema, above: str) -> Iterator[str]:
    for key, found in schema["properties"].items():
        below = _object(found, root)
        default = found.get("default")
        # The defaults of an object are those of its keys.
        shown = "" if default is None or below else f"`{json.dumps(default)}`"
        cells = (f"`{above}{key}`", expected(found, root), shown, found.get("description", ""))
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
        if below:
            yield from _lines(below, root, f"{above}{key}.")


def _object(schema: Schema, root: Schema) -> Schema | None:
    """Return the object that a value may be; None if it has no known keys."""
    options = [resolved(option, root) for option in schema.get("anyOf", [schema])]
    return next((option for option in options if "properties" in option), None)
