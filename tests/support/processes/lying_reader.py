"""The process that reads sets, in the wrong hands, forked from the server of `forked_children`.

Where it would look at a stranger's file it does what HOW names, or it changes what it answers.
"""

import os
import signal
import socket
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from service.child.reading import read_sets
from service.child.serve import serve


def take_memory(*_, **__):
    return [np.ones(2**28) for _ in range(2)]


def take_arrow_memory(*_, **__):
    return pa.allocate_buffer(2**33)


def raise_of_a_library(*_, **__):
    raise pa.ArrowInvalid("Couldn't deserialize thrift: /usr/lib/secret.so")


def look_around(file, *_, **__):
    """Fail in a way that tells whether anything can be reached."""
    found = []
    for name, attempt in {
        "a file": lambda: Path("/etc/passwd").read_bytes(),
        "a socket": socket.socket,
        "writing": lambda: os.truncate(file._descriptor, 0),
    }.items():
        try:
            attempt()
            found.append(name)
        except OSError:
            pass
    threading.Thread(target=len, args=[""]).start()
    raise read_sets.InvalidDataset.at("calibration", f"reached {found}")


INSTEAD = {
    "abort": lambda *_, **__: os.abort(),
    "segmentation fault": lambda *_, **__: os.kill(os.getpid(), signal.SIGSEGV),
    "killed": lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL),
    "sleep": lambda *_, **__: time.sleep(600),
    "memory": take_memory,
    "arrow memory": take_arrow_memory,
    "library": raise_of_a_library,
    "look around": look_around,
}


def main(fd, how):
    if how in INSTEAD:
        read_sets.read_set = INSTEAD[how]
    if how == "another format":
        honest = read_sets.OpenedSet.as_tensors
        read_sets.OpenedSet.as_tensors = lambda opened, position: honest(
            replace(opened, info=replace(opened.info, format="pickle")), position
        )
    if how == "fewer rows":
        reads = read_sets.SetReading._next
        read_sets.SetReading._next = lambda self: reads(self).rows(slice(0, 3))
    serve(fd)
    os._exit(0)
