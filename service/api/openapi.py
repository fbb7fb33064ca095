"""The OpenAPI document: what FastAPI finds, and what it cannot know."""

from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI

from service.api.examples import add_examples


def install(app: FastAPI, schemas: Sequence[dict[str, Any]]) -> None:
    """Complete the document of ``app``, on first demand."""
    generate = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = generate()
            known = document.setdefault("components", {}).setdefault("schemas", {})
            for group in schemas:
                for name, schema in group.items():
                    known.update(schema.get("$defs", {}))
                    known[name] = {key: schema[key] for key in schema if key != "$defs"}
            _drop_what_never_happens(document)
            add_examples(document["paths"])
        return generate()

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's documented way


def _drop_what_never_happens(document: dict[str, Any]) -> None:
    """Remove FastAPI's own 422, put wherever there is a parameter; ours are problems."""
    for operations in document["paths"].values():
        for operation in operations.values():
            content = operation["responses"].get("422", {}).get("content", {})
            if "application/json" in content:
                del operation["responses"]["422"]
    for name in ("HTTPValidationError", "ValidationError"):
        document["components"]["schemas"].pop(name, None)
