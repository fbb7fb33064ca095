"""Scripts of others that pages send themselves: Vega, for readers who point at a figure."""

import gzip
from functools import cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from service.errors import NotFound
from service.web.page_route import PageRoute

FOLDER = Path(__file__).parent / "vendored"
ADDRESS = "/pages/scripts"
A_DAY = "public, max-age=86400"


async def script(request: Request) -> Response:
    """Send a script as it is kept, compressed, to all who can read that."""
    name = request.path_params["name"]
    if name not in _names():
        raise NotFound("There is no such script.")
    content, headers = _content(name), {"Cache-Control": A_DAY, "Vary": "Accept-Encoding"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        headers["Content-Encoding"] = "gzip"
    else:
        content = gzip.decompress(content)
    return Response(content, media_type="text/javascript", headers=headers)


@cache
def _names() -> frozenset[str]:
    return frozenset(path.stem for path in FOLDER.glob("*.js.gz"))


@cache
def _content(name: str) -> bytes:
    return (FOLDER / f"{name}.gz").read_bytes()


ROUTES = (PageRoute(f"{ADDRESS}/{{name}}", script),)
