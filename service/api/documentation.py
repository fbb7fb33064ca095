"""``/docs``: the OpenAPI document to read and to try out, without anything from elsewhere."""

from pathlib import Path

from fastapi import FastAPI
from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from service.api.standing_headers import CACHE, CONTENT_SECURITY

STATIC = Path(__file__).parent / "static"
# Swagger UI's pictures are in its style sheet and its program.
DOCS_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
STATIC_CACHE = "public, max-age=3600"
PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Howsure</title>
<link rel="stylesheet" href="/static/swagger-ui.css">
<link rel="shortcut icon" href="/static/favicon-32x32.png">
</head>
<body>
<div id="swagger-ui"></div>
<script src="/static/swagger-ui-bundle.js"></script>
<script src="/static/docs.js"></script>
</body>
</html>
"""


class _Assets(StaticFiles):
    """Files that browsers may keep for a while."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers[CACHE.decode()] = STATIC_CACHE
        return response


def install(app: FastAPI) -> None:
    """Serve Swagger UI from this process; networks of hospitals and factories reach no CDN."""
    app.mount("/static", _Assets(directory=STATIC), name="static")

    @app.get("/docs", include_in_schema=False)
    async def get_docs() -> HTMLResponse:
        # FastAPI's own page has its program within it, which no strict policy lets run.
        return HTMLResponse(PAGE, headers={CONTENT_SECURITY.decode(): DOCS_POLICY})
