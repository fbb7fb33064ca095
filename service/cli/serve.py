"""``howsure serve``: the service, in the foreground."""

import gc
import socket
from pathlib import Path
from typing import Annotated

import structlog
import typer
from rich.console import Console

from service.cli.given_settings import given_settings, prepare
from service.cli.listener import address_of, bind, listen
from service.cli.open_doors import require_keys
from service.cli.processes import Supervisor
from service.cli.server import Server
from service.cli.settings_help import settings_help
from service.log_lines import configure_logging
from service.settings import Settings

log = structlog.get_logger(__name__)


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port; 0 takes a free one.")] = None,
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder of the database, artifacts and uploads.")
    ] = None,
    processes: Annotated[
        int | None, typer.Option(help="Server processes that answer requests, on one port.")
    ] = None,
    no_worker: Annotated[
        bool, typer.Option("--no-worker", help="Run no jobs here: `howsure worker` does elsewhere.")
    ] = False,
) -> None:
    """Run the service: HTTP, workers and model processes."""
    settings = given_settings(
        host=host,
        port=port,
        data_dir=data_dir,
        processes=processes,
        workers=0 if no_worker else None,
    )
    listener = bind(settings.host, settings.port)
    prepare(settings)
    require_keys(settings)
    configure_logging(settings.log_format)
    address = address_of(listener, settings.host)
    if settings.processes > 1:
        Supervisor(settings, listener, lambda: _announce(address, settings)).run()
        return
    from service.app import create_app  # noqa: PLC0415 - takes a second

    app = create_app(settings, on_ready=lambda: _ready(listener, address, settings))
    Server(app, drain_seconds=settings.drain_seconds).run(sockets=[listener])


# typer shows the docstring as the command's help; the settings come from their one definition.
serve.__doc__ = f"{serve.__doc__}\n\n{settings_help()}"


def _ready(listener: socket.socket, address: str, settings: Settings) -> None:
    listen(listener)
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
