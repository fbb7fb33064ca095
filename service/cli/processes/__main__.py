"""``python -m service.cli.processes PARENT PLACE LISTENER CHANNEL TABLE``: one server process.

It takes connections from the listening socket that it inherits, and belongs to its parent, which
hands it the settings as environment variables.
"""

import signal
import socket
import sys
from types import FrameType

from service.app import create_app
from service.cli.given_settings import given_settings
from service.cli.processes.link import SupervisorLink
from service.cli.processes.open_connections import OpenConnections
from service.cli.processes.sharing_server import SharingServer
from service.log_lines import configure_logging
from service.runner.child.belong_to_parent import die_with_parent


def main(parent: int, place: int, listener: int, channel: int, table: int) -> None:
    """Answer requests until asked to end, then tell a last time what was counted."""
    die_with_parent(parent)
    # The server handles both while it runs, and raises them again when it has ended.
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGINT, _leave)
    settings = given_settings()
    configure_logging(settings.log_format)
    link = SupervisorLink(_inherited(channel))
    app = create_app(settings, on_ready=link.ready)
    link.share(app.state.metrics)
    server = SharingServer(
        app,
        place=place,
        table=OpenConnections(table),
        drain_seconds=settings.drain_seconds,
    )
    try:
        server.run(sockets=[_inherited(listener)])
    finally:
        link.tell()


def _inherited(descriptor: int) -> socket.socket:
    found = socket.socket(fileno=descriptor)
    found.set_inheritable(False)  # not by the children that run models
    return found


def _leave(_number: int, _frame: FrameType | None) -> None:
    sys.exit(0)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
