"""A child process of a machine with these devices: ``python probed_child.py FD LOG DEVICE…``.

It writes each device that it is asked to try as a line of the file LOG.
"""

import socket
import sys
from pathlib import Path

from service.runner.messages.channel import Channel, ChannelClosed
from service.runner.messages.frames import Frame, Kind, encode


def main(fd, log, *there):
    channel = Channel(socket.socket(fileno=fd))
    channel.send(encode(Frame(Kind.READY, 0, {"versions": {}})))
    try:
        while True:
            request = channel.receive()
            device = request.fields["device"]
            with Path(log).open("a") as file:
                file.write(f"{device}\n")
            reason = "" if device in there else "it is not there"
            channel.send(encode(Frame(request.kind, request.sequence, {"reason": reason})))
    except ChannelClosed:
        pass


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
