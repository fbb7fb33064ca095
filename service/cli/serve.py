"""``howsure serve``: the service, in the foreground."""

import gc
import socket
from pathlib import Path
from typing import Annotated

import structlog
import typer
from rich.console import Console

from service.cli.failure import CommandFailed
from service.cli.local import load_settings, opened_stores, pepper_of, prepare
from service.cli.processes.supervisor import Supervisor
from service.cli.server import Server, address_of, bind, listen
from service.settings import Settings


def require_api_key(settings: Settings) -> None:
    """Refuse to start on a reachable address without an API key, unless that is allowed.

    Raises
    ------
    CommandFailed
        If there is no key, or if those that there are were made with another pepper.
    """
    from service.access.api_keys import find_pepper
    from service.storage.api_keys import active_keys, any_keys

    with opened_stores(settings) as stores, stores.database.reading() as session:
        was_any, good = any_keys(session), active_keys(session)
    if not was_any and not (settings.is_loopback() or settings.allow_anonymous):
        raise CommandFailed(
            f"{settings.host} is reachable from other machines and there is no API key. Create one "
            "with `howsure keys create NAME`, listen on 127.0.0.1, or set "
            "HOWSURE_ALLOW_ANONYMOUS=1 behind an authenticating proxy."
        )
    if good and not any(key.pepper_id == pepper_of(settings, find_pepper).id for key in good):
        raise CommandFailed(
            "HOWSURE_KEY_PEPPER: the API keys of this database were made with another one "
            "(without it, the file key-pepper in the data folder is taken)"
        )


def settings_help() -> str:
    """List each setting's variable, default and meaning."""
    # \b keeps the lines as they are; without it they would be joined to one paragraph.
    lines = ["Settings are environment variables, or lines of a `.env` file:", "", "\b"]
    for name, found in Settings.model_fields.items():
        default = "" if found.default in ("", None) else f" (default {found.default})"
        lines += [f"HOWSURE_{name.upper()}{default}", f"  {found.description}"]
    return "\n".join(lines)


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
    from service.startup import configure_logging

    settings = load_settings(
        host=host,
        port=port,
        data_dir=data_dir,
        processes=processes,
        workers=0 if no_worker else None,
    )
    listener = bind(settings.host, settings.port)
    prepare(settings)
    require_api_key(settings)
    configure_logging(settings.log_format)
    address = address_of(listener, settings.host)
    if settings.processes > 1:
        Supervisor(settings, listener, lambda: _announce(address, settings)).run()
        return
    from service.app import create_app

    app = create_app(settings, on_ready=lambda: _ready(listener, address, settings))
    Server(app, drain_seconds=settings.drain_seconds).run(sockets=[listener])


# typer shows the docstring as the command's help; the settings come from their one definition.
serve.__doc__ = f"{serve.__doc__}\n\n{settings_help()}"


def _ready(listener: socket.socket, address: str, settings: Settings) -> None:
    listen(listener)
    # Objects made at start stay; the garbage collector need not scan them again.
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
    """Run queued calibrations and evaluations, beside `howsure serve --no-worker`."""
    from service.startup import configure_logging

    settings = load_settings(host=host, worker_port=port, data_dir=data_dir, workers=workers)
    if not settings.workers:
        raise CommandFailed("HOWSURE_WORKERS: a worker runs 1 job or more at a time; see --workers")
    listener = bind(settings.host, settings.worker_port)
    prepare(settings)
    configure_logging(settings.log_format)
    address = address_of(listener, settings.host)

    def ready() -> None:
        listen(listener)
        _announce_worker(address, settings)

    from service.worker_app import create_worker_app

    app = create_worker_app(settings, on_ready=ready)
    Server(app, drain_seconds=settings.drain_seconds).run(sockets=[listener])


def _announce_worker(address: str, settings: Settings) -> None:
    if settings.log_format == "json":
        log.info("working", address=address, workers=settings.workers)
        return
    console = Console(stderr=True)
    console.print(f"howsure worker runs {settings.workers} at a time", highlight=False)
    console.print(f"  health         {address}/readyz", highlight=False)
    console.print(f"  data           {settings.data_dir.resolve()}", highlight=False)
