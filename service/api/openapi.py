"""The OpenAPI document: what FastAPI finds, and what it cannot know."""

from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI

from service.api.access.route_scopes import OPEN, ROUTE_SCOPES
from service.api.errors import MEDIA_TYPE
from service.api.examples import add_examples
from service.api.oip_errors import PREFIX
from service.operations.api_keys import Doorkeeper

SCHEME = "key"
_REFUSED = {
    "401": "An API key is asked for, and none that is good was sent.",
    "403": "The API key lacks the scope.",
    "429": "Its tenant has used what it may, or too much waits; `Retry-After` says how long.",
}


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
            _ask_for_keys(document)
            add_examples(document["paths"])
        doorkeeper: Doorkeeper | None = getattr(app.state, "doorkeeper", None)
        return _as_it_is(generate(), is_open=doorkeeper is None or doorkeeper.ring.is_open)

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's documented way


def _as_it_is(document: dict[str, Any], *, is_open: bool) -> dict[str, Any]:
    """Return the document as long as there are keys, or, with ``is_open``, none."""
    if not is_open:
        return document
    paths = {
        path: {
            method: operation | {"security": [{}, *operation["security"]]}
            if "security" in operation
            else operation
            for method, operation in operations.items()
        }
        for path, operations in document["paths"].items()
    }
    return document | {"paths": paths}


def _drop_what_never_happens(document: dict[str, Any]) -> None:
    """Remove FastAPI's own 422, put wherever there is a parameter; ours are problems."""
    for operations in document["paths"].values():
        for operation in operations.values():
            content = operation["responses"].get("422", {}).get("content", {})
            if "application/json" in content:
                del operation["responses"]["422"]
    for name in ("HTTPValidationError", "ValidationError"):
        document["components"]["schemas"].pop(name, None)


def _ask_for_keys(document: dict[str, Any]) -> None:
    """Say which operations ask for a key, where there are keys, and for which scope."""
    document["components"]["securitySchemes"] = {
        SCHEME: {"type": "http", "scheme": "bearer", "description": "An API key, `cal_…`."}
    }
    for (method, path), scopes in ROUTE_SCOPES.items():
        operation = document["paths"].get(path.replace(":path}", "}"), {}).get(method.lower())
        if operation is None or scopes == OPEN:
            continue
        operation["security"] = [{SCHEME: sorted(scopes)}]
        media_type, schema = MEDIA_TYPE, "Problem"
        if path.startswith(PREFIX):
            media_type, schema = "application/json", "OipError"
        content = {media_type: {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
        for status, meaning in _REFUSED.items():
            operation["responses"].setdefault(status, {"description": meaning, "content": content})
