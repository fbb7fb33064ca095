"""``python -m service.cli.processes PARENT HOST PORT FILE``: one server process.

It listens on a port that the supervisor has reserved, and writes its metrics to the file. The
settings are environment variables.
"""

import asyncio
import signal
import sys
from pathlib import Path
from types import FrameType

from service.app import create_app
from service.child.exit_with_parent import die_with_parent
from service.cli.local import load_settings
from service.cli.server import Server, bind, listen
from service.metrics.shared import SharedMetrics
from service.startup import configure_logging


def main(parent: int, host: str, port: int, file: Path) -> None:
    """Serve until a signal, then write the metrics a last time."""
    die_with_parent(parent)
    # The server handles both while it runs, and raises them again when it has ended.
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGINT, _leave)
    settings = load_settings()
    configure_logging(settings.log_format)
    listener = bind(host, port, shared=True)
    tasks: list[asyncio.Task[None]] = []

    def ready() -> None:
        listen(listener)
        shared.write()
        tasks.append(asyncio.get_running_loop().create_task(shared.write_each_second()))

    app = create_app(settings, on_ready=ready)
    shared = SharedMetrics(app.state.metrics, file)
    try:
        Server(app, drain_seconds=settings.drain_seconds).run(sockets=[listener])
    finally:
        if tasks:
            shared.write()


def _leave(_number: int, _frame: FrameType | None) -> None:
    sys.exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
