"""Random requests through proxies that share connections: each answer goes to its own request."""

import random
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self

import httpx
from databases import free_port
from hot_fronts import Connection, request
from runner_children import wait_until

from fault_plan.figures import Figures
from fault_plan.site import Site, answers

OK = 200
START_SECONDS = 20.0
# Both pass offers of an upgrade on, and send requests of all clients over few connections.
PROXIES = {"nginx": ("nginx.conf", ["-c"]), "haproxy": ("haproxy.cfg", ["-db", "-f"])}
SMUGGLED = (
    b"POST /predict HTTP/1.1\r\nHost: h\r\nX-Request-Id: smuggled\r\nContent-Length: 0\r\n\r\n"
)
SCRAPS = (b"\r\n", b"\r\n\r\n", b"a", b"{}", b"0\r\n\r\n", b"\r", b"\n", SMUGGLED)
TARGETS = (b"/predict", b"/predict?calibration=a", b"/v2/models/a/infer", b"/healthz", b"/refit")
# HAProxy refuses an offer of websockets without a key.
KEY = b"\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
OFFERS = (b"h2c", b"websocket" + KEY, b"TLS/1.0")
# What a client must not send; a proxy or the service refuses it, or makes it plain.
WRONG = (
    b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: chunked, identity\r\n",
    b"Transfer-Encoding : chunked\r\n",
    b"Content-Length: 5\r\nContent-Length: 6\r\n",
    b"Content-Length: +5\r\n",
    b" folded: yes\r\n",
)


def framing(folder: Path, *, times: int = 1_000_000, seed: int = 0) -> Figures:
    """Send ``times`` requests of an attacker and of a neighbour, directly and through proxies."""
    figures = Figures("framing", seed)
    rng = random.Random(seed)
    site = Site(folder)
    with site.serving(), ExitStack() as proxies:
        fronts = {"directly": site.port}
        for name in PROXIES:
            if shutil.which(name) is not None:
                fronts[name] = proxies.enter_context(proxied(name, folder, site.port))
        for name, port in fronts.items():
            _attack(figures, rng, name, ("127.0.0.1", port), times // len(fronts))
    figures.more = {"fronts": list(fronts)}
    return figures


@contextmanager
def proxied(name: str, folder: Path, service: int) -> Iterator[int]:
    """Run a proxy in front of the service; yield its port."""
    template, options = PROXIES[name]
    port, path = free_port(), folder / template
    text = Path(__file__).with_name(template).read_text()
    for word, value in {"FOLDER": folder, "SERVICE": service, "PORT": port}.items():
        text = text.replace(word, str(value))
    path.write_text(text)
    process = subprocess.Popen([name, *options, path])
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
            assert wait_until(lambda: answers(client), seconds=START_SECONDS)
        yield port
    finally:
        process.terminate()
        process.wait()


def _attack(
    figures: Figures, rng: random.Random, name: str, address: tuple[str, int], times: int
) -> None:
    """Send requests of an attacker on one connection, and each time one of a neighbour."""
    sent = 0
    with _Kept(address) as attacker, _Kept(address) as neighbour:
        while sent < times:
            if rng.random() < 0.1:
                sent += 1
                figures.strike([f"{name}, refused"])
                _send_wrong(rng, address)
            else:
                ids = [f"a{sent + n}" for n in range(rng.randrange(1, 5))]
                sent += len(ids)
                figures.struck[f"{name}, answered"] += len(ids)
                figures.fired += len(ids)
                pieces = _cut(rng, b"".join(_message(rng, one) for one in ids))
                figures.violations += [f"{name}: {what}" for what in attacker.exchange(pieces, ids)]
            sent += 1
            figures.fired += 1
            healthz = request("GET", "/healthz", X_Request_Id=f"n{sent}")
            said = neighbour.exchange([healthz], [f"n{sent}"], OK)
            figures.violations += [f"{name}, neighbour: {what}" for what in said]


class _Kept:
    """A connection that is opened again after a wrong answer."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self._connection = Connection(address)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.__exit__()

    def exchange(self, pieces: list[bytes], ids: list[str], status: int | None = None) -> list[str]:
        """Return what is wrong with the answers; nothing if each belongs to its request."""
        try:
            for piece in pieces:
                self._connection.send(piece)
            answers = [self._connection.answer() for _ in ids]
            found = [answer.headers.get("x-request-id") for answer in answers]
            if found == ids and status in (None, answers[0].status):
                return []
            wrong = f"expected answers to {ids}, got {found}, the first {answers[0].status}"
        except (OSError, KeyError, ValueError) as error:
            wrong = f"{ids}: {error!r}"
        self._connection = Connection(self._address)
        return [wrong]


def _message(rng: random.Random, request_id: str) -> bytes:
    target, body = rng.choice(TARGETS), b"".join(rng.choices(SCRAPS, k=rng.randrange(6)))
    lines = [
        b"POST %b HTTP/1.1" % target,
        b"Host: localhost",
        b"X-Request-Id: " + request_id.encode(),
    ]
    if rng.random() < 0.4:
        lines += [b"Connection: Upgrade", b"Upgrade: " + rng.choice(OFFERS)]
    if body and rng.random() < 0.4:
        lines += [b"Transfer-Encoding: chunked", b"", b""]
        chunks = b"".join(b"%x\r\n%b\r\n" % (len(one), one) for one in _cut(rng, body))
        return b"\r\n".join(lines) + chunks + b"0\r\n\r\n"
    return b"\r\n".join([*lines, b"Content-Length: %d" % len(body), b"", b""]) + body


def _send_wrong(rng: random.Random, address: tuple[str, int]) -> None:
    """Send what nobody may send; only the neighbour's answers matter."""
    with Connection(address) as connection:
        head = b"POST /predict HTTP/1.1\r\nHost: localhost\r\n" + rng.choice(WRONG)
        connection.send(head + b"\r\n" + b"".join(rng.choices(SCRAPS, k=3)))


def _cut(rng: random.Random, data: bytes) -> list[bytes]:
    places = sorted(
        {rng.randrange(1, len(data) + 1) for _ in range(rng.randrange(3))} - {len(data)}
    )
    return [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]
