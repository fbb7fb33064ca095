"""Random requests through proxies that share connections: each answer goes to its own request."""

import random
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from hot_fronts import Answer, Connection

from fault_plan.figures import Figures
from fault_plan.site import Site, end, free_port

OK = 200
START_SECONDS = 20.0
# Both pass offers of an upgrade on, and send requests of all clients over few connections.
NGINX = """
daemon off; error_log stderr crit; pid {folder}/nginx.pid; events {{ worker_connections 512; }}
http {{
  access_log off; client_body_temp_path {folder}; proxy_temp_path {folder};
  fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder};
  upstream howsure {{ server 127.0.0.1:{service}; keepalive 2; }}
  server {{
    listen 127.0.0.1:{port}; keepalive_requests 1000000;
    location / {{
      proxy_pass http://howsure; proxy_http_version 1.1; proxy_request_buffering off;
      proxy_set_header Host localhost;
      proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $offered;
    }}
  }}
  map $http_upgrade $offered {{ default upgrade; "" ""; }}
}}
"""
HAPROXY = """
defaults
  mode http
  timeout connect 5s
  timeout client 20s
  timeout server 20s
  http-reuse always
frontend all
  bind 127.0.0.1:{port}
  default_backend howsure
backend howsure
  http-request set-header Host localhost
  server one 127.0.0.1:{service} pool-max-conn 2
"""
PROXIES = {
    "nginx": (NGINX, ["nginx", "-c"]),
    "haproxy": (HAPROXY, ["haproxy", "-db", "-f"]),
}
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
    process = site.serve()
    try:
        with ExitStack() as proxies:
            fronts = {"directly": site.port}
            for name in PROXIES:
                if shutil.which(name) is not None:
                    fronts[name] = proxies.enter_context(proxied(name, folder, site.port))
            for name, port in fronts.items():
                _attack(figures, rng, name, ("127.0.0.1", port), times // len(fronts))
        figures.more = {"fronts": list(fronts)}
    finally:
        end(process)
    return figures


@contextmanager
def proxied(name: str, folder: Path, service: int) -> Iterator[int]:
    """Run a proxy in front of the service; yield its port."""
    text, command = PROXIES[name]
    port, path = free_port(), folder / f"{name}.conf"
    path.write_text(text.format(folder=folder, service=service, port=port))
    process = subprocess.Popen([*command, path])
    try:
        ends = time.monotonic() + START_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
            except OSError:
                if time.monotonic() > ends:
                    raise
                time.sleep(0.05)
            else:
                break
        yield port
    finally:
        process.terminate()
        process.wait()


def _attack(
    figures: Figures, rng: random.Random, name: str, address: tuple[str, int], times: int
) -> None:
    neighbour, attacker, sent = Connection(address), Connection(address), 0
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
            said = _exchange(attacker, _cut(rng, b"".join(_message(rng, one) for one in ids)), ids)
            if said:
                figures.violations.append(f"{name}: {said}")
                attacker = Connection(address)
        sent += 1
        figures.fired += 1
        said = _exchange(neighbour, [_healthz(f"n{sent}")], [f"n{sent}"], OK)
        if said:
            figures.violations.append(f"{name}, neighbour: {said}")
            neighbour = Connection(address)
    for connection in (neighbour, attacker):
        connection.__exit__()


def _exchange(
    connection: Connection, pieces: list[bytes], ids: list[str], status: int | None = None
) -> str:
    """Return what is wrong with the answers; empty if each belongs to its request."""
    try:
        for piece in pieces:
            connection.send(piece)
        answers: list[Answer] = [connection.answer() for _ in ids]
    except (OSError, KeyError, ValueError) as error:
        return f"{ids}: {error!r}"
    found = [answer.headers.get("x-request-id") for answer in answers]
    if found != ids:
        return f"expected answers to {ids}, got {found}"
    if status is not None and answers[0].status != status:
        return f"{ids}: {answers[0].status}"
    return ""


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


def _healthz(request_id: str) -> bytes:
    return b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: %b\r\n\r\n" % (
        request_id.encode()
    )


def _cut(rng: random.Random, data: bytes) -> list[bytes]:
    places = sorted(
        {rng.randrange(1, len(data) + 1) for _ in range(rng.randrange(3))} - {len(data)}
    )
    return [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]
