"""``howsure serve``: the service, in the foreground."""

import errno
import gc
import socket
from pathlib import Path
from typing import Annotated

import structlog
import typer
from rich.console import Console

from service.app import create_app
from service.cli.failure import CommandFailed
from service.cli.given_settings import given_settings, prepare
from service.cli.processes import Supervisor
from service.cli.server import Server
from service.cli.settings_help import settings_help
from service.log_lines import configure_logging
from service.settings import Settings

log = structlog.get_logger(__name__)

# As the server itself asks for.
_WAITING_CONNECTIONS = 2048


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port; 0 takes a free one.")] = None,
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder of the database, artifacts and uploads.")
    ] = None,
    processes: Annotated[
        int | None, typer.Option(help="Server processes that answer requests, on one port.")
    ] = None,
) -> None:
    """Run the service: HTTP, workers and model processes."""
    settings = given_settings(host=host, port=port, data_dir=data_dir, processes=processes)
    listener = bind(settings.host, settings.port)
    prepare(settings)
    configure_logging(settings.log_format)
    address = f"http://{settings.host}:{listener.getsockname()[1]}"
    if settings.processes > 1:
        Supervisor(settings, listener, lambda: _announce(address, settings)).run()
        return
    app = create_app(settings, on_ready=lambda: _ready(listener, address, settings))
    Server(app, drain_seconds=settings.drain_seconds).run(sockets=[listener])


# typer shows the docstring as the command's help; the settings come from their one definition.
serve.__doc__ = f"{serve.__doc__}\n\n{settings_help()}"


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket, or fail with a sentence."""
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


def _ready(listener: socket.socket, address: str, settings: Settings) -> None:
    # The server listens a moment later only; who reads the address connects at once.
    listener.listen(_WAITING_CONNECTIONS)
    # What is there by now stays: it need not be looked through for garbage again and again.
    gc.collect()
    gc.freeze()
    _announce(address, settings)


def _announce(address: str, settings: Settings) -> None:
    if settings.log_format == "json":
        log.info("answering", address=address, data=str(settings.data_dir.resolve()))
        return
    console = Console(stderr=True)
    console.print(f"howsure answers on {address}", highlight=False)
    console.print(f"  documentation  {address}/docs", highlight=False)
    console.print(f"  data           {settings.data_dir.resolve()}", highlight=False)
