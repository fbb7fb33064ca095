"""Style sheets and scripts of the pages."""

import hashlib
import os
from functools import cache
from os import PathLike
from pathlib import Path

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

FOLDER = Path(__file__).parent / "static"
ADDRESS = "/pages/static"


class _Files(StaticFiles):
    """Addresses contain a digest of the file, so browsers may cache files forever."""

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
    """Return the address of a file, with a digest of its content."""
    digest = hashlib.sha256((FOLDER / name).read_bytes()).hexdigest()[:16]
    return f"{ADDRESS}/{name}?{digest}"


FILES = _Files(directory=FOLDER)
