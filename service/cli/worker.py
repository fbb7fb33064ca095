"""``howsure worker``: runs jobs, in the foreground, and answers no requests but for its health."""

from pathlib import Path
from typing import Annotated

import structlog
import typer
from rich.console import Console

from service.cli.failure import CommandFailed
from service.cli.given_settings import given_settings, prepare
from service.cli.listener import address_of, bind, listen
from service.cli.server import Server
from service.log_lines import configure_logging
from service.settings import Settings

log = structlog.get_logger(__name__)


def worker(
    workers: Annotated[
        int | None, typer.Option(min=1, max=64, help="Jobs run at a time by this process.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Port of its health and metrics; 0 takes a free one."),
    ] = None,
    host: Annotated[str | None, typer.Option(help="Address of its health and metrics.")] = None,
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder of the database, artifacts and uploads.")
    ] = None,
) -> None:
    """Run calibrations and evaluations that others queue, beside `howsure serve --no-worker`."""
    settings = given_settings(host=host, worker_port=port, data_dir=data_dir, workers=workers)
    if not settings.workers:
        raise CommandFailed("HOWSURE_WORKERS: a worker runs 1 job or more at a time; see --workers")
    listener = bind(settings.host, settings.worker_port)
    prepare(settings)
    configure_logging(settings.log_format)
    address = address_of(listener, settings.host)

    def ready() -> None:
        listen(listener)
        _announce(address, settings)

    from service.worker_app import create_worker_app  # noqa: PLC0415 - takes a second

    app = create_worker_app(settings, on_ready=ready)
    Server(app, drain_seconds=settings.drain_seconds).run(sockets=[listener])


def _announce(address: str, settings: Settings) -> None:
    if settings.log_format == "json":
        log.info("working", address=address, workers=settings.workers)
        return
    console = Console(stderr=True)
    console.print(f"howsure worker runs {settings.workers} at a time", highlight=False)
    console.print(f"  health         {address}/readyz", highlight=False)
    console.print(f"  data           {settings.data_dir.resolve()}", highlight=False)
