"""Multipart forms of uploads: their OpenAPI schema and the rules of their parts."""

from collections.abc import Collection, Mapping
from typing import Any

from service.http.uploads import PartRule, UploadLimits

# Files that may be sent more than once. All other files are sets or their labels.
REPEATABLE = ("model", "model_data")

_FILE = {"type": "string", "format": "binary"}


def form_body(
    files: Mapping[str, str], *, required: Collection[str], **texts: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the request body of a form in OpenAPI: files by description, texts by schema."""
    properties: dict[str, Any] = {
        name: ({"type": "array", "items": _FILE} if name in REPEATABLE else _FILE)
        | {"description": description}
        for name, description in files.items()
    }
    schema = {
        "type": "object",
        "required": list(required),
        "additionalProperties": False,
        "properties": properties | texts,
    }
    return {"required": True, "content": {"multipart/form-data": {"schema": schema}}}


def part_rules(
    limits: UploadLimits, files: Collection[str], texts: Mapping[str, int]
) -> dict[str, PartRule]:
    """Return the rules of a form's parts; texts with their limits in bytes."""
    sizes = {"model": limits.max_model_bytes, "model_data": limits.max_model_data_bytes}
    rules = {
        name: PartRule(
            max_bytes=sizes.get(name, limits.max_dataset_bytes),
            repeatable=name in REPEATABLE,
            is_file=True,
        )
        for name in files
    }
    return rules | {
        name: PartRule(max_bytes=size, repeatable=False, is_file=False)
        for name, size in texts.items()
    }
