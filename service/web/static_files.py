"""Files that pages name: style sheets and scripts, all of them ours to send."""

import hashlib
import os
from functools import cache
from os import PathLike
from pathlib import Path

from starlette.responses import Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

FOLDER = Path(__file__).parent / "static"
ADDRESS = "/pages/static"


class _Files(StaticFiles):
    """They are named with their digest, so a browser may keep them for good."""

    def file_response(
        self,
        full_path: str | PathLike[str],
        stat_result: os.stat_result,
        scope: Scope,
        status_code: int = 200,
    ) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return response


@cache
def asset(name: str) -> str:
    """Return the address of a file, another one when its content is another."""
    digest = hashlib.sha256((FOLDER / name).read_bytes()).hexdigest()[:16]
    return f"{ADDRESS}/{name}?{digest}"


ROUTES = (Mount(ADDRESS, _Files(directory=FOLDER), name="pages"),)
