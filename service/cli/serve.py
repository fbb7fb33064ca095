"""``howsure serve`` and ``howsure worker``: long-running processes in the foreground."""

import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import structlog
import typer
from rich.console import Console

from service.cli.failure import CommandFailed
from service.cli.local import load_settings, opened_stores, pepper_of, prepare, require_sandbox
from service.cli.server import Server, address_of, bind, listen
from service.cli.stopping import until_stopped
from service.settings import Settings


def require_api_key(settings: Settings) -> None:
    """Refuse to start on a reachable address without an API key, unless that is allowed.

    Raises
    ------
    CommandFailed
        If there is no key, or all keys were made with another pepper.
    """
    from service.access.api_keys import find_pepper
    from service.storage.api_keys import active_keys, key_counts
    from service.storage.tenants import ALL_TENANTS

    with opened_stores(settings) as stores, stores.database.reading(ALL_TENANTS) as session:
        was_any, good = key_counts(session).made, active_keys(session)
    if not was_any and not (settings.is_loopback() or settings.allow_anonymous):
        raise CommandFailed(
            f"{settings.host} is reachable from other machines and there is no API key. Create one "
            "with `howsure keys create NAME`, listen on 127.0.0.1, or set "
            "HOWSURE_ALLOW_ANONYMOUS=1 behind an authenticating proxy."
        )
    if good and not any(key.pepper_id == pepper_of(settings, find_pepper).id for key in good):
        raise CommandFailed(
            "HOWSURE_KEY_PEPPER: the API keys of this database were made with another pepper. "
            "Without this setting, the pepper is the file key-pepper in the data folder."
        )


def settings_help() -> str:
    """List each setting's variable, default and meaning."""
    # \b keeps the lines as they are; without it they would be joined to one paragraph.
    lines = ["Settings are environment variables, or lines of a `.env` file:", "", "\b"]
    for name, found in Settings.model_fields.items():
        default = "" if found.default in ("", None) else f" (default {found.default})"
        meaning = " ".join(str(found.description).split())
        lines += [f"HOWSURE_{name.upper()}{default}", f"  {meaning}"]
    return "\n".join(lines)


log = structlog.get_logger(__name__)


DataDirOption = Annotated[
    Path | None, typer.Option(help="Folder of the database, artifacts and uploads.")
]


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port; 0 picks a free one.")] = None,
    data_dir: DataDirOption = None,
    no_worker: Annotated[
        bool, typer.Option("--no-worker", help="Run no jobs; `howsure worker` runs them elsewhere.")
    ] = False,
) -> None:
    """Run the service: HTTP, workers and model processes."""
    settings = load_settings(
        host=host,
        port=port,
        data_dir=data_dir,
        workers=0 if no_worker else None,
    )
    with until_stopped():
        _serve(settings)
    _announce_stop(settings, "howsure")


# typer shows the docstring as the command's help; the settings come from their one definition.
serve.__doc__ = f"{serve.__doc__}\n\n{settings_help()}"


def _serve(settings: Settings) -> None:
    listener = _prepared_listener(settings, settings.port)
    require_api_key(settings)
    address, data = address_of(listener, settings.host), str(settings.data_dir.resolve())

    def ready() -> None:
        listen(listener)
        shown = {"documentation": f"{address}/docs", "data": data}
        _announce(settings, f"howsure answers on {address}", shown, "answering", address, data=data)

    from service.app import create_app

    app = create_app(settings, on_ready=ready, owns_process=True)
    Server(app, drain_seconds=settings.drain_seconds).run(sockets=[listener])


def _prepared_listener(settings: Settings, port: int) -> socket.socket:
    """Bind the port, prepare the stores and configure the log of a process that serves."""
    from service.startup import configure_logging

    require_sandbox(settings)
    listener = bind(settings.host, port)
    prepare(settings)
    configure_logging(settings.log_format)
    return listener


def _announce(
    settings: Settings,
    sentence: str,
    shown: Mapping[str, str],
    event: str,
    address: str,
    **logged: str | int,
) -> None:
    """Print a sentence and more lines, or write them as an event to a log in JSON."""
    if settings.log_format == "json":
        log.info(event, address=address, **logged)
        return
    lines = [sentence, *(f"  {name:<13}  {value}" for name, value in shown.items())]
    Console(stderr=True).print("\n".join(lines), highlight=False)


def _announce_stop(settings: Settings, name: str) -> None:
    if settings.log_format == "json":
        log.info("stopped")
    else:
        Console(stderr=True).print(f"{name} has stopped", highlight=False)


def worker(
    workers: Annotated[
        int | None, typer.Option(min=1, max=64, help="Jobs that this process runs at a time.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Port for health and metrics; 0 picks a free one."),
    ] = None,
    host: Annotated[str | None, typer.Option(help="Address for health and metrics.")] = None,
    data_dir: DataDirOption = None,
) -> None:
    """Run queued calibrations and evaluations, beside `howsure serve --no-worker`."""
    settings = load_settings(host=host, worker_port=port, data_dir=data_dir, workers=workers)
    n = settings.workers
    if not n:
        raise CommandFailed("HOWSURE_WORKERS: a worker runs 1 job or more at a time; see --workers")
    with until_stopped():
        _work(settings, n)
    _announce_stop(settings, "howsure worker")


def _work(settings: Settings, n: int) -> None:
    listener = _prepared_listener(settings, settings.worker_port)
    address = address_of(listener, settings.host)

    def ready() -> None:
        listen(listener)
        shown = {"health": f"{address}/readyz", "data": str(settings.data_dir.resolve())}
        sentence = f"howsure worker runs {n} jobs at a time"
        _announce(settings, sentence, shown, "working", address, workers=n)

    from service.worker_app import create_worker_app

    app = create_worker_app(settings, on_ready=ready)
    Server(app, drain_seconds=settings.drain_seconds).run(sockets=[listener])
