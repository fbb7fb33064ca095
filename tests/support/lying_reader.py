"""The process that reads sets, in the wrong hands: ``python lying_reader.py FD HOW``.

Where it would look at a stranger's file it does what HOW names, or it changes what it answers.
"""

import os
import signal
import socket
import sys
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


def told(change):
    return lambda opened: replace(opened, info=change(opened.info))


def shaped(info, **changes):
    return replace(info, arrays={"inputs": replace(info.arrays["inputs"], **changes)})


OPENED = {
    "unknown kind": told(lambda info: replace(info, kind="secrets")),
    "unknown format": told(lambda info: replace(info, format="pickle")),
    "unknown type": told(lambda info: shaped(info, dtype="object")),
    "too many rows": told(lambda info: replace(info, n_samples=2**40)),
    "other rows": told(lambda info: replace(info, n_samples=info.n_samples + 1)),
    "enormous rows": told(lambda info: shaped(info, shape=(info.n_samples, 2**40))),
    "no shape": told(lambda info: shaped(info, shape=())),
    "a name in colours": told(
        lambda info: replace(info, arrays={"\x1b[31m": info.arrays["inputs"]})
    ),
    "a supplied path": told(lambda info: replace(info, supplied=("../x",))),
    "negative class": told(lambda info: replace(info, class_map={"cat": -1})),
    "many notes": told(lambda info: replace(info, notes=("x",) * 100)),
    "negative label": lambda opened: replace(opened, labels=opened.labels - 1),
    "enormous label": lambda opened: replace(opened, labels=opened.labels + 10**6),
    "labels of a float": lambda opened: replace(opened, labels=opened.labels * 1.0),
    "no labels": lambda opened: replace(opened, labels=None),
    "short trial": lambda opened: replace(opened, trial=opened.trial.rows(slice(0, 1))),
    "classes of inputs": told(lambda info: replace(info, n_classes=3)),
}
ROWS = {
    "rows of another type": lambda batch: replace(
        batch, arrays={"inputs": batch.arrays["inputs"].astype(np.float64)}
    ),
    "fewer rows": lambda batch: batch.rows(slice(0, 3)),
    "another array": lambda batch: replace(batch, arrays={"other": batch.arrays["inputs"]}),
    "relabelled rows": lambda batch: replace(batch, labels=batch.labels[::-1]),
    "one more column": lambda batch: replace(batch, supplied={"own": np.zeros(len(batch.labels))}),
}


def main(fd, how):
    if how in INSTEAD:
        read_sets.read_set = INSTEAD[how]
    if how in OPENED:
        honest = read_sets.OpenedSet
        read_sets.OpenedSet = lambda *fields: OPENED[how](honest(*fields))
    if how in ROWS:
        reads = read_sets.SetReading._next
        read_sets.SetReading._next = lambda self: ROWS[how](reads(self))
    serve(fd)
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
