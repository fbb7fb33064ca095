"""The OpenAPI document: FastAPI's own, completed with examples, errors and API keys."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from service.access.route_table import OPEN, ROUTES
from service.http.openapi.examples import add_examples
from service.http.openapi.part_schemas import part_schemas
from service.http.problems import MEDIA_TYPE, PREFIX
from service.http.response_head import CACHE, CONTENT_SECURITY
from service.http.services import Services
from service.json_pieces import json_chunks

FOLDER = Path(__file__).parent
STATIC = FOLDER.parent / "static"
# The pictures of Swagger UI are inside its style sheet and script.
DOCS_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
STATIC_CACHE = "public, max-age=3600"


class _Assets(StaticFiles):
    """Files that browsers may cache for a while."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers[CACHE.decode()] = STATIC_CACHE
        return response


def add_documentation_page(app: FastAPI) -> None:
    """Serve Swagger UI from this process, because isolated networks cannot reach a CDN."""
    page = (FOLDER / "docs.html").read_text(encoding="utf-8")
    app.mount("/static", _Assets(directory=STATIC), name="static")
    # The whole document, by whether the service needs no key.
    encoded: dict[bool, asyncio.Future[bytes]] = {}

    @app.api_route("/openapi.json", methods=["GET", "HEAD"], include_in_schema=False)
    async def get_document() -> Response:
        services: Services = app.state.services
        is_open = services.authenticator.ring.is_open
        if is_open not in encoded:  # simultaneous callers share it
            made = run_in_threadpool(lambda: b"".join(json_chunks(app.openapi())))
            encoded[is_open] = asyncio.ensure_future(made)
        return Response(await asyncio.shield(encoded[is_open]), media_type="application/json")

    @app.get("/docs", include_in_schema=False)
    async def get_docs() -> HTMLResponse:
        # FastAPI's own page has an inline script, which a strict policy forbids.
        return HTMLResponse(page, headers={CONTENT_SECURITY.decode(): DOCS_POLICY})


SCHEME = "key"
_REFUSED = {
    "401": "The API key is missing or invalid.",
    "403": "The API key lacks the scope.",
    "429": "A limit of the tenant or of the server is reached; retry after `Retry-After`.",
}


def complete_document(
    app: FastAPI, kinds: Sequence[type[BaseModel]], parts: Sequence[type]
) -> None:
    """Complete the document of ``app`` at its first use.

    ``kinds`` are the schemas that routes refer to by name, because FastAPI does not see them, and
    ``parts`` classes that describe themselves.
    """
    generate = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = generate()
            known = document.setdefault("components", {}).setdefault("schemas", {})
            for kind in kinds:
                schema = kind.model_json_schema(ref_template="#/components/schemas/{model}")
                known.update(schema.pop("$defs", {}))
                known[kind.__name__] = schema
            known.update(part_schemas(parts))
            _drop_what_never_happens(document)
            _ask_for_keys(document)
            add_examples(document["paths"])
            document["tags"] = json.loads((FOLDER / "tags.json").read_text(encoding="utf-8"))
        services: Services | None = getattr(app.state, "services", None)
        is_open = services is None or services.authenticator.ring.is_open
        return _as_it_is(generate(), is_open=is_open)

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's documented way


def _as_it_is(document: dict[str, Any], *, is_open: bool) -> dict[str, Any]:
    """Return the document; with ``is_open`` API keys are optional."""
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
    """Remove FastAPI's 422 responses; the service responds with problems instead."""
    for operations in document["paths"].values():
        for operation in operations.values():
            content = operation["responses"].get("422", {}).get("content", {})
            if "application/json" in content:
                del operation["responses"]["422"]
    for name in ("HTTPValidationError", "ValidationError"):
        document["components"]["schemas"].pop(name, None)


def _ask_for_keys(document: dict[str, Any]) -> None:
    """Add the required scopes to the operations that need an API key."""
    document["components"]["securitySchemes"] = {
        SCHEME: {"type": "http", "scheme": "bearer", "description": "An API key, `cal_…`."}
    }
    for (method, path), rule in ROUTES.items():
        operation = document["paths"].get(path.replace(":path}", "}"), {}).get(method.lower())
        if operation is None or rule.scopes == OPEN:
            continue
        operation["security"] = [{SCHEME: sorted(rule.scopes)}]
        media_type, schema = MEDIA_TYPE, "Problem"
        if path.startswith(PREFIX):
            media_type, schema = "application/json", "OipError"
        content = {media_type: {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
        for status, meaning in _REFUSED.items():
            operation["responses"].setdefault(status, {"description": meaning, "content": content})
