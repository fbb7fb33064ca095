"""Requests and responses, independent of the transport."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from errno import EEXIST
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias
from urllib.parse import quote

import httpx
import numpy as np

FilePart: TypeAlias = tuple[str, tuple[str | None, IO[bytes] | bytes]]


CONNECT_SECONDS = 30.0


@dataclass(frozen=True)
class Request:
    """A request.

    Attributes
    ----------
    params
        Query parameters. A parameter that is None is not sent.
    content, parts
        The body: bytes, or the parts of a multipart form, whose files are streamed.
    repeatable
        Whether the request may be sent again if it is unknown whether it arrived.
    patient
        Whether the response may take any time.
    first_row
        The number of its first row among all that were given, for messages.
    """

    method: Literal["GET", "POST", "DELETE"]
    path: str
    params: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None
    parts: Sequence[FilePart] | None = None
    repeatable: bool = True
    patient: bool = False
    first_row: int = 0

    def as_arguments(self, timeout: float | None) -> dict[str, Any]:
        """Return the arguments for httpx; ``timeout`` is in seconds, for each step."""
        return {
            "method": self.method,
            "url": self.path,
            "params": {name: value for name, value in self.params.items() if value is not None},
            "headers": dict(self.headers),
            "content": self.content,
            "files": self.parts,
            # A host that does not answer at all is not waited for, whatever the request takes.
            "timeout": httpx.Timeout(None, connect=CONNECT_SECONDS) if self.patient else timeout,
        }


@dataclass(frozen=True)
class Answer:
    """A response; ``content`` is empty if the body was written to a file."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    def new_file(self, suffix: str) -> Path:
        """Return the file, in this folder, that the header of the response names.

        Raises
        ------
        ValueError
            If it is hidden, unprintable, or ends in another way.
        FileExistsError
            If it exists.
        """
        header = self.headers["Content-Disposition"].partition('filename="')[2].rstrip('"')
        path = plain_file(header)
        if path.suffix != suffix:
            raise ValueError(f"expected a file {suffix}, got {header!a}")
        if path.exists():
            message = "it exists; -o FILE names another file, or this one"
            raise FileExistsError(EEXIST, message, str(path))
        return path

    def json(self) -> Any:  # noqa: ANN401 - whatever JSON says
        """Return the parsed JSON.

        Raises
        ------
        ValueError
            If it is something else.
        """
        try:
            return json.loads(self.content)
        except (ValueError, RecursionError) as error:
            raise ValueError("the response is not JSON: is it from a Howsure service?") from error


def plain_file(name: str) -> Path:
    """Return a file of this folder, by a name that the service gives; folders in it are left out.

    Raises
    ------
    ValueError
        If it is hidden, or has unprintable characters.
    """
    path = Path(Path(name).name)
    if str(path).startswith(".") or not str(path).isprintable():
        raise ValueError(f"expected the name of a file, got {name!a}")
    return path


def json_bytes(value: object) -> bytes:
    """Return a value as JSON; arrays and numbers of numpy are lists and numbers.

    Raises
    ------
    ValueError
        If a number is not finite.
    TypeError
        If a value is of another type.
    """
    try:
        return json.dumps(value, allow_nan=False, default=_plain).encode()
    except ValueError as error:
        raise ValueError("expected finite numbers, got NaN or infinity") from error


def _plain(value: object) -> Any:  # noqa: ANN401 - any JSON
    if hasattr(value, "__array__") or hasattr(value, "tolist"):
        return np.asarray(value).tolist()
    if hasattr(value, "__float__"):
        return float(value)
    kind = type(value).__name__
    raise TypeError(f"expected values for JSON, such as numbers, texts and lists, got {kind}")


def json_request(
    path: str, body: object, *, headers: Mapping[str, str], repeatable: bool = True
) -> Request:
    """Return a POST request with a JSON body."""
    content = json_bytes(body)
    typed = {"Content-Type": "application/json", **headers}
    return Request("POST", path, headers=typed, content=content, repeatable=repeatable)


def address_of(calibration: str, *more: str) -> str:
    """Return the path of a calibration, or of a resource below it.

    Each name becomes one segment, whatever characters it contains.

    Raises
    ------
    ValueError
        If a name cannot be a segment of a path.
    """
    for part in (calibration, *more):
        if part in ("", ".", ".."):
            raise ValueError(f"{part!r} names nothing")
    return "/".join(["/calibrations", *(quote(part, safe="@") for part in (calibration, *more))])
