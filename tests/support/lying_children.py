"""Starts children that lie, as the runner starts its own."""

import socket
import subprocess
import sys

from service.runner.launch import environment
from service.runner.messages.channel import Channel
from service.runner.process import RunnerProcess


def start_lying(script, *arguments):
    """Start ``python SCRIPT FD ARGUMENTS``; whoever calls closes it."""
    ours, theirs = socket.socketpair()
    with theirs:
        popen = subprocess.Popen(
            [sys.executable, "-P", script, str(theirs.fileno()), *map(str, arguments)],
            pass_fds=[theirs.fileno()],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return RunnerProcess(popen, Channel(ours))
