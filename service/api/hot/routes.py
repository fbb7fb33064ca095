"""Which requests are hot: a POST of rows to predict, by its path."""

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import unquote

import httptools

PREDICT = "/predict"
INFER = "/v2/models/{model_name}/infer"
INFER_VERSION = "/v2/models/{model_name}/versions/{model_version}/infer"

_MODELS = "/v2/models/"
_INFER = "/infer"
# Longer targets are worked out anew each time, so that what is remembered stays small.
_REMEMBERED_LENGTH = 512


class HotRoute(NamedTuple):
    """A route as it is declared, and what the path has in the place of its braces."""

    route: str
    parameters: Mapping[str, str]


_PREDICT = HotRoute(PREDICT, MappingProxyType({}))


def hot_route(method: str, path: str, *, root_path: str = "") -> HotRoute | None:
    """Return the hot route of a decoded path, such as ASGI has it, if it is one.

    A name has no slash, not even an encoded one, as in all other routes: the path is decoded before
    it is taken apart. A trailing slash makes another path.
    """
    if method != "POST":
        return None
    if root_path and path.startswith(f"{root_path}/"):
        path = path[len(root_path) :]
    if path == PREDICT:
        return _PREDICT
    if not (path.startswith(_MODELS) and path.endswith(_INFER)):
        return None
    match path[len(_MODELS) : -len(_INFER)].split("/"):
        case [name] if name:
            return HotRoute(INFER, MappingProxyType({"model_name": name}))
        case [name, "versions", version] if name and version:
            parameters = {"model_name": name, "model_version": version}
            return HotRoute(INFER_VERSION, MappingProxyType(parameters))
    return None


def hot_target(target: bytes) -> HotRoute | None:
    """Return the same for what stands behind POST in the first line of a request."""
    path, _, _ = target.partition(b"?")
    if len(path) <= _REMEMBERED_LENGTH:
        return _remembered(path)
    return _of_raw_path(path)


def query_of(target: bytes) -> bytes:
    """Return the query of a target that is hot."""
    return target.partition(b"#")[0].partition(b"?")[2]


def _of_raw_path(path: bytes) -> HotRoute | None:
    if not path.startswith(b"/") or b"#" in path:
        try:
            path = httptools.parse_url(path).path or b""
        except httptools.HttpParserInvalidURLError:
            return None
    # Paths with other bytes than ASCII are refused further on.
    return hot_route("POST", unquote(path.decode("ascii"))) if path.isascii() else None


_remembered = lru_cache(maxsize=1024)(_of_raw_path)
