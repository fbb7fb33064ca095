"""A process for which permissions hold, whoever runs the tests."""

import ctypes
import struct

LINUX_CAPABILITY_VERSION_3 = 0x20080522


def drop_privileges() -> None:
    """Give up every capability of this thread, and of the threads and processes it starts."""
    header = struct.pack("Ii", LINUX_CAPABILITY_VERSION_3, 0)
    if ctypes.CDLL(None).capset(header, bytes(24)) != 0:
        raise OSError("the kernel keeps capabilities")
