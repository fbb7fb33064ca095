"""``python -m service.cli.processes PARENT HOST PORT FILE``: one server process.

It listens on a port that the supervisor has reserved, and writes its metrics to the file. The
settings are environment variables.
"""

import asyncio
import sys
from pathlib import Path

from service.app import create_app
from service.child.exit_with_parent import die_with_parent
from service.cli.local import load_settings
from service.cli.server import Server, bind, listen
from service.cli.stopping import until_stopped
from service.metrics.shared import SharedMetrics
from service.startup import configure_logging


def main(parent: int, host: str, port: int, file: Path) -> None:
    """Serve until a signal, or until the parent ends."""
    die_with_parent(parent)
    with until_stopped():
        serve(host, port, file)


def serve(host: str, port: int, file: Path) -> None:
    """Serve; write the metrics each second, and a last time at the end."""
    settings = load_settings()
    configure_logging(settings.log_format)
    listener = bind(host, port, shared=True)
    tasks: list[asyncio.Task[None]] = []

    def ready() -> None:
        listen(listener)
        shared.write()
        tasks.append(asyncio.get_running_loop().create_task(shared.write_each_second()))

    app = create_app(settings, on_ready=ready, owns_process=True)
    shared = SharedMetrics(app.state.metrics, file)
    try:
        Server(app, drain_seconds=settings.drain_seconds).run(sockets=[listener])
    finally:
        if tasks:
            shared.write()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
