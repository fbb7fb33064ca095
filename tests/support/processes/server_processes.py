"""The server processes of a `howsure serve`, one by one."""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
from runner_children import children

MODULE = b"service.cli.processes"


def server_processes(parent: int) -> list[int]:
    """Return the process ids of the server processes of a supervisor."""
    return children(parent, MODULE)


@contextmanager
def stopped(*pids: int) -> Iterator[None]:
    """Hold processes for as long as the block runs."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


@contextmanager
def client_of(pid: int, address: str) -> Iterator[httpx.Client]:
    """Yield a client whose one connection is held by one of the processes; it asked /readyz."""
    one = httpx.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=None)
    with ExitStack() as others:
        while True:  # the kernel chooses the process
            client = others.enter_context(httpx.Client(base_url=address, timeout=60, limits=one))
            if holds(pid, client_port(client.get("/readyz"))):
                yield client
                return


def client_port(answer: httpx.Response) -> int:
    """Return the client's port of the connection that a response came over."""
    return answer.extensions["network_stream"].get_extra_info("client_addr")[1]


def holds(pid: int, client_port: int) -> bool:
    """Tell whether a process holds the connection of a client on 127.0.0.1."""
    remote = f"0100007F:{client_port:04X}"
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    sockets = {f"socket:[{fields[9]}]" for fields in lines if fields[2] == remote}
    return any(
        descriptor.readlink().name in sockets
        for descriptor in Path(f"/proc/{pid}/fd").iterdir()
        if descriptor.is_symlink()
    )
