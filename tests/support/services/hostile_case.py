"""Hostile requests, and what must hold after each."""

import select
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from dataset_files import read_to_its_end
from hot_fronts import Answer, Connection
from running_service import calibrate

from howsure.preprocessing import PRESETS
from service.runner.messages.reading import Reading

MEBIBYTE = 1024**2
GATEWAY_TIMEOUT = httpx.codes.GATEWAY_TIMEOUT
# Longer than every deadline that the hostile service is given.
JOB_SECONDS = 30


class Attacker:
    """A tenant with a key of its own for everything that a tenant may do.

    Attributes
    ----------
    client : httpx.Client
        Sends the key.
    address : tuple
        Where the service listens, for raw connections.
    key : str
        What stands behind ``Authorization: Bearer``.
    calibration : str
        The id of a calibration of the digits model, to predict with: its rows are of 64 numbers
        (input ``inputs``).
    outputs : str
        The id of one of logits, of three classes, without a model.
    """

    def __init__(self, address: tuple[str, int], key: str) -> None:
        self.address, self.key = address, key
        self.client = httpx.Client(
            base_url="http://{}:{}".format(*address),
            headers={"Authorization": f"Bearer {key}"},
            timeout=60,
        )
        self.calibration = self.outputs = ""

    def predict(self, body: bytes, kind: str = "application/json", **query: str) -> httpx.Response:
        """POST bytes to /predict; of arrays, ``query`` names the calibration."""
        headers = {"Content-Type": kind}
        return self.client.post("/predict", content=body, params=query, headers=headers)

    def infer(self, body: bytes, headers: Mapping[str, str] = {}) -> httpx.Response:
        """POST bytes to the Open Inference Protocol's route of the digits calibration."""
        return self.client.post("/v2/models/digits/infer", content=body, headers=headers)

    def calibrate(
        self, calibration: bytes | None = None, *, config: str | bytes = "{}", **parts: Any
    ) -> httpx.Response:
        """POST /calibrate and wait for the end; parts as `running_service.calibrate` has them."""
        sets = {"calibration": calibration, "config": config}
        return calibrate(self.client, wait=JOB_SECONDS, **sets, **parts)

    def connect(self) -> Connection:
        """Open a raw connection; whoever opens it closes it."""
        return Connection(self.address)


# Given an `Attacker`, and where a case has ``build`` what that returned.
Send = Callable[..., httpx.Response]


@dataclass(frozen=True)
class HostileCase:
    """A hostile request and the one outcome that is right.

    Attributes
    ----------
    name : str
        In the test's id.
    send : callable
        Takes an `Attacker`, returns the answer. Build what it sends in there, or in ``build``, so
        that a case that is not run costs nothing.
    status : int
        Of the answer. A 5xx cannot be expected, but for 504 `deadline-exceeded`: how /predict
        answers where a model was stopped at its deadline.
    code : str
        The last word of the problem's ``type``. Where the status is 201, a calibration was begun
        and has to end as ``failed`` with this code; "" is a request that succeeds. The Open
        Inference Protocol's errors have no code: "" as well.
    says : str
        What the detail has to hold: the part, the row, the column, the limit.
    seconds : float
        Processor time that the service and its children may take.
    memory : int
        By how many bytes the service may grow meanwhile.
    build : callable, optional
        Makes what is sent, before anything is timed: ``send`` is given it behind the `Attacker`.
    rule : str, optional
        For a model: the ``rule`` in the first error of the problem, or "" if there is none.
    read : callable, optional
        Reads what was built in this process: the quick form, which has no service. It is given a
        path for a file of its own as well.
    """

    name: str
    send: Send
    status: int
    code: str = ""
    says: str = ""
    seconds: float = 10.0
    memory: int = 192 * MEBIBYTE
    build: Callable[[], bytes] | None = None
    rule: str | None = None
    read: Callable[[bytes, Path], object] | None = None

    def __post_init__(self) -> None:
        planned = (GATEWAY_TIMEOUT, "deadline-exceeded")
        if self.status >= httpx.codes.INTERNAL_SERVER_ERROR:
            assert (self.status, self.code) == planned, "bad input is never a fault of the service"

    def __str__(self) -> str:
        return self.name

    @property
    def is_quick(self) -> bool:
        return self.read is not None


def body_case(
    name: str,
    build: Callable[[], bytes],
    status: int = 422,
    code: str = "invalid-input",
    *,
    kind: str = "application/x-npz",
    says: str = "body",
) -> HostileCase:
    """Return the case of arrays, or of a picture, as the body of POST /predict."""

    def send(attacker: Attacker, content: bytes) -> httpx.Response:
        return attacker.predict(content, kind, calibration=attacker.calibration)

    return HostileCase(name, send, status, code, says, build=build)


INVALID, TOO_LARGE = (422, "invalid-dataset"), (413, "too-large")
UNREAD = (415, "unsupported-format")


def set_case(
    name: str,
    build: Callable[[], bytes],
    expected: tuple[int, str] = INVALID,
    says: str = "calibration",
    preset: str = "",
    seconds: float = 10.0,
) -> HostileCase:
    """Return the case of a calibration set; ``says`` is part of the place and the message."""
    config = f'{{"preprocessing": "{preset}"}}' if preset else "{}"

    def send(attacker: Attacker, content: bytes) -> httpx.Response:
        return attacker.calibrate(content, model=b"none", config=config)

    def read(content: bytes, path: Path) -> None:
        path.write_bytes(content)
        read_to_its_end(path, Reading(preprocessing=PRESETS[preset] if preset else None))

    return HostileCase(name, send, *expected, says, seconds, build=build, read=read)


CRLF = b"\r\n"
BETWEEN_SECONDS = 0.05


def raw(
    attacker: Attacker,
    *headers: bytes,
    target: bytes = b"/predict",
    method: bytes = b"POST",
    version: bytes = b"HTTP/1.1",
    body: bytes = b"",
) -> bytes:
    """Return a request with the attacker's key and exactly these headers beside `Host`."""
    key = b"Authorization: Bearer " + attacker.key.encode()
    first = b" ".join([method, target, version])
    return CRLF.join([first, b"Host: howsure.example", key, *headers, b"", b""]) + body


def sized(size: int) -> bytes:
    """Return a header Content-Length."""
    return b"Content-Length: %d" % size


def send_pieces(attacker: Attacker, pieces: Iterable[bytes], *, skip: int = 0) -> httpx.Response:
    """Send pieces, as far as they are taken; return the response after ``skip`` others."""
    with attacker.connect() as connection:
        for piece in pieces:
            try:
                connection.send(piece)
            except OSError:
                break
        for _ in range(skip):
            connection.answer()
        return as_response(connection.answer())


def dripped(attacker: Attacker, begun: bytes, drop: bytes) -> httpx.Response:
    """Send the beginning, and then a drop again and again until there is an answer."""
    with attacker.connect() as connection:
        connection.send(begun)
        while not _is_answered(connection):
            try:
                connection.send(drop)
            except OSError:
                break
        return as_response(connection.answer())


def as_response(answer: Answer) -> httpx.Response:
    return httpx.Response(answer.status, headers=answer.headers, content=answer.body)


def _is_answered(connection: Connection) -> bool:
    readable, _, _ = select.select([connection.socket], [], [], BETWEEN_SECONDS)
    return bool(readable)
