"""The socket that a process of the service listens on."""

import errno
import socket

from service.cli.failure import CommandFailed

# As the server itself asks for.
_WAITING_CONNECTIONS = 2048


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that is bound, or fail with a sentence."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Accepted connections inherit it; without it small answers wait for the client's next ACK.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        option = "--port" if error.errno in (errno.EADDRINUSE, errno.EACCES) else "--host"
        raise CommandFailed(
            f"cannot listen on {host}:{port} ({error.strerror}); choose another {option}"
        ) from error
    listener.set_inheritable(False)
    return listener


def listen(listener: socket.socket) -> None:
    """Have connections wait from now on.

    The server listens a moment later only; who reads the address connects at once.
    """
    listener.listen(_WAITING_CONNECTIONS)


def address_of(listener: socket.socket, host: str) -> str:
    """Return the address that clients ask, with the port that the socket got."""
    named = f"[{host}]" if ":" in host else host
    return f"http://{named}:{listener.getsockname()[1]}"
